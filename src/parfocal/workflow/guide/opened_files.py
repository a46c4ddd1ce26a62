"""Which files a process of the guide has opened: what its steps rest on, wherever it lies.

The process notes every file that is opened for reading and every folder that is listed in a log, also in
processes that are forked from it. A module that is imported is such a file. What belongs to Python, to
installed packages or to the system is left out: their versions are known.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib.util import source_from_cache
from pathlib import Path
from types import FrameType
from typing import Any

from parfocal.workflow.side_code import foreign_places

VARIABLE = "PARFOCAL_OPENED_FILES"  # names the log, in the environment of the process
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
SYSTEM_FOLDERS = ("/proc/", "/sys/", "/dev/", "/etc/", "/usr/", "/lib/", "/bin/", "/run/")
# Packages that read files without Python's knowledge.
UNSEEN_READERS = ("cv2", "h5py", "lmdb", "decord", "av", "tables", "netCDF4", "rasterio")


@dataclass(frozen=True, slots=True)
class OpenedFiles:
    """What processes have opened, as absolute paths."""

    code: frozenset[Path] = frozenset()  # sources of Python
    imported: frozenset[Path] = frozenset()  # other files, that modules open as they are imported
    data: frozenset[Path] = frozenset()
    folders: frozenset[Path] = frozenset()  # that were listed
    unseen: frozenset[str] = frozenset()  # packages whose reading cannot be seen

    def __or__(self, other: OpenedFiles) -> OpenedFiles:
        return OpenedFiles(
            self.code | other.code,
            self.imported | other.imported,
            self.data | other.data,
            self.folders | other.folders,
            self.unseen | other.unseen,
        )


def note_opened_files() -> Callable[[], None]:
    """Begin to note what is opened, where the environment names a log.

    What comes back is to be called before every answer.
    """
    log = os.environ.get(VARIABLE)
    if not log:
        return lambda: None
    target = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
    known: set[str] = set()
    foreign = (*foreign_places(), *SYSTEM_FOLDERS)

    def note(kind: str, path: str) -> None:
        line = f"{kind}{path}\n"
        if line not in known:
            known.add(line)
            os.write(target, line.encode("utf-8", "surrogateescape"))

    def heard(event: str, given: tuple[Any, ...]) -> None:
        if event not in ("open", "os.listdir", "os.scandir"):
            return
        whole = _absolute("." if given[0] is None else given[0])
        if not whole or whole.startswith(foreign) or "\n" in whole:
            return
        if event != "open":
            if whole not in {os.path.abspath(each) for each in sys.path}:  # Python looks for modules there
                note("d", whole)
        elif given[2] & WRITING:
            note("w", whole)
        elif f"r{whole}\n" not in known:
            note("i" if _importing() else "r", whole)

    def note_readers() -> None:
        for name in UNSEEN_READERS:
            if name in sys.modules:
                note("n", name)

    sys.addaudithook(heard)
    return note_readers


def _absolute(path: object) -> str:
    """Empty for a descriptor, which was opened before, and where the current folder is gone."""
    try:
        return os.path.abspath(os.fsdecode(path)) if isinstance(path, (str, bytes)) else ""
    except OSError:
        return ""


def _importing() -> bool:
    """Whether a module is being imported."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None:
        if frame.f_code.co_filename == "<frozen importlib._bootstrap>":
            return True
        frame = frame.f_back
    return False


def read_log(log: Path, store: Path) -> OpenedFiles:
    """What a process has noted so far; what lies in ``store`` or was written by it is none of its sources."""
    store = Path(os.path.realpath(store))
    try:
        text = log.read_bytes().decode("utf-8", "surrogateescape")
    except OSError:
        return OpenedFiles()
    by_kind: dict[str, set[str]] = {kind: set() for kind in "riwdn"}
    for line in text.splitlines():
        by_kind[line[0]].add(line[1:])

    def kept(kind: str) -> set[Path]:
        read = {_source(Path(os.path.realpath(each))) for each in by_kind[kind] - by_kind["w"]}
        return {each for each in read if each.is_file() and not each.is_relative_to(store)}

    imported, data = kept("i"), kept("r")
    code = {each for each in imported | data if each.suffix == ".py"}
    listed = {Path(os.path.realpath(each)) for each in by_kind["d"]}
    folders = {
        each
        for each in listed
        if each.is_dir() and not (each.is_relative_to(store) or store.is_relative_to(each))
    }
    return OpenedFiles(
        code=frozenset(code),
        imported=frozenset(imported - code),
        data=frozenset(data - imported - code),
        folders=frozenset(folders),
        unseen=frozenset(by_kind["n"]),
    )


def _source(path: Path) -> Path:
    if path.suffix != ".pyc":
        return path
    try:
        return Path(source_from_cache(str(path)))
    except ValueError:
        return path


def named_like(name: str, files: Iterable[Path]) -> set[Path]:
    """The files that an import of ``name`` may have loaded, wherever the path of modules has them."""
    parts = tuple(name.split("."))
    return {
        path
        for path in files
        if path.with_suffix("").parts[-len(parts) :] == parts
        or (path.name == "__init__.py" and path.parent.parts[-len(parts) :] == parts)
    }
