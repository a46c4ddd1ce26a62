"""Where in the user's code a call was made.

Walks up the stack from the watcher to the first frame that belongs neither to parfocal,
nor to the framework or its backend, nor to Python's own library. Whether a file is the user's is decided
once per file name.
"""

from __future__ import annotations

import os
import sys
import sysconfig
from functools import cache
from types import FrameType

from parfocal.backends import registry

Site = tuple[str | None, int | None]

_PACKAGES = (f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}")
_FOREIGN, _USERS, _COMMAND = range(3)  # whose a file is


class Sites:
    """Finds call sites; ``frameworks`` are the top-level modules whose frames are passed over."""

    def __init__(self, frameworks: tuple[str, ...]) -> None:
        others = [package for name in frameworks for package in registry.packages(name)]
        homes = [_home(name) for name in ("parfocal", *others)]
        self._foreign = tuple(home for home in homes if home is not None)
        self._command = os.path.join(_home("parfocal") or "", "cli", "")
        self._library = _library()
        self._known: dict[str, int] = {}

    def find(self, skip: int = 1) -> Site:
        """File and line of the innermost user's frame, or nothing when the user is not on the stack."""
        frame: FrameType | None = sys._getframe(skip)
        known = self._known
        while frame is not None:
            # By file name: the hash of a string is kept, that of a code object is not.
            name = frame.f_code.co_filename
            whose = known.get(name)
            if whose is None:
                whose = self._whose(name)
            if whose == _USERS:
                return name, frame.f_lineno
            if whose == _COMMAND:  # what called our command is nobody's model
                break
            frame = frame.f_back
        return None, None

    def is_users(self, name: str) -> bool:
        """Whether a file, by its name, is the user's."""
        return self._whose(name) == _USERS

    def _whose(self, name: str) -> int:
        if name not in self._known:
            self._known[name] = self._decide(name)
        return self._known[name]

    def _decide(self, name: str) -> int:
        if name.startswith("<frozen "):
            return _FOREIGN
        path = name if name.startswith("<") else os.path.abspath(name)
        if path.startswith(self._command):
            return _COMMAND
        if path.startswith(self._foreign):
            return _FOREIGN
        in_library = path.startswith(self._library) and not any(part in path for part in _PACKAGES)
        return _FOREIGN if in_library else _USERS


@cache  # sysconfig works out all of its paths for each that it is asked for
def _library() -> tuple[str, ...]:
    """The folders of Python's own library, each ending with a separator."""
    paths = (sysconfig.get_path(name) for name in ("stdlib", "platstdlib"))
    return tuple(path + os.sep for path in paths if path)


def _home(module: str) -> str | None:
    """The folder of a loaded package, ending with a separator."""
    file = getattr(sys.modules.get(module), "__file__", None)
    return os.path.dirname(os.path.abspath(file)) + os.sep if file else None
