"""What modules keep besides their weights, put back as it was before a run.

A model may keep a tensor that it made, as an attribute or in a dict, for its next call: a bias by
device, tables by length. With the tensor it keeps the graph of that one run, which the next cannot go
backward through; and twins of its modules are to make theirs themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

from parfocal.backends.protocol import Call


class Framework(Protocol):
    """What is asked of a backend here."""

    def modules(self, model: Any) -> dict[str, Any]: ...
    def plain_attributes(self, module: Any) -> dict[str, Any]: ...
    def is_tensor(self, value: object) -> bool: ...


@dataclass(frozen=True, slots=True)
class _Noted:
    attributes: dict[str, Any]
    contents: list[tuple[Any, Any]]  # every dict, list and set in them, and a shallow copy
    tensors: list[Any]


class Kept:
    """Attributes of modules as they were when each was noted."""

    def __init__(self, framework: Framework) -> None:
        self._framework = framework
        self._noted: dict[int, tuple[Any, _Noted]] = {}

    def note(self, module: Any) -> None:
        """Once: what it is like later does not count."""
        if id(module) not in self._noted:
            self._noted[id(module)] = module, self._note(module)

    def entered(self, call: Call) -> None:
        """As the first call of a module finds it: what a caller set is there, what it makes itself is not."""
        self.note(call.module)

    def left(self, call: Call, computed: Any, given: Any) -> None:
        """Whoever follows a model may have this listen to its calls; their ends are of no interest."""

    def put_back(self) -> None:
        """Modules that keep other tensors now get all they had: a length goes with the table."""
        for module, before in self._noted.values():
            now = self._note(module)
            if _identities(now.tensors) == _identities(before.tensors):
                continue
            for container, content in before.contents:
                _refill(container, content)
            for name in now.attributes.keys() - before.attributes.keys():
                del vars(module)[name]
            vars(module).update(before.attributes)

    def _note(self, module: Any) -> _Noted:
        attributes = self._framework.plain_attributes(module)
        contents: list[tuple[Any, Any]] = []
        tensors = list(tensors_in(attributes.values(), self._framework.is_tensor, contents))
        return _Noted(attributes, contents, tensors)


@contextmanager
def attributes_kept(framework: Framework, model: Any) -> Iterator[None]:
    """Tensors that the model's modules come to keep meanwhile are gone on leaving."""
    kept = Kept(framework)
    for module in framework.modules(model).values():
        kept.note(module)
    try:
        yield
    finally:
        kept.put_back()


def tensors_in(
    values: Iterable[Any], is_tensor: Callable[[Any], bool], contents: list[tuple[Any, Any]] | None = None
) -> Iterator[Any]:
    """The tensors among values and in containers there; ``contents`` gets copies of these."""
    seen: set[int] = set()
    pending = list(values)
    while pending:
        value = pending.pop()
        if is_tensor(value):
            yield value
        elif isinstance(value, dict | list | set | tuple) and id(value) not in seen:
            seen.add(id(value))
            if contents is not None and not isinstance(value, tuple):
                contents.append((value, _content(value)))
            pending.extend(value.values() if isinstance(value, dict) else value)


def _content(container: Any) -> Any:
    return next(kind(container) for kind in (dict, list, set) if isinstance(container, kind))


def _refill(container: Any, content: Any) -> None:
    now = _content(container)
    if type(now) is not set and list(map(id, _items(now))) == list(map(id, _items(content))):
        return  # some cannot be changed, and need not be
    container.clear()
    (container.extend if isinstance(container, list) else container.update)(content)


def _items(content: Any) -> list[Any]:
    return [*content, *content.values()] if isinstance(content, dict) else content


def _identities(tensors: list[Any]) -> list[int]:
    return [id(tensor) for tensor in tensors]
