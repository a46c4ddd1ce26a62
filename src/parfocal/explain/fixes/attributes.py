"""Values that code reads from its module, ``self.eps`` or ``self.config["slope"]``, and how to set them."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import FrozenInstanceError, dataclass
from typing import Any

from parfocal.explain.fixes.literals import written

MISSING = object()


@dataclass(frozen=True, slots=True)
class AttributeStep:
    """One step of the way from a module to a value: an attribute, or an item of a list or dictionary."""

    key: Any
    item: bool = False

    @property
    def text(self) -> str:
        return f"[{written(self.key)}]" if self.item else f".{self.key}"

    def of(self, owner: Any) -> Any:
        try:
            return owner[self.key] if self.item else getattr(owner, self.key, MISSING)
        except (LookupError, TypeError):
            return MISSING


Way = tuple[AttributeStep, ...]


def way_to(node: ast.expr | None, names: Mapping[str, Any]) -> Way:
    """The steps of an expression that starts at ``self``; ``names``: what indices stand for. Empty: none."""
    match node:
        case ast.Attribute(value=ast.Name(id="self"), attr=name):
            return (AttributeStep(name),)
        case ast.Attribute(value=inner, attr=name):
            before = way_to(inner, names)
            return (*before, AttributeStep(name)) if before else ()
        case ast.Subscript(value=inner, slice=ast.Constant(value=key)):
            before = way_to(inner, names)
            return (*before, AttributeStep(key, item=True)) if before else ()
        case ast.Subscript(value=inner, slice=ast.Name(id=name)) if name in names:
            before = way_to(inner, names)
            return (*before, AttributeStep(names[name], item=True)) if before else ()
    return ()


def value_at(module: Any, way: Way) -> Any:
    """What stands at the end of a way; ``MISSING`` if it leads nowhere."""
    for step in way:
        module = step.of(module)
        if module is MISSING:
            break
    return module


@contextmanager
def set_to(module: Any, way: Way, value: Any) -> Iterator[bool]:
    """Sets another value for a while; yields whether that is possible."""
    owner, last = value_at(module, way[:-1]), way[-1]
    old = last.of(owner)
    possible = old is not MISSING and _set(owner, last, value)
    try:
        yield possible
    finally:
        if possible:
            _set(owner, last, old)


def _set(owner: Any, step: AttributeStep, value: Any) -> bool:
    try:
        if step.item:
            owner[step.key] = value
        else:
            setattr(owner, step.key, value)
    except (TypeError, AttributeError, FrozenInstanceError):  # a tuple, a property, what is frozen
        return False
    return True
