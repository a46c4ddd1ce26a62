"""Writing a file in aligned blocks, past the page cache where the file system allows it.

A recording is written once and read much later: in the page cache its bytes would take memory
from the model, and the time to copy them there and to write them back from its threads.
"""

from __future__ import annotations

import errno
import os
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from parfocal.run.storage import storage_errors, write_all

# What any disk and file system takes as the unit of a direct write.
PAGE = 4096
_DIRECT = getattr(os, "O_DIRECT", 0)  # Linux's own


class BlockFile:
    """An existing file that is filled block by block; every block begins at a multiple of ``PAGE``."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._direct = bool(_DIRECT)
        with storage_errors("write", path):
            self._descriptor = self._open()

    def write(self, block: NDArray[np.uint8], filled: int, start: int) -> None:
        """Write the first ``filled`` bytes of a block, which is a number of whole pages."""
        with storage_errors("write", self._path):
            if self._direct:
                try:
                    self._write_pages(block, filled, start)
                    return
                except OSError as error:
                    if error.errno != errno.EINVAL:
                        raise
                self._give_up_direct()
            self._write_at(block[:filled], start)

    def close(self) -> None:
        os.close(self._descriptor)

    def _write_pages(self, block: NDArray[np.uint8], filled: int, start: int) -> None:
        """Whole pages, and then the file is cut to its true size."""
        self._write_at(block[: -(-filled // PAGE) * PAGE], start)
        if filled % PAGE:
            os.ftruncate(self._descriptor, start + filled)

    def _write_at(self, data: NDArray[np.uint8], start: int) -> None:
        os.lseek(self._descriptor, start, os.SEEK_SET)
        write_all(self._descriptor, data.data)

    def _open(self) -> int:
        if self._direct:
            try:
                return os.open(self._path, os.O_WRONLY | _DIRECT)
            except OSError as error:
                if error.errno != errno.EINVAL:
                    raise
                self._direct = False
        return os.open(self._path, os.O_WRONLY)

    def _give_up_direct(self) -> None:
        """This file system, or this disk, does not take such writes."""
        self._direct = False
        os.close(self._descriptor)
        self._descriptor = self._open()
