"""The figures of a comparison, slowly: every element a Fraction, every sum exact."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Oracle:
    differences: list[Fraction]  # of the pairs that are finite on both sides
    positions: list[int]
    x: list[Fraction]
    y: list[Fraction]
    agreeing: int
    disagreeing: list[int]
    size: int

    @property
    def max_abs(self) -> Fraction:
        return max(self.differences)

    @property
    def mean_abs(self) -> Fraction:
        return sum(self.differences, Fraction(0)) / len(self.differences)

    @property
    def rmse(self) -> float:
        return root(sum((d * d for d in self.differences), Fraction(0)) / len(self.differences))

    @property
    def max_rel(self) -> Fraction | float:
        ratios: list[Any] = [Fraction(0)]
        for difference, reference in zip(self.differences, self.y, strict=True):
            if difference:
                ratios.append(difference / abs(reference) if reference else math.inf)
        return max(ratios)

    @property
    def rel_l2(self) -> float:
        top, bottom = squares(self.differences), squares(self.y)
        if not top:
            return 0.0
        return root(top / bottom) if bottom else math.inf

    @property
    def cosine(self) -> float:
        xx, yy = squares(self.x), squares(self.y)
        if not xx or not yy:
            return 1.0 if xx == yy else 0.0
        xy = sum((a * b for a, b in zip(self.x, self.y, strict=True)), Fraction(0))
        return root(xy * xy / (xx * yy)) * (1 if xy >= 0 else -1)

    def mismatched(self, rtol: float, atol: float, stretch: Fraction = Fraction(1)) -> int:
        allowed = [stretch * (Fraction(atol) + Fraction(rtol) * abs(b)) for b in self.y]
        over = sum(d > limit for d, limit in zip(self.differences, allowed, strict=True))
        return over + len(self.disagreeing)


def squares(values: list[Fraction]) -> Fraction:
    return sum((value * value for value in values), Fraction(0))


def root(value: Fraction) -> float:
    with localcontext() as context:
        context.prec = 60
        return float((Decimal(value.numerator) / Decimal(value.denominator)).sqrt())


def to_float(value: Any) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf


def python_values(array: Any) -> list[Any]:
    """Every element in C order as a Python int or float, without rounding."""
    kind = array.dtype.kind
    return [int(v) if kind in "biu" else float(v) for v in np.ndarray.flatten(array)]


def oracle(a: Any, b: Any) -> Oracle:
    first, second = python_values(a), python_values(b)
    x, y, positions, disagreeing, agreeing = [], [], [], [], 0
    for position, (p, q) in enumerate(zip(first, second, strict=True)):
        if math.isfinite(p) and math.isfinite(q):
            x.append(Fraction(p))
            y.append(Fraction(q))
            positions.append(position)
        elif p == q or (p != p and q != q):
            agreeing += 1
        else:
            disagreeing.append(position)
    differences = [abs(p - q) for p, q in zip(x, y, strict=True)]
    return Oracle(differences, positions, x, y, agreeing, disagreeing, len(first))
