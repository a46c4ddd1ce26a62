"""How PyTorch's layers are built from common settings: kind -> class and arguments."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from parfocal.backends import shared_tables
from parfocal.backends.building import Argument, Recipe, recipe, short
from parfocal.backends.shared_tables import ranked, resize
from parfocal.backends.torch.losses import RECIPES as LOSSES

_CHANNELS_FIRST = {"channels_last": False}


def _convolution(rank: int, name: str, *more: str) -> Recipe:
    return recipe(
        f"{name}{rank}d",
        "in_channels",
        "out_channels",
        "kernel_size",
        "stride",
        "padding",
        "dilation",
        "groups",
        "bias",
        *more,
        fixed=_CHANNELS_FIRST,
    )


def _running_norm(rank: int, name: str, fixed: Mapping[str, Any]) -> Recipe:
    return recipe(
        f"{name}{rank}d",
        "num_features",
        "momentum",
        "affine",
        "track_running_stats",
        epsilon="eps",
        fixed={**_CHANNELS_FIRST, **fixed},
    )


def _average_pool(rank: int) -> Recipe:
    more = ("divisor_override",) if rank > 1 else ()
    window = ("kernel_size", "stride", "padding", "ceil_mode", "count_include_pad")
    return recipe(f"AvgPool{rank}d", *window, *more)


def _recurrent(name: str, *more: str, **renamed: Any) -> Recipe:
    common = ("input_size", "hidden_size", "bidirectional", "batch_first", "dropout", "bias")
    return recipe(name, *common, *more, layers="num_layers", **renamed)


def _transformer_layer(name: str) -> Recipe:
    return recipe(
        name,
        "dropout",
        "activation",
        "norm_first",
        "batch_first",
        model_size="d_model",
        num_heads="nhead",
        feedforward_size="dim_feedforward",
        epsilon="layer_norm_eps",
    )


def _pad(rank: int, mode: str) -> dict[str, Recipe]:
    kind = f"{_PADS[mode]}{rank}d"
    if mode == "constant":
        zero = recipe(f"ZeroPad{rank}d", "padding", fixed={"mode": mode, "value": 0.0, **_CHANNELS_FIRST})
        constant = recipe(kind, "padding", "value", fixed={"mode": mode, **_CHANNELS_FIRST})
        return {f"ZeroPad{rank}d": zero, kind: constant}
    return {kind: recipe(kind, "padding", fixed={"mode": mode, **_CHANNELS_FIRST})}


def _cell(name: str, **more: Any) -> Recipe:
    return recipe(name, "input_size", "hidden_size", "bias", **more)


_PADS = {
    "constant": "ConstantPad",
    "reflect": "ReflectionPad",
    "replicate": "ReplicationPad",
    "circular": "CircularPad",
}
_WINDOW = ("kernel_size", "stride", "padding", "dilation")

RECIPES: dict[str, Recipe] = {
    **shared_tables.RECIPES,
    "Linear": recipe("Linear", "in_features", "out_features", "bias"),
    "Bilinear": recipe("Bilinear", "in1_features", "in2_features", "out_features", "bias"),
    **ranked("Conv", lambda rank: _convolution(rank, "Conv", "padding_mode")),
    **ranked("ConvTranspose", lambda rank: _convolution(rank, "ConvTranspose", "output_padding")),
    **ranked(
        "BatchNorm",
        lambda rank: _running_norm(rank, "BatchNorm", {"activation": None, "use_global_stats": False}),
    ),
    **ranked("InstanceNorm", lambda rank: _running_norm(rank, "InstanceNorm", {})),
    "GroupNorm": recipe("GroupNorm", "num_groups", "num_channels", "affine", epsilon="eps"),
    "LayerNorm": recipe("LayerNorm", "normalized_shape", "bias", epsilon="eps", affine="elementwise_affine"),
    "RMSNorm": recipe("RMSNorm", "normalized_shape", epsilon="eps", affine="elementwise_affine"),
    "LocalResponseNorm": recipe("LocalResponseNorm", "size", "alpha", "beta", "k"),
    **ranked(
        "MaxPool",
        lambda rank: recipe(
            f"MaxPool{rank}d",
            "kernel_size",
            "stride",
            "padding",
            "dilation",
            "ceil_mode",
            "return_indices",
        ),
    ),
    **ranked("AvgPool", _average_pool),
    **ranked(
        "LPPool",
        lambda rank: recipe(
            f"LPPool{rank}d",
            "norm_type",
            "ceil_mode",
            # of one axis it takes a number only
            kernel_size=Argument("kernel_size", short),
            stride=Argument("stride", short),
            fixed={"padding": (0,) * rank},
        ),
    ),
    **ranked("MaxUnpool", lambda rank: recipe(f"MaxUnpool{rank}d", "kernel_size", "stride", "padding")),
    **ranked("AdaptiveAvgPool", lambda rank: recipe(f"AdaptiveAvgPool{rank}d", "output_size")),
    **ranked(
        "AdaptiveMaxPool", lambda rank: recipe(f"AdaptiveMaxPool{rank}d", "output_size", "return_indices")
    ),
    **{name: recipe(name) for name in ("SiLU", "SELU", "Softmax2d")},
    "GELU": recipe("GELU", "approximate"),
    "GLU": recipe("GLU", axis="dim"),
    "PReLU": recipe("PReLU", "num_parameters", fixed=_CHANNELS_FIRST),
    "Threshold": recipe("Threshold", "threshold", "value"),
    "Hardshrink": recipe("Hardshrink", threshold="lambd"),
    "Softshrink": recipe("Softshrink", threshold="lambd"),
    "Hardtanh": recipe("Hardtanh", minimum="min_val", maximum="max_val"),
    "Softmax": recipe("Softmax", axis="dim"),
    "Softmin": recipe("Softmin", axis="dim"),
    "LogSoftmax": recipe("LogSoftmax", axis="dim"),
    "Dropout": recipe("Dropout", "p", fixed={"mode": "upscale_in_train", "axis": None}),
    **ranked("Dropout", lambda rank: recipe(f"Dropout{rank}d", "p")),
    "LSTM": _recurrent("LSTM", projection_size="proj_size"),
    "GRU": _recurrent("GRU"),
    "RNN": _recurrent("RNN", activation="nonlinearity"),
    "RNNCell": _cell("RNNCell", activation="nonlinearity"),
    "LSTMCell": _cell("LSTMCell"),
    "GRUCell": _cell("GRUCell"),
    "MultiheadAttention": recipe(
        "MultiheadAttention",
        "embed_dim",
        "num_heads",
        "dropout",
        "bias",
        "batch_first",
        key_size="kdim",
        value_size="vdim",
        fixed={"boolean_mask": "drop"},
    ),
    "TransformerEncoderLayer": _transformer_layer("TransformerEncoderLayer"),
    "TransformerDecoderLayer": _transformer_layer("TransformerDecoderLayer"),
    "Upsample": recipe(
        "Upsample",
        "size",
        "scale_factor",
        "mode",
        # nearest neighbours have no corners to align
        align_corners=Argument("align_corners", only=bool),
        fixed={"align_mode": 0},
    ),
    "PixelShuffle": recipe("PixelShuffle", factor="upscale_factor", fixed=_CHANNELS_FIRST),
    "PixelUnshuffle": recipe("PixelUnshuffle", factor="downscale_factor", fixed=_CHANNELS_FIRST),
    "ChannelShuffle": recipe("ChannelShuffle", "groups", fixed=_CHANNELS_FIRST),
    "Flatten": recipe("Flatten", start_axis="start_dim", stop_axis="end_dim"),
    "Unflatten": recipe("Unflatten", axis="dim", shape="unflattened_size"),
    "Unfold": recipe("Unfold", *_WINDOW),
    "Fold": recipe("Fold", "output_size", *_WINDOW),
    "CosineSimilarity": recipe("CosineSimilarity", axis="dim", epsilon="eps"),
    "PairwiseDistance": recipe("PairwiseDistance", "p", "keepdim", epsilon="eps"),
    "UpsamplingNearest2d": resize("UpsamplingNearest2d", "nearest", align_corners=False),
    "UpsamplingBilinear2d": resize("UpsamplingBilinear2d", "bilinear", align_corners=True),
    **{kind: made for rank in (1, 2, 3) for mode in _PADS for kind, made in _pad(rank, mode).items()},
    **LOSSES,
}
