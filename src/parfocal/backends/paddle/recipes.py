"""How PaddlePaddle's layers are built from common settings: kind -> class and arguments."""

from __future__ import annotations

from typing import Any

from parfocal.backends import shared_tables
from parfocal.backends.building import Argument, Recipe, absent, channel_format, recipe, short
from parfocal.backends.paddle.losses import RECIPES as LOSSES
from parfocal.backends.shared_tables import ranked, resize

_FIRST = {1: "NCL", 2: "NCHW", 3: "NCDHW"}
_LAST = {1: "NLC", 2: "NHWC", 3: "NDHWC"}
_MOMENTUM = Argument("momentum", lambda value: round(1 - value, 12))
_DIRECTION = Argument("direction", lambda value: "bidirect" if value else "forward")
_TIME_MAJOR = Argument("time_major", lambda value: not value)


def _layout(rank: int) -> Argument:
    return channel_format(_FIRST[rank], _LAST[rank])


def _padding(value: Any) -> Any:
    """Other modes than zeros take one number only, and different borders are written in a row."""
    if isinstance(value, tuple) and value and isinstance(value[0], tuple):
        return [amount for pair in value for amount in pair]
    return short(value)


def _convolution(rank: int, name: str, *more: str) -> Recipe:
    return recipe(
        name,
        "in_channels",
        "out_channels",
        "kernel_size",
        "stride",
        "dilation",
        "groups",
        *more,
        padding=Argument("padding", _padding),
        bias=absent("bias_attr"),
        channels_last=_layout(rank),
    )


def _batch_norm(rank: int) -> Recipe:
    return recipe(
        f"BatchNorm{rank}D",
        "num_features",
        "epsilon",
        momentum=_MOMENTUM,
        affine=absent("weight_attr", "bias_attr"),
        channels_last=_layout(rank),
        use_global_stats=Argument("use_global_stats", only=bool),
        batch_statistics=Argument("use_global_stats", lambda value: False, only=bool),
        fixed={"activation": None, "track_running_stats": True},
    )


def _average_pool(rank: int) -> Recipe:
    more = ("divisor_override",) if rank > 1 else ()
    return recipe(
        f"AvgPool{rank}D",
        "kernel_size",
        "stride",
        "padding",
        "ceil_mode",
        *more,
        count_include_pad=Argument("exclusive", lambda value: not value),
    )


def _recurrent(name: str, **more: Any) -> Recipe:
    return recipe(
        name,
        "input_size",
        "hidden_size",
        "dropout",
        layers="num_layers",
        bidirectional=_DIRECTION,
        batch_first=_TIME_MAJOR,
        fixed={"bias": True},  # without, a call ends the process (3.3.1 on a CPU)
        **more,
    )


def _transformer_layer(name: str) -> Recipe:
    return recipe(
        name,
        "dropout",
        "activation",
        model_size="d_model",
        num_heads="nhead",
        feedforward_size="dim_feedforward",
        norm_first="normalize_before",
        epsilon="layer_norm_eps",
        fixed={"batch_first": True},
    )


def _pads(rank: int) -> dict[str, Recipe]:
    """Classes that have their mode by name, and the one that takes it."""
    layout = _layout(rank)
    named = {"Reflection": "reflect", "Replication": "replicate", "Circular": "circular"}
    return {
        f"Pad{rank}d": recipe(f"Pad{rank}D", "padding", "mode", "value", channels_last=layout),
        f"ConstantPad{rank}d": recipe(
            f"ConstantPad{rank}D", "padding", "value", channels_last=layout, fixed={"mode": "constant"}
        ),
        f"ZeroPad{rank}d": recipe(
            f"ZeroPad{rank}D", "padding", channels_last=layout, fixed={"mode": "constant", "value": 0.0}
        ),
        **{
            f"{name}Pad{rank}d": recipe(
                f"{name}Pad{rank}D", "padding", channels_last=layout, fixed={"mode": mode}
            )
            for name, mode in named.items()
        },
    }


def _cell(name: str, *more: str) -> Recipe:
    return recipe(name, "input_size", "hidden_size", *more, bias=absent("bias_ih_attr", "bias_hh_attr"))


_WINDOW: dict[str, Any] = {
    "kernel_size": "kernel_sizes",
    "stride": "strides",
    "padding": "paddings",
    "dilation": "dilations",
}

RECIPES: dict[str, Recipe] = {
    **shared_tables.RECIPES,
    "Linear": recipe("Linear", "in_features", "out_features", bias=absent("bias_attr")),
    "Bilinear": recipe("Bilinear", "in1_features", "in2_features", "out_features", bias=absent("bias_attr")),
    **ranked("Conv", lambda rank: _convolution(rank, f"Conv{rank}D", "padding_mode")),
    **ranked("ConvTranspose", lambda rank: _convolution(rank, f"Conv{rank}DTranspose", "output_padding")),
    **ranked("BatchNorm", _batch_norm),
    "BatchNorm": recipe(
        "BatchNorm",
        "epsilon",
        num_features="num_channels",
        momentum=_MOMENTUM,
        activation=Argument("act", only=lambda value: value is not None),
        channels_last=channel_format("NCHW", "NHWC", "data_layout"),
        use_global_stats=Argument("use_global_stats", only=bool),
    ),
    **ranked(
        "InstanceNorm",
        lambda rank: recipe(
            f"InstanceNorm{rank}D",
            "num_features",
            "epsilon",
            affine=absent("weight_attr", "bias_attr"),
            momentum=_MOMENTUM,
            fixed={"track_running_stats": False},
        ),
    ),
    "GroupNorm": recipe(
        "GroupNorm",
        "num_groups",
        "num_channels",
        "epsilon",
        affine=absent("weight_attr", "bias_attr"),
        channels_last=channel_format("NCHW", "NHWC"),
    ),
    "LayerNorm": recipe(
        "LayerNorm",
        "normalized_shape",
        "epsilon",
        affine=absent("weight_attr"),
        bias=absent("bias_attr"),
    ),
    "LocalResponseNorm": recipe(
        "LocalResponseNorm", "size", "alpha", "beta", "k", channels_last=channel_format("NCHW", "NHWC")
    ),
    **ranked(
        "MaxPool",
        lambda rank: recipe(
            f"MaxPool{rank}D",
            "kernel_size",
            "stride",
            "padding",
            "ceil_mode",
            return_indices="return_mask",
            fixed={"dilation": (1,) * rank},
        ),
    ),
    **ranked("AvgPool", _average_pool),
    **{
        f"LPPool{rank}d": recipe(
            f"LPPool{rank}D", "norm_type", "kernel_size", "stride", "padding", "ceil_mode"
        )
        for rank in (1, 2)
    },
    **ranked("MaxUnpool", lambda rank: recipe(f"MaxUnPool{rank}D", "kernel_size", "stride", "padding")),
    **ranked("AdaptiveAvgPool", lambda rank: recipe(f"AdaptiveAvgPool{rank}D", "output_size")),
    **ranked(
        "AdaptiveMaxPool",
        lambda rank: recipe(f"AdaptiveMaxPool{rank}D", "output_size", return_indices="return_mask"),
    ),
    "SiLU": recipe("Silu"),
    "Softmax2d": recipe("Softmax2D"),
    "PReLU": recipe("PReLU", "num_parameters", channels_last=_layout(2)),
    "Maxout": recipe("Maxout", "groups", "axis"),
    "SELU": recipe("SELU", "scale", "alpha"),
    "GELU": recipe("GELU", approximate=Argument("approximate", lambda value: value == "tanh")),
    "GLU": recipe("GLU", "axis"),
    "Threshold": recipe("ThresholdedReLU", "threshold", "value"),
    "Hardshrink": recipe("Hardshrink", "threshold"),
    "Softshrink": recipe("Softshrink", "threshold"),
    "Hardtanh": recipe("Hardtanh", minimum="min", maximum="max"),
    "Softmax": recipe("Softmax", "axis"),
    "LogSoftmax": recipe("LogSoftmax", "axis"),
    "Dropout": recipe("Dropout", "p", "mode", axis=Argument("axis", only=lambda value: value is not None)),
    **{f"Dropout{rank}d": recipe(f"Dropout{rank}D", "p") for rank in (2, 3)},
    "LSTM": _recurrent("LSTM", projection_size="proj_size"),
    "GRU": _recurrent("GRU"),
    "RNN": _recurrent("SimpleRNN", activation="activation"),
    "RNNCell": _cell("SimpleRNNCell", "activation"),
    "LSTMCell": _cell("LSTMCell"),
    "GRUCell": _cell("GRUCell"),
    "MultiheadAttention": recipe(
        "MultiHeadAttention",
        "embed_dim",
        "num_heads",
        "dropout",
        key_size="kdim",
        value_size="vdim",
        bias=absent("bias_attr"),
        fixed={"batch_first": True, "boolean_mask": "keep"},
    ),
    "TransformerEncoderLayer": _transformer_layer("TransformerEncoderLayer"),
    "TransformerDecoderLayer": _transformer_layer("TransformerDecoderLayer"),
    "Upsample": recipe("Upsample", "size", "scale_factor", "mode", "align_corners", "align_mode"),
    "PixelShuffle": recipe("PixelShuffle", factor="upscale_factor", channels_last=_layout(2)),
    "PixelUnshuffle": recipe("PixelUnshuffle", factor="downscale_factor", channels_last=_layout(2)),
    "ChannelShuffle": recipe("ChannelShuffle", "groups", channels_last=_layout(2)),
    "Flatten": recipe("Flatten", "start_axis", "stop_axis"),
    "Unflatten": recipe("Unflatten", "axis", "shape"),
    "Unfold": recipe("Unfold", **_WINDOW),
    "Fold": recipe("Fold", output_size="output_sizes", **_WINDOW),
    "CosineSimilarity": recipe("CosineSimilarity", "axis", epsilon="eps"),
    "PairwiseDistance": recipe("PairwiseDistance", "p", "epsilon", "keepdim"),
    "UpsamplingNearest2d": resize("UpsamplingNearest2D", "nearest", align_corners=False),
    "UpsamplingBilinear2d": resize("UpsamplingBilinear2D", "bilinear", align_corners=True),
    **{kind: made for rank in (1, 2, 3) for kind, made in _pads(rank).items()},
    **LOSSES,
}
