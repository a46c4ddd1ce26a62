"""Writing tensor bytes while the model goes on.

The bytes are copied to slots of a ring, and a thread writes every full slot to its segment,
in order: what a segment's file has is whole, and what it lacks is in the ring. An error of
that thread is raised by the next call; the bytes stay in the ring and are tried again after.
"""

from __future__ import annotations

import threading
import zlib
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from parfocal.run.blockfile import BlockFile
from parfocal.run.copying import copy_summed
from parfocal.run.ring import Ring, RingSlot


class Background:
    """The stream of a run's tensor bytes from a position in a segment on; ``path_of`` names its file.

    ``head`` are the bytes of the segment's last page before that position: a page is written whole.
    """

    def __init__(
        self, ring: Ring, path_of: Callable[[int], Path], segment: int, position: int, head: bytes
    ) -> None:
        self.position = position  # where the stream ends in the current segment
        self._segment = segment
        self._ring = ring
        self._path_of = path_of
        self._changed = threading.Condition()
        self._taken: deque[RingSlot] = deque()  # those with bytes that are not written, oldest first
        self._error: BaseException | None = None
        self._reported = False  # the error has been raised once
        self._stopping = False
        self._file: tuple[int, BlockFile] | None = None  # the thread's alone
        if head:
            slot = self._take(position - len(head))
            slot.data[: len(head)] = np.frombuffer(head, np.uint8)
            self._fill(slot, position)
        # A process that ends without closing its run need not wait: the ring has what is missing.
        self._thread = threading.Thread(target=self._work, name="parfocal-writer", daemon=True)
        self._thread.start()

    def check(self) -> None:
        """Raise what went wrong in the thread, once; the next call lets it try again."""
        with self._changed:
            if self._error is None:
                return
            if self._reported:
                self._retry()
                return
            self._reported = True
            raise self._error

    def begin(self, segment: int) -> None:
        """What follows belongs to a new segment."""
        self._seal()
        self._segment, self.position = segment, 0

    def write(self, offset: int, array: NDArray[Any], dtype: np.dtype[Any]) -> int:
        """Append an array's values in C order at an offset, not far from the end; returns the checksum."""
        slot = self._slot_at(offset)
        place = slot.data[offset - slot.start :][: array.nbytes]
        if array.nbytes == place.nbytes and not (array.flags.c_contiguous and array.dtype == dtype):
            np.copyto(place.view(dtype).reshape(array.shape), array)  # spares a copy in between
            self._fill(slot, offset + array.nbytes)
            return zlib.crc32(place.data)
        source = np.ascontiguousarray(array, dtype).reshape(-1).view(np.uint8)
        checksum = done = 0
        while done < source.nbytes:
            slot = self._slot_at(offset + done)
            place = slot.data[offset + done - slot.start :][: source.nbytes - done]
            checksum = copy_summed(place, source[done : done + place.nbytes], checksum)
            done += place.nbytes
            self._fill(slot, offset + done)
        return checksum

    def finish(self) -> None:
        """Write what is left and remove the ring; where that fails the ring stays, with what is missing."""
        self._seal()
        with self._changed:
            self._retry()
            self._changed.wait_for(lambda: not self._taken or self._error is not None)
            self._stopping = True
            self._changed.notify_all()
        self._thread.join()
        self._ring.close()
        if self._error is not None:
            raise self._error
        self._ring.remove()

    def _slot_at(self, offset: int) -> RingSlot:
        """The slot for the byte at an offset; what lies between it and the end becomes zeros."""
        with self._changed:
            slot = self._taken[-1] if self._taken else None
        if slot is not None and not slot.done:
            end = min(offset - slot.start, slot.data.nbytes)
            slot.data[slot.filled : end] = 0
            if end < slot.data.nbytes:
                return slot
            self._fill(slot, slot.start + end)
        return self._take(offset)

    def _take(self, start: int) -> RingSlot:
        """A free slot, as soon as there is one."""
        with self._changed:
            while True:
                if self._error is not None:
                    self._reported = True
                    raise self._error
                slot = self._ring.take(self._segment, start)
                if slot is not None:
                    self._taken.append(slot)
                    return slot
                self._changed.wait()

    def _fill(self, slot: RingSlot, end: int) -> None:
        self.position = end
        self._ring.fill(slot, end - slot.start)
        if slot.done:
            with self._changed:
                self._changed.notify_all()

    def _seal(self) -> None:
        with self._changed:
            if self._taken:
                self._taken[-1].sealed = True
                self._changed.notify_all()

    def _retry(self) -> None:
        self._error, self._reported = None, False
        self._changed.notify_all()

    # What follows is done by the thread.

    def _work(self) -> None:
        while (slot := self._next()) is not None:
            try:
                self._write(slot)
            except BaseException as error:  # noqa: BLE001 - raised where the recording is
                with self._changed:
                    self._error = error
                    self._changed.notify_all()
                continue
            with self._changed:
                self._taken.popleft()
                self._ring.release(slot)
                self._changed.notify_all()
        if self._file is not None:
            self._file[1].close()

    def _next(self) -> RingSlot | None:
        with self._changed:
            while not self._stopping:
                if self._error is None and self._taken and self._taken[0].done:
                    return self._taken[0]
                self._changed.wait()
        return None

    def _write(self, slot: RingSlot) -> None:
        if self._file is None or self._file[0] != slot.segment:
            if self._file is not None:
                self._file[1].close()
                self._file = None
            self._file = slot.segment, BlockFile(self._path_of(slot.segment))
        self._file[1].write(slot.data, slot.filled, slot.start)
