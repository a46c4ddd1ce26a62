"""What is known of one number that decides something."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

CHOSEN = "chosen, not measured"

Value = TypeVar("Value", bound=float | tuple[float, ...])


@dataclass(frozen=True, slots=True)
class Limit(Generic[Value]):
    """A number with its reason; ``measured`` says where it was seen to be right, or what it follows from."""

    value: Value
    reason: str
    measured: str = CHOSEN
