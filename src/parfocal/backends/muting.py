"""A rate of dropping that is zero for a while, and knows what it was."""

from __future__ import annotations


class Muted(float):
    """Counts and prints as 0.0; code that hands it on to a function that drops hands on what it was."""

    was: float

    def __new__(cls, was: float) -> Muted:
        muted = super().__new__(cls, 0.0)
        muted.was = was
        return muted


def rate_of(value: object) -> float:
    """What would be dropped; 0.0 for what is no number."""
    if isinstance(value, Muted):
        return value.was
    return float(value) if isinstance(value, int | float) else 0.0
