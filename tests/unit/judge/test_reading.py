"""Arrays as the loops read them: where they lie, and in blocks."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from parfocal.judge.reading import Scratch, _reads_addresses, address_of, block_reader

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


NUMBERS = np.random.default_rng(1).standard_normal((6, 5, 4)).astype(np.float32)


@pytest.mark.parametrize(
    ("array", "dtype"),
    [
        (NUMBERS, np.float64),
        (NUMBERS.astype(">f4"), np.float32),
        (NUMBERS.T, np.float32),
        (NUMBERS[:, ::2, 1:], np.float64),
        (NUMBERS.astype(ml_dtypes.bfloat16), np.float32),
        (NUMBERS.astype(ml_dtypes.bfloat16).T, np.float32),
        (NUMBERS[0, 0, 0], np.float64),
    ],
    ids=["wider", "other byte order", "transposed", "with gaps", "bfloat16", "bfloat16 transposed", "scalar"],
)
def test_blocks_are_the_elements_in_order(array: np.ndarray, dtype: type):
    read, scratch = block_reader(np.asarray(array), np.dtype(dtype), "actual"), Scratch()
    whole = np.asarray(array).astype(dtype).reshape(-1)
    for start in range(0, whole.size, 7):
        block = read(start, min(start + 7, whole.size), scratch)
        assert block.dtype == dtype
        np.testing.assert_array_equal(block, whole[start : start + 7])


def test_a_block_that_needs_no_copy_is_a_view():
    read, scratch = block_reader(NUMBERS, NUMBERS.dtype, "actual"), Scratch()
    assert np.shares_memory(read(3, 90, scratch), NUMBERS)
    assert not np.shares_memory(block_reader(NUMBERS.T, NUMBERS.dtype, "actual")(3, 90, scratch), NUMBERS)


def test_two_names_are_two_buffers():
    wide, scratch = np.dtype(np.float64), Scratch()
    one, other, again = (block_reader(NUMBERS, wide, name) for name in ("actual", "reference", "actual"))
    assert not np.shares_memory(one(0, 9, scratch), other(0, 9, scratch))
    assert np.shares_memory(one(0, 9, scratch), again(0, 9, scratch))
