"""Runs and records that the tests of ``run/`` share."""

from __future__ import annotations

from pathlib import Path

import ml_dtypes
import numpy as np

from parfocal.run.records import (
    CallRecord,
    GradientRecord,
    Record,
    RunHeader,
    StateRecord,
    StepRecord,
    Structure,
    TensorValue,
    ValueRecord,
)
from parfocal.run.writer import RunWriter

HEADER = RunHeader(framework="torch", versions={"torch": "2.13.0"}, seeds={"numpy": 7}, command=("train.py",))


def call(into: TensorValue, out: TensorValue, /, **changes: object) -> CallRecord:
    fields: dict[str, object] = {
        "order": 0,
        "parent": None,
        "depth": 1,
        "path": "layer1.0.conv1",
        "kind": "Conv2d",
        "class_name": "Conv2d",
        "op": None,
        "occurrence": 0,
        "file": "model.py",
        "line": 12,
        "training": False,
        "settings": {
            "stride": (2, 2),
            "epsilon": 1e-5,
            "bias": None,
            "limits": [float("inf"), float("-inf")],
        },
        "inputs": Structure({"0": into, "mask": None}, ["tuple", ["0", ["dict", {"mask": "mask"}]]]),
        "outputs": Structure({"0": out}, "0"),
    }
    return CallRecord(**(fields | changes))  # type: ignore[arg-type]


def records(writer: RunWriter) -> list[Record]:
    """One record of every kind, with tensors of several dtypes."""
    rank = writer.rank
    generator = np.random.default_rng(rank)
    image = writer.tensor_value(generator.standard_normal((2, 3, 4)).astype(np.float32))
    half = writer.tensor_value(
        generator.standard_normal(5).astype(ml_dtypes.bfloat16),
        stats={"mean": 0.5, "nan": float("nan")},
        sketch={"projection": np.arange(4, dtype=np.float32)},
    )
    return [
        call(image, half, rank=rank),
        GradientRecord(0, "output", "0", 0, half, rank=rank),
        GradientRecord(0, "input", "0", 0, None, rank=rank),
        StateRecord("optimizer", "conv1.weight", "moment1", "after", image, rank=rank),
        StepRecord(0, loss=1.5, learning_rate=0.1, rank=rank),
        ValueRecord("accuracy", 0.75, rank=rank),
        ValueRecord("array", writer.tensor_value(np.arange(3)), rank=rank),
    ]


def write_run(folder: Path, *, complete: bool = True, **options: object) -> Path:
    """A small run on disk."""
    writer = RunWriter(folder, HEADER, **options)  # type: ignore[arg-type]
    for record in records(writer):
        writer.append(record)
    writer.close(complete=complete)
    return writer.path
