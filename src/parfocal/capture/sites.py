"""Where in the user's code a call was made.

Walks up the stack from the watcher to the first frame that belongs neither to parfocal,
nor to the framework, nor to Python's own library. Whether a file is the user's is decided
once per file name.
"""

from __future__ import annotations

import os
import sys
import sysconfig
from types import FrameType

Site = tuple[str | None, int | None]

_PACKAGES = (f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}")


class Sites:
    """Finds call sites; ``frameworks`` are the top-level modules whose frames are passed over."""

    def __init__(self, frameworks: tuple[str, ...]) -> None:
        homes = [_home(name) for name in ("parfocal", *frameworks)]
        self._foreign = tuple(home for home in homes if home is not None)
        self._library = tuple(
            sysconfig.get_path(name) + os.sep for name in ("stdlib", "platstdlib") if sysconfig.get_path(name)
        )
        self._known: dict[str, bool] = {}

    def find(self, skip: int = 1) -> Site:
        """File and line of the innermost user's frame, or nothing when the user is not on the stack."""
        frame: FrameType | None = sys._getframe(skip)
        known = self._known
        while frame is not None:
            # By file name: the hash of a string is kept, that of a code object is not.
            name = frame.f_code.co_filename
            users = known.get(name)
            if users is None:
                users = self.is_users(name)
            if users:
                return name, frame.f_lineno
            frame = frame.f_back
        return None, None

    def is_users(self, name: str) -> bool:
        """Whether a file, by its name, is the user's."""
        users = self._known.get(name)
        if users is None:
            users = self._known[name] = self._is_users(name)
        return users

    def _is_users(self, name: str) -> bool:
        if name.startswith("<frozen "):
            return False
        path = name if name.startswith("<") else os.path.abspath(name)
        if path.startswith(self._foreign):
            return False
        return not path.startswith(self._library) or any(part in path for part in _PACKAGES)


def _home(module: str) -> str | None:
    """The folder of a loaded package, ending with a separator."""
    file = getattr(sys.modules.get(module), "__file__", None)
    return os.path.dirname(os.path.abspath(file)) + os.sep if file else None
