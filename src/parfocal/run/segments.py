"""The segments that a run's tensor bytes go to.

A small run is written as it happens: its bytes are with the operating system when ``add``
returns. From some size on they go through a ring of slots that a thread of its own empties;
there, too, nothing that ``add`` took is lost when the process is killed.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from parfocal.run.background import Background
from parfocal.run.blockfile import PAGE
from parfocal.run.layout import ALIGNMENT
from parfocal.run.ring import Ring, RingShape
from parfocal.run.storage import reserve, storage_errors, write_all

# Room for a segment is asked for in steps, each as large as what is there, between these sizes.
_SMALLEST_STEP, _LARGEST_STEP = 2**20, 64 * 2**20


class Segments:
    """Append-only files of bounded size; ``path_of`` names them by number, ``pending`` is the ring's file."""

    def __init__(
        self, path_of: Callable[[int], Path], pending: Path, segment_bytes: int, shape: RingShape
    ) -> None:
        self.sizes: list[int] = []  # up to date for all but the last one, and for that after ``finish``
        self._path_of = path_of
        self._pending = pending
        self._segment_bytes = segment_bytes
        self._shape = shape
        self._plain: int | None = None  # file descriptor of the last segment, while there is no ring
        self._plain_path = path_of(0)  # of the last segment, or of the first one to come
        self._plain_bytes = 0  # written to all segments so far
        self._reserved = 0  # bytes of the last segment
        self._background: Background | None = None

    def add(self, array: NDArray[Any], dtype: np.dtype[Any]) -> tuple[int, int, int]:
        """Append an array's values in C order as ``dtype``: its segment, offset and checksum."""
        offset = self._place(array.nbytes)
        segment = len(self.sizes) - 1
        if self._background is None and self._is_large(array.nbytes):
            self._go_to_background()
        if self._background is not None:
            return segment, offset, self._background.write(offset, array, dtype)
        data = np.ascontiguousarray(array, dtype).reshape(-1).view(np.uint8)
        checksum = self._write_plainly(data, offset)
        self.sizes[-1] = offset + data.nbytes
        self._plain_bytes += data.nbytes
        return segment, offset, checksum

    def check(self) -> None:
        """Raise what went wrong in the background."""
        if self._background is not None:
            self._background.check()

    def finish(self) -> None:
        """Have everything in the segments, and these cut to their size."""
        if self._background is None:
            self._close_plain()
        else:
            self.sizes[-1] = self._background.position
            self._background.finish()

    def synchronise(self) -> None:
        for number in range(len(self.sizes)):
            path = self._path_of(number)
            with storage_errors("write", path):
                descriptor = os.open(path, os.O_RDWR)
                try:
                    os.fsync(descriptor)
                finally:
                    os.close(descriptor)

    def _place(self, nbytes: int) -> int:
        """The aligned offset for the next tensor, in a new segment where it does not fit.

        A tensor larger than a whole segment gets one of its own.
        """
        if self.sizes:
            end = self.sizes[-1] if self._background is None else self._background.position
            offset = -(-end // ALIGNMENT) * ALIGNMENT
            if offset == 0 or offset + nbytes <= self._segment_bytes:
                return offset
            self.sizes[-1] = end
        self._begin(len(self.sizes))
        return 0

    def _begin(self, number: int) -> None:
        path = self._path_of(number)
        with storage_errors("create", path):
            new = os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o666)
        if self._background is None:
            self._close_plain()
            self._plain, self._plain_path = new, path
        else:
            os.close(new)
            self._background.begin(number)
        self.sizes.append(0)

    def _is_large(self, nbytes: int) -> bool:
        """Whether a run with so many bytes more is worth a ring."""
        return self._shape.slots > 0 and self._plain_bytes + nbytes > self._shape.after

    def _go_to_background(self) -> None:
        """From the next tensor on, where the file system can have a ring; otherwise all stays as it is."""
        assert self._plain is not None
        try:
            ring = Ring(self._pending, self._shape)
        except OSError:
            self._shape = replace(self._shape, slots=0)
            return
        segment, end = len(self.sizes) - 1, self.sizes[-1]
        with storage_errors("read", self._plain_path):
            os.lseek(self._plain, end - end % PAGE, os.SEEK_SET)
            head = os.read(self._plain, end % PAGE)
        self._close_plain()
        self._background = Background(ring, self._path_of, segment, end, head)

    def _write_plainly(self, data: NDArray[np.uint8], offset: int) -> int:
        assert self._plain is not None
        with storage_errors("write", self._plain_path):
            self._reserve(offset + data.nbytes)
            os.lseek(self._plain, offset, os.SEEK_SET)
            write_all(self._plain, data.data)
        return zlib.crc32(data.data)

    def _reserve(self, end: int) -> None:
        """Ask for room up to ``end``, and some more for what follows."""
        assert self._plain is not None
        if end > self._reserved:
            step = max(_SMALLEST_STEP, end - self._reserved, min(_LARGEST_STEP, self._reserved))
            reserve(self._plain, self._reserved, step)
            self._reserved += step

    def _close_plain(self) -> None:
        """Give back the room that was not needed."""
        if self._plain is None:
            return
        try:
            if self._reserved > self.sizes[-1]:
                os.ftruncate(self._plain, self.sizes[-1])
        finally:
            os.close(self._plain)
            self._plain, self._reserved = None, 0
