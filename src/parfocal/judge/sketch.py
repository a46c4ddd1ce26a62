"""A sketch: what remains of a tensor when its bytes are too many to keep.

Statistics, a fingerprint that does not depend on the layout, and a random-sign projection. The
difference of two projections with the same seed estimates the norm of the difference of the
tensors: unlike a hash, a sketch says how far apart they are.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import lru_cache
from typing import Any

import numpy as np

from parfocal.errors import FileFormatError, InputError
from parfocal.judge.comparison import to_plain
from parfocal.judge.moments import (
    Fingerprint,
    Moments,
    Pass,
    fingerprint_fields,
    finite_range,
    gather,
    real_view,
    working_dtype,
)
from parfocal.judge.parallel import blocks, run_spans
from parfocal.judge.reading import Array, Scratch, admitted, block_length, block_reader
from parfocal.judge.scaled import Scaled
from parfocal.phrases import phrase

_WIDTHS = range(16, 1025, 16)
_CANCELLING = 1e-3  # a variance this small against the squared mean is computed in a second pass


@dataclass(frozen=True, slots=True)
class Sketch:
    """Statistics over the finite values, complex numbers counted as two reals each."""

    seed: int
    mean: float
    std: float
    nan: int
    positive_infinity: int
    negative_infinity: int
    nonfinite_places: int  # equal for non-finite values of the same kinds in the same places
    fingerprint: Fingerprint
    projection: tuple[float, ...]

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values; infinities as strings."""
        plain: dict[str, Any] = to_plain(self)
        return plain

    @staticmethod
    def from_json(value: Any) -> Sketch:
        """The inverse of ``to_json``; a FileFormatError for anything else."""
        record = _record(value, Sketch, "sketch")
        marks = _record(record["fingerprint"], Fingerprint, "sketch fingerprint")
        optional = {"minimum", "maximum"}
        numbers: dict[str, Any] = {
            name: None if name in optional and item is None else _number(name, item)
            for name, item in marks.items()
        }
        projection = record["projection"]
        if isinstance(projection, np.ndarray):  # a Run stores the many numbers as one array
            projection = projection.tolist()
        if not isinstance(projection, list) or len(projection) not in _WIDTHS:
            raise FileFormatError(
                phrase("sketch: projection is not a list of 16 to 1024 numbers"),
                hint=phrase("record the run again"),
            )
        whole = ("seed", "nan", "positive_infinity", "negative_infinity", "nonfinite_places")
        return Sketch(
            **{name: _whole(name, record[name]) for name in whole},
            mean=_number("mean", record["mean"]),
            std=_number("std", record["std"]),
            fingerprint=Fingerprint(**{**numbers, "size": _whole("size", marks["size"])}),
            projection=tuple(_number("projection", item) for item in projection),
        )


def sketch(array: Any, *, seed: int = 0, size: int = 256) -> Sketch:
    """Sketch an array of any numeric dtype, in one pass and a few megabytes.

    ``size`` is the length of the projection, a multiple of 16 up to 1024. Sketches can be
    compared when seed, size and number of elements agree; dtypes may differ.
    """
    found = sketch_fields(array, seed=seed, size=size)
    marks, projection = found.pop("fingerprint"), found.pop("projection")
    return Sketch(**found, fingerprint=Fingerprint(**marks), projection=tuple(projection.tolist()))


def sketch_fields(array: Any, *, seed: int = 0, size: int = 256) -> dict[str, Any]:
    """The fields of ``sketch(array)`` as a Run stores them: nested, the projection as one array."""
    if not isinstance(size, int) or size not in _WIDTHS:
        raise InputError(
            phrase("sketch: size must be a multiple of 16 from 16 to 1024, got {size}", size=repr(size)),
            hint=phrase("256 is a good size"),
        )
    values = real_view(admitted(array, "array"))
    moments = gather(values, _projecting(size, seed))
    return {
        "seed": seed,
        **_summary(values, moments),
        "nonfinite_places": moments.places,
        "fingerprint": fingerprint_fields(moments),
        "projection": moments.buckets,
    }


@lru_cache(maxsize=8)
def _projecting(size: int, seed: int) -> Pass:
    return Pass(powers=True, project=True, width=size, seed=seed)


def stats(array: Any) -> dict[str, Any]:
    """Count, mean, standard deviation, range and non-finite counts, as plain JSON values."""
    values = real_view(admitted(array, "array"))
    moments = gather(values, Pass())
    low, high = finite_range(moments)
    summary = {"count": moments.count, **_summary(values, moments), "minimum": low, "maximum": high}
    return {name: to_plain(value) for name, value in summary.items()}


def distance(a: Sketch, b: Sketch) -> float:
    """An estimate of ``norm(x - y)`` from the sketches of x and y.

    The standard error is about ``0.7 / sqrt(size)`` of the result, 4.4% for 256. A difference of one
    element is exact, and so is 0 for equal arrays. In arrays of more than 65536 elements a
    difference that repeats with the rows of the projection (at a stride of a multiple of ``size``,
    or the same in two rows) has a larger error, about 10%, and up to 25% below 300 thousand elements.

    The result is infinite when the non-finite values are not the same in the same places. Rounding
    inside the sketches of large arrays adds about 2e-7 of the norm for floats of up to 32 bits.
    """
    sizes = a.fingerprint.size, b.fingerprint.size
    for name, pair in {
        "seed": (a.seed, b.seed),
        "size": (len(a.projection), len(b.projection)),
        "number of elements": sizes,
    }.items():
        if pair[0] != pair[1]:
            raise InputError(
                phrase(
                    "sketches differ in their {name}: {first} against {second}",
                    name=name,
                    first=pair[0],
                    second=pair[1],
                ),
                hint=phrase("record both sides with the same settings and inputs"),
            )
    if a.nonfinite_places != b.nonfinite_places:
        return math.inf
    return math.dist(a.projection, b.projection)


def relative_distance(a: Sketch, b: Sketch) -> float:
    """``distance(a, b)`` over the norm of the reference b: 0/0 is 0, anything else over 0 infinite."""
    far = distance(a, b)
    if far == 0:
        return 0.0
    return far / b.fingerprint.l2 if b.fingerprint.l2 else math.inf


def _summary(values: Array, moments: Moments) -> dict[str, Any]:
    """Mean, standard deviation and census."""
    mean = moments.total / moments.finite if moments.finite else 0.0
    return {
        "mean": mean,
        "std": _deviation(values, moments, mean),
        "nan": moments.nan,
        "positive_infinity": moments.positive_infinity,
        "negative_infinity": moments.negative_infinity,
    }


def _deviation(values: Array, moments: Moments, mean: float) -> float:
    """The standard deviation of the finite values (divided by their number)."""
    if not moments.finite or moments.minimum == moments.maximum:
        return 0.0
    root = moments.square.root_over(Scaled(float(moments.finite)))
    variance = root * root - mean * mean
    if _CANCELLING * mean * mean < variance < math.inf:
        return math.sqrt(variance)
    read = block_reader(values, working_dtype(values), "actual")
    length = block_length(np.dtype(np.float64)) // 4  # a block has a few temporaries

    def span(start: int, stop: int, scratch: Scratch) -> Scaled:
        total = Scaled(0.0)
        for begin, end in blocks(start, stop, length):
            block = read(begin, end, scratch).astype(np.float64)
            off = block[np.isfinite(block)] - mean
            exponent = math.frexp(float(np.abs(off).max(initial=0.0)))[1]
            small = np.ldexp(off, -exponent)
            total = total.plus(Scaled(float(np.dot(small, small)), 2 * exponent))
        return total

    total = Scaled(0.0)
    for found in run_spans(values.size, length, span):
        total = total.plus(found)
    return total.root_over(Scaled(float(moments.finite)))


def _record(value: Any, kind: type, what: str) -> Mapping[str, Any]:
    """A mapping with exactly the fields of ``kind``."""
    names = {field.name for field in fields(kind)}
    if isinstance(value, Mapping) and set(value) == names:
        return value
    found = sorted(map(str, value)) if isinstance(value, Mapping) else type(value).__name__
    raise FileFormatError(
        phrase(
            "{what}: expected the fields {names}, found {found}", what=what, names=sorted(names), found=found
        ),
        hint=phrase("record the run again"),
    )


def _number(name: str, value: Any) -> float:
    if value in ("inf", "-inf") or (isinstance(value, (int, float)) and not isinstance(value, bool)):
        return float(value)
    raise FileFormatError(
        phrase("sketch: {name} is {value}, not a number", name=name, value=repr(value)),
        hint=phrase("record the run again"),
    )


def _whole(name: str, value: Any) -> int:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    raise FileFormatError(
        phrase("sketch: {name} is {value}, not an integer", name=name, value=repr(value)),
        hint=phrase("record the run again"),
    )
