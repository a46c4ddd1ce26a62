"""The logger of the old tool: named arrays, collected in a script and saved as one ``.npy`` file.

The module bears the class's name because the original's does, so that
``from reprod_log.ReprodLogger import ReprodLogger`` keeps working.
"""

from __future__ import annotations

import os
import warnings
from typing import Any

from parfocal.compat.reprod_log.values import Value, to_value
from parfocal.phrases import phrase, said
from parfocal.run.files import save_reprod_log
from parfocal.run.storage import storage_errors


class ReprodLogger:
    """Collects values under keys; two such files with the same keys can be compared."""

    def __init__(self) -> None:
        self._data: dict[str, Value] = {}

    @property
    def data(self) -> dict[str, Value]:
        """The values collected so far, by key."""
        return self._data

    def add(self, key: str, val: Any) -> None:
        """Keep a copy of ``val``: an array, a number, a tensor of either framework, or a dict of these.

        bfloat16 and the 8-bit floats are kept as float32, which holds each of their values, so that
        the file can be read where only NumPy is installed.
        """
        value = to_value(val, key)
        if key in self._data:
            told = phrase("{key} was added before: its earlier value is replaced", key=repr(key))
            warnings.warn(said(told), stacklevel=2)
        self._data[key] = value

    def remove(self, key: str, value: Any = None) -> None:
        """Drop a key and its value; a key that is not there is said on stdout.

        ``value`` may be given, as the original's document lists it; what is dropped is what the key has.
        """
        if key in self._data:
            del self._data[key]
        else:
            print(f"{key} is not in {self._data.keys()}")

    def clear(self) -> None:
        """Drop everything."""
        self._data.clear()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write everything to ``path`` (``.npy`` is added when missing); folders are created."""
        with storage_errors("write", path):
            os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
        save_reprod_log(path, self._data)
