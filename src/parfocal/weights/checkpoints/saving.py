"""Puts a checkpoint under its final name, complete and checked, or not at all.

The file is written beside its target under another name, forced to the disk, read back and
compared bit by bit with what was meant, and only then takes the target's place.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np

from parfocal.errors import StorageError
from parfocal.phrases import phrase
from parfocal.run.storage import PARTIAL_SUFFIX, storage_errors
from parfocal.weights.checkpoints.reading import load_file
from parfocal.weights.checkpoints.tensors import CHUNK, Array, FileTensor
from parfocal.weights.checkpoints.writing import PlannedTensor, Values, Writer

Progress = Callable[[str, int], None]  # what is going on, and how many more bytes are done


def save(
    path: Path,
    writer: Writer,
    tensors: Sequence[PlannedTensor],
    values: Values,
    framework: str,
    progress: Progress,
) -> None:
    """Write, verify, rename. Whatever goes wrong, the target stays as it was."""
    folder = path.absolute().parent
    if not folder.is_dir():
        raise StorageError(
            phrase("cannot write {path}: there is no folder {folder}", path=path, folder=folder),
            hint=phrase("create it first"),
        )
    if path.is_dir():
        raise StorageError(
            phrase("cannot write {path}: it is a folder", path=path), hint=phrase("give the name of a file")
        )
    partial = path.with_name(f".{path.name}-{secrets.token_hex(8)}{PARTIAL_SUFFIX}")

    def counted(each: PlannedTensor) -> Array:
        array = values(each)
        progress("writing", each.nbytes)
        return array

    try:
        with storage_errors("write", path):
            with open(partial, "xb", buffering=0) as file:
                writer(_Whole(file), tensors, counted, framework)  # type: ignore[arg-type]
                os.fsync(file.fileno())
            _verify(partial, path, tensors, values, progress)
            os.replace(partial, path)
            _synchronise(folder)
    finally:
        with suppress(FileNotFoundError):
            os.unlink(partial)


class _Whole:
    """A raw file whose ``write`` writes everything, without a buffer of its own."""

    def __init__(self, file: object) -> None:
        self._file = file

    def write(self, data: bytes | memoryview) -> int:
        left = memoryview(data)
        while left:
            left = left[self._file.write(left[: 1 << 26]) :]  # type: ignore[attr-defined]
        return len(data)

    def __getattr__(self, name: str) -> object:
        return getattr(self._file, name)


def _verify(
    partial: Path, path: Path, tensors: Sequence[PlannedTensor], values: Values, progress: Progress
) -> None:
    """Every tensor in the file is the one that was meant, bit for bit, and there are no others."""
    found = load_file(partial).tensors
    if set(found) != {each.name for each in tensors}:
        raise _unlike(path, phrase("it holds other names than were written"))
    for each in tensors:
        stored: FileTensor = found[each.name]
        if stored.shape != each.shape or stored.dtype != each.dtype:
            raise _unlike(
                path,
                phrase(
                    "{name} is {dtype} {shape}", name=each.name, dtype=stored.dtype, shape=list(stored.shape)
                ),
            )
        if not _same_bits(stored.read(), values(each)):
            raise _unlike(path, phrase("{name} has other values than were written", name=each.name))
        progress("verifying", each.nbytes)


def _unlike(path: Path, what: str) -> StorageError:
    return StorageError(
        phrase("{path} was not written: read back, {what}", path=path, what=what),
        hint=phrase("the disk or its file system loses data: check it"),
    )


def _same_bits(first: Array, second: Array) -> bool:
    if not first.size:
        return True
    mine, yours = (array.reshape(-1).view(np.uint8) for array in (first, second))
    return all(
        np.array_equal(mine[start : start + CHUNK], yours[start : start + CHUNK])
        for start in range(0, mine.size, CHUNK)
    )


def _synchronise(folder: Path) -> None:
    """The new name itself is on the disk, too."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
