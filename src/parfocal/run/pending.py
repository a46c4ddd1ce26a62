"""Reading tensor bytes that have not reached their segment.

A writer that was killed, or that writes at this moment, has its latest bytes in the slots of
its ring. What a slot holds may move to the segment while it is read: then it is looked for again.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from parfocal.errors import FileFormatError, StorageError
from parfocal.phrases import phrase
from parfocal.run.blockfile import PAGE
from parfocal.run.ring import COLUMNS, MAGIC, MAX_SLOT_BYTES, MAX_SLOTS, SIZE_AT, TABLE_AT
from parfocal.run.storage import open_for_reading, storage_errors


@dataclass(frozen=True, slots=True)
class Waiting:
    """What a slot holds: ``filled`` bytes that belong to a segment, from ``start`` on."""

    at: int  # in the ring's file
    segment: int
    start: int
    filled: int

    @property
    def end(self) -> int:
        return self.start + self.filled

    def is_in(self, others: list[Waiting]) -> bool:
        """Whether a later look at the slots found these bytes as well, and maybe more behind them."""
        return any(
            (self.at, self.segment, self.start) == (other.at, other.segment, other.start)
            and self.filled <= other.filled
            for other in others
        )


def read_pending(ring: Path, path: Path, segment: int, start: int, end: int) -> NDArray[np.uint8] | None:
    """The bytes from ``start`` to ``end`` of the segment in ``path``, the last of them from the ring.

    None when the segment has all of them by now, or when they are nowhere.
    """
    try:
        slots = os.fdopen(open_for_reading(ring), "rb", buffering=0)
    except StorageError as error:
        if isinstance(error.__cause__, FileNotFoundError):
            return None
        raise
    with slots, os.fdopen(open_for_reading(path), "rb", buffering=0) as file:
        while (size := os.fstat(file.fileno()).st_size) < end:
            waiting = _waiting(slots, ring)
            pieces = _pieces(waiting, segment, max(start, size), end)
            if pieces is None:
                if os.fstat(file.fileno()).st_size == size:
                    return None
                continue  # they went to the segment just now
            data = np.empty(end - start, np.uint8)
            _read_at(file, path, start, data[: max(size - start, 0)])
            for slot, first, last in pieces:
                _read_at(slots, ring, slot.at + first - slot.start, data[first - start : last - start])
            after = _waiting(slots, ring)
            if all(slot.is_in(after) for slot, _, _ in pieces):
                data.flags.writeable = False
                return data
    return None


def _pieces(
    waiting: list[Waiting], segment: int, position: int, end: int
) -> list[tuple[Waiting, int, int]] | None:
    """The slots that hold what lies between two positions, and which part each of them gives."""
    pieces = []
    while position < end:
        holding = (slot for slot in waiting if slot.segment == segment and slot.start <= position < slot.end)
        slot = next(holding, None)
        if slot is None:
            return None
        pieces.append((slot, position, min(end, slot.end)))
        position = slot.end
    return pieces


def _waiting(slots: BinaryIO, path: Path) -> list[Waiting]:
    """What the slots hold at this moment."""
    size = os.fstat(slots.fileno()).st_size
    if size < PAGE:
        raise FileFormatError(
            phrase("{path} is too short for pending bytes: it has {size} bytes", path=path, size=size)
        )
    page = np.empty(PAGE, np.uint8)
    _read_at(slots, path, 0, page)
    if page[: len(MAGIC)].tobytes() != MAGIC:
        raise FileFormatError(
            phrase(
                "{path} does not begin as a file of pending bytes does: {magic}", path=path, magic=repr(MAGIC)
            )
        )
    slot_bytes = int(page[SIZE_AT : SIZE_AT + 8].view("<u8")[0])
    if not 0 < slot_bytes <= MAX_SLOT_BYTES or slot_bytes % PAGE:
        raise FileFormatError(
            phrase(
                "{path}: slots have {slot_bytes} bytes; allowed are multiples of {page} up to "
                "{max_slot_bytes}",
                path=path,
                slot_bytes=slot_bytes,
                page=PAGE,
                max_slot_bytes=MAX_SLOT_BYTES,
            )
        )
    return list(_rows(page, slot_bytes, size, path))


def _rows(page: NDArray[np.uint8], slot_bytes: int, size: int, path: Path) -> Iterator[Waiting]:
    table = page[TABLE_AT : TABLE_AT + MAX_SLOTS * COLUMNS * 8].view("<u8").reshape(MAX_SLOTS, COLUMNS)
    for number, (segment, start, filled) in enumerate(table.tolist()):
        at = PAGE + number * slot_bytes
        if filled > slot_bytes or start % PAGE or (filled and at + filled > size):
            raise FileFormatError(
                phrase(
                    "{path}: slot {number} has {filled} bytes from offset {start} on; allowed are "
                    "{slot_bytes} within the file's {size}, from a multiple of {page} on",
                    path=path,
                    number=number,
                    filled=filled,
                    start=start,
                    slot_bytes=slot_bytes,
                    size=size,
                    page=PAGE,
                )
            )
        if filled:
            yield Waiting(at, segment, start, filled)


def _read_at(file: BinaryIO, path: Path, offset: int, target: NDArray[np.uint8]) -> None:
    with storage_errors("read", path):
        file.seek(offset)
        done = 0
        while done < target.nbytes:
            count = file.readinto(target[done:].data)  # type: ignore[attr-defined]
            if not count:
                raise FileFormatError(phrase("{path} became shorter while it was read", path=path))
            done += count
