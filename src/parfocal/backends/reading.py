"""Reading what a module says of itself through a table: common name -> where to look.

An entry is the name of an attribute or a small function of the module. An attribute that
this version of the framework does not have is left out of the answer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from numbers import Number
from typing import Any, TypeVar, cast

Reader = str | Callable[[Any], Any]
Table = Mapping[str, Reader]


Answer = TypeVar("Answer")
_ABSENT = object()


def once_per_class(function: Callable[[type], Answer]) -> Callable[[type], Answer]:
    """Remembers what was found out about a class: a model has many modules of a few."""
    return cast(Callable[[type], Answer], lru_cache(maxsize=1024)(function))


def read(module: Any, table: Table) -> dict[str, Any]:
    """Every setting of the table that the module has."""
    found: dict[str, Any] = {}
    for name, reader in table.items():
        if isinstance(reader, str):
            value = getattr(module, reader, _ABSENT)
            if value is not _ABSENT:
                found[name] = plain(value)
        else:
            found[name] = plain(reader(module))
    return found


def plain(value: Any) -> Any:
    """Lists become tuples, so that settings compare equal and can be hashed."""
    if isinstance(value, (list, tuple)):
        return tuple(plain(item) for item in value)
    return value


def constant(value: Any) -> Callable[[Any], Any]:
    """A setting that this framework does not offer and always behaves as."""
    return lambda module: value


def since(attribute: str, before: Any) -> Callable[[Any], Any]:
    """A setting that layers of newer versions have, and what older ones always behave as."""
    return lambda module: getattr(module, attribute, before)


def either(*attributes: str) -> Callable[[Any], Any]:
    """A setting that versions keep under different names."""
    return lambda module: next(getattr(module, each) for each in attributes if hasattr(module, each))


def ints(attribute: str, rank: int) -> Callable[[Any], Any]:
    """A tuple of ``rank`` numbers, where the framework also takes a single one."""
    return lambda module: spread(getattr(module, attribute), rank)


def spread(value: Any, rank: int) -> Any:
    """One number for all axes becomes one for each; a sequence of one too."""
    if isinstance(value, Number):
        return (value,) * rank
    if isinstance(value, Sequence) and not isinstance(value, str) and len(value) == 1:
        return tuple(value) * rank
    return value


def stride_of(kernel: str, rank: int) -> Callable[[Any], Any]:
    """A pool's stride; absent means that windows do not overlap."""

    def reader(module: Any) -> Any:
        stride = module.stride
        return spread(getattr(module, kernel) if stride is None else stride, rank)

    return reader


def padding_of(attribute: str, rank: int) -> Callable[[Any], Any]:
    """Padding as one number an axis, or ``(before, after)`` an axis where the two differ, or "same".

    Takes every spelling in use: a number, one an axis, two an axis in a row, pairs, pairs for
    batch and channel too, and the words "same" and "valid".
    """

    def reader(module: Any) -> Any:
        value = getattr(module, attribute)
        if isinstance(value, str):
            return (0,) * rank if value.lower() == "valid" else value.lower()
        value = spread(value, rank)
        if isinstance(value[0], Sequence):
            pairs = [tuple(pair) for pair in _spatial(value, rank, module)]
        elif len(value) == 2 * rank:
            pairs = [(value[2 * axis], value[2 * axis + 1]) for axis in range(rank)]
        else:
            return value
        symmetric = all(before == after for before, after in pairs)
        return tuple(before for before, _ in pairs) if symmetric else tuple(pairs)

    return reader


def _spatial(pairs: Sequence[Any], rank: int, module: Any) -> Sequence[Any]:
    """Pairs of the spatial axes alone: batch and channel stand first, or around them."""
    if len(pairs) == rank:
        return pairs
    return pairs[1:-1] if channels_last(module) else pairs[2:]


def channels_last(module: Any) -> bool:
    """Whether the module takes its channels as the last axis (NHWC and its kin)."""
    for attribute in ("_data_format", "data_format", "_data_layout"):
        layout = getattr(module, attribute, None)
        if isinstance(layout, str):
            return layout.endswith("C")
    return False


def present(attribute: str) -> Callable[[Any], bool]:
    """Whether an optional tensor (a bias, a scale) is there."""
    return lambda module: getattr(module, attribute, None) is not None


def name_of(attribute: str) -> Callable[[Any], Any]:
    """An activation given as a function, by its name."""

    def reader(module: Any) -> Any:
        value = getattr(module, attribute)
        if not callable(value):
            return value
        return getattr(value, "__name__", type(value).__name__).lstrip("_")

    return reader


REDUCTION: Table = {"reduction": "reduction"}


def loss(**names: str) -> Table:
    """Of a loss with these settings."""
    return {**REDUCTION, **names}


def weighted(*names: str) -> Table:
    """Of a loss that may weigh classes, with settings that the framework calls as everybody does."""
    return {**REDUCTION, **{name: name for name in names}, "weighted": present("weight")}
