"""Which common kind a PyTorch class is of.

``KINDS`` maps class names to common kinds. Classes are found by name and home module, so a
layer that this version does not have costs nothing.
"""

from __future__ import annotations

from parfocal.backends.reading import Table, once_per_class
from parfocal.backends.torch.settings import SETTINGS

# Classes that bear another name here; every other one listed in SETTINGS is its own kind.
RENAMED = {
    "CrossMapLRN2d": "LocalResponseNorm",
    "NLLLoss2d": "NLLLoss",
}

KINDS: dict[str, str] = {**{name: name for name in SETTINGS}, **RENAMED}


@once_per_class
def framework_class(kind: type) -> type:
    """The class a person wrote: torch's parametrizations swap in a subclass of their own."""
    is_swapped = kind.__module__ == "torch.nn.utils.parametrize" and kind.__name__.startswith("Parametrized")
    return kind.__bases__[0] if is_swapped else kind


@once_per_class
def is_framework_class(kind: type) -> bool:
    """Whether torch itself defines the class."""
    return framework_class(kind).__module__.startswith(("torch.nn.", "torch.ao.nn."))


@once_per_class
def kind_of(kind: type) -> str | None:
    """The common kind of a class or of the nearest of its bases that has one."""
    for base in kind.__mro__:
        if base.__module__.startswith("torch.nn.") and base.__name__ in KINDS:
            return KINDS[base.__name__]
    return None


def settings_of(kind: type) -> Table:
    """The table that fits a class."""
    return SETTINGS.get(kind_of(kind) or "", {})
