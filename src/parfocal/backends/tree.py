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
    yield "", root
    stack = [(iter(list(children(root).items())), "", frozenset({id(root)}))]
    while stack:
        siblings, start, above = stack[-1]
        for name, module in siblings:
            if module is None or id(module) in above:  # a child may hold its own parent
                continue
            path = start + name
            yield path, module
            named = children(module)
            if named:
                stack.append((iter(list(named.items())), f"{path}.", above | {id(module)}))
                break
        else:
            stack.pop()


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
