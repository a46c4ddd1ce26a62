"""A few slots of memory that are a file at the same time.

Tensor bytes wait in them until they are written to their segment. The slots are a shared
mapping of a file in the Run's folder, so a process killed at any moment leaves them behind;
the file's first page says which bytes of which segment each slot holds.

Without them, by one write after the other, a full recording of ResNet-50 takes 2.9 times the processor
time of the bare passes instead of 1.45 (``python -m benchmarks.recording --cpu``, on one busy machine).
"""

from __future__ import annotations

import mmap
import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from parfocal.run.blockfile import PAGE
from parfocal.run.storage import storage_errors, write_all

MAGIC = b"parfocal slots1\n"
MAX_SLOTS = 64
MAX_SLOT_BYTES = 2**30

# The first page: the magic, the size of a slot at 16, and from 64 on a row for every slot.
SIZE_AT, TABLE_AT = 16, 64
COLUMNS = 3
_SEGMENT, _START, _FILLED = range(COLUMNS)  # a row that is not filled says nothing


@dataclass(frozen=True, slots=True)
class RingShape:
    """How much waits to be written at most, and from how many bytes on a run needs a ring at all.

    Without slots there is none.
    """

    slot_bytes: int = 8 * 2**20
    slots: int = 8
    after: int = 4 * 2**20

    def __post_init__(self) -> None:
        assert self.slot_bytes % PAGE == 0
        assert 0 < self.slot_bytes <= MAX_SLOT_BYTES
        assert 0 <= self.slots <= MAX_SLOTS


RING_SHAPE = RingShape()


@dataclass(slots=True)
class RingSlot:
    """Memory for one block of a segment; the thread that fills it decides about everything here."""

    number: int
    data: NDArray[np.uint8]
    segment: int = 0
    start: int = 0  # where its first byte belongs in the segment
    filled: int = 0
    sealed: bool = False  # nothing is added any more

    @property
    def done(self) -> bool:
        return self.sealed or self.filled == self.data.nbytes


class Ring:
    """The writer's side. It is a file of its full size at once, but takes room slot by slot."""

    def __init__(self, path: Path, shape: RingShape) -> None:
        self._path = path
        self._shape = shape
        self._free: list[RingSlot] = []  # the last one freed is the first one used: it is in the cache
        self._made = 0
        self._limit = shape.slots
        self._descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o666)
        try:
            _take_room(self._descriptor, 0, PAGE)
            os.ftruncate(self._descriptor, PAGE + shape.slots * shape.slot_bytes)
            self._bytes = np.frombuffer(mmap.mmap(self._descriptor, 0), np.uint8)
            self._grow()
        except BaseException:
            os.close(self._descriptor)
            os.unlink(path)
            raise
        table = self._bytes[TABLE_AT : TABLE_AT + MAX_SLOTS * COLUMNS * 8]
        self._table = table.view("<u8").reshape(MAX_SLOTS, COLUMNS)
        self._bytes[SIZE_AT : SIZE_AT + 8].view("<u8")[0] = shape.slot_bytes
        self._bytes[: len(MAGIC)] = np.frombuffer(MAGIC, np.uint8)

    def take(self, segment: int, start: int) -> RingSlot | None:
        """A slot for the bytes from ``start`` on, or None when all of them are in use."""
        if not self._free and self._made < self._limit:
            try:
                self._grow()
            except OSError:  # no room for another one: those that there are will do
                self._limit = self._made
        if not self._free:
            return None
        slot = self._free.pop()
        slot.segment, slot.start, slot.filled, slot.sealed = segment, start, 0, False
        row = self._table[slot.number]
        row[_SEGMENT] = segment
        row[_START] = start
        return slot

    def fill(self, slot: RingSlot, filled: int) -> None:
        """The first ``filled`` bytes of the slot are there."""
        self._table[slot.number, _FILLED] = filled
        slot.filled = filled

    def release(self, slot: RingSlot) -> None:
        """The bytes of the slot are in their segment."""
        self._table[slot.number, _FILLED] = 0
        self._free.append(slot)

    def close(self) -> None:
        """Let go of the memory; the file stays, with what was not released."""
        os.close(self._descriptor)
        self._free.clear()
        del self._table, self._bytes

    def remove(self) -> None:
        with storage_errors("remove", self._path):
            os.unlink(self._path)

    def _grow(self) -> None:
        size = self._shape.slot_bytes
        start = PAGE + self._made * size
        _take_room(self._descriptor, start, size)
        self._free.append(RingSlot(self._made, self._bytes[start : start + size]))
        self._made += 1


def _take_room(descriptor: int, start: int, nbytes: int) -> None:
    """Room on the disk, before the memory is written to: a full disk would kill the process then."""
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(descriptor, start, nbytes)
    else:
        os.lseek(descriptor, start, os.SEEK_SET)
        write_all(descriptor, memoryview(bytes(nbytes)))
