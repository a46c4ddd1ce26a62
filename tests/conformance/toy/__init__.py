"""A toy framework and its backend, installed for a while as two packages of other people would be.

``toybox`` is the framework: NumPy, a tape, a handful of layers. ``parfocal_toybox`` teaches it to parfocal,
and the folder beside it is what pip leaves behind: the entry point by which the backend is found. No part of
parfocal knows either.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from parfocal.backends import registry

SITE = str(Path(__file__).parent)


@contextmanager
def installed() -> Iterator[None]:
    """While inside, the environment has both packages; what is loaded of them stays loaded."""
    sys.path.insert(0, SITE)
    _look_again()
    try:
        yield
    finally:
        sys.path.remove(SITE)
        _look_again()


def _look_again() -> None:
    importlib.invalidate_caches()
    registry._known.cache_clear()
    registry.dialect.cache_clear()
