"""Walking a tree of modules, for frameworks whose modules hold named children.

Both walks are in registration order with the root first. A backend passes in how to get
at a module's children; nothing here knows a framework.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

Children = Callable[[Any], Mapping[str, Any]]


def every_path(root: Any, children: Children) -> Iterator[tuple[str, Any]]:
    """Every path to every module: a module that is registered twice comes twice."""
    stack: list[tuple[str, Any, frozenset[int]]] = [("", root, frozenset())]
    while stack:
        path, module, above = stack.pop()
        yield path, module
        named = children(module)
        if not named:
            continue
        inside = above | {id(module)}
        start = f"{path}." if path else ""
        below = [
            (start + name, child, inside)
            for name, child in named.items()
            if child is not None and id(child) not in inside  # a child may hold its own parent
        ]
        stack.extend(reversed(below))


def first_paths(root: Any, children: Children) -> dict[str, Any]:
    """Path -> module, each module once, under the first path that leads to it."""
    seen: set[int] = set()
    found: dict[str, Any] = {}
    for path, module in every_path(root, children):
        if id(module) not in seen:
            seen.add(id(module))
            found[path] = module
    return found


def join(path: str, name: str) -> str:
    """``path.name``, and just the name at the root."""
    return f"{path}.{name}" if path else name
