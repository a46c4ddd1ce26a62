"""Proofs that an op is given something else than in the reference: an argument, a mask, another operand."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from parfocal.explain.causes import OpLine, ProvenChange, code_of, line, spelled_path
from parfocal.explain.causes import said as words
from parfocal.explain.fixes import fixing
from parfocal.explain.ops.arguments import PassedArgument
from parfocal.explain.ops.calling import frames_around
from parfocal.explain.ops.log import Key, Op, OpLog
from parfocal.explain.ops.mending import mask_fix
from parfocal.explain.ops.mismatches import Mismatch
from parfocal.explain.ops.names import MASKING, SCALING
from parfocal.explain.ops.op_comparison import OpComparison
from parfocal.explain.ops.op_words import chain
from parfocal.explain.ops.values import MASKED, covered, is_mask
from parfocal.judge import limits
from parfocal.judge.verdict import Fix
from parfocal.phrases import joined, phrase

SMALL = limits.causes.GUARDING.value


def argument_proof(
    comparison: OpComparison,
    op: Op,
    other: Op | None,
    mine: PassedArgument,
    theirs: PassedArgument,
    score: float,
) -> ProvenChange:
    ours, own = words(theirs.value), words(mine.value)
    if mine.name == "scalar":
        small = op.name in ("add", "sub") and 0.0 <= abs(float(theirs.value)) <= SMALL
        code = "config.epsilon" if small else "op.scale" if op.name in SCALING else "config.other"
        how = phrase("with") if other is not None else phrase("as if with")
        message = phrase(
            "{name} {how} {reference} in the reference, with {port} in the port",
            name=op.name,
            how=how,
            reference=ours,
            port=own,
        )
    else:
        code = code_of(mine.name, op.name)
        message = phrase(
            "{name} of {op_name} is {reference} in the reference, {port} in the port",
            name=mine.name,
            op_name=op.name,
            reference=ours,
            port=own,
        )
    fix: Fix = phrase(
        "write {right} instead of {wrong} in {line}",
        right=words(mine.back(theirs.value)),
        wrong=words(mine.back(mine.value)),
        line=line(op),
    )
    owner = spelled_path(comparison.case.node.path), comparison.case.module
    fix = fixing.told(op, mine, theirs.value, fix, owner, partial(frames_around, comparison.case))
    return ProvenChange(code, message, fix, score, op.where, None if other is None else other.where)


def lacking_proof(comparison: OpComparison, mine: Op, theirs: Op, key: Key, score: float) -> ProvenChange:
    """For an op that is passed one tensor less than in the reference."""
    shape = list(comparison.reference.values[key].shape)
    code = "op.bias" if len(shape) == 1 else "op.missing"
    message = phrase(
        "{name} takes a tensor {shape} more in the reference ({line}) than in the port",
        name=mine.name,
        shape=shape,
        line=line(theirs),
    )
    fix = phrase("pass the tensor {shape} to {name} in {line}", shape=shape, name=mine.name, line=line(mine))
    return ProvenChange(code, message, fix, score, mine.where, theirs.where)


def mask_proof(
    comparison: OpComparison, mismatch: Mismatch, where: OpLine | None, score: float
) -> ProvenChange:
    mine = covered(comparison.port.values[mismatch.port])
    right = covered(comparison.reference.values[mismatch.reference]).reshape(mine.shape)
    differing = int((mine != right).sum())
    if differing == mine.size:
        how = phrase("means the opposite")
        fix = phrase("invert the mask")
    else:
        how = phrase("differs at {differing} of {size} places", differing=differing, size=mine.size)
        fix = phrase("mask the places that the reference masks")
    message = phrase(
        "the mask {how}: {count} of {size} places in the port, {other}{reference} in the reference",
        how=how,
        count=int(mine.sum()),
        size=mine.size,
        other=phrase("the other ") if differing == mine.size else "",
        reference=int(right.sum()),
    )
    made = comparison.reference.producers.get(mismatch.reference)
    place = "" if where is None else phrase(" in {line}", line=line(where))
    there = None if made is None else made.where
    return ProvenChange("op.mask", message, mask_fix(comparison, mismatch, fix + place), score, where, there)


def hidden_proof(
    comparison: OpComparison,
    own: Sequence[Op],
    others: Sequence[Op],
    hiding: Op,
    covering: bool,
    score: float,
) -> ProvenChange:
    """A mask that is applied by other ops, or not at all."""
    mine = next(
        (op for op in own if any(is_mask(comparison.port.values[key]) for key in op.inputs.values())), own[0]
    )
    how = phrase("otherwise or at another point") if covering else phrase("nowhere")
    message = phrase(
        "the reference masks by {spelled} ({line}: {chain}), the port {how} ({own_line}: {own_chain})",
        spelled=hiding.spelled,
        line=line(hiding),
        chain=chain(others),
        how=how,
        own_line=line(mine),
        own_chain=chain(own),
    )
    fix = phrase("mask in {line} as the reference does: {chain}", line=line(mine), chain=chain(others))
    return ProvenChange("op.mask", message, fix, score, mine.where, hiding.where)


def exchanged_proof(
    comparison: OpComparison, one: tuple[Mismatch, Op], other: tuple[Mismatch, Op], score: float
) -> ProvenChange:
    """Two ops of which each takes what the other should."""
    given = [source_of(comparison, mismatch.port, mismatch.made) for mismatch, _ in (one, other)]
    users = [user for _, user in (one, other)]
    message = phrase(
        "{spelled} takes {given} and {users_spelled} {given2}; in the reference it is the other way round",
        spelled=users[0].spelled,
        given=given[0],
        users_spelled=users[1].spelled,
        given2=given[1],
    )
    places = joined(" and ", dict.fromkeys(map(line, users)))
    fix: Fix = phrase(
        "exchange {given} and {given2} in {places}", given=given[0], given2=given[1], places=places
    )
    there = one[0].other_user
    where = min(users, key=lambda op: op.index).where
    made = one[0].made
    if made is not None and made is other[0].made:  # given out the wrong way round, not taken
        where, fix = (
            made.where,
            phrase(
                "exchange {given} and {given2} in {line}", given=given[0], given2=given[1], line=line(made)
            ),
        )
        slots = [
            slot for mismatch, _ in (one, other) for slot, key in made.outputs.items() if key == mismatch.port
        ]
        fix = fixing.exchanged_parts(made, slots, fix)
    return ProvenChange("op.order", message, fix, score, where, None if there is None else there.where)


def source_of(comparison: OpComparison, key: Key, made: Op | None) -> str:
    """Where a value of the port comes from, in words."""
    if made is not None and len(made.outputs) > 1:
        slot = next((slot for slot, output in made.outputs.items() if output == key), "?")
        return phrase("output {slot} of {spelled}", slot=slot, spelled=made.spelled)
    if made is not None:
        return phrase("what {spelled} gives", spelled=made.spelled)
    backend, wanted = comparison.case.backend, comparison.port.values[key]
    for entry in backend.state(comparison.case.module):
        array = backend.to_array(entry.value)
        if array.shape == wanted.shape and np.array_equal(array, wanted):
            return f"self.{entry.path}"
    return phrase("an input")


def hides(log: OpLog, op: Op) -> bool:
    """Whether an op masks: it fills some places with one value, or makes them very low."""
    if op.name != "where":
        return op.name in MASKING or masks(log, op)
    arrays = [log.values[key] for key in op.inputs.values()]
    return any(array.dtype.kind in "fV" and bool((array == array.flat[0]).all()) for array in arrays)


def masks(log: OpLog, op: Op) -> bool:
    """Whether an op masks by adding or subtracting very large numbers."""
    if op.name not in ("add", "sub", "mul"):
        return False
    arrays = [log.values[key] for key in (*op.inputs.values(), *op.outputs.values())]
    return any(
        array.dtype.kind in "fV"
        and float(np.abs(array.astype(np.float64)).max(initial=0.0)) >= -MASKED
        and is_mask(-np.abs(array.astype(np.float64)))
        for array in arrays
    )
