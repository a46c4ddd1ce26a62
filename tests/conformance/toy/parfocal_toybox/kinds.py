"""What toybox's layers are in common words: kind, settings, and how each is made."""

from __future__ import annotations

from parfocal.backends.building import Argument, Recipe, recipe, short
from parfocal.backends.reading import Table, constant, ints, present

KINDS = {
    "Dense": "Linear",
    "Convolution": "Conv2d",
    "BatchNorm": "BatchNorm2d",
    "Chain": "Sequential",
    **{name: name for name in ("LayerNorm", "Embedding", "ReLU", "GELU", "Dropout", "Flatten")},
}

SETTINGS: dict[str, Table] = {
    "Linear": {
        "in_features": "inputs",
        "out_features": "outputs",
        "bias": present("bias"),
        "weight_layout": constant("in,out"),
    },
    "Conv2d": {
        "in_channels": "inputs",
        "out_channels": "outputs",
        "kernel_size": ints("window", 2),
        "stride": ints("step", 2),
        "padding": ints("border", 2),
        "dilation": constant((1, 1)),
        "groups": constant(1),
        "padding_mode": constant("zeros"),
        "bias": constant(True),
        "channels_last": constant(False),
    },
    "LayerNorm": {
        "normalized_shape": lambda layer: (layer.size,),
        "epsilon": "tiny",
        "affine": constant(True),
        "bias": constant(True),
    },
    "BatchNorm2d": {
        "num_features": "channels",
        "epsilon": "tiny",
        "momentum": "renewal",
        "affine": constant(True),
        "track_running_stats": constant(True),
        "channels_last": constant(False),
        "activation": constant(None),
        "use_global_stats": constant(False),
        "batch_statistics": constant(False),
    },
    "Embedding": {"num_embeddings": "rows", "embedding_dim": "size", "padding_idx": constant(None)},
    "GELU": {"approximate": constant("none")},
    "Dropout": {"p": "p", "mode": constant("upscale_in_train"), "axis": constant(None)},
    "Flatten": {"start_axis": constant(1), "stop_axis": constant(-1)},
}

RECIPES: dict[str, Recipe] = {
    "Linear": recipe("Dense", in_features="inputs", out_features="outputs", bias="with_bias"),
    "Conv2d": recipe(
        "Convolution",
        in_channels="inputs",
        out_channels="outputs",
        kernel_size=Argument("window", short),
        stride=Argument("step", short),
        padding=Argument("border", short),
        fixed={
            "dilation": (1, 1),
            "groups": 1,
            "padding_mode": "zeros",
            "bias": True,
            "channels_last": False,
        },
    ),
    "LayerNorm": recipe(
        "LayerNorm",
        normalized_shape=Argument("size", short),
        epsilon="tiny",
        fixed={"affine": True, "bias": True},
    ),
    "BatchNorm2d": recipe("BatchNorm", num_features="channels", epsilon="tiny", momentum="renewal"),
    "Embedding": recipe(
        "Embedding", num_embeddings="rows", embedding_dim="size", fixed={"padding_idx": None}
    ),
    "ReLU": recipe("ReLU"),
    "GELU": recipe("GELU", fixed={"approximate": "none"}),
    "Dropout": recipe("Dropout", "p"),
    "Flatten": recipe("Flatten", fixed={"start_axis": 1, "stop_axis": -1}),
}


def is_framework_class(kind: type) -> bool:
    return kind.__module__ == "toybox.layers"


def kind_of(kind: type) -> str | None:
    """Of the class, or of the nearest of its bases that has one."""
    named = (KINDS.get(base.__name__) for base in kind.__mro__ if is_framework_class(base))
    return next((found for found in named if found), None)


def settings_of(kind: type) -> Table:
    return SETTINGS.get(kind_of(kind) or "", {})
