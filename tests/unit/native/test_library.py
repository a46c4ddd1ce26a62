"""The compiled library: copying with a checksum, and threads, lent or of our own."""

from __future__ import annotations

import multiprocessing
import zlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from parfocal.judge.sketch import sketch
from parfocal.native.library import LIBRARY, _team, lend_threads
from tests.unit.native.presence import needs_library

needs_carryless = pytest.mark.skipif(
    LIBRARY is not None and not LIBRARY.parfocal_can_copy(), reason="no carry-less multiplication here"
)
BYTES = np.random.default_rng(0).integers(0, 256, 70 * 2**18, np.uint8)


def copied(source: np.ndarray, before: int) -> tuple[np.ndarray, int]:
    assert LIBRARY is not None
    target = np.zeros(source.size + 2, np.uint8)
    found = LIBRARY.parfocal_copy(target.ctypes.data + 1, source.ctypes.data, source.size, before)
    assert target[0] == target[-1] == 0, "wrote outside"
    return target[1:-1], found


@needs_library
@needs_carryless
@given(st.integers(0, 2**19), st.integers(0, 70), st.integers(0, 2**32 - 1))
def test_a_copy_has_the_checksum_of_zlib(size: int, offset: int, before: int):
    source = BYTES[offset : offset + size]
    target, found = copied(source, before)
    assert found == zlib.crc32(source, before)
    assert np.array_equal(target, source)


@needs_library
@needs_carryless
def test_many_pieces_are_put_together(tmp_path):
    target, found = copied(BYTES, 0)
    assert found == zlib.crc32(BYTES)
    assert np.array_equal(target, BYTES)


@needs_library
def test_the_threads_make_no_difference():
    torch = pytest.importorskip("torch")
    from parfocal.backends.torch.watch import _OPENMP

    array = np.random.default_rng(1).standard_normal(5_000_000).astype(np.float32)
    torch.ones(4).sum()
    try:
        lend_threads(*_OPENMP)
        assert _team(_OPENMP) != (None, None), "no OpenMP library of PyTorch was found"
        lent = sketch(array)
    finally:
        lend_threads()
    assert sketch(array) == lent


def test_a_library_that_is_not_loaded_is_not_used():
    assert _team(("libnone.so.99",)) == (None, None)
    assert _team(()) == (None, None)


def _sketched(queue) -> None:
    queue.put(sketch(np.ones(3_000_000, np.float32)).mean)


@needs_library
def test_a_forked_process_has_threads_of_its_own():
    torch = pytest.importorskip("torch")
    from parfocal.backends.torch.watch import _OPENMP

    torch.ones(1_000_000).sum()
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    try:
        lend_threads(*_OPENMP)
        sketch(np.ones(3_000_000, np.float32))  # the team has worked here
        child = context.Process(target=_sketched, args=(queue,))
        child.start()
        child.join(60)
        assert child.exitcode == 0, "the child hangs on threads that only its parent has"
        assert queue.get() == 1.0
    finally:
        lend_threads()


@needs_library
@pytest.mark.parametrize("size", [0, 1, 2**18 - 1, 2**18, 2**18 + 1, BYTES.size - 3])
def test_a_plain_copy(size: int):
    assert LIBRARY is not None
    target = np.zeros(size + 2, np.uint8)
    LIBRARY.parfocal_move(target.ctypes.data + 1, BYTES.ctypes.data + 3, size)
    assert np.array_equal(target[1:-1], BYTES[3 : size + 3])
    assert target[0] == target[-1] == 0, "wrote outside"
