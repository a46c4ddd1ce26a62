"""What every framework answers in the same way about a tree of modules that stand still.

A backend says how to get at one module's children and tensors; paths, ties, modes and settings follow.
Walks are in registration order with the root first.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, ClassVar, Protocol

from parfocal.backends import reading
from parfocal.backends.checks import check_mode
from parfocal.backends.protocol import Mode, Role, StateTensor

Children = Callable[[Any], Mapping[str, Any]]
OwnTensor = tuple[str, Role, bool, Any]  # local name, role, whether it is saved, the tensor


class Kinds(Protocol):
    """What classes of modules are."""

    def kind_of(self, kind: type, /) -> str | None:
        """The common kind of a class, or None."""

    def settings_of(self, kind: type, /) -> reading.Table:
        """The table of its settings."""

    def is_framework_class(self, kind: type, /) -> bool:
        """Whether the framework itself defines it."""


class ModuleTree(ABC):
    """The part of ``ModelBackend`` that needs no more than the methods and fields without a body here."""

    module_class: ClassVar[type]  # of every module
    every_modules: ClassVar[frozenset[str]]  # attributes that every module has, buffers left out
    kinds: ClassVar[Kinds]  # as a module of functions

    @staticmethod
    @abstractmethod
    def children(module: Any, /) -> Mapping[str, Any]:
        """Its named children, as registered."""

    @staticmethod
    @abstractmethod
    def own_state(module: Any) -> Iterable[OwnTensor]:
        """Its own parameters and buffers."""

    @staticmethod
    @abstractmethod
    def own_buffers(module: Any) -> Iterable[tuple[str, Any]]:
        """Its own buffers; often there are none, and it is asked often."""

    @abstractmethod
    def requires_grad(self, tensor: Any) -> bool: ...

    def is_model(self, value: object) -> bool:
        return isinstance(value, self.module_class)

    def obstacle(self, model: Any) -> str:
        return ""

    def modules(self, model: Any) -> dict[str, Any]:
        return first_paths(model, self.children)

    def kind(self, module: Any) -> str:
        return self.kinds.kind_of(type(module)) or type(module).__name__

    def is_framework_layer(self, module: Any) -> bool:
        return self.kinds.is_framework_class(type(module))

    def runs_framework_code(self, module: Any) -> bool:
        """Whether a call of the module runs the framework's own ``forward``, not one the user wrote."""
        if "forward" in vars(module):
            return False
        owner = next(base for base in type(module).__mro__ if "forward" in vars(base))
        return self.kinds.is_framework_class(owner)

    def plain_attributes(self, module: Any) -> dict[str, Any]:
        return {name: value for name, value in vars(module).items() if name not in self.every_modules}

    def settings(self, module: Any) -> dict[str, Any]:
        return reading.read(module, self.kinds.settings_of(type(module)))

    def state(self, model: Any) -> list[StateTensor]:
        first: dict[int, str] = {}
        found: list[StateTensor] = []
        for path, module in every_path(model, self.children):
            start = f"{path}." if path else ""
            for name, role, persistent, value in self.own_state(module):
                whole = start + name
                known = first.setdefault(id(value), whole)
                trainable = role == "parameter" and self.requires_grad(value)
                tied_to = known if known != whole else None
                found.append(StateTensor(whole, path, name, role, trainable, persistent, tied_to, value))
        return found

    def buffers(self, model: Any) -> list[tuple[str, Any]]:
        return [
            (join(path, name), value)
            for path, module in every_path(model, self.children)
            for name, value in self.own_buffers(module)
        ]

    def training_flags(self, model: Any) -> dict[str, bool]:
        return {path: bool(module.training) for path, module in self.modules(model).items()}

    @contextmanager
    def mode(self, model: Any, mode: Mode) -> Iterator[None]:
        check_mode(mode)
        before = [(module, module.training) for module in self.modules(model).values()]
        try:
            if mode != "keep":
                model.train() if mode == "train" else model.eval()
            yield
        finally:
            for module, training in before:
                if module.training != training:
                    module.training = training

    def works_in_place(self, module: Any) -> bool:
        # a module takes long to say that it does not have something
        says = "inplace" in vars(module) or hasattr(type(module), "inplace")
        return says and bool(module.inplace)


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
