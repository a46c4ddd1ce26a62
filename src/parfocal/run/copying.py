"""Copying bytes and summing them on the way.

The checksum is CRC-32, as zlib, gzip and PNG know it. It finds every error within 32
neighbouring bits, and any other one (swapped blocks, zeroed pages) but for one in four
thousand million.
"""

from __future__ import annotations

import zlib

import numpy as np
from numpy.typing import NDArray

from parfocal.native.library import LIBRARY

# Small enough to be in the processor's cache still when it is summed, large enough to be worth a call.
_PIECE = 2**18

_COMPILED = LIBRARY is not None and LIBRARY.parfocal_can_copy()


def copy_summed(target: NDArray[np.uint8], source: NDArray[np.uint8], checksum: int = 0) -> int:
    """Copy contiguous bytes to a target of the same length, and continue a checksum over them."""
    assert target.nbytes == source.nbytes
    if _COMPILED:
        return int(LIBRARY.parfocal_copy(target.ctypes.data, source.ctypes.data, source.nbytes, checksum))  # type: ignore[union-attr]
    for start in range(0, source.nbytes, _PIECE):
        piece = target[start : start + _PIECE]
        np.copyto(piece, source[start : start + _PIECE])
        checksum = zlib.crc32(piece.data, checksum)
    return checksum
