"""The result of comparing two arrays, as frozen values.

By convention ``a`` is the actual array (the port's) and ``b`` the reference, as in
``numpy.testing.assert_allclose(actual, desired)``: relative figures divide by ``b``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

from parfocal.judge.picture import ErrorPicture
from parfocal.judge.shape import ErrorShape
from parfocal.judge.tolerance import Tolerance
from parfocal.judge.ulp import UlpDistances

Number = int | float | complex


@dataclass(frozen=True, slots=True)
class SideFacts:
    """What one array is. The range is that of its finite values (of their magnitude if complex)."""

    shape: tuple[int, ...]
    dtype: str
    size: int
    nan: int
    positive_infinity: int
    negative_infinity: int
    minimum: int | float | None  # None when there is no finite value
    maximum: int | float | None
    constant: bool  # all elements are equal and finite (False when empty)
    all_zero: bool

    @property
    def finite(self) -> bool:
        """Whether there is neither a NaN nor an infinity."""
        return not (self.nan or self.positive_infinity or self.negative_infinity)


@dataclass(frozen=True, slots=True)
class Comparison:
    """How far the array ``a`` is from the reference ``b``.

    The figures are over the ``counted`` pairs in which both values are finite. Pairs of NaNs and
    pairs of the same infinity are set aside as equal and counted in ``nonfinite_agreeing``.

    When a non-finite value meets anything else (``nonfinite_disagreeing`` > 0), or the arrays
    cannot be compared (``comparable`` is False), ``max_abs``, ``mean_abs``, ``rmse``, ``max_rel``
    and ``rel_l2`` are infinite and ``cosine`` is 0: no figure is ever NaN, and none passes a
    threshold. ``max_index`` then is the first such place.

    ``max_rel`` is the largest ``|a - b| / |b|``, where 0/0 is 0 and anything else over 0 is
    infinite; ``rel_l2`` is ``norm(a - b) / norm(b)`` with the same rule. ``cosine`` is 1 for two
    zero arrays and 0 for a zero and a non-zero one. Of equal differences the first in C order
    gives ``max_index``.
    """

    a: SideFacts
    b: SideFacts
    comparable: bool
    reason: str  # why not, else ""
    arithmetic: str  # "float32", "float64", "integer" or "complex128"
    inputs_exact: bool  # False when an input had to be rounded to enter the arithmetic
    tolerance: Tolerance
    size: int  # pairs of elements
    counted: int
    max_abs: int | float
    max_index: tuple[int, ...] | None
    max_a: Number | None  # the two values at max_index
    max_b: Number | None
    min_abs: int | float
    mean_abs: float
    rmse: float
    max_rel: float
    rel_l2: float
    cosine: float
    mismatched: int
    mismatched_share: float
    nonfinite_agreeing: int
    nonfinite_disagreeing: int
    ulp: UlpDistances | None = None
    error_shape: ErrorShape | None = None
    picture: ErrorPicture | None = None

    @property
    def equal(self) -> bool:
        """The same numbers everywhere, NaN only against NaN."""
        return self.comparable and self.nonfinite_disagreeing == 0 and self.max_abs == 0

    @property
    def same_nonfinite_places(self) -> bool:
        """Whether NaN and infinities, if any, are the same in the same places."""
        return self.comparable and self.nonfinite_disagreeing == 0

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values; NaN and infinities as the strings "nan", "inf" and "-inf"."""
        plain: dict[str, Any] = to_plain(self)
        return plain


def to_plain(value: Any) -> Any:
    """Nested dataclasses and tuples as JSON values."""
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: to_plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, (tuple, list)):
        return [to_plain(item) for item in value]
    if isinstance(value, complex):
        return [to_plain(value.real), to_plain(value.imag)]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value
