"""How gradients were clipped, found from their values before and after."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from parfocal.backends.protocol import Array
from parfocal.explain.causes import number, rounded
from parfocal.judge import limits
from parfocal.phrases import phrase

CLOSE = limits.causes.FITTED.value
WORDS: dict[str, Callable[[str], str]] = {
    "none": lambda limit: phrase("does not clip them"),
    "value": lambda limit: phrase("clips every element at {limit}", limit=limit),
    "norm": lambda limit: phrase("clips the norm of every parameter at {limit}", limit=limit),
    "global_norm": lambda limit: phrase("clips the norm of all at {limit}", limit=limit),
    "scale": lambda limit: phrase("multiplies them by {limit}", limit=limit),
    "other": lambda limit: phrase("changes them in another way"),
}


@dataclass(frozen=True, slots=True)
class Clip:
    """``kind``: one of ``WORDS``; ``limit``: what is allowed, or the factor of a scale."""

    kind: str
    limit: float = math.nan

    @property
    def words(self) -> str:
        return WORDS[self.kind](number(self.limit))

    def applied(self, gradients: Mapping[str, Array]) -> dict[str, Array] | None:
        """The gradients of one step clipped so; None where that is in no known way."""
        make = APPLIED.get(self.kind)
        return (
            None
            if make is None
            else dict(zip(gradients, make(list(gradients.values()), self.limit), strict=True))
        )


def _to_norm(array: Array, norm: float, limit: float) -> Array:
    return np.asarray(array * min(1.0, limit / norm)) if norm else array


APPLIED: dict[str, Callable[[Sequence[Array], float], list[Array]]] = {
    "none": lambda arrays, limit: list(arrays),
    "value": lambda arrays, limit: [np.clip(each, -limit, limit) for each in arrays],
    "norm": lambda arrays, limit: [_to_norm(each, _norm(each), limit) for each in arrays],
    "global_norm": lambda arrays, limit: [
        _to_norm(each, math.hypot(*map(_norm, arrays)), limit) for each in arrays
    ],
    "scale": lambda arrays, limit: [each * limit for each in arrays],
}


def clip_of(before: Sequence[Array], after: Sequence[Array]) -> Clip:
    """How the gradients of one step were clipped; small ones are left unchanged by every kind of clipping."""
    norms = [(_norm(a), _norm(b)) for a, b in zip(before, after, strict=True)]
    shares = [b / a for a, b in norms if a]
    if not shares or all(abs(share - 1) <= CLOSE for share in shares):
        return Clip("none")
    if all(_is_multiple(a, b) for a, b in zip(before, after, strict=True)):
        total = math.sqrt(sum(b * b for _, b in norms))
        if max(shares) - min(shares) <= CLOSE * max(shares):
            # one gradient alone: its norm is the norm of all
            whole = Clip("global_norm", rounded(total))
            return whole if shares[0] < 1 else Clip("scale", rounded(shares[0]))
        clipped = [b for (a, b) in norms if a and b / a < 1 - CLOSE]
        others = [b for (a, b) in norms if a and abs(b / a - 1) <= CLOSE]
        if _alike(clipped) and len(clipped) + len(others) == len(shares):
            return Clip("norm", rounded(clipped[0]))
        return Clip("other")
    limit = max(float(np.abs(b).max(initial=0.0)) for b in after)
    if all(
        np.allclose(b, np.clip(a, -limit, limit), rtol=CLOSE, atol=CLOSE * limit)
        for a, b in zip(before, after, strict=True)
    ):
        return Clip("value", rounded(limit))
    return Clip("other")


def _norm(array: Array) -> float:
    return float(np.linalg.norm(array.astype(np.float64).reshape(-1)))


def _is_multiple(before: Array, after: Array) -> bool:
    size = _norm(before)
    if not size:
        return True
    share = _norm(after) / size
    return _norm(after - share * before) <= CLOSE * max(size * share, 1e-300)


def _alike(numbers: Sequence[float]) -> bool:
    return bool(numbers) and max(numbers) - min(numbers) <= CLOSE * max(numbers)
