"""The modules of the code on one side. Both sides have a ``network.py``, as a rule: each gets its own.

While a side's code runs, what the other side has imported cannot be seen, but for what this side would import
from the same file. Afterwards both can: of two modules of one name, that of the side which ran last.
"""

from __future__ import annotations

import os
import sys
import sysconfig
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from importlib.machinery import PathFinder
from itertools import count
from pathlib import Path
from types import ModuleType
from weakref import WeakSet

_SIDES: list[SideCode] = []  # that have imported something
_ACTIVE: list[SideCode] = []
_RENAMED: WeakSet[ModuleType] = WeakSet()


@dataclass(slots=True, eq=False)
class SideCode:
    """What one side has imported, and the folders that it has put on the path of modules."""

    modules: dict[str, ModuleType] = field(default_factory=dict)
    folders: list[str] = field(default_factory=list)  # in front of those that are there for all

    @contextmanager
    def active(self) -> Iterator[None]:
        """Imports are this side's."""
        if self in _ACTIVE:
            yield
            return
        others = [each for each in _SIDES if each is not self]
        foreign = dict.fromkeys(folder for each in others for folder in each.folders)
        everyones = _without(sys.path, {*self.folders, *foreign})
        sys.path[:] = [*self.folders, *everyones]
        hidden = self._hide(others)
        before = set(sys.modules)
        sys.modules.update(self.modules)
        _ACTIVE.append(self)
        try:
            yield
        finally:
            _ACTIVE.remove(self)
            self._keep(before, everyones)
            for name, module in hidden.items():
                if sys.modules.setdefault(name, module) is not module:
                    _rename(name, module)
            if self not in _SIDES and (self.modules or self.folders):
                _SIDES.append(self)
            behind = (each for each in foreign if each not in (*self.folders, *everyones))
            sys.path[:] = [*self.folders, *everyones, *behind]

    def _hide(self, others: list[SideCode]) -> dict[str, ModuleType]:
        """What others have imported and this side would not find at the same place."""
        theirs = {name: module for each in others for name, module in each.modules.items()}
        tops = {name.partition(".")[0] for name in theirs}
        apart = {name for name in tops if name not in theirs or not _is_found(name, theirs[name])}
        hidden = {}
        for name, module in theirs.items():
            if name.partition(".")[0] in apart and sys.modules.get(name) is module:
                hidden[name] = sys.modules.pop(name)
        return hidden

    def _keep(self, before: set[str], everyones: list[str]) -> None:
        """Note what was imported and put on the path meanwhile."""
        for name in [each for each in sys.modules if each not in before]:
            top = sys.modules.get(name.partition(".")[0], sys.modules[name])
            if not name.startswith("__") and _is_users(top):
                self.modules[name] = sys.modules[name]
        added = (each for each in sys.path if each not in everyones)
        self.folders = [each for each in dict.fromkeys(added) if not _is_foreign(each)]


def _without(path: list[str], folders: set[str]) -> list[str]:
    """A path of modules without the sides' folders: one entry each, as who put one there again wants it."""
    left = list(folders)
    kept = []
    for each in reversed(path):
        if each in left:
            left.remove(each)
        else:
            kept.append(each)
    return kept[::-1]


def _is_found(name: str, module: ModuleType) -> bool:
    """Whether an import of the name would load this module's file."""
    found = PathFinder.find_spec(name)
    return found is not None and found.origin is not None and _same_file(found.origin, module.__file__)


def _same_file(one: str, other: str | None) -> bool:
    return other is not None and os.path.realpath(one) == os.path.realpath(other)


def _is_users(module: ModuleType) -> bool:
    """Whether it comes from a file that is neither Python's nor that of an installed package."""
    file = getattr(module, "__file__", None) or next(iter(getattr(module, "__path__", ())), None)
    return isinstance(file, str) and not _is_foreign(file)


def _is_foreign(path: str) -> bool:
    return os.path.abspath(path).startswith(foreign_places())


def _rename(name: str, module: ModuleType) -> None:
    """Another module has the name now: where the source of its classes lies is asked by the module's name."""
    if module in _RENAMED:
        return
    _RENAMED.add(module)
    free = next(each for each in (f"{name}_{number}" for number in count(2)) if each not in sys.modules)
    sys.modules[free] = module
    for each in vars(module).values():
        if getattr(each, "__module__", None) == name and hasattr(each, "__qualname__"):
            each.__module__ = free


@cache
def foreign_places() -> tuple[str, ...]:
    """How the files of Python, of parfocal and of installed packages begin."""
    import parfocal

    installed = (sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib"))
    own = (str(Path(parfocal.__file__).parent), *installed, os.path.dirname(os.__file__))
    found = {form for each in own for form in (os.path.abspath(each), os.path.realpath(each))}
    return tuple(f"{each}{os.sep}" for each in sorted(found))
