"""Walking a tree of modules, for frameworks whose modules hold named children.

Both walks are in registration order with the root first. A backend passes in how to get
at a module's children; nothing here knows a framework.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

Children = Callable[[Any], Mapping[str, Any]]


def every_path(root: Any, children: Children) -> list[tuple[str, Any]]:
    """Every path to every module: a module that is registered twice comes twice."""
    found = [("", root)]
    stack = [(iter(children(root).items()), "", frozenset({id(root)}))]
    while stack:
        siblings, start, above = stack[-1]
        for name, module in siblings:
            if module is None or id(module) in above:  # a child may hold its own parent
                continue
            path = start + name
            found.append((path, module))
            named = children(module)
            if named:
                stack.append((iter(named.items()), f"{path}.", above | {id(module)}))
                break
        else:
            stack.pop()
    return found


def first_paths(root: Any, children: Children) -> dict[str, Any]:
    """Path -> module, each module once, under the first path that leads to it."""
    paths: dict[int, str] = {}
    every = every_path(root, children)
    for path, module in every:
        paths.setdefault(id(module), path)
    if len(paths) == len(every):  # as in most models: none is registered twice
        return dict(every)
    return {path: module for path, module in every if paths[id(module)] == path}


def join(path: str, name: str) -> str:
    """``path.name``, and just the name at the root."""
    return f"{path}.{name}" if path else name
