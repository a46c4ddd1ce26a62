"""Where random numbers come from while both sides draw from one source: what a backend asks it for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from threading import get_ident
from typing import Any, Protocol


class Draws(Protocol):
    """Random numbers in a form that does not depend on who draws them."""

    def uniform(self, low: float, high: float, size: Sequence[int] | None = None) -> Any:
        """Numbers from ``low`` up to ``high``; one number without a ``size``."""

    def whole(self, low: int, high: int, size: Sequence[int] | None = None) -> Any:
        """Whole numbers from ``low`` up to, but without, ``high``."""

    def normal(self, mean: float, std: float, size: Sequence[int] | None = None) -> Any: ...

    def order(self, count: int) -> Any:
        """The numbers below ``count`` in another order."""


def in_this_thread(answer: Callable[..., Any], own: Callable[..., Any]) -> Callable[..., Any]:
    """``answer`` for this thread, and ``own`` for others: a loader may read ahead in one of its own."""
    here = get_ident()
    return lambda *args, **kwargs: (answer if get_ident() == here else own)(*args, **kwargs)
