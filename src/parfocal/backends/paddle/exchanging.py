"""Functions of the framework that others stand in for, for a while.

A function that this version of the framework does not have is not called by anybody, and is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any


@contextmanager
def exchanged(owner: Any, names: Sequence[str], instead: Callable[..., Any]) -> Iterator[None]:
    """While inside, ``instead`` is called, with the function itself before what that is given."""
    before = {name: getattr(owner, name) for name in names if hasattr(owner, name)}
    try:
        for name, function in before.items():
            setattr(owner, name, partial(instead, function))
        yield
    finally:
        for name, function in before.items():
            setattr(owner, name, function)
