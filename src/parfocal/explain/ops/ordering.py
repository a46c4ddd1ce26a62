"""Rules about order: of an op's tensors, of values, of ops in a row, of calls."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import permutations
from math import prod

from parfocal.explain.causes import ProvenChange
from parfocal.explain.causes import said as words
from parfocal.explain.ops.arguments import told
from parfocal.explain.ops.locating import line_of_use, order_of_making
from parfocal.explain.ops.log import Key, Op
from parfocal.explain.ops.masking import are_masks
from parfocal.explain.ops.mending import made_fix, value_fix
from parfocal.explain.ops.mismatches import Mismatch, told_alike
from parfocal.explain.ops.names import MOVING, SELECTING
from parfocal.explain.ops.op_comparison import OpComparison, is_same
from parfocal.explain.ops.remakes import bridging, followed_by, picking, reordering, reshaping
from parfocal.explain.ops.sequence_proofs import (
    extra_proof,
    missing_proof,
    moved_proof,
    order_proof,
    split_proof,
    taken_proof,
)
from parfocal.explain.ops.subgraphs import between, is_one_of, moving, one_more, same_sources, transplanted
from parfocal.explain.ops.values import rearranged
from parfocal.judge import limits
from parfocal.phrases import joined, phrase

PARTS = SELECTING | MOVING | {"neg", "cast"}
MOST_TENSORS = limits.searches.ORDERED_TENSORS.value


def other_order_of_tensors(comparison: OpComparison, mismatch: Mismatch) -> Iterator[ProvenChange]:
    """The same op on the same tensors in another order."""
    mine, theirs = mismatch.producers
    if mine is None or theirs is None or mine.name != theirs.name or mine.function is None:
        return
    slots = list(mine.inputs)
    if not 2 <= len(slots) <= MOST_TENSORS or len(theirs.inputs) != len(slots):
        return
    keys = list(mine.inputs.values())
    others = list(theirs.inputs.values())
    for order in permutations(range(len(slots))):
        if order == tuple(range(len(slots))):
            continue
        if not all(
            comparison.matches.are_one(keys[i], other) for i, other in zip(order, others, strict=True)
        ):
            continue
        score = comparison.try_remade(mine, reordering(slots, order))
        if score <= comparison.case.limit:
            where = order_of_making(comparison, mine, order, theirs)
            if where is None or where.line == mine.line:
                where = mine.where
            proof = order_proof(mine, theirs, order, where, score)
            elsewhere = where != mine.where
            yield replace(proof, fix=made_fix(comparison, mine, order, proof.fix)) if elsewhere else proof
            return


def split_otherwise(comparison: OpComparison, mismatch: Mismatch) -> Iterator[ProvenChange]:
    """An axis that is split into as many parts of another size: heads, groups, windows."""
    own, others = moving(comparison, mismatch)
    mine = next((op for op in own if op.name == "reshape" and op.function is not None), None)
    theirs = next((op for op in others if op.name == "reshape"), None)
    if mine is None or theirs is None:
        return
    shape, right = (
        log.values[next(iter(op.outputs.values()))].shape
        for log, op in ((comparison.port, mine), (comparison.reference, theirs))
    )
    before = comparison.port.values[next(iter(mine.inputs.values()))]
    if not len(before.shape) < len(shape) == len(right) or shape == right or before.size != prod(right):
        return
    score = comparison.try_remade(mine, reshaping(shape, right))
    if score <= comparison.case.limit:
        yield split_proof(comparison, mine, theirs, score)


def values_moved(comparison: OpComparison, mismatch: Mismatch) -> Iterator[ProvenChange]:
    """The right values in the wrong places."""
    mine, right = comparison.port.values[mismatch.port], comparison.reference.values[mismatch.reference]
    if not rearranged(mine, right) or are_masks(comparison, mismatch):
        return
    if is_same(comparison, mismatch.port, mismatch.reference):
        return  # a little off, where they are
    own, others = moving(comparison, mismatch)
    if not own and not others:
        return
    score = transplanted(comparison, mismatch)
    if score <= comparison.case.limit:
        yield moved_proof(comparison, mismatch, own, others, line_of_use(comparison, mismatch), score)


def ops_in_another_order(comparison: OpComparison, mismatch: Mismatch) -> Iterator[ProvenChange]:
    """The same ops in another order; or one op more or less in a sequence of several."""
    everything = between(comparison, mismatch)
    own, others = ([op for op in ops if op.name not in SELECTING] for ops in everything)
    if not own or not others or len(own) + len(others) < 3:
        return
    names, wanted = [op.name for op in own], [op.name for op in others]
    if not same_sources(comparison, *everything):
        return
    if names != wanted and sorted(names) == sorted(wanted):
        score = transplanted(comparison, mismatch)
        if score <= comparison.case.limit:
            first = next(op for op, name in zip(own, wanted, strict=True) if op.name != name)
            proof = order_proof(first, others[-1], (), first.where, score, (names, wanted))
            yield replace(
                proof, message=joined("; ", (proof.message, *_told_otherwise(comparison, own, others)))
            )
    extra = one_more(names, wanted)
    if extra is not None and own[extra].function is not None:
        for slot in own[extra].inputs:
            score = comparison.try_remade(own[extra], picking(slot))
            if score <= comparison.case.limit:
                yield extra_proof(comparison, [own[extra]], score, (own[extra], slot))
                return
    lacking = one_more(wanted, names)
    if lacking and others[lacking].function is not None and len(others[lacking].inputs) == 1:
        before, backends = own[lacking - 1], (comparison.case.backend, comparison.case.reference_backend)
        score = comparison.try_remade(before, followed_by(bridging(*backends, others[lacking])))
        if score <= comparison.case.limit:
            yield missing_proof(comparison, [others[lacking]], before.where, score)


def _told_otherwise(comparison: OpComparison, own: list[Op], others: list[Op]) -> Iterator[str]:
    """Arguments in which ops of the same name differ as well."""
    for op in own:
        alike = [each for each in others if each.name == op.name]
        if len(alike) != 1 or told_alike(comparison, op, alike[0]):
            continue
        mine, theirs = (
            joined(", ", (f"{name} {words(value)}" for name, value in told(each, backend.is_tensor).items()))
            for each, backend in (
                (op, comparison.case.backend),
                (alike[0], comparison.case.reference_backend),
            )
        )
        yield phrase(
            "{name} with {reference} in the reference, {port} in the port",
            name=op.name,
            reference=theirs,
            port=mine,
        )


def taken_otherwise(comparison: OpComparison, mismatch: Mismatch) -> Iterator[ProvenChange]:
    """Parts of the same values, selected and joined differently, in any number of steps."""
    own, others = between(comparison, mismatch)
    if not own or not others or not same_sources(comparison, own, others):
        return
    if any(op.is_module or op.name not in PARTS for op in (*own, *others)):
        return
    score = transplanted(comparison, mismatch)
    if score <= comparison.case.limit:
        moved = rearranged(
            comparison.port.values[mismatch.port], comparison.reference.values[mismatch.reference]
        )
        yield taken_proof(own, others, moved, score)


def another_value(comparison: OpComparison, mismatch: Mismatch) -> Iterator[ProvenChange]:
    """The port uses a value that both sides have, but in the place of another one."""
    if (
        not comparison.knows(mismatch.port)
        or not comparison.known_to_port(mismatch.reference)
        or mismatch.user is None
    ):
        return
    wanted = _other_output(comparison, mismatch)
    moved = rearranged(comparison.port.values[mismatch.port], comparison.reference.values[mismatch.reference])
    if moved and wanted is None:
        return
    if mismatch.user.function is not None and mismatch.slot is not None:
        mine_too = comparison.port.values[wanted or comparison.matches.to_port[mismatch.reference]]
        score = comparison.try_fed(
            mismatch.user, mismatch.slot, lambda: comparison.case.backend.from_array(mine_too)
        )
    else:
        score = transplanted(comparison, mismatch)
    if score > comparison.case.limit:
        return
    mine, theirs = mismatch.producers
    where = line_of_use(comparison, mismatch)
    own = [] if mine is None or mine.is_module else list(mine.inputs.values())
    others = [] if theirs is None or theirs.is_module else list(theirs.inputs.values())
    if theirs is not None and is_one_of(comparison, mismatch.port, others):
        yield missing_proof(comparison, [theirs], where, score, mismatch)
    elif mine is not None and any(comparison.matches.are_one(key, mismatch.reference) for key in own):
        yield extra_proof(comparison, [mine], score)
    else:
        names = [_given_by(mine, mismatch.port)], [_given_by(theirs, mismatch.reference)]
        proof = order_proof(
            mismatch.user, mismatch.other_user, (), line_of_use(comparison, mismatch), score, names
        )
        yield replace(proof, fix=value_fix(comparison, mismatch, proof.fix))


def _given_by(op: Op | None, key: Key) -> str:
    """What gives a value, and as which of several."""
    if op is None:
        return phrase("an input")
    slot = next((slot for slot, given in op.outputs.items() if given == key), "")
    return (
        phrase("what {spelled} gives", spelled=op.spelled)
        if len(op.outputs) == 1
        else phrase("output {slot} of {spelled}", slot=slot, spelled=op.spelled)
    )


def _other_output(comparison: OpComparison, mismatch: Mismatch) -> Key | None:
    """What the port's op gives where the reference's, of the same name, gives what is taken there."""
    mine, theirs = mismatch.producers
    if mine is None or theirs is None or mine.name != theirs.name or len(mine.outputs) < 2:
        return None
    slot = next((slot for slot, key in theirs.outputs.items() if key == mismatch.reference), "")
    key = mine.outputs.get(slot)
    return None if key in (None, mismatch.port) else key
