"""PaDiff's verdict on two arrays: a fixed tolerance in one of three modes.

``strict`` asks it of every element, ``mean`` of the mean of the absolute differences, and
``abs_mean`` of the two means of absolute values. Every mode also knows whether the elements
themselves agree, so that a mean never hides that they do not.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from parfocal.backends.protocol import Array
from parfocal.errors import InputError
from parfocal.judge.comparison import Comparison
from parfocal.judge.metrics import compare_arrays
from parfocal.judge.tolerance import Tolerance
from parfocal.phrases import phrase

MODES = ("mean", "strict", "abs_mean")


@dataclass(frozen=True, slots=True)
class CompareConfig:
    """What two arrays must fulfil to count as equal."""

    atol: float = 0.0
    rtol: float = 1e-7
    compare_mode: str = "mean"

    def __post_init__(self) -> None:
        Tolerance(rtol=self.rtol, atol=self.atol)
        if self.compare_mode not in MODES:
            raise InputError(
                phrase(
                    "compare_mode is {compare_mode}; the modes are: {modes}",
                    compare_mode=repr(self.compare_mode),
                    modes=", ".join(MODES),
                ),
                hint=phrase('"mean" is the default, "strict" compares element by element'),
            )

    @classmethod
    def of(cls, cfg: Mapping[str, Any] | None, default: CompareConfig | None = None) -> CompareConfig:
        """The default with the entries of ``cfg``, which may hold no others."""
        default = default or cls()
        unknown = sorted(set(cfg or ()) - set(asdict(default)))
        if unknown:
            raise InputError(
                phrase("cfg has no entry called {unknown}", unknown=", ".join(map(repr, unknown))),
                hint=phrase("the entries are atol, rtol and compare_mode"),
            )
        return replace(default, **(cfg or {}))

    def as_dict(self) -> dict[str, Any]:
        """As it is shown in the log."""
        return asdict(self)


CHECK_DEFAULT = CompareConfig(atol=1e-4)


@dataclass(frozen=True, slots=True)
class PairVerdict:
    """The verdict on one pair of arrays. ``text`` says how far they are apart when not ``equal``.

    ``hidden`` is the sentence about elements that differ although the mean is within tolerance.
    """

    equal: bool
    text: str = ""
    hidden: str = ""


def compare(base: Any, raw: Any, config: CompareConfig) -> PairVerdict:
    """Base against raw, both NumPy arrays; relative differences are relative to raw."""
    x, y = np.asarray(base), np.asarray(raw)
    tolerance = Tolerance(rtol=config.rtol, atol=config.atol)
    found = compare_arrays(x, y, tolerance=tolerance)
    if not found.comparable:
        return PairVerdict(False, f"\n{_headline(config)}\n\n(shapes {x.shape}, {y.shape} mismatch)")
    if config.compare_mode == "strict":
        return PairVerdict(
            not found.mismatched, "" if not found.mismatched else _strict_text(x, y, found, config)
        )
    return _compare_means(x, y, found, config)


def difference_text(base: Any, raw: Any, config: CompareConfig) -> str | None:
    """How the two differ, or None when they are equal."""
    outcome = compare(base, raw, config)
    return None if outcome.equal else outcome.text


def _compare_means(x: Array, y: Array, found: Comparison, config: CompareConfig) -> PairVerdict:
    distance, size = _distance(x, y, found, config)
    equal = distance <= config.atol + config.rtol * size
    elements = (
        f"{found.mismatched} of {found.size} elements differ, by {found.max_abs:.6g} at most"
        if found.mismatched
        else ""
    )
    if equal:
        return PairVerdict(True, hidden=elements)
    means = (_mean(x, x.dtype), _mean(y, y.dtype))
    lines = [
        "",
        _headline(config),
        "",
        "Mismatched elements: 1 / 1 (100%)",
        f"Max absolute difference: {_number(distance, x, y)}",
        f"Max relative difference: {_number(distance / size if size else math.inf, x, y)}",
        f" x: {_shown(means[0])}",
        f" y: {_shown(means[1])}",
    ]
    if elements and _close(*means, config):
        lines.append(f"The two means agree, but {elements}: the mean of |x - y| is what counts.")
    return PairVerdict(False, "\n".join(lines))


def _distance(x: Array, y: Array, found: Comparison, config: CompareConfig) -> tuple[float, float]:
    """What is held against the tolerance, and the size that a relative tolerance refers to."""
    size = _mean_size(y)
    if config.compare_mode == "mean" or not found.same_nonfinite_places:
        return found.mean_abs, size
    return abs(_mean_size(x) - size), size


def _mean_size(array: Array) -> float:
    """The mean of the absolute values that are finite."""
    sizes = np.abs(_wide(array))
    finite = sizes[np.isfinite(sizes)]
    return float(finite.mean()) if finite.size else 0.0


def _wide(array: Array) -> Array:
    return array.astype(np.complex128 if array.dtype.kind == "c" else np.float64)


def _mean(array: Array, dtype: np.dtype[Any]) -> Array:
    """The mean as an array without axes, in the array's own dtype if that is a float."""
    with np.errstate(all="ignore"):
        mean = _wide(array).mean() if array.size else np.float64("nan")
        return np.asarray(mean, dtype=dtype if dtype.kind in "fc" else np.float64)


def _close(first: Array, second: Array, config: CompareConfig) -> bool:
    return bool(np.allclose(first, second, rtol=config.rtol, atol=config.atol, equal_nan=True))


def _headline(config: CompareConfig) -> str:
    return f"Not equal to tolerance rtol={config.rtol:g}, atol={config.atol:g}"


def _strict_text(x: Array, y: Array, found: Comparison, config: CompareConfig) -> str:
    share = f"{100 * found.mismatched_share:.3g}%"
    lines = ["", _headline(config), ""]
    if not found.same_nonfinite_places:
        lines.append(f"x and y {_nonfinite(found)} location mismatch:")
    lines += [
        f"Mismatched elements: {found.mismatched} / {found.size} ({share})",
        f"Max absolute difference: {_number(found.max_abs, x, y)}",
        f"Max relative difference: {_number(found.max_rel, x, y)}",
        f" x: {_shown(x)}",
        f" y: {_shown(y)}",
    ]
    return "\n".join(lines)


def _nonfinite(found: Comparison) -> str:
    return "nan" if found.a.nan or found.b.nan else "inf"


def _number(value: float, x: Array, y: Array) -> str:
    """With the digits that the arrays' own precision has."""
    single = max(array.dtype.itemsize if array.dtype.kind in "fV" else 8 for array in (x, y)) <= 4
    with np.errstate(over="ignore"):
        return str(np.float32(value)) if single else f"{value:.10g}"


def _shown(array: Array) -> str:
    """The first lines of an array, as NumPy's own tests show it."""
    with np.printoptions(threshold=10, edgeitems=3, precision=6):
        text = repr(array)
    lines = text.split("\n")
    return text if len(lines) <= 3 else "\n".join(lines[:3]) + "..."
