"""What is kept of a tensor: its bytes, a sketch, or statistics only, and each once.

The output of one layer is the input of the next and often the output of its container, so
a tensor that was kept and has not changed since is answered from memory. It is known by
the live object itself and its version counter; a few of its values are looked at again,
because a write through ``.data`` or NumPy moves no counter.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from parfocal.backends.protocol import Array, Backend
from parfocal.capture.nested_values import FlatValue
from parfocal.errors import UnsupportedError
from parfocal.run.dtypes import dtype_name
from parfocal.run.records import Leaf, Structure, TensorValue

Keep = Callable[[Sequence[Array]], list[TensorValue]]

TOGETHER_BYTES = 2**26  # of tensors that are kept at once: arrays on other devices are copied for it
MAX_TEXT = 200
MAX_STRING = 10_000
_SAMPLES = 16
_PLAIN_REPR: Any = object.__repr__


@dataclass(frozen=True, slots=True)
class _Kept:
    tensor: weakref.ref[Any]
    version: int
    sample: bytes
    value: TensorValue

    def matches(self, tensor: Any, version: int, sample: bytes) -> bool:
        return self.tensor() is tensor and self.version == version and self.sample == sample


class _Seen(NamedTuple):
    """The values of a tensor or an array, of which nothing is kept yet."""

    array: Array
    turned: bool
    tensor: Any = None  # that counts its changes: what is kept of it holds until it has another version
    version: int = 0
    sample: bytes = b""


class Keeper:
    """Turns live values into leaves of records. ``keep`` says what becomes of arrays.

    ``keep_turned`` says what becomes of matrices of which the transposition is wanted.
    """

    def __init__(self, backend: Backend, keep: Keep, keep_turned: Keep | None = None) -> None:
        self._backend = backend
        self._ways = {False: keep, True: keep_turned or keep}
        self._known: dict[tuple[int, bool], _Kept] = {}

    def structure(self, flat: FlatValue) -> Structure:
        """The leaves of a live value, kept."""
        return Structure({slot: self.leaf(value) for slot, value in flat.leaves.items()}, flat.shape)

    def leaf(self, value: Any) -> Leaf:
        """A tensor or array is kept, a plain value is itself, anything else is described."""
        looked = self._look(value, turned=False)
        return self._keep([looked])[0] if isinstance(looked, _Seen) else looked

    def leaves(self, values: Iterable[tuple[Any, bool]]) -> list[Leaf]:
        """The leaves of several values, each with whether its transposition is wanted."""
        found: list[Leaf] = []
        waiting: dict[int, _Seen] = {}  # by their places
        waiting_bytes = 0

        def keep() -> None:
            for place, value in zip(waiting, self._keep(list(waiting.values())), strict=True):
                found[place] = value
            waiting.clear()

        for value, turned in values:
            looked = self._look(value, turned=turned)
            if isinstance(looked, _Seen):
                waiting[len(found)] = looked
                waiting_bytes += looked.array.nbytes
                looked = None
            found.append(looked)
            if waiting_bytes >= TOGETHER_BYTES:
                keep()
                waiting_bytes = 0
        keep()
        return found

    def _look(self, value: Any, *, turned: bool) -> Leaf | _Seen:
        """A leaf that needs no keeping, or what there is to keep."""
        if self._backend.is_tensor(value):
            return self._look_at_tensor(value, turned)
        if isinstance(value, np.ndarray) and dtype_name(value.dtype) is not None:
            return _Seen(value, turned)
        if isinstance(value, np.generic):
            value = value.item()
        if value is None or isinstance(value, (bool, int, float)):
            return value
        if isinstance(value, str) and len(value) <= MAX_STRING:
            return str(value)
        return describe(value)

    def _look_at_tensor(self, tensor: Any, turned: bool) -> Leaf | _Seen:
        """A kind of tensor that has no plain values is described."""
        try:
            array = self._backend.to_array(tensor, copy=False)
        except UnsupportedError as error:
            return {"repr": error.message}
        if not self._backend.counts_changes(tensor):
            return _Seen(array, turned)
        version = self._backend.version(tensor)
        sample = _sample(array)
        known = self._known.get((id(tensor), turned))
        if known is not None and known.matches(tensor, version, sample):
            return known.value
        return _Seen(array, turned, tensor, version, sample)

    def _keep(self, seen: Sequence[_Seen]) -> list[TensorValue]:
        """What is kept of tensors and arrays, remembered for those that count their changes."""
        kept: dict[int, TensorValue] = {}
        for turned, way in self._ways.items():
            places = [place for place, each in enumerate(seen) if each.turned is turned]
            kept.update(zip(places, way([seen[place].array for place in places]), strict=True))
        for place, (_, turned, tensor, version, sample) in enumerate(seen):
            if tensor is not None:
                self._remember((id(tensor), turned), tensor, version, sample, kept[place])
        return [kept[place] for place in range(len(seen))]

    def _remember(
        self, identity: tuple[int, bool], tensor: Any, version: int, sample: bytes, value: TensorValue
    ) -> None:
        reference = weakref.ref(tensor, lambda _: self._known.pop(identity, None))
        self._known[identity] = _Kept(reference, version, sample, value)

    def forget(self) -> None:
        """Start afresh: nothing kept before is answered from memory any more."""
        self._known.clear()


def _sample(array: Array) -> bytes:
    """A few values from all over the array."""
    step = max(1, array.size // _SAMPLES)
    return array.flat[::step].tobytes()


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
