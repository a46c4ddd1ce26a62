"""Arrays as the loops read them: where they lie."""

from __future__ import annotations

import numpy as np
import pytest

from parfocal.judge.reading import _reads_addresses, address_of

BYTES = np.random.default_rng(0).integers(0, 256, 2**10, np.uint8)


@pytest.mark.parametrize(
    "array",
    [
        np.ones(()),
        np.zeros((0, 3)),
        BYTES[13:],
        BYTES[:64].reshape(8, 8).T[::-2],
        np.frombuffer(b"can only be read", np.uint8),
        np.ma.masked_array(np.ones(5, np.float32), mask=[0, 1, 0, 1, 0]),
    ],
)
def test_the_address_of_an_array_is_what_numpy_says(array: np.ndarray):
    assert address_of(array) == array.ctypes.data


def test_an_address_that_is_kept_elsewhere_is_asked_for():
    class Elsewhere:
        ctypes = np.ones(3).ctypes

    assert _reads_addresses([np.ones(3)])
    assert not _reads_addresses([np.ones(3), Elsewhere()])
