"""The log of one call's own code: its ops and the modules it calls, with their inputs and results.

Values are identified by content, so the path from one op to the next needs no tensor identities
and survives aliases, copies and changes in place.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from parfocal.backends.opcalls import works_in_place
from parfocal.backends.protocol import Array
from parfocal.explain.causes import OpLine
from parfocal.explain.fixes.frames import UserFrame
from parfocal.explain.fixes.sources import Span
from parfocal.explain.ops.names import DROPPING, LAYOUT
from parfocal.phrases import Phrase

HANDING = frozenset({"setitem", "cast", "contiguous", "clone"})  # may give what they take
Key = bytes
Known = Callable[[Key], bool]
LAYER = "{path} ({does})"  # a layer by where it is and what it does: blocks.0.norm (layer_norm)
Maker = tuple[int, str]  # index of an op, slot of its output


@dataclass(slots=True)
class Op:
    """One op, or one call of a module. ``inputs`` and ``outputs``: slot -> key of the value."""

    index: int  # in the log
    name: str  # common name of the op; of a module what it does, by the same names
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    inputs: dict[str, Key]
    outputs: dict[str, Key]
    file: str | None
    line: int | None
    order: int | None = None  # as the watch counts ops; None: a module
    native: str = ""
    function: Callable[..., Any] | None = None  # calls an op again; None: a module
    path: str | None = None  # of a module
    call: int | None = None  # order of a module's call in the trace
    bound: dict[str, Any] = field(default_factory=dict)  # a module's settings, under common names
    makers: dict[str, Maker] = field(default_factory=dict)  # input slot -> which op's output it is
    span: Span | None = None  # of its expression in the source, where Python keeps it
    around: dict[str, Any] = field(default_factory=dict)  # the user's tensors then, by their names
    owner: tuple[str | None, str | None] = (
        None,
        None,
    )  # path and kind of another module, if it is its code
    frames: tuple[UserFrame, ...] = ()  # of the user's code then, the innermost first
    looked_up: dict[str, Any] = field(default_factory=dict)  # what is found once

    @property
    def where(self) -> OpLine:
        return OpLine(self.name, self.file, self.line, *self.owner)

    @property
    def spelled(self) -> str:
        return self.name if self.path is None else Phrase(LAYER, {"path": self.path, "does": self.name})

    @property
    def is_module(self) -> bool:
        return self.path is not None

    @property
    def repeatable(self) -> bool:
        """Whether the function can be called again without changing its inputs."""
        return self.function is not None and not works_in_place(self.native, self.kwargs)


@dataclass(frozen=True, slots=True)
class Return:
    """A function of the user's code returned a tensor, after ``moment`` ops."""

    moment: int
    tensor: Any
    file: str
    line: int
    given: bool  # to the function, and given back as it was
    around: dict[str, Any] = field(default_factory=dict)  # the function's tensors then, by their names
    caller: tuple[str, Span | None] = ("", None)  # file and place of the call
    outside: dict[str, Any] = field(default_factory=dict)  # the caller's tensors then
    alone: bool = True  # nothing else was given back


@dataclass(slots=True)
class OpLog:
    """All ops of one call, in order, and every value seen."""

    ops: list[Op] = field(default_factory=list)
    values: dict[Key, Array] = field(default_factory=dict)
    producers: dict[Key, Op] = field(default_factory=dict)  # the first op that gave a value
    results: dict[str, Key] = field(default_factory=dict)  # what the call gives, by slot
    result_makers: dict[str, Maker] = field(default_factory=dict)
    returns: list[Return] = field(default_factory=list)
    ended: int | None = None  # after so many ops the call gave its results: what follows is around it

    def add(self, op: Op) -> None:
        self.ops.append(op)
        for key in op.outputs.values():
            if key not in op.inputs.values():
                self.producers.setdefault(key, op)

    def cone(self, end: Op | None, known: Known) -> list[Op]:
        """The ops that ``end`` depends on, back to values that are known; in order."""
        found: dict[int, Op] = {}
        waiting = [end] if end is not None else []
        while waiting:
            op = waiting.pop()
            if op.index in found:
                continue
            found[op.index] = op
            for slot, key in op.inputs.items():
                producer = self.maker(op, slot)
                if producer is not None and producer.index < op.index and not known(key):
                    waiting.append(producer)
        return [found[index] for index in sorted(found)]

    def maker(self, op: Op, slot: str) -> Op | None:
        """The op that made what another takes: that very tensor, or else a value like it."""
        if slot in op.makers:
            return self._behind_same(self.ops[op.makers[slot][0]])
        return self.producers.get(op.inputs[slot])

    def maker_of_result(self, slot: str) -> Op | None:
        if slot in self.result_makers:
            return self._behind_same(self.ops[self.result_makers[slot][0]])
        return self.producers.get(self.results[slot])

    def _behind_same(self, op: Op) -> Op | None:
        """The op itself, or the maker of a value that it only passes on.

        Dropout that is off, a cast to the same dtype, a copy, or writing equal values make no new value.
        """
        first = next(iter(op.inputs), None)
        same = first is not None and list(op.outputs.values()) == [op.inputs[first]]
        if first is None or not same or op.name not in DROPPING | HANDING:
            return op
        return self.maker(op, first)

    def giving(self, key: Key) -> Op | None:
        """The last op that gave a value."""
        return next((op for op in reversed(self.ops) if key in op.outputs.values()), None)

    def only_moves(self, op: Op) -> bool:
        """Whether an op only reshapes or reorders its input."""
        if op.name in LAYOUT:
            return True
        taken, given = list(op.inputs.values()), list(op.outputs.values())
        whole = len(taken) == len(given) == 1 and self.values[taken[0]].size == self.values[given[0]].size
        return op.name == "getitem" and whole

    def taking(self, key: Key) -> Iterator[Op]:
        return (op for op in self.ops if key in op.inputs.values())


def key_of(array: Array) -> Key:
    digest = hashlib.blake2b(digest_size=16)
    digest.update(f"{array.dtype}{array.shape}".encode())
    digest.update(array.tobytes())
    return digest.digest()


def hides_where(log: OpLog, op: Op) -> bool:
    """Whether an op hides the places where its mask is true, or the others."""
    if op.name != "where":
        return True
    kept = log.values[list(op.inputs.values())[1]]
    return bool((kept == kept.flat[0]).all())
