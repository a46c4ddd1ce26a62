"""Where random numbers come from while both sides draw from one source: what a backend asks it for."""

from __future__ import annotations

from collections.abc import Sequence
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
