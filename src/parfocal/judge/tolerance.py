"""The fixed tolerance a user may ask for in place of the noise floor."""

from __future__ import annotations

import math
from dataclasses import dataclass

from parfocal.errors import InputError
from parfocal.phrases import phrase


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
                    phrase(
                        "Tolerance: {name} must be a number, got {kind} {value}",
                        name=name,
                        kind=type(value).__name__,
                        value=repr(value),
                    ),
                    hint=phrase("pass {name} as a float, e.g. Tolerance({name}=1e-5)", name=name),
                )
            if not math.isfinite(value) or value < 0:
                raise InputError(
                    phrase(
                        "Tolerance: {name} must be finite and not negative, got {value}",
                        name=name,
                        value=repr(value),
                    ),
                    hint=phrase("0 <= {name} < inf; 0 asks for exact equality", name=name),
                )

    @property
    def exact(self) -> bool:
        """Whether only equal values match."""
        return self.rtol == 0 and self.atol == 0
