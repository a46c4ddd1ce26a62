"""Rules about masks: of other places, or applied in another way."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from parfocal.backends.protocol import Array
from parfocal.explain.causes import ProvenChange
from parfocal.explain.ops.argument_proofs import hidden_proof, hides, mask_proof
from parfocal.explain.ops.locating import line_of_use
from parfocal.explain.ops.log import Key, Op, OpLog
from parfocal.explain.ops.mismatches import Mismatch
from parfocal.explain.ops.names import LAYOUT, SELECTING
from parfocal.explain.ops.op_comparison import OpComparison
from parfocal.explain.ops.remakes import Remake, feeding, giving, picking
from parfocal.explain.ops.subgraphs import between, transplanted
from parfocal.explain.ops.values import covered, is_mask, laid_out

POINTED = SELECTING | {"embedding", "one_hot", "scatter", "index_add", "put_along_axis"}


def are_masks(comparison: OpComparison, mismatch: Mismatch) -> bool:
    mine, right = comparison.port.values[mismatch.port], comparison.reference.values[mismatch.reference]
    if mine.size != right.size or not (is_mask(mine) and is_mask(right)):
        return False
    if mine.dtype != np.bool_ and not any(_is_mixed(covered(mask)) for mask in (mine, right)):
        return False  # all zeros or all ones: a constant like any other
    sides = (comparison.port, mismatch.port), (comparison.reference, mismatch.reference)
    return not any(_points(log, key) or _is_one_hot(log, key) for log, key in sides)


def _is_mixed(places: Array) -> bool:
    return bool(places.any()) and not bool(places.all())


def _is_one_hot(log: OpLog, key: Key) -> bool:
    """Whether a value is one-hot: it selects elements and masks none."""
    made = log.producers.get(key)
    while made is not None and made.name in LAYOUT | {"cast"} and len(made.inputs) == 1:
        made = log.maker(made, next(iter(made.inputs)))
    return made is not None and made.name == "one_hot"


def _points(log: OpLog, key: Key) -> bool:
    """Whether a value is an index into another: it masks nothing."""
    if log.values[key].dtype == np.bool_:
        return False
    waiting, seen = [key], {key}
    while waiting:
        for op in log.taking(waiting.pop()):
            if op.name in POINTED:
                return True
            new = {*op.outputs.values()} - seen if op.name in LAYOUT | {"cast"} else set()
            waiting += new
            seen |= new
    return False


def other_mask(comparison: OpComparison, mismatch: Mismatch) -> Iterator[ProvenChange]:
    """A mask that covers other places."""
    if not are_masks(comparison, mismatch):
        return
    score = transplanted(comparison, mismatch)
    if score <= comparison.case.limit:
        yield mask_proof(comparison, mismatch, line_of_use(comparison, mismatch), score)


def masked_otherwise(comparison: OpComparison, mismatch: Mismatch) -> Iterator[ProvenChange]:
    """The reference masks a value that the port uses directly; the port masks differently, or not at all."""
    own, others = between(comparison, mismatch)
    hiding = [
        op for op in others if hides(comparison.reference, op) and not _is_a_mask(comparison.reference, op)
    ]
    if not own or len(hiding) != 1 or len(hiding[0].outputs) != 1 or _hides_alike(comparison, own, hiding[0]):
        return
    hidden = next(iter(hiding[0].outputs.values()))
    bare = [key for key in hiding[0].inputs.values() if comparison.known_to_port(key)]
    mine = {key for op in own for key in op.inputs.values()}
    for key in mine:
        if not any(
            comparison.matches.are_one(key, other) and _is_masked(comparison, other, hidden) for other in bare
        ):
            continue
        covering = [op for op in own if hides(comparison.port, op)]
        score = _hiding_earlier(comparison, own, key, comparison.reference.values[hidden], covering)
        if score <= comparison.case.limit:
            yield hidden_proof(comparison, own, others, hiding[0], bool(covering), score)
            return


def _is_a_mask(log: OpLog, op: Op) -> bool:
    """Whether an op makes a mask of another."""
    return all(is_mask(log.values[key]) for key in op.outputs.values())


def _is_masked(comparison: OpComparison, bare: Key, hidden: Key) -> bool:
    """Whether the second value is the first with some places masked; not a mask, nor its fill value."""
    return comparison.reference.values[bare].shape == comparison.reference.values[hidden].shape


def _hiding_earlier(
    comparison: OpComparison, own: list[Op], bare: Key, hidden: Array, covering: list[Op]
) -> float:
    """The score if every user takes the masked value, and no later op masks."""
    backend = comparison.case.backend
    value = laid_out(hidden, comparison.port.values[bare].shape, comparison.port.values[bare])
    if value is None:
        return float("inf")
    edits: dict[int, Remake] = {}
    for op in own:
        slots = [slot for slot, key in op.inputs.items() if key == bare]
        whole = [slot for slot in op.inputs if _can_be_hidden(comparison.port, op, slot)]
        if op in covering and whole:
            edits[op.index] = giving(backend, value) if whole[0] in slots else picking(whole[0])
        elif slots and op.function is not None:
            edits[op.index] = feeding(backend, slots[0], value)
    return comparison.try_edits(edits)


def _can_be_hidden(log: OpLog, op: Op, slot: str) -> bool:
    """Whether it is this tensor that an op hides places of."""
    taken, given = log.values[op.inputs[slot]], log.values[next(iter(op.outputs.values()))]
    return taken.shape == given.shape and not is_mask(taken)


def _hides_alike(comparison: OpComparison, own: list[Op], hiding: Op) -> bool:
    """Whether the port hides the same places by the same op: then the mask is not what is wrong."""
    wanted = [_hidden(comparison.reference, key) for key in hiding.inputs.values()]
    return any(
        np.array_equal(mine, right)
        for op in own
        if op.name == hiding.name
        for mine in (_hidden(comparison.port, key) for key in op.inputs.values())
        for right in wanted
        if mine is not None and right is not None
    )


def _hidden(log: OpLog, key: Key) -> Array | None:
    array = log.values[key]
    return covered(array).reshape(-1) if is_mask(array) else None
