"""The few operating-system calls a Run is made of, with one clear error each.

Everything that touches a file goes through here, so that a full disk or a missing
permission is always a ``StorageError`` that names the path, a short write is continued,
and a pipe or device in place of a file is refused instead of waited for.
"""

from __future__ import annotations

import ctypes
import errno
import mmap
import os
import secrets
import stat
from contextlib import suppress
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from parfocal.errors import FileFormatError, StorageError
from parfocal.phrases import phrase

PARTIAL_SUFFIX = ".partial"

_NO_HARD_LINKS = (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS)

_ACTIONS = {
    str(action): action
    for action in (
        phrase("create"),
        phrase("empty"),
        phrase("make"),
        phrase("read"),
        phrase("remove"),
        phrase("unpack"),
        phrase("write"),
    )
}
_HINTS = {
    errno.ENOSPC: phrase(
        "free some space or choose another folder; what was finished before is still readable"
    ),
    errno.EDQUOT: phrase("your disk quota is used up; what was finished before is still readable"),
    errno.EFBIG: phrase("the file size limit is reached; what was finished before is still readable"),
    errno.EACCES: phrase("choose a path that you may use"),
    errno.EPERM: phrase("choose a path that you may use"),
    errno.EROFS: phrase("this file system is read-only; choose another path"),
    errno.ENOENT: phrase("check the path"),
    errno.ENOTDIR: phrase("a part of the path is a file, not a folder"),
    errno.EEXIST: phrase("a part of the path is a file, not a folder"),
}


class storage_errors:  # noqa: N801  used like a function
    """Turn an ``OSError`` into a ``StorageError`` that says what was being done, and where."""

    __slots__ = ("_action", "_path")

    def __init__(self, action: str, path: str | os.PathLike[str]) -> None:
        self._action, self._path = action, path

    def __enter__(self) -> None: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not isinstance(error, OSError):
            return
        reason = os.strerror(error.errno) if error.errno else str(error)
        raise StorageError(
            phrase(
                "cannot {action} {path}: {reason} (errno {errno})",
                action=_ACTIONS.get(self._action, self._action),
                path=os.fspath(self._path),
                reason=reason,
                errno=error.errno,
            ),
            hint=_HINTS.get(error.errno or 0, ""),
        ) from error


def open_for_reading(path: Path) -> int:
    """A file descriptor on a regular file; anything else (a pipe, a device) is refused."""
    with storage_errors("read", path):
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise FileFormatError(phrase("{path} is not a regular file", path=path), hint=phrase("give a file"))
    return descriptor


def read_limited(path: Path, limit: int) -> bytes:
    """A whole small file; a larger one is refused before it is read."""
    with os.fdopen(open_for_reading(path), "rb") as file:
        size = os.fstat(file.fileno()).st_size
        if size > limit:
            raise FileFormatError(
                phrase(
                    "{path} has {size} bytes; at most {limit} are allowed", path=path, size=size, limit=limit
                )
            )
        with storage_errors("read", path):
            return file.read(limit)


def map_file(path: Path) -> NDArray[np.uint8]:
    """A file's bytes as a read-only array that is read from disk as it is looked at."""
    descriptor = open_for_reading(path)
    try:
        if os.fstat(descriptor).st_size == 0:  # an empty file cannot be mapped
            return np.empty(0, np.uint8)
        with storage_errors("read", path):
            mapped = mmap.mmap(descriptor, 0, access=mmap.ACCESS_READ)
            if hasattr(mmap, "MADV_SEQUENTIAL"):  # read far ahead: tensors are looked at in order, as a rule
                mapped.madvise(mmap.MADV_SEQUENTIAL)
            return np.frombuffer(mapped, np.uint8)
    finally:
        os.close(descriptor)


def release(mapped: NDArray[np.uint8]) -> None:
    """Give back the memory that holds a mapped file's bytes; they are read again when they are looked at."""
    source = mapped.base.obj if isinstance(mapped.base, memoryview) else mapped.base
    if isinstance(source, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
        source.madvise(mmap.MADV_DONTNEED)


_KEEP_SIZE = 1  # of fallocate: the file does not become longer


def reserve(descriptor: int, offset: int, nbytes: int) -> None:
    """Ask for room behind the end of a file: writing there is then up to three times as fast.

    It is a wish: where the file system does not know it, or has no room, writing says so itself.
    """
    fallocate = _fallocate()
    if fallocate is not None:
        fallocate(descriptor, _KEEP_SIZE, offset, nbytes)


@cache
def _fallocate() -> Any:
    """Linux's own call: the portable one falls back to writing zeros."""
    function = getattr(ctypes.CDLL(None), "fallocate", None) if os.name == "posix" else None
    if function is not None:
        function.argtypes = (ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64)
    return function


def write_all(descriptor: int, data: memoryview) -> None:
    """Write every byte at the descriptor's position, however many calls the system needs."""
    while data:
        data = data[os.write(descriptor, data) :]


def write_atomically(path: Path, data: bytes) -> None:
    """Replace a file's content in one step: a reader sees the old or the new, never a part."""
    partial = _write_partial(path, data, synchronise=True)
    try:
        with storage_errors("write", path):
            os.replace(partial, path)
    except StorageError:
        with suppress(FileNotFoundError):
            os.unlink(partial)
        raise


def create_exclusively(path: Path, data: bytes) -> bool:
    """Create a file together with its content in one step; False when it exists already."""
    partial = _write_partial(path, data, synchronise=False)
    try:
        with storage_errors("write", path):
            _link(partial, path, data)
    except StorageError as error:
        if isinstance(error.__cause__, FileExistsError):
            return False
        raise
    finally:
        os.unlink(partial)
    return True


def _link(partial: Path, path: Path, data: bytes) -> None:
    try:
        os.link(partial, path)
    except OSError as error:
        if error.errno not in _NO_HARD_LINKS:
            raise
        # Still exclusive, but the content follows the name: all such a file system can do.
        descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666)
        try:
            write_all(descriptor, memoryview(data))
        finally:
            os.close(descriptor)


def _write_partial(path: Path, data: bytes, *, synchronise: bool) -> Path:
    """A complete temporary file next to ``path``, on the disk itself if asked for."""
    partial = path.with_name(f".{path.name}-{secrets.token_hex(8)}{PARTIAL_SUFFIX}")
    try:
        with storage_errors("write", path):
            descriptor = os.open(partial, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666)
            try:
                write_all(descriptor, memoryview(data))
                if synchronise:
                    os.fsync(descriptor)
            finally:
                os.close(descriptor)
    except StorageError:
        with suppress(OSError):
            os.unlink(partial)
        raise
    return partial
