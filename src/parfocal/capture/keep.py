"""What is kept of a tensor: its bytes, a sketch, or statistics only, and each once.

The output of one layer is the input of the next and often the output of its container, so
a tensor that was kept and has not changed since is answered from memory. It is known by
the live object itself and its version counter; a few of its values are looked at again,
because a write through ``.data`` or NumPy moves no counter. Of what an optimizer updates all
values are: paddle's updates move no counter, and may change a few rows only.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from parfocal.backends.protocol import Array, Backend
from parfocal.capture.nested_values import FlatValue
from parfocal.errors import UnsupportedError
from parfocal.run.dtypes import dtype_name
from parfocal.run.records import Leaf, Structure, TensorValue

Keep = Callable[[Array], TensorValue]

MAX_TEXT = 200
MAX_STRING = 10_000
_SAMPLES = 16
_WORDS = {size: np.dtype(f"u{size}") for size in (1, 2, 4, 8)}
_PLAIN_REPR: Any = object.__repr__


@dataclass(frozen=True, slots=True)
class _Kept:
    tensor: weakref.ref[Any]
    version: int
    sample: bytes
    value: TensorValue

    def matches(self, tensor: Any, version: int, sample: bytes) -> bool:
        return self.tensor() is tensor and self.version == version and self.sample == sample


class Keeper:
    """Turns live values into leaves of records. ``keep`` says what becomes of an array.

    ``keep_turned`` says what becomes of a matrix of which the transposition is wanted.
    """

    def __init__(self, backend: Backend, keep: Keep, keep_turned: Keep | None = None) -> None:
        self._backend = backend
        self._ways = {False: keep, True: keep_turned or keep}
        self._known: dict[tuple[int, bool, bool], _Kept] = {}

    def structure(self, flat: FlatValue) -> Structure:
        """The leaves of a live value, kept."""
        return Structure({slot: self.leaf(value) for slot, value in flat.leaves.items()}, flat.shape)

    def leaf(self, value: Any, *, turned: bool = False, updated: bool = False) -> Leaf:
        """A tensor or array is kept, a plain value is itself, anything else is described.

        ``updated``: by an optimizer.
        """
        if self._backend.is_tensor(value):
            return self.tensor(value, turned=turned, updated=updated)
        if isinstance(value, np.ndarray) and dtype_name(value.dtype) is not None:
            return self._ways[turned](value)
        if isinstance(value, np.generic):
            value = value.item()
        if value is None or isinstance(value, (bool, int, float)):
            return value
        if isinstance(value, str) and len(value) <= MAX_STRING:
            return str(value)
        return describe(value)

    def tensor(self, tensor: Any, *, turned: bool = False, updated: bool = False) -> Leaf:
        """What is kept of a tensor; a kind of tensor that has no plain values is described."""
        try:
            array = self._backend.to_array(tensor, copy=False)
        except UnsupportedError as error:
            return {"repr": error.message}
        if not self._backend.counts_changes(tensor):
            return self._ways[turned](array)
        version = self._backend.version(tensor)
        sample = _sum(array) if updated else _sample(array)
        identity = id(tensor), turned, updated
        known = self._known.get(identity)
        if known is not None and known.matches(tensor, version, sample):
            return known.value
        value = self._ways[turned](array)
        self._known[identity] = _Kept(
            weakref.ref(tensor, lambda _: self._known.pop(identity, None)), version, sample, value
        )
        return value

    def forget(self) -> None:
        """Start afresh: nothing kept before is answered from memory any more."""
        self._known.clear()


def _sample(array: Array) -> bytes:
    """A few values from all over the array."""
    step = max(1, array.size // _SAMPLES)
    return array.flat[::step].tobytes()


def _sum(array: Array) -> bytes:
    """The sum of all bits, as numbers of the array's own width: as fast as memory is read."""
    flat = np.ascontiguousarray(array).reshape(-1)
    words = flat.view(_WORDS.get(flat.dtype.itemsize, np.dtype("u1")))
    return _sample(array) + bytes(np.add.reduce(words, dtype=np.uint64).tobytes())


def describe(value: Any) -> dict[str, str]:
    """Any object in a few words, without an address, which would differ in every run."""
    kind = type(value)
    name = f"{kind.__module__}.{kind.__qualname__}"
    if isinstance(value, str):
        return {"repr": f"{value[:MAX_TEXT]!r}... ({len(value)} characters)"}
    if getattr(kind, "__repr__", None) is _PLAIN_REPR or callable(value):
        return {"repr": f"<{getattr(value, '__qualname__', name)}>"}
    try:
        text = repr(value)
    except Exception as error:  # noqa: BLE001 - a broken __repr__ is the user's, and no reason to stop
        text = f"<{name}: its repr raised {type(error).__name__}>"
    return {"repr": text if len(text) <= MAX_TEXT else f"{text[:MAX_TEXT]}..."}
