"""What the tests of large runs share: a tiny ring, and a gate before the thread that empties it."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from parfocal.run import blockfile
from parfocal.run.blockfile import PAGE, BlockFile
from parfocal.run.reader import Run
from parfocal.run.records import ValueRecord
from parfocal.run.ring import RingShape
from parfocal.run.writer import RunWriter

from .samples import HEADER

SMALL = RingShape(slot_bytes=PAGE, slots=3, after=0)
NAMES = ["records.jsonl", "run.json", "tensors-00000.bin"]


def noise(nbytes: int, seed: int = 0) -> np.ndarray[Any, Any]:
    return np.random.default_rng(seed).integers(0, 256, nbytes, dtype=np.uint8)


def open_run(folder: Path, **options: Any) -> RunWriter:
    return RunWriter(folder, HEADER, **({"ring": SMALL, "durable": False} | options))


def names(path: Path) -> list[str]:
    return sorted(item.name for item in path.iterdir())


def append(writer: RunWriter, *arrays: np.ndarray[Any, Any]) -> None:
    for array in arrays:
        writer.append(ValueRecord("x", writer.tensor_value(array), rank=writer.rank))


def assert_holds(run: Run, arrays: list[np.ndarray[Any, Any]], rank: int | None = None) -> None:
    values = run.values(rank)
    assert len(values) == len(arrays)
    for record, array in zip(values, arrays, strict=True):
        np.testing.assert_array_equal(run.read(record.value), array)  # type: ignore[arg-type]
    assert run.verify() == []


def wait_until_idle(writer: RunWriter) -> None:
    """Until the thread has written every slot that is full."""
    state = writer._segments._background
    assert state is not None
    with state._changed:
        idle = state._changed.wait_for(
            lambda: state._error is not None or not any(slot.done for slot in state._taken), timeout=30
        )
    assert idle


class Gate:
    """Holds the writing thread back, or lets it through; an error makes its writes fail."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.open = threading.Event()
        self.error: int | None = None
        self.writes: list[tuple[int, int]] = []  # start and bytes
        original = BlockFile.write

        def write(file: BlockFile, block: np.ndarray[Any, Any], filled: int, start: int) -> None:
            assert self.open.wait(30)
            if self.error is not None:
                with blockfile.storage_errors("write", file._path):
                    raise OSError(self.error, os.strerror(self.error))
            original(file, block, filled, start)
            self.writes.append((start, filled))

        monkeypatch.setattr(BlockFile, "write", write)
