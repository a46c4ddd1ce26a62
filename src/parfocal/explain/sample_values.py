"""How far two samples are apart, and why where every value or pixel differs by itself.

A number can be read as its bits, and a colour can be changed by a rule that looks at no other pixel.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import ml_dtypes
import numpy as np

from parfocal.backends.protocol import Array
from parfocal.judge import limits
from parfocal.judge.floors import EPSILON
from parfocal.judge.verdict import Claim, side_name
from parfocal.phrases import phrase

CHANNELS = limits.causes.COLOUR_CHANNELS.value
NEAR_PIXELS = limits.causes.NEAR_PIXELS.value
ONE_COLOUR = limits.causes.ONE_COLOUR.value
ALIKE = limits.causes.ALIKE_PIXELS.value
NEIGHBOURS = limits.searches.COLOUR_NEIGHBOURS.value
PATCH = limits.causes.CROP_PATCH.value
ROUNDING = limits.causes.FEW_ROUNDINGS.value * EPSILON["float32"]
Pairs = Sequence[tuple[Array, Array]]  # of the reference and of the port


@dataclass(frozen=True, slots=True)
class Moved:
    """Steps, each a mistake by itself, and the pairs once the reference's samples are changed so."""

    steps: tuple[Claim, ...]
    pairs: Pairs


def apart(ours: Array, theirs: Array) -> float:
    """The largest difference in units of rounding; infinite for other shapes."""
    if ours.shape != theirs.shape:
        return np.inf
    if not ours.size:
        return 0.0
    if ours.dtype.kind in "iub" and theirs.dtype.kind in "iub":
        return 0.0 if np.array_equal(ours, theirs) else np.inf
    if ours.dtype.kind not in "fiub" or theirs.dtype.kind not in "fiub":
        return 0.0 if np.array_equal(ours, theirs) else np.inf
    wide = ours.astype(np.float64), theirs.astype(np.float64)
    scale = max(float(np.abs(wide[0]).max()), float(np.abs(wide[1]).max())) or 1.0
    difference = np.abs(wide[0] - wide[1])
    if np.isnan(wide[0]).any() or np.isnan(wide[1]).any():
        same = np.isnan(wide[0]) == np.isnan(wide[1])
        return float(np.nanmax(difference, initial=0.0)) / (ROUNDING * scale) if same.all() else np.inf
    return float(difference.max()) / (ROUNDING * scale)


def farthest(pairs: Pairs) -> float:
    """The largest difference between the two sides of any pair."""
    return max((apart(ours, theirs) for ours, theirs in pairs), default=0.0)


def channel_axis(array: Array) -> int | None:
    """Where the colours are: first, or last."""
    if array.ndim < 3:
        return None
    return next((axis for axis in (-3, -1) if 1 < array.shape[axis] <= CHANNELS), None)


def plane_of(array: Array) -> tuple[int, int] | None:
    """The two axes of a picture."""
    if array.ndim == 2:
        return 0, 1
    if array.ndim != 3:
        return None
    return (0, 1) if array.shape[-1] <= CHANNELS < array.shape[0] else (1, 2)


def bits_of(array: Array) -> Array:
    """The bits of values as bfloat16, as whole numbers."""
    return np.asarray(array, dtype=ml_dtypes.bfloat16).view(np.uint16)


def _is_float(array: Array) -> bool:
    return array.dtype.kind == "f" or array.dtype == ml_dtypes.bfloat16


def bit_patterns(pairs: Pairs) -> Iterator[Moved]:
    """The bits of bfloat16 numbers, taken for whole numbers."""
    for side, other, order in (("port", "reference", 1), ("reference", "port", -1)):
        sided = [pair[::order] for pair in pairs]
        if all(
            theirs.dtype == np.uint16 and _is_float(ours) and np.array_equal(bits_of(ours), theirs)
            for ours, theirs in sided
        ):
            ours, theirs = sided[0]
            message = phrase(
                "the values of the {side} are the bit patterns of the {other}'s as bfloat16 ({bits} for "
                "{value})",
                side=side_name(side),
                other=side_name(other),
                bits=int(theirs.reshape(-1)[0]),
                value=f"{float(ours.reshape(-1)[0]):.4g}",
            )
            fix = phrase("cast to float32 before .numpy() in the {side}", side=side_name(side))
            yield Moved((Claim("dtype.bits", message, fix),), [(bits_of(a), b) for a, b in sided])
            return


def colours(pairs: Pairs, limit: float) -> Iterator[Claim]:
    """The same pictures in other colours: pixels of one colour in the reference have one colour in the port.

    Resampled pixels do not: what becomes of them depends on those around.
    """
    if any(a.shape != b.shape or plane_of(a) is None or not a.size for a, b in pairs):
        return
    told = [_near_pixels(ours, theirs, limit) for ours, theirs in pairs]
    alike, count = (sum(each[which] for each in told) for which in (0, 1))
    if count < NEAR_PIXELS or alike < ONE_COLOUR * count:
        return
    worst = max(float(np.abs(a.astype(np.float64) - b.astype(np.float64)).max()) for a, b in pairs)
    message = phrase(
        "the same pictures in other colours, up to {worst} apart: pixels that are alike in the reference are "
        "alike in the port ({share} of {count} pairs)",
        worst=f"{worst:.4g}",
        share=f"{alike / count:.1%}",
        count=count,
    )
    fix = phrase(
        "adjust the colours of the port's pictures as the reference's are: the same library, factors and "
        "rounding (arrays are adjusted otherwise than images)"
    )
    yield Claim("data.colour", message, fix)


def _near_pixels(ours: Array, theirs: Array, limit: float) -> tuple[int, int]:
    """Of pairs of changed pixels far from each other whose colours are alike in the reference: those that are
    alike in the port, and all. Alike is what is small beside the change of a pixel.
    """
    mine, other = (_pixels(each) for each in (ours, theirs))
    width = ours.shape[(plane_of(ours) or (0, 1))[1]]
    places = np.stack(np.divmod(np.arange(len(mine)), width), axis=1)
    changes = np.abs(other - mine).max(axis=1)
    differs = changes > limit * ROUNDING * max(float(np.abs(other).max()), float(np.abs(mine).max()))
    if not differs.any():
        return 0, 0
    typical = float(np.median(changes[differs]))
    if float(np.ptp(mine[differs], axis=0).max()) <= typical:  # too plain a picture to show a rule
        return 0, 0
    order = np.argsort(mine.mean(axis=1), kind="stable")
    alike = count = 0
    for step in range(1, min(NEIGHBOURS, len(order) - 1) + 1):
        first, second = order[:-step], order[step:]
        near = np.abs(mine[first] - mine[second]).max(axis=1) <= typical * ALIKE[0]
        near &= (np.abs(places[first] - places[second]).max(axis=1) >= PATCH) & differs[first]
        apart_now = np.abs(other[first[near]] - other[second[near]]).max(axis=1, initial=0.0)
        alike += int((apart_now <= typical * ALIKE[1]).sum())
        count += int(near.sum())
    return alike, count


def _pixels(array: Array) -> Array:
    """One row a pixel, with its channels."""
    axis = channel_axis(array)
    wide = array.astype(np.float64)
    return wide.reshape(-1, 1) if axis is None else np.moveaxis(wide, axis, -1).reshape(-1, array.shape[axis])
