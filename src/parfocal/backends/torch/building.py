"""How PyTorch's layers are built from common settings: kind -> class and arguments."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch

from parfocal.backends.building import Argument, Recipe, arguments_of, recipe, spelt
from parfocal.backends.torch.kinds import is_framework_class
from parfocal.backends.torch.models import Models
from parfocal.errors import UnsupportedError

_CHANNELS_FIRST = {"channels_last": False}


def _convolution(rank: int, name: str, *more: str) -> Recipe:
    return recipe(
        f"{name}{rank}d",
        *("in_channels", "out_channels", "kernel_size", "stride", "padding", "dilation", "groups", "bias"),
        *more,
        fixed=_CHANNELS_FIRST,
    )


def _running_norm(rank: int, name: str, fixed: Mapping[str, Any]) -> Recipe:
    return recipe(
        f"{name}{rank}d",
        *("num_features", "momentum", "affine", "track_running_stats"),
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
        *("dropout", "activation", "norm_first", "batch_first"),
        model_size="d_model",
        num_heads="nhead",
        feedforward_size="dim_feedforward",
    )


def _ranked(make: Callable[[int], Recipe], name: str) -> dict[str, Recipe]:
    return {f"{name}{rank}d": make(rank) for rank in (1, 2, 3)}


_PLAIN = (
    *("ReLU", "ReLU6", "Sigmoid", "LogSigmoid", "Tanh", "Tanhshrink", "SiLU", "Mish", "Softsign"),
    *("Hardsigmoid", "Hardswish", "Identity", "SELU"),
)

RECIPES: dict[str, Recipe] = {
    "Linear": recipe("Linear", "in_features", "out_features", "bias"),
    **_ranked(lambda rank: _convolution(rank, "Conv", "padding_mode"), "Conv"),
    **_ranked(lambda rank: _convolution(rank, "ConvTranspose", "output_padding"), "ConvTranspose"),
    **_ranked(
        lambda rank: _running_norm(rank, "BatchNorm", {"activation": None, "use_global_stats": False}),
        "BatchNorm",
    ),
    **_ranked(lambda rank: _running_norm(rank, "InstanceNorm", {}), "InstanceNorm"),
    "GroupNorm": recipe("GroupNorm", "num_groups", "num_channels", "affine", epsilon="eps"),
    "LayerNorm": recipe("LayerNorm", "normalized_shape", "bias", epsilon="eps", affine="elementwise_affine"),
    "RMSNorm": recipe("RMSNorm", "normalized_shape", epsilon="eps", affine="elementwise_affine"),
    "LocalResponseNorm": recipe("LocalResponseNorm", "size", "alpha", "beta", "k"),
    **_ranked(
        lambda rank: recipe(
            f"MaxPool{rank}d",
            *("kernel_size", "stride", "padding", "dilation", "ceil_mode", "return_indices"),
        ),
        "MaxPool",
    ),
    **_ranked(_average_pool, "AvgPool"),
    **_ranked(lambda rank: recipe(f"AdaptiveAvgPool{rank}d", "output_size"), "AdaptiveAvgPool"),
    **{name: recipe(name) for name in _PLAIN},
    "ELU": recipe("ELU", "alpha"),
    "CELU": recipe("CELU", "alpha"),
    "GELU": recipe("GELU", "approximate"),
    "GLU": recipe("GLU", axis="dim"),
    "LeakyReLU": recipe("LeakyReLU", "negative_slope"),
    "Threshold": recipe("Threshold", "threshold", "value"),
    "Hardshrink": recipe("Hardshrink", threshold="lambd"),
    "Softshrink": recipe("Softshrink", threshold="lambd"),
    "Hardtanh": recipe("Hardtanh", minimum="min_val", maximum="max_val"),
    "Softplus": recipe("Softplus", "beta", "threshold"),
    "Softmax": recipe("Softmax", axis="dim"),
    "LogSoftmax": recipe("LogSoftmax", axis="dim"),
    "Dropout": recipe("Dropout", "p", fixed={"mode": "upscale_in_train", "axis": None}),
    "Embedding": recipe(
        "Embedding",
        *("num_embeddings", "embedding_dim", "padding_idx", "max_norm", "norm_type", "scale_grad_by_freq"),
    ),
    "LSTM": _recurrent("LSTM", projection_size="proj_size"),
    "GRU": _recurrent("GRU"),
    "RNN": _recurrent("RNN", activation="nonlinearity"),
    "MultiheadAttention": recipe(
        "MultiheadAttention",
        *("embed_dim", "num_heads", "dropout", "bias", "batch_first"),
        key_size="kdim",
        value_size="vdim",
        fixed={"boolean_mask": "drop"},
    ),
    "TransformerEncoderLayer": _transformer_layer("TransformerEncoderLayer"),
    "TransformerDecoderLayer": _transformer_layer("TransformerDecoderLayer"),
    "Upsample": recipe(
        "Upsample",
        *("size", "scale_factor", "mode"),
        # nearest neighbours have no corners to align
        align_corners=Argument("align_corners", only=bool),
        fixed={"align_mode": 0},
    ),
    "PixelShuffle": recipe("PixelShuffle", factor="upscale_factor", fixed=_CHANNELS_FIRST),
    "Flatten": recipe("Flatten", start_axis="start_dim", stop_axis="end_dim"),
}


class Building(Models):
    """What the search for a cause asks of a backend: layers made to order."""

    def layer(self, kind: str, settings: Mapping[str, Any]) -> Any:
        chosen = _recipe(kind)
        return getattr(torch.nn, chosen.name)(**arguments_of(chosen, settings))

    def spell(self, kind: str, settings: Mapping[str, Any], always: Iterable[str] = ()) -> str:
        chosen = _recipe(kind)
        shown = [argument.name for name in always for argument in chosen.arguments.get(name, ())]
        return spelt("torch.nn", getattr(torch.nn, chosen.name), arguments_of(chosen, settings), shown)

    def can_build(self, module: Any) -> bool:
        kind = self.kind(module)
        made = kind in RECIPES and getattr(torch.nn, RECIPES[kind].name) is type(module)
        return made and is_framework_class(type(module))


def _recipe(kind: str) -> Recipe:
    if kind not in RECIPES:
        raise UnsupportedError(f"there is no recipe for a {kind} in torch")
    return RECIPES[kind]
