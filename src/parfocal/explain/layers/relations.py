"""How the port's result is related to the reference's: by a factor, a bias, an activation, an order.

These are solved in closed form from the two arrays and accepted only if undoing the relation
leaves nothing but rounding.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import ml_dtypes
import numpy as np

from parfocal.backends.protocol import Array
from parfocal.explain.case import Case
from parfocal.explain.case_facts import Check, is_telling
from parfocal.explain.causes import ProvenChange, number, place, rounded, spelled_path
from parfocal.explain.layers.functions import ACTIVATIONS
from parfocal.judge.shape_order import find_order
from parfocal.judge.verdict import Grounds, ProvenBy
from parfocal.phrases import phrase

Undo = Callable[[Array], Array]


def constant_factor(case: Case) -> Iterator[ProvenChange]:
    """The port's result is a multiple of the reference's."""
    pairs = _pairs(case)
    if not pairs:
        return
    factor = factor_between(*pairs[0][1:])
    if factor is None:
        return
    nice = rounded(factor, *_natural_factors(case))
    measured, factor = min(
        ((_undone(case, lambda x, f=f: x / f), f) for f in (nice, factor)),  # type: ignore[misc]
        key=lambda item: (item[0] > case.limit, item[1] != nice),
    )
    if measured <= case.limit:
        message = phrase("{what} is {factor} times the reference's", what=case.what, factor=number(factor))
        fix = phrase(
            "divide {what} by {factor}, or find what multiplies it", what=case.what, factor=number(factor)
        )
        yield ProvenChange(
            "op.scale", message, fix, measured, facts=(case.node.kind, number(factor)), way=ProvenBy.RELATED
        )


def bias_off(case: Case) -> Iterator[ProvenChange]:
    """A bias is missing or added twice."""
    for owner, backend, module in (
        (phrase("reference"), case.reference_backend, case.reference_module),
        (phrase("port"), case.backend, case.module),
    ):
        if module is None:
            continue
        for entry in backend.state(module):
            if "bias" not in entry.name or entry.module != "":
                continue
            for sign, words in ((1.0, phrase("without")), (-1.0, phrase("twice with"))):
                measured = _with_bias(case, backend.to_array(entry.value), sign)
                if measured <= case.limit:
                    message = phrase(
                        "{place} computes {words} the bias {name} that the {owner} has ({shape} values)",
                        place=place(case.node),
                        words=words,
                        name=entry.name,
                        owner=owner,
                        shape=entry.value.shape[-1],
                    )
                    verb = phrase("add") if sign > 0 else phrase("drop the second")
                    fix = phrase(
                        "{verb} the bias of {spelled_path}",
                        verb=verb,
                        spelled_path=spelled_path(case.node.path),
                    )
                    yield ProvenChange(
                        "op.bias",
                        message,
                        fix,
                        measured,
                        facts=(words, entry.name, owner),
                        way=ProvenBy.RELATED,
                    )
                    return


def activation_off(case: Case) -> Iterator[ProvenChange]:
    """An activation too few or too many at the end."""
    for name, function in ACTIVATIONS.items():
        with np.errstate(all="ignore"):
            missing = _undone(case, function)
            extra = _undone(case, function, reference=True)
        if missing <= case.limit:
            message = phrase(
                "the reference applies {name} to {what}, the port does not", name=name, what=case.what
            )
            yield ProvenChange(
                "op.missing",
                message,
                phrase("apply {name} to {what}", name=name, what=case.what),
                missing,
                facts=(name,),
                way=ProvenBy.RELATED,
            )
        elif extra <= case.limit:
            message = phrase(
                "the port applies {name} to {what}, the reference does not", name=name, what=case.what
            )
            yield ProvenChange(
                "op.extra",
                message,
                phrase("do not apply {name} to {what}", name=name, what=case.what),
                extra,
                facts=(name,),
                way=ProvenBy.RELATED,
            )


def permuted(case: Case) -> Iterator[ProvenChange]:
    """The same values in another order along an axis, or with axes swapped."""
    pairs = _pairs(case)
    if len(pairs) != 1:
        return
    check, observed, expected = pairs[0]
    noise = np.full(observed.shape, 4.0 * max(check.floor.peak, 0.0))
    order = find_order(observed.astype(np.float64), expected.astype(np.float64), noise, 1e-6)
    if order is None:
        return
    axis, indices = order
    measured = case.judge(observed, expected.take(np.asarray(indices), axis), check)
    if measured <= case.limit:
        shown = ", ".join(map(str, indices[:8])) + (", ..." if len(indices) > 8 else "")
        message = phrase(
            "{what} has the reference's values in another order along axis {axis}: {shown}",
            what=case.what,
            axis=axis,
            shown=shown,
        )
        fix = phrase("put {what} in the reference's order along axis {axis}", what=case.what, axis=axis)
        yield ProvenChange(
            "op.order", message, fix, measured, facts=(str(axis), *map(str, indices)), way=ProvenBy.RELATED
        )


def lower_precision(case: Case) -> Iterator[ProvenChange]:
    """Every value of the port fits a narrower type, and the error is about that type's rounding."""
    pairs = _pairs(case)
    if not pairs or any(observed.dtype != np.float32 for _, observed, _ in pairs):
        return
    for name, dtype, epsilon in (
        ("float16", np.float16, 2.0**-10),
        ("bfloat16", ml_dtypes.bfloat16, 2.0**-7),
    ):
        with np.errstate(all="ignore"):
            if not all(
                _fits(observed, dtype) and not _fits(expected, dtype) for _, observed, expected in pairs
            ):
                continue
        scores = [_score_at(observed, expected, epsilon) for _, observed, expected in pairs]
        if max(scores) <= case.limit:
            message = phrase(
                "{place} computes in {port} in the port, in {reference} in the reference: every value is "
                "one of {port}",
                place=place(case.node),
                port=name,
                reference=pairs[0][2].dtype.name,
            )
            fix = phrase(
                "compute {spelled_path} in float32: no cast to {name}, no autocast around it",
                spelled_path=spelled_path(case.node.path),
                name=name,
            )
            yield ProvenChange(
                "dtype.precision", message, fix, max(scores), facts=(name,), way=Grounds.VALUES
            )


HYPOTHESES = (constant_factor, bias_off, activation_off, permuted, lower_precision)


def factor_between(observed: Array, expected: Array) -> float | None:
    """The multiple that fits best, unless it is 1, 0 or not a number."""
    if not is_telling(expected):
        return None
    wide, other = observed.astype(np.float64).ravel(), expected.astype(np.float64).ravel()
    power = float(other @ other)
    factor = float(wide @ other) / power if power else math.nan
    return factor if math.isfinite(factor) and abs(factor) > 1e-12 and factor != 1.0 else None


def _natural_factors(case: Case) -> list[float]:
    """What people multiply with: sizes of axes, their roots, and the inverses of these."""
    sizes = {extent for value in case.node.inputs.values() for extent in value.data.shape}
    sizes |= {extent for value in case.node.outputs.values() for extent in value.data.shape}
    plain = [float(extent) for extent in sizes if extent > 1]
    roots = [math.sqrt(extent) for extent in plain]
    return [*plain, *roots, *(1.0 / value for value in (*plain, *roots))]


def _pairs(case: Case) -> list[tuple[Check, Array, Array]]:
    """Observed and expected at every forward place; empty when one cannot be compared."""
    found = []
    for check in case.checks:
        if check.port[3] != case.direction:
            continue
        observed = case.observed(check)
        expected = None if observed is None else case.expected(check, observed)
        if observed is None or expected is None or expected.dtype.kind not in "fV":
            return []
        found.append((check, observed, expected))
    return found


def _undone(case: Case, undo: Undo, *, reference: bool = False) -> float:
    """The score with the port's (or the reference's) arrays changed; the output alone is changed."""
    scores = [math.inf]
    for check, observed, expected in _pairs(case)[:1]:
        if not is_telling(expected):
            return math.inf
        changed = undo((expected if reference else observed).astype(np.float64)).astype(expected.dtype)
        sides = (observed, changed) if reference else (changed, expected)
        scores = [case.judge(*sides, check)]
    return max(scores)


def _with_bias(case: Case, bias: Array, sign: float) -> float:
    best = math.inf
    for check, observed, expected in _pairs(case)[:1]:
        if bias.ndim != 1 or not np.any(bias):
            return math.inf
        for axis in {observed.ndim - 1, 1} if observed.ndim > 1 else {0}:
            if observed.shape[axis] == bias.size:
                shape = [1] * observed.ndim
                shape[axis] = bias.size
                changed = observed.astype(np.float64) + sign * bias.astype(np.float64).reshape(shape)
                best = min(best, case.judge(changed.astype(expected.dtype), expected, check))
    return best


def _fits(array: Array, dtype: Any) -> bool:
    """Whether a narrower type holds every value exactly."""
    return bool(np.array_equal(array, array.astype(dtype).astype(array.dtype), equal_nan=True))


def _score_at(observed: Array, expected: Array, epsilon: float) -> float:
    """The error in units of another precision's rounding."""
    scale = float(np.sqrt(np.mean(np.square(expected.astype(np.float64)))))
    error = float(np.sqrt(np.mean(np.square(observed.astype(np.float64) - expected))))
    return error / (epsilon * scale) if scale else math.inf
