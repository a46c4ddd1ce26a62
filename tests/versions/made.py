"""What a table of tests makes when it is imported, also where a version cannot make all of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def made(kind: Callable[..., Any], *arguments: Any, **settings: Any) -> Any:
    """``kind(...)``; where this version does not take the arguments, a function that raises what it said."""
    try:
        return kind(*arguments, **settings)
    except TypeError as error:
        refused = error

    def missing(*_: Any) -> Any:
        raise refused

    return missing
