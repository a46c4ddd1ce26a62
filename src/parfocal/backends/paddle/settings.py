"""Where PaddlePaddle's layers keep their settings: kind -> common setting name -> where to look.

One entry a kind. Settings have one meaning on every side (see ``vocabulary.py``), so an
entry converts where PaddlePaddle means something else by the same word.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from parfocal.backends import shared_tables
from parfocal.backends.paddle.losses import LOSSES
from parfocal.backends.reading import (
    Table,
    channels_last,
    constant,
    either,
    ints,
    name_of,
    padding_of,
    plain,
    present,
    since,
    spread,
    stride_of,
)
from parfocal.backends.shared_tables import ranked


def _convolution(rank: int) -> Table:
    return {
        "in_channels": "_in_channels",
        "out_channels": "_out_channels",
        "kernel_size": ints("_kernel_size", rank),
        "stride": ints("_stride", rank),
        "padding": padding_of("_padding", rank),
        "dilation": ints("_dilation", rank),
        "groups": "_groups",
        "padding_mode": "_padding_mode",
        "bias": present("bias"),
        "channels_last": channels_last,
    }


def _transposed(rank: int) -> Table:
    return {**_convolution(rank), "output_padding": ints("output_padding", rank)}


def _momentum(module: Any) -> float:
    """The weight of the new value; paddle stores that of the old one."""
    return float(round(1 - module._momentum, 12))


def _batch_statistics(module: Any) -> bool:
    """False, unlike None, means never running statistics; the older BatchNorm does not know None."""
    return module._use_global_stats is False and not hasattr(module, "_trainable_statistics")


BATCH_NORM: Table = {
    "num_features": lambda module: module._mean.shape[0],
    "epsilon": "_epsilon",
    "momentum": _momentum,
    "affine": present("weight"),
    "track_running_stats": constant(True),
    "channels_last": channels_last,
    "activation": lambda module: getattr(module, "_act", None),
    "use_global_stats": lambda module: bool(module._use_global_stats),
    "batch_statistics": _batch_statistics,
}
INSTANCE_NORM: Table = {
    "num_features": "_num_features",
    "epsilon": "_epsilon",
    "momentum": _momentum,
    "affine": present("scale"),
    "track_running_stats": constant(False),
    "channels_last": channels_last,
}


def _kernel(rank: int) -> str:
    return "kernel_size" if rank == 1 else "ksize"


def _window(rank: int) -> Table:
    return {
        "kernel_size": ints(_kernel(rank), rank),
        "stride": stride_of(_kernel(rank), rank),
        "padding": padding_of("padding", rank),
    }


def _max_pool(rank: int) -> Table:
    return {
        **_window(rank),
        "dilation": constant((1,) * rank),
        "ceil_mode": "ceil_mode",
        "return_indices": "return_mask",
    }


def _average_pool(rank: int) -> Table:
    table: Table = {
        **_window(rank),
        "ceil_mode": "ceil_mode",
        "count_include_pad": lambda module: not module.exclusive,
    }
    return {**table, "divisor_override": "divisor"} if rank > 1 else table


def _compat_average_pool(rank: int) -> Table:
    table: Table = {
        "kernel_size": ints("kernel_size", rank),
        "stride": stride_of("kernel_size", rank),
        "padding": padding_of("padding", rank),
        "ceil_mode": "ceil_mode",
        "count_include_pad": "count_include_pad",
    }
    return {**table, "divisor_override": "divisor_override"} if rank > 1 else table


def _power_pool(rank: int) -> Table:
    return {**_window(rank), "norm_type": "norm_type", "ceil_mode": "ceil_mode"}


def _unpool(rank: int) -> Table:
    return {
        "kernel_size": ints("ksize", rank),
        "stride": stride_of("ksize", rank),
        "padding": padding_of("padding", rank),
    }


def _output_size(rank: int) -> Callable[[Any], Any]:
    def reader(module: Any) -> Any:
        size = module.output_size if rank == 1 else module._output_size
        return (None,) * rank if size is None else spread(size, rank)

    return reader


def _fractional_pool(rank: int) -> Table:
    return {
        "kernel_size": ints("_kernel_size", rank),
        "output_size": ints("_output_size", rank),
        "return_indices": "_return_mask",
    }


def _pad(rank: int) -> Table:
    return {
        "padding": either("padding", "_pad"),
        "mode": "_mode",
        "value": either("value", "_value"),
        "channels_last": channels_last,
    }


def _has_biases(module: Any) -> bool:
    return any(name.startswith("bias") for name in module._parameters)


def _recurrent() -> Table:
    return {
        "input_size": "input_size",
        "hidden_size": "hidden_size",
        "layers": "num_layers",
        "bidirectional": lambda module: module.num_directions == 2,
        "batch_first": lambda module: not module.time_major,
        "dropout": "dropout",
        "bias": _has_biases,
        "projection_size": since("proj_size", 0),
    }


CELL: Table = {"input_size": "input_size", "hidden_size": "hidden_size", "bias": _has_biases}


def _from_weight(module: Any, axis: int) -> int:
    return int(module.weight.shape[axis])


def _padding_idx(module: Any) -> int | None:
    index = module._padding_idx
    return index + module._num_embeddings if index is not None and index < 0 else index


def _approximate(module: Any) -> str:
    return "tanh" if module._approximate in (True, "tanh") else "none"


def _scale_factor(module: Any) -> Any:
    scale = plain(module.scale_factor)
    return float(scale) if isinstance(scale, int) else scale


def _transformer_layer() -> Table:
    return {
        "model_size": lambda module: module._config["d_model"],
        "num_heads": lambda module: module._config["nhead"],
        "feedforward_size": lambda module: module._config["dim_feedforward"],
        "dropout": lambda module: module._config["dropout"],
        "activation": name_of("activation"),
        "boolean_mask": constant("keep"),
        "norm_first": "normalize_before",
        "batch_first": constant(True),
        "epsilon": lambda module: module.norm1._epsilon,
    }


WINDOW: Table = {
    "kernel_size": ints("kernel_sizes", 2),
    "stride": ints("strides", 2),
    "padding": padding_of("paddings", 2),
    "dilation": ints("dilations", 2),
}

SETTINGS: dict[str, Table] = {
    **shared_tables.SETTINGS,
    "Linear": {
        "in_features": lambda module: _from_weight(module, 0),
        "out_features": lambda module: _from_weight(module, 1),
        "bias": present("bias"),
        "weight_layout": constant("in,out"),
    },
    "Bilinear": {
        "in1_features": "_in1_features",
        "in2_features": "_in2_features",
        "out_features": "_out_features",
        "bias": present("bias"),
    },
    **ranked("Conv", _convolution),
    **ranked("ConvTranspose", _transposed),
    **ranked("BatchNorm", lambda rank: BATCH_NORM),
    "BatchNorm": BATCH_NORM,
    "SyncBatchNorm": BATCH_NORM,
    **ranked("InstanceNorm", lambda rank: INSTANCE_NORM),
    "GroupNorm": {
        "num_groups": "_num_groups",
        "num_channels": "_num_channels",
        "epsilon": "_epsilon",
        "affine": present("weight"),
        "channels_last": channels_last,
    },
    "LayerNorm": {
        "normalized_shape": "_normalized_shape",
        "epsilon": "_epsilon",
        "affine": present("weight"),
        "bias": present("bias"),
    },
    "LocalResponseNorm": {
        "size": "size",
        "alpha": "alpha",
        "beta": "beta",
        "k": "k",
        "channels_last": channels_last,
    },
    "SpectralNorm": {"power_iterations": "_power_iters", "epsilon": "_eps", "axis": "_dim"},
    **ranked("MaxPool", _max_pool),
    **ranked("AvgPool", _average_pool),
    "LPPool1d": _power_pool(1),
    "LPPool2d": _power_pool(2),
    **ranked("MaxUnpool", _unpool),
    **ranked("AdaptiveAvgPool", lambda rank: {"output_size": _output_size(rank)}),
    **ranked(
        "AdaptiveMaxPool",
        lambda rank: {
            "output_size": _output_size(rank),
            "return_indices": "return_mask" if rank == 1 else "_return_mask",
        },
    ),
    "FractionalMaxPool2d": _fractional_pool(2),
    "FractionalMaxPool3d": _fractional_pool(3),
    "SELU": {"scale": "_scale", "alpha": "_alpha"},
    "ELU": {"alpha": "_alpha"},
    "CELU": {"alpha": "_alpha"},
    "GELU": {"approximate": _approximate},
    "GLU": {"axis": "_axis"},
    "Maxout": {"groups": "_groups", "axis": "_axis"},
    "LeakyReLU": {"negative_slope": "_negative_slope"},
    "PReLU": {"num_parameters": "_num_parameters", "channels_last": channels_last},
    "RReLU": {"lower": "_lower", "upper": "_upper"},
    "Threshold": {"threshold": "_threshold", "value": since("_value", 0.0)},
    "Hardshrink": {"threshold": "_threshold"},
    "Softshrink": {"threshold": "_threshold"},
    "Hardtanh": {"minimum": "_min", "maximum": "_max"},
    "Softplus": {
        "beta": lambda module: float(module._beta),
        "threshold": lambda module: float(module._threshold),
    },
    "Softmax": {"axis": "_axis"},
    "LogSoftmax": {"axis": "_axis"},
    "Dropout": {"p": "p", "mode": "mode", "axis": "axis"},
    "Dropout2d": {"p": "p"},
    "Dropout3d": {"p": "p"},
    "Embedding": {
        "num_embeddings": "_num_embeddings",
        "embedding_dim": "_embedding_dim",
        "padding_idx": _padding_idx,
        "max_norm": since("_max_norm", None),
        "norm_type": since("_norm_type", 2.0),
        "scale_grad_by_freq": since("_scale_grad_by_freq", False),
    },
    "RNN": {**_recurrent(), "activation": "activation"},
    "LSTM": _recurrent(),
    "GRU": _recurrent(),
    "RNNCell": {**CELL, "activation": "activation"},
    "LSTMCell": CELL,
    "GRUCell": CELL,
    "RNNOverCell": {
        "reverse": "is_reverse",
        "batch_first": lambda module: not module.time_major,
    },
    "BiRNNOverCells": {"batch_first": lambda module: not module.time_major},
    "MultiheadAttention": {
        "embed_dim": "embed_dim",
        "num_heads": "num_heads",
        "key_size": "kdim",
        "value_size": "vdim",
        "dropout": "dropout",
        "bias": lambda module: module.q_proj.bias is not None,
        "batch_first": constant(True),
        "boolean_mask": constant("keep"),
    },
    "Transformer": {"model_size": "d_model", "num_heads": "nhead", "batch_first": constant(True)},
    "TransformerEncoder": {"layers": "num_layers", "boolean_mask": constant("keep")},
    "TransformerDecoder": {"layers": "num_layers", "boolean_mask": constant("keep")},
    "TransformerEncoderLayer": _transformer_layer(),
    "TransformerDecoderLayer": _transformer_layer(),
    **ranked("Pad", _pad),
    **ranked("ConstantPad", _pad),
    **ranked("ZeroPad", _pad),
    **ranked("ReflectionPad", _pad),
    **ranked("ReplicationPad", _pad),
    **ranked("CircularPad", _pad),
    "Upsample": {
        "size": "size",
        "scale_factor": _scale_factor,
        "mode": lambda module: module.mode.lower(),
        "align_corners": "align_corners",
        "align_mode": "align_mode",
    },
    "UpsamplingBilinear2d": {
        "size": lambda module: spread(module.size, 2),
        "scale_factor": _scale_factor,
        "mode": constant("bilinear"),
        "align_corners": constant(True),
    },
    "UpsamplingNearest2d": {
        "size": lambda module: spread(module.size, 2),
        "scale_factor": _scale_factor,
        "mode": constant("nearest"),
        "align_corners": constant(False),
    },
    "PixelShuffle": {"factor": "_upscale_factor", "channels_last": channels_last},
    "PixelUnshuffle": {"factor": "_downscale_factor", "channels_last": channels_last},
    "ChannelShuffle": {"groups": "_groups", "channels_last": channels_last},
    "Flatten": {"start_axis": "start_axis", "stop_axis": "stop_axis"},
    "Unflatten": {"axis": "axis", "shape": "shape"},
    "Unfold": WINDOW,
    "Fold": {**WINDOW, "output_size": ints("output_sizes", 2)},
    "CosineSimilarity": {"axis": "_axis", "epsilon": "_eps"},
    "PairwiseDistance": {"p": "p", "epsilon": "epsilon", "keepdim": "keepdim"},
    **LOSSES,
}

# The layers of paddle.compat.nn behave as torch's and keep their settings elsewhere.
COMPAT_SETTINGS: dict[str, Table] = {
    **SETTINGS,
    "Linear": {
        "in_features": "in_features",
        "out_features": "out_features",
        "bias": present("bias"),
        "weight_layout": constant("out,in"),
    },
    **ranked("AvgPool", _compat_average_pool),
    "Softmax": {"axis": "_dim"},
    "MultiheadAttention": {
        **SETTINGS["MultiheadAttention"],
        "bias": present("in_proj_bias"),
        "batch_first": "batch_first",
        "boolean_mask": constant("drop"),
    },
}
