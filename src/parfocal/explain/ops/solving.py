"""Rules about numbers and constants of the port's code that the reference has differently, or not at all."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from parfocal.backends.protocol import Array
from parfocal.explain.causes import ProvenChange, line, number, rounded
from parfocal.explain.fixes import fixing
from parfocal.explain.ops.argument_proofs import argument_proof
from parfocal.explain.ops.arguments import PassedArgument, said, told
from parfocal.explain.ops.mismatches import Mismatch
from parfocal.explain.ops.names import RANDOM
from parfocal.explain.ops.op_comparison import OpComparison
from parfocal.explain.ops.remakes import giving, retelling
from parfocal.explain.ops.values import laid_out
from parfocal.judge import limits
from parfocal.judge.verdict import Fix
from parfocal.phrases import phrase

Solve = Callable[[Array, Array], Array]
FINEST = limits.causes.NUMBER_FINEST.value
SPREAD = limits.causes.NUMBER_SPREAD.value
SHOWN = 3  # values of a constant that are told from either end


def _where(test: Callable[[Array], Array], solve: Solve) -> Solve:
    """Solved where the taken value tells something."""
    return lambda x, y: solve(x[test(x)], y[test(x)])


def _negative(x: Array) -> Array:
    return np.asarray(x < 0)


# Op and argument -> the number that makes the second value of the first, for every element.
SOLVES: dict[tuple[str, str], Solve] = {
    ("add", "scalar"): lambda x, y: y - x,
    ("sub", "scalar"): lambda x, y: x - y,
    ("rsub", "scalar"): lambda x, y: y + x,
    ("mul", "scalar"): lambda x, y: y / x,
    ("div", "scalar"): lambda x, y: x / y,
    ("rdiv", "scalar"): lambda x, y: y * x,
    ("pow", "scalar"): _where(lambda x: (x > 0) & (x != 1), lambda x, y: np.log(y) / np.log(x)),
    ("rpow", "scalar"): _where(lambda x: x != 0, lambda x, y: y ** (1.0 / x)),
    ("leaky_relu", "negative_slope"): _where(_negative, lambda x, y: y / x),
    ("elu", "alpha"): _where(_negative, lambda x, y: y / np.expm1(x)),
    ("celu", "alpha"): _where(_negative, lambda x, y: y / np.expm1(x)),
    **{(name, "minimum"): lambda x, y: y.min(keepdims=True) for name in ("clamp", "hardtanh")},
    **{(name, "maximum"): lambda x, y: y.max(keepdims=True) for name in ("clamp", "hardtanh")},
}


def other_number(comparison: OpComparison, mismatch: Mismatch) -> Iterator[ProvenChange]:
    """An op that is right with another number, whatever the reference's source of it."""
    mine, _ = mismatch.producers
    if mine is None or mine.function is None or len(mine.inputs) != 1 or comparison.knows(mismatch.port):
        return
    taken = comparison.port.values[next(iter(mine.inputs.values()))]
    wanted = laid_out(
        comparison.reference.values[mismatch.reference], taken.shape, comparison.port.values[mismatch.port]
    )
    if wanted is None or wanted.size < 2:
        return
    for name, argument in said(mine, comparison.case.backend.is_tensor).items():
        solve = SOLVES.get((mine.name, name))
        value = None if solve is None else solved(solve, taken, wanted)
        if value is None or not is_number(argument.value) or value == argument.value:
            continue
        score = comparison.try_remade(mine, retelling(mine, argument, value))
        if score <= comparison.case.limit:
            theirs = PassedArgument(name, value, argument.native, argument.back)
            yield argument_proof(comparison, mine, None, argument, theirs, score)
            return


def solved(solve: Solve, taken: Array, wanted: Array) -> float | None:
    """The number, as people write it; None if it is not the same for all elements."""
    with np.errstate(all="ignore"):
        found = solve(taken.astype(np.float64), wanted.astype(np.float64))
    found = found[np.isfinite(found)]
    if not found.size:
        return None
    value = float(np.median(found))
    low, high = np.percentile(found, (10, 90))
    if value == 0 or high - low > SPREAD * abs(value):
        return None
    known = max(high - low, FINEST * abs(value))
    written = (each for each in (rounded(value, float(round(value))), *_roots(value)) if each)
    return next((each for each in written if abs(each - value) <= known), value)


def _roots(value: float) -> Iterator[float]:
    """The root of a whole number, or one over it, that a number is near to: what attention is scaled by."""
    for power in (0.5, -0.5):
        whole = round(abs(value) ** (1 / power))
        if whole > 0:
            yield math.copysign(whole**power, value)


def other_constant(comparison: OpComparison, mismatch: Mismatch) -> Iterator[ProvenChange]:
    """Tensors that both sides create from constants, with different values."""
    mine, theirs = mismatch.producers
    if mine is None or theirs is None or mine.inputs or theirs.inputs or mine.function is None:
        return
    if mine.is_module or theirs.is_module or {mine.name, theirs.name} & RANDOM:
        return
    score = comparison.try_remade(
        mine, giving(comparison.case.backend, comparison.reference.values[mismatch.reference])
    )
    if score > comparison.case.limit:
        return
    own, others = (shown(log.values[key]) for log, key in _both(comparison, mismatch))
    message = phrase(
        "{name} gives {port} in the port ({line}), {theirs_name} {reference} in the reference ({there})",
        name=mine.name,
        port=own,
        line=line(mine),
        theirs_name=theirs.name,
        reference=others,
        there=line(theirs),
    )
    arguments = told(theirs, comparison.case.reference_backend.is_tensor)
    fix: Fix = phrase("make {others} in {line}", others=others, line=line(mine))
    fix = fixing.called(mine, comparison.case.backend.name, theirs.name, arguments, fix)
    yield ProvenChange("config.other", message, fix, score, mine.where, theirs.where)


def _both(comparison: OpComparison, mismatch: Mismatch) -> tuple[tuple[Any, Any], tuple[Any, Any]]:
    return (comparison.port, mismatch.port), (comparison.reference, mismatch.reference)


def shown(array: Array) -> str:
    """A few values of an array, from both ends."""
    flat = [number(float(value)) for value in array.reshape(-1)]
    if len(flat) > 2 * SHOWN:
        flat = [*flat[:SHOWN], "...", flat[-1]]
    return f"{', '.join(flat)} {list(array.shape)}"


def is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
