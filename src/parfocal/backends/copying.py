"""What a deep copy of a module need not be asked for."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
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
