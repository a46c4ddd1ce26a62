"""Checkpoint files for tests, made without a framework."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from parfocal.run.dtypes import DTYPES
from parfocal.weights.checkpoints.writing import WRITERS, PlannedTensor

FRAMEWORKS = {
    ".pth": "torch",
    ".pt": "torch",
    ".bin": "torch",
    ".pdparams": "paddle",
    ".safetensors": "torch",
}


def arrays(seed: int = 0) -> dict[str, Any]:
    """A few tensors of several dtypes, long enough to stay in the file and short enough not to."""
    generator = np.random.default_rng(seed)
    return {
        "fc.weight": generator.standard_normal((40, 60)).astype("float32"),
        "fc.bias": generator.standard_normal(40).astype("float32"),
        "half": generator.standard_normal((3, 5)).astype("float16"),
        "brain": generator.standard_normal((70, 50)).astype(DTYPES["bfloat16"]),
        "flag": np.array([True, False]),
        "count": np.array(7, dtype="int64"),
        "empty": np.empty((0, 4), "float32"),
    }


def write(path: Path, values: Mapping[str, Any], framework: str | None = None) -> Path:
    """Write with parfocal's own writers."""
    planned = [PlannedTensor(name, array.shape, array.dtype) for name, array in values.items()]
    with path.open("wb") as file:
        WRITERS[path.suffix](
            file,
            planned,
            lambda each: np.ascontiguousarray(values[each.name]),
            framework or FRAMEWORKS[path.suffix],
        )
    return path


def torch_archive(path: Path, pickle_bytes: bytes, members: Mapping[str, bytes] | None = None) -> Path:
    """A zip such as torch.save writes, around any pickle."""
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("archive/data.pkl", pickle_bytes)
        archive.writestr("archive/byteorder", b"little")
        for name, data in (members or {}).items():
            archive.writestr(f"archive/data/{name}", data)
    return path


def pickle_of(path: Path) -> bytes:
    """The pickle inside a torch archive."""
    with zipfile.ZipFile(path) as archive:
        return archive.read("archive/data.pkl")


def index(path: Path, places: Mapping[str, str]) -> Path:
    path.write_text(json.dumps({"metadata": {"total_size": 1}, "weight_map": dict(places)}))
    return path


def dumped(value: Any, protocol: int) -> bytes:
    import pickle

    file = io.BytesIO()
    pickle.Pickler(file, protocol).dump(value)
    return file.getvalue()


def same(first: Any, second: Any) -> bool:
    return (
        first.dtype == second.dtype
        and first.shape == second.shape
        and np.ascontiguousarray(first).tobytes() == np.ascontiguousarray(second).tobytes()
    )
