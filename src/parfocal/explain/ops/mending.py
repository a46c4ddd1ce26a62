"""The lines to write for ops that are missing, and for values in another order or layout."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import permutations
from typing import Any

import numpy as np

from parfocal.backends.protocol import Array
from parfocal.explain.fixes import fixing
from parfocal.explain.fixes.expressions import grouped
from parfocal.explain.fixes.sources import SourceSpot
from parfocal.explain.ops.arguments import PassedArgument, said, told
from parfocal.explain.ops.locating import before_moving
from parfocal.explain.ops.log import Key, Op
from parfocal.explain.ops.mismatches import Mismatch
from parfocal.explain.ops.op_comparison import OpComparison
from parfocal.explain.ops.values import covered, laid_out
from parfocal.explain.ops.writing import EditPlace, Writer
from parfocal.judge import limits
from parfocal.judge.verdict import Fix

MOST_AXES = limits.searches.ALL_ORDERS.value
NEAR = limits.causes.MENDED_NEAR.value


def missing_fix(comparison: OpComparison, ops: Sequence[Op], mismatch: Mismatch | None, words: Fix) -> Fix:
    """One more op where a value is used; a second tensor must have a name there."""
    if mismatch is None or len(ops) != 1:
        return words
    (op,) = ops
    if op.name == "setitem":
        return _stored_fix(comparison, op, mismatch, words)
    place = _making(comparison, op, mismatch) or _use(comparison, mismatch)
    arguments = told(op, comparison.case.reference_backend.is_tensor)
    other = None
    if place is not None and len(op.inputs) == 2:
        keys = [key for key in op.inputs.values() if not comparison.matches.are_one(mismatch.port, key)]
        other = _text(comparison, mismatch, place, keys[0] if keys else next(iter(op.inputs.values())))
    return fixing.added(place, comparison.case.backend.name, op.name, arguments, other, words)


def _stored_fix(comparison: OpComparison, op: Op, mismatch: Mismatch, words: Fix) -> Fix:
    """A result that is bound to a new name is to be stored into the tensor that is used."""
    value = comparison.matches.to_port.get(list(op.inputs.values())[-1])
    made = None if value is None else comparison.port.producers.get(value)
    use = None if mismatch.user is None else fixing.spot_of(mismatch.user)
    if made is None or use is None or mismatch.slot is None:
        return words
    return fixing.stored(made, use, mismatch.slot, op.args[1], words)


def value_fix(comparison: OpComparison, mismatch: Mismatch, words: Fix) -> Fix:
    """The tensor that the reference takes, by its name in the port."""
    place = _use(comparison, mismatch)
    if place is None or mismatch.user is None or mismatch.slot is None:
        return words
    text = _text(comparison, mismatch, place, mismatch.reference)
    return words if text is None else fixing.exchanged(mismatch.user, mismatch.slot, text, words)


def made_fix(comparison: OpComparison, op: Op, order: Sequence[int], words: Fix) -> Fix:
    """Inputs of an op in another order, at the statement that makes them: parts of it are exchanged."""
    makers = [before_moving(comparison.port, op, slot) for slot in op.inputs]
    return fixing.exchanged_among([maker for maker in makers if maker is not None], order, words)


def mask_fix(comparison: OpComparison, mismatch: Mismatch, words: Fix) -> Fix:
    """Another argument of the op that makes the mask, or the mask inverted."""
    mine, theirs = mismatch.producers
    if mine is not None and theirs is not None and mine.name == theirs.name:
        others = told(theirs, comparison.case.reference_backend.is_tensor)
        for name, argument in said(mine, comparison.case.backend.is_tensor).items():
            if name in others and others[name] != argument.value:
                return fixing.told(mine, argument, others[name], words)
    mask, right = (
        covered(comparison.port.values[mismatch.port]),
        covered(comparison.reference.values[mismatch.reference]),
    )
    if mask.size != right.size or not np.all(mask != right.reshape(mask.shape)):
        return words
    if (
        mismatch.user is not None
        and mismatch.slot is not None
        and comparison.port.values[mismatch.port].dtype == np.bool_
    ):
        return fixing.inverted(mismatch.user, mismatch.slot, words)
    if mine is not None and mine.name == "where":
        return fixing.ordered(mine, ("1", "2"), (1, 0), words)
    return fixing.inverted(mine, "1", words) if mine is not None and mine.name == "masked_fill" else words


def moved_fix(comparison: OpComparison, mismatch: Mismatch, own: Sequence[Op], words: Fix) -> Fix:
    """Axes or tensors in another order somewhere on the way."""
    final = comparison.port.values[mismatch.port]
    wanted = laid_out(comparison.reference.values[mismatch.reference], final.shape, final)
    if wanted is None:
        return words
    framework = comparison.case.backend.name
    behind = _simple(own)
    # an order of axes that is there already is changed rather than another added
    for op in sorted(behind, key=lambda op: ("transpose", "concat", "reshape").index(op.name)):
        if op.name == "concat":
            order = _joined(comparison, op, wanted)
            if order is not None:
                return fixing.ordered(op, list(op.inputs), order, words)
            continue
        before = comparison.port.values[next(iter(op.inputs.values()))]
        axes = next(_orders(before, wanted), None)
        if axes is None:
            continue
        if op.name == "reshape":
            return fixing.transposed(op, "0", axes, framework, words)
        if axes == tuple(range(len(axes))):
            return fixing.dropped(op, op, "0", words)
        return fixing.rearranged(op, axes, framework, words)
    return words


def _simple(own: Sequence[Op]) -> list[Op]:
    """The last ops of a row after which only shapes change."""
    found: list[Op] = []
    for op in reversed(own):
        if op.name == "concat" or (op.name == "transpose" and len(op.inputs) == 1):
            return [*found, op]
        if op.name != "reshape" or len(op.inputs) != 1:
            break
        found.append(op)
    return found


def split_fix(op: Op, shape: tuple[int, ...], right: tuple[int, ...], words: Fix) -> Fix:
    """Another shape."""
    return fixing.told(op, PassedArgument("shape", tuple(shape), 1, list), tuple(right), words)


def _orders(before: Array, wanted: Array) -> Iterator[tuple[int, ...]]:
    """Orders of the axes in which the values are the wanted ones."""
    if before.ndim > MOST_AXES or before.size != wanted.size:
        return
    for axes in permutations(range(before.ndim)):
        if _near(before.transpose(axes).reshape(wanted.shape), wanted):
            yield axes


def _joined(comparison: OpComparison, op: Op, wanted: Array) -> tuple[int, ...] | None:
    arrays = [comparison.port.values[key] for key in op.inputs.values()]
    axis: Any = said(op, comparison.case.backend.is_tensor).get("axis")
    axis = 0 if axis is None else axis.value
    if len(arrays) > MOST_AXES or not isinstance(axis, int):
        return None
    for order in permutations(range(len(arrays))):
        joined = np.concatenate([arrays[index] for index in order], axis)
        if joined.size == wanted.size and _near(joined.reshape(wanted.shape), wanted):
            return order
    return None


def _near(a: Array, b: Array) -> bool:
    wide, other = a.astype(np.float64), b.astype(np.float64)
    return bool(np.linalg.norm(wide - other) <= NEAR * np.linalg.norm(other))


def _making(
    comparison: OpComparison, missing: Op, mismatch: Mismatch
) -> tuple[SourceSpot, str | None] | None:
    """The expression that makes a value, when all who use it in the reference use it after the missing op."""
    made, _ = mismatch.producers
    if made is None or len(list(comparison.port.taking(mismatch.port))) < 2:
        return None
    raw = [key for key in missing.inputs.values() if comparison.matches.are_one(mismatch.port, key)]
    if any(other.index != missing.index for key in raw for other in comparison.reference.taking(key)):
        return None
    spot = fixing.spot_of(made)
    return None if spot is None else (spot, None)


def _use(comparison: OpComparison, mismatch: Mismatch) -> tuple[SourceSpot, str | None] | None:
    """The expression that takes a value: an op's, a layer's call, or what the code returns."""
    if mismatch.user is not None:
        spot = fixing.spot_of(mismatch.user)
        return None if spot is None or mismatch.slot is None else (spot, mismatch.slot)
    order, side, slot, _ = comparison.check.port
    if side == "output":
        spot = fixing.at_the_end(comparison.case.module) if order == comparison.case.call else None
        return None if spot is None else (spot, None)
    user = next((op for op in comparison.port.ops if op.call == order), None)
    spot = None if user is None else fixing.spot_of(user)
    return None if spot is None else (spot, slot)


def _text(
    comparison: OpComparison, mismatch: Mismatch, place: tuple[SourceSpot, str | None], key: Key
) -> str | None:
    """How a value of the reference is written where the port would need it."""
    moment = len(comparison.port.ops) if mismatch.user is None else mismatch.user.index
    text = Writer(comparison, EditPlace(*place, moment)).write(key, comparison.reference.producers.get(key))
    return None if text is None else grouped(text)
