"""A model's modules as a tree of routes, seen through the backend alone.

PaDiff calls the way to a module its route: the model's name, then the attribute names, joined by
dots. Every module appears once, a shared one under its first route.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from parfocal.backends.protocol import Backend


@dataclass(slots=True)
class ModuleNode:
    """One module, its place in the tree and its children in definition order."""

    path: str  # dotted, "" for the root
    module: Any
    parent: ModuleNode | None
    index: int  # position in definition order, the root is 0
    children: list[ModuleNode] = field(default_factory=list)

    @property
    def class_name(self) -> str:
        return type(self.module).__name__

    def ancestors(self) -> Iterator[ModuleNode]:
        """Parent first, root last."""
        node = self.parent
        while node is not None:
            yield node
            node = node.parent

    def walk(self) -> Iterator[ModuleNode]:
        """This node and everything below it, in definition order."""
        yield self
        for child in self.children:
            yield from child.walk()


def module_tree(backend: Backend, model: Any) -> ModuleNode:
    """The tree of all modules; its root is the model itself."""
    nodes: dict[str, ModuleNode] = {}
    for path, module in backend.modules(model).items():
        parent = nodes[_parent_path(path, nodes)] if path else None
        node = ModuleNode(path, module, parent, len(nodes))
        nodes[path] = node
        if parent is not None:
            parent.children.append(node)
    return nodes[""]


def _parent_path(path: str, known: dict[str, ModuleNode]) -> str:
    """The longest known path that leads to this one (a name may hold dots itself)."""
    while path:
        path = path.rpartition(".")[0]
        if path in known:
            return path
    return ""


def route(name: str, path: str) -> str:
    """PaDiff's spelling of a path: the model's name comes first."""
    return f"{name}.{path}" if path else name


def describe(module: Any) -> str:
    """The class and what the module says of itself in one line, without its children."""
    extra = module.extra_repr() if hasattr(module, "extra_repr") else ""
    return f"{type(module).__name__}({extra if len(extra.splitlines()) == 1 else ''})"
