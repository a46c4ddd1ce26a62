"""How PaddlePaddle's layers are built from common settings: kind -> class and arguments."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import paddle

from parfocal.backends.building import (
    Argument,
    Recipe,
    absent,
    arguments_of,
    channel_format,
    recipe,
    short,
    spelt,
)
from parfocal.backends.paddle.kinds import is_framework_class
from parfocal.backends.paddle.models import Models
from parfocal.errors import UnsupportedError

_FIRST = {1: "NCL", 2: "NCHW", 3: "NCDHW"}
_LAST = {1: "NLC", 2: "NHWC", 3: "NDHWC"}
_MOMENTUM = Argument("momentum", lambda value: round(1 - value, 12))
_DIRECTION = Argument("direction", lambda value: "bidirect" if value else "forward")
_TIME_MAJOR = Argument("time_major", lambda value: not value)


def _layout(rank: int) -> Argument:
    return channel_format(_FIRST[rank], _LAST[rank])


def _convolution(rank: int, name: str, *more: str) -> Recipe:
    return recipe(
        name,
        *("in_channels", "out_channels", "kernel_size", "stride", "dilation", "groups", *more),
        padding=Argument("padding", short),  # other modes than zeros take one number only
        bias=absent("bias_attr"),
        channels_last=_layout(rank),
    )


def _batch_norm(rank: int) -> Recipe:
    return recipe(
        f"BatchNorm{rank}D",
        *("num_features", "epsilon"),
        momentum=_MOMENTUM,
        affine=absent("weight_attr", "bias_attr"),
        channels_last=_layout(rank),
        use_global_stats=Argument("use_global_stats", only=bool),
        fixed={"activation": None, "track_running_stats": True},
    )


def _average_pool(rank: int) -> Recipe:
    more = ("divisor_override",) if rank > 1 else ()
    return recipe(
        f"AvgPool{rank}D",
        *("kernel_size", "stride", "padding", "ceil_mode", *more),
        count_include_pad=Argument("exclusive", lambda value: not value),
    )


def _recurrent(name: str, **more: Any) -> Recipe:
    return recipe(
        name,
        *("input_size", "hidden_size", "dropout"),
        layers="num_layers",
        bidirectional=_DIRECTION,
        batch_first=_TIME_MAJOR,
        bias=absent("bias_ih_attr", "bias_hh_attr"),
        **more,
    )


def _transformer_layer(name: str) -> Recipe:
    return recipe(
        name,
        *("dropout", "activation"),
        model_size="d_model",
        num_heads="nhead",
        feedforward_size="dim_feedforward",
        norm_first="normalize_before",
        fixed={"batch_first": True},
    )


def _ranked(make: Callable[[int], Recipe], name: str) -> dict[str, Recipe]:
    return {f"{name}{rank}d": make(rank) for rank in (1, 2, 3)}


_PLAIN = (
    *("ReLU", "ReLU6", "Sigmoid", "LogSigmoid", "Tanh", "Tanhshrink", "Mish", "Softsign"),
    *("Hardsigmoid", "Hardswish", "Identity"),
)

RECIPES: dict[str, Recipe] = {
    "Linear": recipe("Linear", "in_features", "out_features", bias=absent("bias_attr")),
    **_ranked(lambda rank: _convolution(rank, f"Conv{rank}D", "padding_mode"), "Conv"),
    **_ranked(lambda rank: _convolution(rank, f"Conv{rank}DTranspose", "output_padding"), "ConvTranspose"),
    **_ranked(_batch_norm, "BatchNorm"),
    "BatchNorm": recipe(
        "BatchNorm",
        "epsilon",
        num_features="num_channels",
        momentum=_MOMENTUM,
        activation=Argument("act", only=lambda value: value is not None),
        channels_last=channel_format("NCHW", "NHWC", "data_layout"),
        use_global_stats=Argument("use_global_stats", only=bool),
    ),
    **_ranked(
        lambda rank: recipe(
            f"InstanceNorm{rank}D",
            *("num_features", "epsilon"),
            affine=absent("weight_attr", "bias_attr"),
            momentum=_MOMENTUM,
            fixed={"track_running_stats": False},
        ),
        "InstanceNorm",
    ),
    "GroupNorm": recipe(
        "GroupNorm",
        *("num_groups", "num_channels", "epsilon"),
        affine=absent("weight_attr", "bias_attr"),
        channels_last=channel_format("NCHW", "NHWC"),
    ),
    "LayerNorm": recipe(
        "LayerNorm",
        *("normalized_shape", "epsilon"),
        affine=absent("weight_attr"),
        bias=absent("bias_attr"),
    ),
    "LocalResponseNorm": recipe("LocalResponseNorm", "size", "alpha", "beta", "k"),
    **_ranked(
        lambda rank: recipe(
            f"MaxPool{rank}D",
            *("kernel_size", "stride", "padding", "ceil_mode"),
            return_indices="return_mask",
            fixed={"dilation": (1,) * rank},
        ),
        "MaxPool",
    ),
    **_ranked(_average_pool, "AvgPool"),
    **_ranked(lambda rank: recipe(f"AdaptiveAvgPool{rank}D", "output_size"), "AdaptiveAvgPool"),
    **{name: recipe(name) for name in _PLAIN},
    "SiLU": recipe("Silu"),
    "SELU": recipe("SELU", "scale", "alpha"),
    "ELU": recipe("ELU", "alpha"),
    "CELU": recipe("CELU", "alpha"),
    "GELU": recipe("GELU", approximate=Argument("approximate", lambda value: value == "tanh")),
    "GLU": recipe("GLU", "axis"),
    "LeakyReLU": recipe("LeakyReLU", "negative_slope"),
    "Threshold": recipe("ThresholdedReLU", "threshold", "value"),
    "Hardshrink": recipe("Hardshrink", "threshold"),
    "Softshrink": recipe("Softshrink", "threshold"),
    "Hardtanh": recipe("Hardtanh", minimum="min", maximum="max"),
    "Softplus": recipe("Softplus", "beta", "threshold"),
    "Softmax": recipe("Softmax", "axis"),
    "LogSoftmax": recipe("LogSoftmax", "axis"),
    "Dropout": recipe("Dropout", "p", "mode", axis=Argument("axis", only=lambda value: value is not None)),
    "Embedding": recipe(
        "Embedding",
        *("num_embeddings", "embedding_dim", "padding_idx", "max_norm", "norm_type", "scale_grad_by_freq"),
    ),
    "LSTM": _recurrent("LSTM", projection_size="proj_size"),
    "GRU": _recurrent("GRU"),
    "RNN": _recurrent("SimpleRNN", activation="activation"),
    "MultiheadAttention": recipe(
        "MultiHeadAttention",
        *("embed_dim", "num_heads", "dropout"),
        key_size="kdim",
        value_size="vdim",
        bias=absent("bias_attr"),
        fixed={"batch_first": True, "boolean_mask": "keep"},
    ),
    "TransformerEncoderLayer": _transformer_layer("TransformerEncoderLayer"),
    "TransformerDecoderLayer": _transformer_layer("TransformerDecoderLayer"),
    "Upsample": recipe("Upsample", "size", "scale_factor", "mode", "align_corners", "align_mode"),
    "PixelShuffle": recipe("PixelShuffle", factor="upscale_factor", channels_last=_layout(2)),
    "Flatten": recipe("Flatten", "start_axis", "stop_axis"),
}


class Building(Models):
    """What the search for a cause asks of a backend: layers made to order."""

    def layer(self, kind: str, settings: Mapping[str, Any]) -> Any:
        chosen = _recipe(kind)
        keywords = arguments_of(chosen, settings)
        with paddle.utils.unique_name.guard():  # names of the user's later layers stay as they would be
            return getattr(paddle.nn, chosen.name)(**keywords)

    def spell(self, kind: str, settings: Mapping[str, Any], always: Iterable[str] = ()) -> str:
        chosen = _recipe(kind)
        shown = [argument.name for name in always for argument in chosen.arguments.get(name, ())]
        keywords = arguments_of(chosen, settings)
        return spelt("paddle.nn", getattr(paddle.nn, chosen.name), keywords, shown)

    def can_build(self, module: Any) -> bool:
        kind = self.kind(module)
        made = kind in RECIPES and getattr(paddle.nn, RECIPES[kind].name) is type(module)
        return made and is_framework_class(type(module))


def _recipe(kind: str) -> Recipe:
    if kind not in RECIPES:
        raise UnsupportedError(f"there is no recipe for a {kind} in paddle")
    return RECIPES[kind]
