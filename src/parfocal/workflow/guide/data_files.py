"""What lies on disk for the datasets, told by a hash, so that a step is run again when it has changed.

Small files count by their content, so that a copy or a fresh checkout changes nothing. Large ones, and all
that come after so many bytes, count by size and time of change: reading them takes longer than the step.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from parfocal.workflow.guide.state import digest_of

SMALL = 1 << 20  # bytes of a file that is read
READ_AT_MOST = 1 << 26  # bytes of all files together


def names_in(folder: Path) -> str:
    """A hash of what a folder has, by name."""
    return digest_of(sorted(os.listdir(folder)))


def file_digest(path: Path) -> str:
    """Of one file that was opened: small ones by content, large ones by size and time of change."""
    status = path.stat()
    if status.st_size <= SMALL:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    return f"{status.st_size} bytes, {status.st_mtime_ns}"


def data_digest(folder: Path, named: Iterable[str]) -> str:
    """Of files and folders with all that is in them, named relative to ``folder``."""
    left = READ_AT_MOST
    facts: list[list[object]] = []
    for name in named:
        for path, place in _files(folder / name, name):
            try:
                status = path.stat()
                read = status.st_size <= min(SMALL, left)
                told = hashlib.sha256(path.read_bytes()).hexdigest() if read else str(status.st_mtime_ns)
            except OSError as error:  # a link that leads nowhere, a file that may not be read
                facts.append([place, str(error.strerror)])
                continue
            left -= status.st_size if read else 0
            facts.append([place, status.st_size, told])
    return digest_of(facts)


def _files(path: Path, name: str) -> Iterator[tuple[Path, str]]:
    """Every file below a path, and how it is called there, in an order that does not hang on the disk."""
    if not path.is_dir():
        yield path, name
        return
    for parent, folders, files in os.walk(path):
        folders.sort()
        for file in sorted(files):
            found = Path(parent) / file
            yield found, f"{name}/{found.relative_to(path).as_posix()}"
