"""Copies of views onto views, large and small, with equal and with different dtypes."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from parfocal.weights import copying
from parfocal.weights.copying import copy_all

DTYPES = ["float32", "float16", "float64", "int64", "uint8", "bool", ml_dtypes.bfloat16, "complex128"]


def bits(shape: tuple[int, ...], dtype: object) -> np.ndarray:
    """Any bit pattern, NaNs and all."""
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    raw = np.random.default_rng(0).integers(0, 2 if dtype == "bool" else 256, size, dtype=np.uint8)
    return raw.view(dtype).reshape(shape)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", [(), (0, 3), (5,), (130, 70), (3, 129, 65)], ids=str)
def test_bit_by_bit(dtype: object, shape: tuple[int, ...]) -> None:
    source = bits(shape, dtype)
    target = np.zeros(shape[::-1], dtype)
    copy_all([(target.T, source)])
    assert target.T.tobytes() == source.tobytes()


def test_many_large_pieces_in_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(copying, "PIECE", 1000)
    monkeypatch.setattr(copying.os, "cpu_count", lambda: 4)
    sources = [bits((97, 113), "float32") for _ in range(5)]
    targets = [np.zeros((113, 97), "float32") for _ in sources]
    copy_all([(target.T, source) for target, source in zip(targets, sources, strict=True)])
    for target, source in zip(targets, sources, strict=True):
        assert target.T.tobytes() == source.tobytes()


def tasks_for(count: int, length: int) -> list[int]:
    """How many copies each task has, of so many arrays of a length."""
    arrays = [(np.zeros(length, "float32"), np.ones(length, "float32")) for _ in range(count)]
    return [len(task) for task in copying._tasks(arrays)]


def test_small_pieces_share_a_task(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(copying, "PIECE", 1000)
    assert tasks_for(1000, 10) == [100] * 10  # by their elements, whatever their number
    assert tasks_for(4000, 10) == [100] * 40
    assert tasks_for(3, 600) == [1, 1, 1]  # no task has more than a piece may have
    assert tasks_for(0, 10) == []


def test_small_pieces_in_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(copying, "PIECE", 1000)
    monkeypatch.setattr(copying.os, "cpu_count", lambda: 4)
    sources = [np.full((3, 7), number, "float32") for number in range(200)]
    targets = [np.zeros((7, 3), "float32") for _ in sources]
    copy_all([(target.T, source) for target, source in zip(targets, sources, strict=True)])
    assert [float(target[6, 2]) for target in targets] == list(range(200))


def test_only_the_view_is_written() -> None:
    target = np.zeros((6, 5), "float32")
    copy_all([(target[2:4, ::2], np.ones((2, 3), "float32"))])
    assert target.sum() == 6
    assert target[2:4, ::2].all()


def test_other_dtypes_are_converted() -> None:
    target = np.zeros(3, ml_dtypes.bfloat16)
    copy_all([(target, np.array([1.0, 0.1, 3e38], "float32"))])
    assert np.array_equal(target, np.array([1.0, 0.1, 3e38], "float32").astype(ml_dtypes.bfloat16))
