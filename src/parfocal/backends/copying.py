"""Copies: what a deep copy of a module need not be asked for, and what an optimizer keeps."""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable
from typing import Any

_CONTAINERS = (OrderedDict, dict, list, set)


def empty_containers(modules: Iterable[Any]) -> dict[int, Any]:
    """A new container for each empty one that is an attribute of a module, by identity of the old one.

    A module has a dozen of them (of hooks, mostly), and a deep copy takes longer for these than for the
    weights of a small model. Given to ``copy.deepcopy`` as what was copied already.
    """
    return {
        id(value): type(value)()
        for module in modules
        for value in vars(module).values()
        if type(value) in _CONTAINERS and not value
    }


def cloned(value: Any, is_tensor: Callable[[object], bool]) -> Any:
    """Containers and tensors anew, to any depth; the rest as it is."""
    if is_tensor(value):
        return value.detach().clone()
    if isinstance(value, list):
        return [cloned(each, is_tensor) for each in value]
    if isinstance(value, defaultdict):
        return defaultdict(value.default_factory, {k: cloned(v, is_tensor) for k, v in value.items()})
    if isinstance(value, dict):
        return {key: cloned(each, is_tensor) for key, each in value.items()}
    return value
