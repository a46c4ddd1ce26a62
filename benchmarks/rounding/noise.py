"""Which numbers of a tensor are moved, and whether up or down: that follows from the numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]
WORDS = {2: np.uint16, 4: np.uint32}
LARGEST = {"float16": 0x7BFF, "bfloat16": 0x7F7F, "float32": 0x7F7FFFFF}  # bits of the largest finite number


def move(bits: Array, exact: Array, dtype: str, key: int) -> None:
    """Moves numbers by one unit in the last place, down or up, or not at all: a third each.

    Equal numbers are moved alike: what is given the same twice gives the same twice, as on a processor.
    ``bits``: the numbers' memory as unsigned integers, changed in place; ``exact``: which are left alone.
    """
    bits, exact = np.atleast_1d(bits, exact)
    drawn = bits.reshape(-1).astype(np.uint32)
    drawn *= np.uint32(2654435761)
    drawn ^= np.uint32(key)
    for shift, factor in ((15, 2246822519), (13, 3266489917), (16, 1)):
        drawn ^= drawn >> np.uint32(shift)
        drawn *= np.uint32(factor)
    steps = (drawn % np.uint32(3)).astype(np.int8).reshape(bits.shape) - 1
    magnitude = bits & bits.dtype.type(2 ** (8 * bits.itemsize - 1) - 1)
    steps[exact | (magnitude == 0) | (magnitude >= LARGEST[dtype])] = 0  # nothing becomes zero, or infinite
    bits += steps.astype(bits.dtype)  # -1 wraps around, as intended
