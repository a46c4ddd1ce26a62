"""Where PyTorch's layers keep their settings: kind -> common setting name -> where to look.

One entry a kind. Settings have one meaning on every side (see ``vocabulary.py``), so an
entry converts where PyTorch means something else by the same word.
"""

from __future__ import annotations

from typing import Any

from parfocal.backends import shared_tables
from parfocal.backends.reading import (
    Table,
    constant,
    ints,
    name_of,
    padding_of,
    plain,
    present,
    spread,
    stride_of,
)
from parfocal.backends.shared_tables import ranked
from parfocal.backends.torch.losses import LOSSES


def _convolution(rank: int) -> Table:
    return {
        "in_channels": "in_channels",
        "out_channels": "out_channels",
        "kernel_size": ints("kernel_size", rank),
        "stride": ints("stride", rank),
        "padding": padding_of("padding", rank),
        "dilation": ints("dilation", rank),
        "groups": "groups",
        "padding_mode": "padding_mode",
        "bias": present("bias"),
        "channels_last": constant(False),
    }


def _transposed(rank: int) -> Table:
    return {**_convolution(rank), "output_padding": ints("output_padding", rank)}


def _running_norm(extra: Table) -> Table:
    return {
        "num_features": "num_features",
        "epsilon": "eps",
        "momentum": "momentum",
        "affine": "affine",
        "track_running_stats": "track_running_stats",
        "channels_last": constant(False),
        **extra,
    }


def _max_pool(rank: int) -> Table:
    return {
        "kernel_size": ints("kernel_size", rank),
        "stride": stride_of("kernel_size", rank),
        "padding": padding_of("padding", rank),
        "dilation": ints("dilation", rank),
        "ceil_mode": "ceil_mode",
        "return_indices": "return_indices",
    }


def _average_pool(rank: int) -> Table:
    table: dict[str, Any] = {
        "kernel_size": ints("kernel_size", rank),
        "stride": stride_of("kernel_size", rank),
        "padding": padding_of("padding", rank),
        "ceil_mode": "ceil_mode",
        "count_include_pad": "count_include_pad",
    }
    return {**table, "divisor_override": "divisor_override"} if rank > 1 else table


def _power_pool(rank: int) -> Table:
    return {
        "norm_type": lambda module: float(module.norm_type),
        "kernel_size": ints("kernel_size", rank),
        "stride": stride_of("kernel_size", rank),
        "padding": constant((0,) * rank),
        "ceil_mode": "ceil_mode",
    }


def _unpool(rank: int) -> Table:
    return {
        "kernel_size": ints("kernel_size", rank),
        "stride": stride_of("kernel_size", rank),
        "padding": padding_of("padding", rank),
    }


def _fractional_pool(rank: int) -> Table:
    return {
        "kernel_size": ints("kernel_size", rank),
        "output_size": ints("output_size", rank),
        "return_indices": "return_indices",
    }


def _pad(mode: str) -> Table:
    value: Table = {"value": "value"} if mode == "constant" else {"value": constant(0.0)}
    return {"padding": "padding", "mode": constant(mode), **value}


def _recurrent() -> Table:
    return {
        "input_size": "input_size",
        "hidden_size": "hidden_size",
        "layers": "num_layers",
        "bidirectional": "bidirectional",
        "batch_first": "batch_first",
        "dropout": "dropout",
        "bias": "bias",
        "projection_size": "proj_size",
    }


CELL: Table = {"input_size": "input_size", "hidden_size": "hidden_size", "bias": "bias"}
BATCH_NORM: Table = _running_norm(
    {
        "activation": constant(None),
        "use_global_stats": constant(False),
        "batch_statistics": lambda module: module.running_mean is None,
    }
)


def _epsilon_of_rms(module: Any) -> float | None:
    import torch  # a table can be read without it

    if module.eps is not None or module.weight is None:
        return module.eps
    return float(torch.finfo(module.weight.dtype).eps)


def _align_corners(module: Any) -> bool:
    return bool(module.align_corners)


def _scale_factor(module: Any) -> Any:
    return plain(module.scale_factor)


def _transformer_layer() -> Table:
    return {
        "model_size": lambda module: module.linear1.in_features,
        "num_heads": lambda module: module.self_attn.num_heads,
        "feedforward_size": lambda module: module.linear1.out_features,
        "dropout": lambda module: module.dropout.p,
        "activation": name_of("activation"),
        "boolean_mask": constant("drop"),
        "norm_first": "norm_first",
        "batch_first": lambda module: module.self_attn.batch_first,
        "epsilon": lambda module: module.norm1.eps,
    }


WINDOW: Table = {
    "kernel_size": ints("kernel_size", 2),
    "stride": ints("stride", 2),
    "padding": padding_of("padding", 2),
    "dilation": ints("dilation", 2),
}

SETTINGS: dict[str, Table] = {
    **shared_tables.SETTINGS,
    "Linear": {
        "in_features": "in_features",
        "out_features": "out_features",
        "bias": present("bias"),
        "weight_layout": constant("out,in"),
    },
    "Bilinear": {
        "in1_features": "in1_features",
        "in2_features": "in2_features",
        "out_features": "out_features",
        "bias": present("bias"),
    },
    **ranked("Conv", _convolution),
    **ranked("ConvTranspose", _transposed),
    **ranked("BatchNorm", lambda rank: BATCH_NORM),
    "SyncBatchNorm": BATCH_NORM,
    **ranked("InstanceNorm", lambda rank: _running_norm({})),
    "GroupNorm": {
        "num_groups": "num_groups",
        "num_channels": "num_channels",
        "epsilon": "eps",
        "affine": "affine",
        "channels_last": constant(False),
    },
    "LayerNorm": {
        "normalized_shape": "normalized_shape",
        "epsilon": "eps",
        "affine": "elementwise_affine",
        "bias": present("bias"),
    },
    "RMSNorm": {
        "normalized_shape": "normalized_shape",
        "epsilon": _epsilon_of_rms,
        "affine": "elementwise_affine",
    },
    "LocalResponseNorm": {
        "size": "size",
        "alpha": "alpha",
        "beta": "beta",
        "k": lambda module: float(module.k),
        "channels_last": constant(False),
    },
    **ranked("MaxPool", _max_pool),
    **ranked("AvgPool", _average_pool),
    **ranked("LPPool", _power_pool),
    **ranked("MaxUnpool", _unpool),
    **ranked("AdaptiveAvgPool", lambda rank: {"output_size": ints("output_size", rank)}),
    **ranked(
        "AdaptiveMaxPool",
        lambda rank: {"output_size": ints("output_size", rank), "return_indices": "return_indices"},
    ),
    "FractionalMaxPool2d": _fractional_pool(2),
    "FractionalMaxPool3d": _fractional_pool(3),
    "SELU": {"scale": constant(1.0507009873554805), "alpha": constant(1.6732632423543772)},
    "ELU": {"alpha": "alpha"},
    "CELU": {"alpha": "alpha"},
    "GELU": {"approximate": "approximate"},
    "GLU": {"axis": "dim"},
    "LeakyReLU": {"negative_slope": "negative_slope"},
    "PReLU": {"num_parameters": "num_parameters", "channels_last": constant(False)},
    "RReLU": {"lower": "lower", "upper": "upper"},
    "Threshold": {"threshold": "threshold", "value": "value"},
    "Hardshrink": {"threshold": "lambd"},
    "Softshrink": {"threshold": "lambd"},
    "Hardtanh": {"minimum": "min_val", "maximum": "max_val"},
    "Softplus": {"beta": "beta", "threshold": "threshold"},
    "Softmax": {"axis": "dim"},
    "Softmin": {"axis": "dim"},
    "LogSoftmax": {"axis": "dim"},
    "Dropout": {"p": "p", "mode": constant("upscale_in_train"), "axis": constant(None)},
    **ranked("Dropout", lambda rank: {"p": "p"}),
    "Embedding": {
        "num_embeddings": "num_embeddings",
        "embedding_dim": "embedding_dim",
        "padding_idx": "padding_idx",
        "max_norm": "max_norm",
        "norm_type": "norm_type",
        "scale_grad_by_freq": "scale_grad_by_freq",
    },
    "EmbeddingBag": {
        "num_embeddings": "num_embeddings",
        "embedding_dim": "embedding_dim",
        "padding_idx": "padding_idx",
        "mode": "mode",
    },
    "RNN": {**_recurrent(), "activation": "nonlinearity"},
    "LSTM": _recurrent(),
    "GRU": _recurrent(),
    "RNNCell": {**CELL, "activation": "nonlinearity"},
    "LSTMCell": CELL,
    "GRUCell": CELL,
    "MultiheadAttention": {
        "embed_dim": "embed_dim",
        "num_heads": "num_heads",
        "key_size": "kdim",
        "value_size": "vdim",
        "dropout": "dropout",
        "bias": present("in_proj_bias"),
        "batch_first": "batch_first",
        "boolean_mask": constant("drop"),
    },
    "Transformer": {"model_size": "d_model", "num_heads": "nhead", "batch_first": "batch_first"},
    "TransformerEncoder": {"layers": "num_layers", "boolean_mask": constant("drop")},
    "TransformerDecoder": {"layers": "num_layers", "boolean_mask": constant("drop")},
    "TransformerEncoderLayer": _transformer_layer(),
    "TransformerDecoderLayer": _transformer_layer(),
    **ranked("ConstantPad", lambda rank: _pad("constant")),
    **ranked("ZeroPad", lambda rank: _pad("constant")),
    **ranked("ReflectionPad", lambda rank: _pad("reflect")),
    **ranked("ReplicationPad", lambda rank: _pad("replicate")),
    **ranked("CircularPad", lambda rank: _pad("circular")),
    "Upsample": {
        "size": "size",
        "scale_factor": _scale_factor,
        "mode": "mode",
        "align_corners": _align_corners,
        "align_mode": constant(0),
    },
    "UpsamplingBilinear2d": {
        "size": lambda module: spread(module.size, 2),
        "scale_factor": _scale_factor,
        "mode": constant("bilinear"),
        "align_corners": _align_corners,
    },
    "UpsamplingNearest2d": {
        "size": lambda module: spread(module.size, 2),
        "scale_factor": _scale_factor,
        "mode": constant("nearest"),
        "align_corners": _align_corners,
    },
    "PixelShuffle": {"factor": "upscale_factor", "channels_last": constant(False)},
    "PixelUnshuffle": {"factor": "downscale_factor", "channels_last": constant(False)},
    "ChannelShuffle": {"groups": "groups", "channels_last": constant(False)},
    "Flatten": {"start_axis": "start_dim", "stop_axis": "end_dim"},
    "Unflatten": {"axis": "dim", "shape": "unflattened_size"},
    "Unfold": WINDOW,
    "Fold": {**WINDOW, "output_size": ints("output_size", 2)},
    "CosineSimilarity": {"axis": "dim", "epsilon": "eps"},
    "PairwiseDistance": {"p": "norm", "epsilon": "eps", "keepdim": "keepdim"},
    **LOSSES,
}
