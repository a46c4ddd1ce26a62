"""``seed``: one number for every source of random numbers that a training uses."""

from __future__ import annotations

import random
import sys

import numpy as np

from parfocal.backends import registry
from parfocal.errors import InputError
from parfocal.phrases import phrase

LARGEST = 2**32 - 1  # that NumPy takes


def seed(n: int) -> int:
    """Seed Python, NumPy and every framework that is loaded; returns the number.

    The streams of two frameworks differ all the same: share arrays, not seeds, where values must agree.
    """
    if isinstance(n, bool) or not isinstance(n, int) or not 0 <= n <= LARGEST:
        raise InputError(
            phrase("seed({n}): a seed is a whole number from 0 to {largest}", n=repr(n), largest=LARGEST)
        )
    random.seed(n)
    np.random.seed(n)
    for name in registry.names():
        if name in sys.modules:
            registry.get(name).seed(n)
    return n
