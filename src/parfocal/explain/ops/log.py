"""The ops that one call's own code makes, with the values they take and give.

Values are told apart by content, so the way from one op to the next needs no tensor identities
and survives aliases, copies and changes in place.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from parfocal.backends.protocol import Array, Backend, OpCall
from parfocal.capture.sites import Sites
from parfocal.capture.tree import flatten, flatten_call
from parfocal.errors import UnsupportedError
from parfocal.explain.causes import Where

LARGEST = 1 << 29  # bytes of values that are kept for one call

Key = bytes


@dataclass(slots=True)
class Op:
    """One op. ``inputs`` and ``outputs``: slot -> key of the value."""

    order: int
    name: str
    native: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    function: Callable[..., Any]
    inputs: dict[str, Key]
    outputs: dict[str, Key]
    file: str | None
    line: int | None

    @property
    def where(self) -> Where:
        return Where(self.name, self.file, self.line)


@dataclass(slots=True)
class Log:
    """All ops of one call, in order, and every value seen."""

    ops: list[Op] = field(default_factory=list)
    values: dict[Key, Array] = field(default_factory=dict)
    producers: dict[Key, Op] = field(default_factory=dict)  # the first op that gave a value

    def cone(self, end: Op | None, known: Callable[[Key], bool]) -> list[Op]:
        """The ops that ``end`` comes from, back to values that are known; in order."""
        found: dict[int, Op] = {}
        waiting = [end] if end is not None else []
        while waiting:
            op = waiting.pop()
            if op.order in found:
                continue
            found[op.order] = op
            for key in op.inputs.values():
                producer = self.producers.get(key)
                if producer is not None and producer.order < op.order and not known(key):
                    waiting.append(producer)
        return [found[order] for order in sorted(found)]

    def giving(self, key: Key) -> Op | None:
        """The last op that gave a value."""
        return next((op for op in reversed(self.ops) if key in op.outputs.values()), None)


class Watcher:
    """Fills a log; give it to a repeated call as ``on_op``."""

    def __init__(self, backend: Backend, counts: Callable[[int | None], bool]) -> None:
        """``counts`` says of a call, by its order in the repetition, whether its ops are of interest."""
        self.log = Log()
        self._backend = backend
        self._counts = counts
        self._sites = Sites((backend.name,))
        self._bytes = 0

    def __call__(self, op: OpCall) -> None:
        if not self._counts(op.call) or op.function is None:
            return
        file, line = self._sites.find()
        entry = Op(
            *(op.order, op.name, op.native, op.args, op.kwargs, op.function),
            inputs=dict(self._keys(flatten_call(op.args, op.kwargs).leaves)),
            outputs=dict(self._keys(flatten(op.output).leaves)),
            file=file,
            line=line,
        )
        self.log.ops.append(entry)
        for key in entry.outputs.values():
            if key not in entry.inputs.values():
                self.log.producers.setdefault(key, entry)

    def _keys(self, leaves: dict[str, Any]) -> Iterator[tuple[str, Key]]:
        for slot, leaf in leaves.items():
            if self._backend.is_tensor(leaf):
                yield slot, self._keep(self._backend.to_array(leaf))

    def _keep(self, array: Array) -> Key:
        key = key_of(array)
        if key not in self.log.values:
            self._bytes += array.nbytes
            if self._bytes > LARGEST:
                raise UnsupportedError(f"the ops of one call give more than {LARGEST >> 20} MiB")
            self.log.values[key] = array
        return key


def key_of(array: Array) -> Key:
    digest = hashlib.blake2b(digest_size=16)
    digest.update(f"{array.dtype}{array.shape}".encode())
    digest.update(array.tobytes())
    return digest.digest()
