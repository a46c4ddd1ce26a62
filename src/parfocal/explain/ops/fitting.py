"""A number earlier in the port's code, found by least squares: everything that depends on it is recomputed.

The reference may hold as a table what the port computes from a few numbers. The two then share no op, but
with the right number the port computes the same table.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from parfocal.backends.protocol import Array
from parfocal.explain.case_facts import is_telling
from parfocal.explain.causes import ProvenChange, rounded
from parfocal.explain.ops.argument_proofs import argument_proof
from parfocal.explain.ops.arguments import PassedArgument, said
from parfocal.explain.ops.locating import behind
from parfocal.explain.ops.log import Op
from parfocal.explain.ops.mismatches import Mismatch
from parfocal.explain.ops.op_comparison import OpComparison
from parfocal.explain.ops.remakes import retelling
from parfocal.explain.ops.solving import is_number
from parfocal.explain.ops.values import laid_out
from parfocal.judge import limits
from parfocal.phrases import joined

MOST_OPS = limits.searches.FITTED_OPS.value
MOST_VALUES = limits.searches.FITTED_VALUES.value
ROUNDS = limits.searches.FIT_ROUNDS.value
FIRST_STEP = limits.causes.FIT_FIRST_STEP.value
LONGEST_STEP = limits.causes.FIT_LONGEST_STEP.value
LEAP = math.log(limits.causes.FIT_LEAP.value)
DONE = limits.causes.FIT_DONE.value
DIGITS = limits.causes.NUMBER_DIGITS.value

Computed = Callable[[float], "Array | None"]


def number_further_back(comparison: OpComparison, mismatch: Mismatch) -> Iterator[ProvenChange]:
    """The number of an earlier op that makes the wrong value right; all of them, if several do."""
    ops = behind(comparison, mismatch)
    wanted = comparison.reference.values[mismatch.reference]
    sizes = [comparison.port.values[key].size for op in ops for key in op.outputs.values()]
    if not 2 <= len(ops) <= MOST_OPS or sum(sizes) > MOST_VALUES or not is_telling(wanted):
        return
    if comparison.knows(mismatch.port) or wanted.dtype.kind not in "fV":
        return
    view = comparison.seen_at(mismatch.port, mismatch.reference, mismatch.made, mismatch.other_made)
    found = []
    for op in ops:
        argument = None if op.function is None else said(op, comparison.case.backend.is_tensor).get("scalar")
        if argument is None or not is_number(argument.value) or argument.value == 0:
            continue
        value = _fitted(_computing(view, op, argument), float(argument.value), wanted)
        if value is not None and value != argument.value:
            found.append((_likelihood(argument.value, value), op, argument, value))
    proofs = []
    for _, op, argument, value in sorted(found, key=lambda each: each[0]):
        score = comparison.try_remade(op, retelling(op, argument, value))
        if score <= comparison.case.limit:
            theirs = PassedArgument(argument.name, value, argument.native, argument.back)
            proofs.append(argument_proof(comparison, op, None, argument, theirs, score))
    if proofs:
        yield replace(proofs[0], message=joined("; or else ", (proof.message for proof in proofs)))


def _likelihood(own: float, value: float) -> tuple[bool, bool, float]:
    """A sort key: no leaps first, floats before integers (often sizes), then the smallest change."""
    leap = abs(math.log(value / own))
    return leap > LEAP, isinstance(own, int), leap


def _computing(view: OpComparison, op: Op, argument: PassedArgument) -> Computed:
    """The function from the number to the value that replaces the wrong one."""

    def compute(value: float) -> Array | None:
        remake = retelling(op, argument, value)
        return view.recomputed({each.index: remake for each in view.alike(op)})

    return compute


def _fitted(compute: Computed, start: float, wanted: Array) -> float | None:
    """The number, as somebody wrote it, that comes nearest; None where it leads to nothing.

    Steps go by the logarithm, from the number that is there: its sign is kept.
    """
    number = start
    for _ in range(ROUNDS):
        given, moved = compute(number), compute(number * math.exp(FIRST_STEP))
        step = None if given is None or moved is None else _step(given, moved, wanted)
        if step is None:
            return None
        number *= math.exp(max(-LONGEST_STEP, min(LONGEST_STEP, step)))
        if abs(step) < DONE:
            break
    value = rounded(number, float(round(number)))
    return value if value and value == float(f"{value:.{DIGITS}g}") else None


def _step(given: Array, moved: Array, wanted: Array) -> float | None:
    """How far to go, by least squares."""
    right = laid_out(wanted, given.shape, given)
    if right is None or moved.shape != given.shape:
        return None
    here, there, right = (array.astype(np.float64).reshape(-1) for array in (given, moved, right))
    finite = np.isfinite(here) & np.isfinite(there) & np.isfinite(right)
    slope, left = ((there - here) / FIRST_STEP)[finite], (right - here)[finite]
    weight = float(slope @ slope)
    return float(slope @ left) / weight if weight else None
