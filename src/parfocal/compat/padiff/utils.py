"""The log lines and log files of PaDiff, and its one comparison of two arrays.

``log_path`` is where the tree files and difference lists go; the first file written there in a
process clears what an earlier process left.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from typing import Any

from parfocal.compat.padiff.comparing import CompareConfig, difference_text
from parfocal.compat.padiff.places import beside_the_script, local_rank
from parfocal.run.storage import storage_errors

log_path = beside_the_script("padiff_log")
_cleared: set[str] = set()


def log(*args: object) -> None:
    """One line on standard output, marked as PaDiff marks its lines."""
    print("[AutoDiff]", *args)


def log_file(filename: str, mode: str, info: str) -> str:
    """Write (``"w"``) or extend (``"a"``) a file in ``log_path``; returns its path."""
    if log_path not in _cleared:
        reset_shared_dir(log_path)
        _cleared.add(log_path)
    path = os.path.join(log_path, filename)
    with storage_errors("write", path):
        os.makedirs(log_path, exist_ok=True)  # somebody may have removed it meanwhile
        with open(path, mode, encoding="utf-8") as file:
            file.write(info)
    return path


def reset_dir(path: str) -> None:
    """An empty folder, whatever was there before."""
    with storage_errors("empty", path):
        if os.path.exists(path):
            shutil.rmtree(path)
        os.makedirs(path)


def reset_shared_dir(path: str) -> None:
    """As ``reset_dir``, but of the processes on a machine only the first one empties the folder."""
    if local_rank() == 0:
        reset_dir(path)
    else:
        with storage_errors("make", path):
            os.makedirs(path, exist_ok=True)


def assert_tensor_equal(tensor1: Any, tensor2: Any, cfg: Mapping[str, Any]) -> None:
    """Nothing, or an ``AssertionError`` that says how far the two arrays are apart."""
    text = difference_text(tensor1, tensor2, CompareConfig.of(cfg))
    if text is not None:
        raise AssertionError(text)
