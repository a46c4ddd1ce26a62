"""The lines to write for what is missing, in another order or in other places among the port's ops."""

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
from parfocal.explain.ops.mismatches import Mismatch, producers
from parfocal.explain.ops.op_comparison import OpComparison
from parfocal.explain.ops.values import covered, laid_out
from parfocal.explain.ops.writing import EditPlace, Writer
from parfocal.judge import limits

MOST_AXES = limits.searches.ALL_ORDERS.value
NEAR = limits.causes.MENDED_NEAR.value


def missing_fix(scene: OpComparison, ops: Sequence[Op], gap: Mismatch | None, words: str) -> str:
    """One op more where a value is used; a second tensor must have a name there."""
    if gap is None or len(ops) != 1:
        return words
    (op,) = ops
    if op.name == "setitem":
        return _stored_fix(scene, op, gap, words)
    place = _making(scene, op, gap) or _use(scene, gap)
    arguments = told(op, scene.case.reference_backend.is_tensor)
    other = None
    if place is not None and len(op.inputs) == 2:
        keys = [key for key in op.inputs.values() if not scene.matches.are_one(gap.port, key)]
        other = _text(scene, gap, place, keys[0] if keys else next(iter(op.inputs.values())))
    return fixing.added(place, scene.case.backend.name, op.name, arguments, other, words)


def _stored_fix(scene: OpComparison, op: Op, gap: Mismatch, words: str) -> str:
    """What is computed and kept under a name of its own is written into the tensor that is used."""
    value = scene.matches.to_port.get(list(op.inputs.values())[-1])
    made = None if value is None else scene.port.producers.get(value)
    use = None if gap.user is None else fixing.spot_of(gap.user)
    if made is None or use is None or gap.slot is None:
        return words
    return fixing.stored(made, use, gap.slot, op.args[1], words)


def value_fix(scene: OpComparison, gap: Mismatch, words: str) -> str:
    """The tensor that the reference takes, by its name in the port."""
    place = _use(scene, gap)
    if place is None or gap.user is None or gap.slot is None:
        return words
    text = _text(scene, gap, place, gap.reference)
    return words if text is None else fixing.exchanged(gap.user, gap.slot, text, words)


def made_fix(scene: OpComparison, op: Op, order: Sequence[int], words: str) -> str:
    """What an op takes in another order where it is made: parts of one statement change places."""
    makers = [before_moving(scene.port, op, slot) for slot in op.inputs]
    return fixing.exchanged_among([maker for maker in makers if maker is not None], order, words)


def mask_fix(scene: OpComparison, gap: Mismatch, words: str) -> str:
    """Another argument of what makes the mask, or the mask the other way round."""
    mine, theirs = producers(scene, gap)
    if mine is not None and theirs is not None and mine.name == theirs.name:
        others = told(theirs, scene.case.reference_backend.is_tensor)
        for name, argument in said(mine, scene.case.backend.is_tensor).items():
            if name in others and others[name] != argument.value:
                return fixing.told(mine, argument, others[name], words)
    mask, right = covered(scene.port.values[gap.port]), covered(scene.reference.values[gap.reference])
    if mask.size != right.size or not np.all(mask != right.reshape(mask.shape)):
        return words
    if gap.user is not None and gap.slot is not None and scene.port.values[gap.port].dtype == np.bool_:
        return fixing.inverted(gap.user, gap.slot, words)
    if mine is not None and mine.name == "where":
        return fixing.ordered(mine, ("1", "2"), (1, 0), words)
    return fixing.inverted(mine, "1", words) if mine is not None and mine.name == "masked_fill" else words


def moved_fix(scene: OpComparison, gap: Mismatch, own: Sequence[Op], words: str) -> str:
    """Axes or tensors in another order somewhere on the way."""
    final = scene.port.values[gap.port]
    wanted = laid_out(scene.reference.values[gap.reference], final.shape, final)
    if wanted is None:
        return words
    framework = scene.case.backend.name
    behind = _simple(own)
    # an order of axes that is there already is changed rather than another added
    for op in sorted(behind, key=lambda op: ("transpose", "concat", "reshape").index(op.name)):
        if op.name == "concat":
            order = _joined(scene, op, wanted)
            if order is not None:
                return fixing.ordered(op, list(op.inputs), order, words)
            continue
        before = scene.port.values[next(iter(op.inputs.values()))]
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


def split_fix(op: Op, shape: tuple[int, ...], right: tuple[int, ...], words: str) -> str:
    """Another shape."""
    return fixing.told(op, PassedArgument("shape", tuple(shape), 1, list), tuple(right), words)


def _orders(before: Array, wanted: Array) -> Iterator[tuple[int, ...]]:
    """Orders of the axes in which the values are the wanted ones."""
    if before.ndim > MOST_AXES or before.size != wanted.size:
        return
    for axes in permutations(range(before.ndim)):
        if _near(before.transpose(axes).reshape(wanted.shape), wanted):
            yield axes


def _joined(scene: OpComparison, op: Op, wanted: Array) -> tuple[int, ...] | None:
    arrays = [scene.port.values[key] for key in op.inputs.values()]
    axis: Any = said(op, scene.case.backend.is_tensor).get("axis")
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


def _making(scene: OpComparison, missing: Op, gap: Mismatch) -> tuple[SourceSpot, str | None] | None:
    """The expression that makes a value, when all who use it in the reference use it after the missing op."""
    made, _ = producers(scene, gap)
    if made is None or len(list(scene.port.taking(gap.port))) < 2:
        return None
    raw = [key for key in missing.inputs.values() if scene.matches.are_one(gap.port, key)]
    if any(other.index != missing.index for key in raw for other in scene.reference.taking(key)):
        return None
    spot = fixing.spot_of(made)
    return None if spot is None else (spot, None)


def _use(scene: OpComparison, gap: Mismatch) -> tuple[SourceSpot, str | None] | None:
    """The expression that takes a value: an op's, a layer's call, or what the code returns."""
    if gap.user is not None:
        spot = fixing.spot_of(gap.user)
        return None if spot is None or gap.slot is None else (spot, gap.slot)
    order, side, slot, _ = scene.check.port
    if side == "output":
        spot = fixing.at_the_end(scene.case.module) if order == scene.case.call else None
        return None if spot is None else (spot, None)
    user = next((op for op in scene.port.ops if op.call == order), None)
    spot = None if user is None else fixing.spot_of(user)
    return None if spot is None else (spot, slot)


def _text(scene: OpComparison, gap: Mismatch, place: tuple[SourceSpot, str | None], key: Key) -> str | None:
    """How a value of the reference is written where the port would need it."""
    moment = len(scene.port.ops) if gap.user is None else gap.user.index
    text = Writer(scene, EditPlace(*place, moment)).write(key, scene.reference.producers.get(key))
    return None if text is None else grouped(text)
