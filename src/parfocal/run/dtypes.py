"""Names of element types and the NumPy dtypes behind them, and sizes that cannot overflow.

A Run and every file parfocal reads spell an element type by name ("float32", "bfloat16");
only the names in ``DTYPES`` exist. Sizes are computed in Python integers, so a header that
lies about a shape is refused before anything is allocated.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from typing import Any

import ml_dtypes
import numpy as np

_STANDARD = (
    "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 complex64 complex128"
)
_EXTENDED = (
    "bfloat16 float8_e3m4 float8_e4m3 float8_e4m3b11fnuz float8_e4m3fn float8_e4m3fnuz "
    "float8_e5m2 float8_e5m2fnuz float8_e8m0fnu"
)

# Older ml_dtypes lack some of the 8-bit floats; what it has is what can be read.
DTYPES: dict[str, np.dtype[Any]] = {name: np.dtype(name).newbyteorder("<") for name in _STANDARD.split()} | {
    name: np.dtype(getattr(ml_dtypes, name)) for name in _EXTENDED.split() if hasattr(ml_dtypes, name)
}

MAX_DIMENSIONS = 32
MAX_BYTES = 2**62


@cache
def dtype_name(dtype: np.dtype[Any]) -> str | None:
    """The name under which a dtype is stored, or None for one that cannot be stored."""
    return dtype.name if dtype.name in DTYPES else None


def checked_size(shape: Sequence[int], itemsize: int) -> int | None:
    """The bytes an array of this shape needs, or None for a shape no array can have.

    Zeros are left out of the limit's product, as NumPy does: (0, 2**62) is refused too.
    """
    if len(shape) > MAX_DIMENSIONS or any(extent < 0 for extent in shape):
        return None
    if math.prod(extent for extent in shape if extent) * itemsize > MAX_BYTES:
        return None
    return math.prod(shape) * itemsize
