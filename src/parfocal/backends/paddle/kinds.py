"""Which common kind a PaddlePaddle class is of.

``KINDS`` maps class names to common kinds. Classes are found by name and home module, so a
layer that this version does not have costs nothing.
"""

from __future__ import annotations

from parfocal.backends.paddle.settings import COMPAT_SETTINGS, SETTINGS
from parfocal.backends.reading import Table, once_per_class

# Classes that bear another name here; every other one listed in SETTINGS is its own kind.
RENAMED = {
    **{f"Conv{rank}DTranspose": f"ConvTranspose{rank}d" for rank in (1, 2, 3)},
    "LayerList": "ModuleList",
    "LayerDict": "ModuleDict",
    "MultiHeadAttention": "MultiheadAttention",
    "SimpleRNN": "RNN",
    "SimpleRNNCell": "RNNCell",
    "RNN": "RNNOverCell",
    "BiRNN": "BiRNNOverCells",
    "Silu": "SiLU",
    "Swish": "SiLU",
    "ThresholdedReLU": "Threshold",
}
# "MaxUnPool2D" -> "MaxUnpool2d", and everything else that only spells its rank with a capital.
RANKED = (
    *("Conv", "BatchNorm", "InstanceNorm", "MaxPool", "AvgPool", "LPPool", "AdaptiveAvgPool"),
    *("AdaptiveMaxPool", "FractionalMaxPool", "Dropout", "ConstantPad", "ZeroPad", "ReflectionPad"),
    *("ReplicationPad", "CircularPad", "Pad", "UpsamplingBilinear", "UpsamplingNearest", "Softmax"),
)

KINDS: dict[str, str] = {
    **{name: name for name in SETTINGS},
    **{f"{name}{rank}D": f"{name}{rank}d" for name in RANKED for rank in (1, 2, 3)},
    **{f"MaxUnPool{rank}D": f"MaxUnpool{rank}d" for rank in (1, 2, 3)},
    **RENAMED,
}
LAYER_MODULES = ("paddle.nn.", "paddle.compat.nn")


@once_per_class
def is_framework_class(kind: type) -> bool:
    """Whether paddle itself defines the class; ``paddle.vision`` and ``paddle.text`` are models."""
    return kind.__module__.startswith((*LAYER_MODULES, "paddle.incubate.nn", "paddle.sparse.nn"))


@once_per_class
def _base_with_kind(kind: type) -> type | None:
    for base in kind.__mro__:
        if base.__module__.startswith(LAYER_MODULES) and base.__name__ in KINDS:
            return base
    return None


def kind_of(kind: type) -> str | None:
    """The common kind of a class or of the nearest of its bases that has one."""
    base = _base_with_kind(kind)
    return KINDS[base.__name__] if base else None


def settings_of(kind: type) -> Table:
    """The table that fits a class."""
    base = _base_with_kind(kind)
    if base is None:
        return {}
    tables = COMPAT_SETTINGS if base.__module__.startswith("paddle.compat") else SETTINGS
    return tables[KINDS[base.__name__]]
