"""The fixed tolerance a user may ask for in place of the noise floor."""

from __future__ import annotations

import math
from dataclasses import dataclass

from parfocal.errors import InputError


@dataclass(frozen=True, slots=True)
class Tolerance:
    """``|actual - reference| <= atol + rtol * |reference|`` is a match, as in ``numpy.allclose``."""

    rtol: float = 0.0
    atol: float = 0.0

    def __post_init__(self) -> None:
        for name in ("rtol", "atol"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, (int, float)):
                raise InputError(
                    f"Tolerance: {name} must be a number, got {type(value).__name__} {value!r}",
                    hint=f"pass {name} as a float, e.g. Tolerance({name}=1e-5)",
                )
            if not math.isfinite(value) or value < 0:
                raise InputError(
                    f"Tolerance: {name} must be finite and not negative, got {value!r}",
                    hint=f"0 <= {name} < inf; 0 asks for exact equality",
                )

    @property
    def exact(self) -> bool:
        """Whether only equal values match."""
        return self.rtol == 0 and self.atol == 0
