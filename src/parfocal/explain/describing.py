"""The pattern of an error in words, for the case that no hypothesis fits."""

from __future__ import annotations

from parfocal.explain.case import Case
from parfocal.explain.causes import number
from parfocal.judge.metrics import compare_arrays
from parfocal.judge.shape import ErrorShape
from parfocal.phrases import joined, phrase

SHOWN = 6


def described(case: Case) -> str:
    """The pattern of the error at the divergence's place; empty where it has no known pattern."""
    observed = case.observed()
    expected = None if observed is None else case.expected(case.checks[0], observed)
    if observed is None or expected is None or observed.shape != expected.shape:
        return ""
    shape = compare_arrays(observed, expected, shape=True).error_shape
    return "" if shape is None else in_words(shape, observed.size)


def in_words(shape: ErrorShape, size: int) -> str:
    """Every finding in a few words, the most telling first."""
    parts = []
    if shape.transposed is not None:
        parts.append(
            phrase("the reference's values with axes {transposed}", transposed=list(shape.transposed))
        )
    if shape.order is not None:
        parts.append(
            phrase("the reference's values in another order along axis {axis}", axis=shape.order.axis)
        )
    if shape.factor is not None:
        parts.append(phrase("{factor} times the reference's values", factor=number(shape.factor)))
    if shape.offset is not None:
        parts.append(phrase("off by {offset} everywhere", offset=number(shape.offset)))
    if shape.zero_side is not None:
        parts.append(
            phrase(
                "exactly 0 in the {which} wherever they differ",
                which=phrase("port") if shape.zero_side == "a" else phrase("reference"),
            )
        )
    if shape.borders is not None:
        parts.append(phrase("only within {width} of the borders", width=shape.borders.width))
    for found in shape.indices:
        shown = ", ".join(map(str, found.indices[:SHOWN])) + (", ..." if len(found.indices) > SHOWN else "")
        parts.append(phrase("only at {shown} along axis {axis}", shown=shown, axis=found.axis))
    if not parts:
        return phrase(
            "no known cause fits; {differing} of {size} values differ, in no known pattern",
            differing=shape.differing,
            size=size,
        )
    return phrase("no known cause fits; the error: ") + joined("; ", parts)
