"""What modules keep besides their weights, put back as it was before a run.

A model may keep a tensor that it made, as an attribute or in a dict, for its next call: a bias by
device, tables by length. With the tensor it keeps the graph of that one run, which the next cannot go
backward through; and twins of its modules are to make theirs themselves. Or it changes a tensor that it
has, in place: a count of its calls, a cache.
"""

from __future__ import annotations

import itertools
import operator
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

from parfocal.backends.protocol import Array, Call, StateTensor
from parfocal.errors import ParfocalError

BUFFERS = "_buffers"  # the attribute that has them, in either framework
MODE = "training"  # the attribute that says it, in either framework
_ATOMS = frozenset({type(None), bool, int, float, complex, str, bytes})  # most attributes: nothing in them


class Framework(Protocol):
    """What is asked of a backend here."""

    def modules(self, model: Any) -> dict[str, Any]: ...
    def plain_attributes(self, module: Any) -> dict[str, Any]: ...
    def is_tensor(self, value: object) -> bool: ...
    def state(self, model: Any) -> Sequence[StateTensor]: ...
    def requires_grad(self, tensor: Any) -> bool: ...
    def to_array(self, tensor: Any, *, copy: bool = True) -> Array: ...
    def write(self, tensor: Any, array: Array) -> None: ...


_CONTAINERS = (dict, list, set)  # that can be changed
_EMPTY: dict[Any, Any] = {**{kind: kind for kind in _CONTAINERS}, OrderedDict: dict}


@dataclass(slots=True)
class _Noted:
    attributes: dict[str, Any]
    contents: list[tuple[Any, Any]]  # every dict, list and set in them, and a shallow copy
    plain: list[Any]  # tensors that are registered nowhere
    buffers: list[Any]
    everything: dict[str, Any]  # all attributes, also those that every module has

    @property
    def tensors(self) -> list[int]:
        """Their identities."""
        return [id(tensor) for tensor in (*self.plain, *self.buffers)]

    def is_still(self, module: Any) -> bool:
        """Whether all attributes are the very same, and what can be changed holds the very same items."""
        return _is_same(vars(module), self.everything) and all(itertools.starmap(_holds, self.contents))


class KeptAttributes:
    """Attributes of modules as they were when each was noted."""

    def __init__(self, framework: Framework, model: Any, known: KeptAttributes | None = None) -> None:
        """``known``: notes of the same modules made before, for those that are still like that."""
        self._framework = framework
        self._known = {} if known is None else known._noted
        self._model = model
        self._registered: set[int] | None = None  # identities of its state, once they are asked for
        self._noted: dict[int, tuple[Any, _Noted, list[tuple[Any, Array]]]] = {}

    def note(self, module: Any) -> None:
        """Once: what it is like later does not count."""
        if id(module) not in self._noted:
            known = self._known.get(id(module))
            if known is not None and not known[2] and known[1].is_still(module):
                self._noted[id(module)] = known
                return
            noted = self._note(module)
            self._noted[id(module)] = module, noted, self._values(noted.plain)

    def entered(self, call: Call) -> None:
        """As the first call of a module finds it: what a caller set is there, what it makes itself is not."""
        self.note(call.module)

    def put_back(self) -> None:
        """Modules that keep other tensors or values now get all they had: a length goes with the table."""
        for module, before, values in self._noted.values():
            if not values and before.is_still(module):
                continue
            now = self._note(module)
            changed = [each for each in values if not self._is_still(*each)]
            if not changed and now.tensors == before.tensors:
                continue
            for tensor, array in changed:
                self._framework.write(tensor, array)
            for container, content in before.contents:
                _refill(container, content)
            for name in now.attributes.keys() - before.attributes.keys():
                del vars(module)[name]
            vars(module).update(before.attributes)

    def _values(self, tensors: list[Any]) -> list[tuple[Any, Array]]:
        """Copies of what code can change in place: not what takes part in autograd, nor parameters.

        Buffers are put back by whoever runs a model, after having looked at them.
        """
        values = []
        for tensor in tensors:
            if not self._framework.requires_grad(tensor) and not self._is_registered(tensor):
                try:
                    values.append((tensor, self._framework.to_array(tensor)))
                except ParfocalError:
                    continue  # of a kind that has no plain values: sparse, or none at all
        return values

    def _is_registered(self, tensor: Any) -> bool:
        if self._registered is None:
            self._registered = {id(entry.value) for entry in self._framework.state(self._model)}
        return id(tensor) in self._registered

    def _is_still(self, tensor: Any, array: Array) -> bool:
        now = self._framework.to_array(tensor, copy=False)
        # one of another size cannot be written back
        return now.shape != array.shape or now.tobytes() == array.tobytes()

    def _note(self, module: Any) -> _Noted:
        attributes = self._framework.plain_attributes(module)
        contents: list[tuple[Any, Any]] = []
        found: tuple[list[Any], list[Any]] = [], []  # what may hold tensors: plain, and as buffers
        for name, value in attributes.items():
            kind = type(value)
            if kind in _ATOMS:
                continue
            if kind in _EMPTY and not value:
                contents.append((value, _EMPTY[kind]()))
            else:
                found[name == BUFFERS].append(value)
        is_tensor = self._framework.is_tensor
        plain, buffers = (list(tensors_in(each, is_tensor, contents)) if each else [] for each in found)
        return _Noted(attributes, contents, plain, buffers, {**vars(module), MODE: None})


@contextmanager
def attributes_kept(framework: Framework, model: Any) -> Iterator[KeptAttributes]:
    """Tensors that the model's modules come to keep meanwhile are gone on leaving."""
    kept = KeptAttributes(framework, model)
    for module in framework.modules(model).values():
        kept.note(module)
    try:
        yield kept
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
        if type(value) in _ATOMS:
            continue
        if is_tensor(value):
            yield value
        elif isinstance(value, dict | list | set | tuple) and id(value) not in seen:
            seen.add(id(value))
            if contents is not None and not isinstance(value, tuple):
                contents.append((value, _content(value)))
            pending.extend(value.values() if isinstance(value, dict) else value)


def _content(container: Any) -> Any:
    kind = type(container)
    if kind not in _CONTAINERS:
        kind = next(each for each in _CONTAINERS if isinstance(container, each))
    return kind(container)


def _is_same(attributes: dict[str, Any], before: dict[str, Any]) -> bool:
    """Whether attributes have the names they had, in the same order, and are the very same; not the mode."""
    if list(attributes) != list(before):
        return False
    others = sum(map(operator.is_not, attributes.values(), before.values()))
    return others == (attributes[MODE] is not before[MODE])


def _holds(container: Any, content: Any) -> bool:
    """Whether a container has the very items of a copy, in the same order; a set equal ones."""
    if len(container) != len(content):
        return False
    if not content:
        return True
    if isinstance(container, set):
        return bool(container == content)
    return list(map(id, _items(container))) == list(map(id, _items(content)))


def _refill(container: Any, content: Any) -> None:
    if _holds(container, content):
        return  # some cannot be changed, and need not be
    container.clear()
    (container.extend if isinstance(container, list) else container.update)(content)


def _items(content: Any) -> list[Any]:
    return [*content, *content.values()] if isinstance(content, dict) else content
