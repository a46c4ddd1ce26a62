"""One number that decides something."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

Value = TypeVar("Value", bound=float | tuple[float, ...])


@dataclass(frozen=True, slots=True)
class Limit(Generic[Value]):
    """A number; why it is that one stands under its name in ``parfocal/data/limits.toml``."""

    value: Value
