"""The two subgraphs of a mismatch: their ops, the values they start from, and transplanting one value."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import numpy as np

from parfocal.backends.protocol import Array
from parfocal.explain.ops.locating import behind
from parfocal.explain.ops.log import Key, Op
from parfocal.explain.ops.mismatches import Mismatch, narrowed
from parfocal.explain.ops.names import ARITHMETIC, LAYOUT, MOVING, SELECTING
from parfocal.explain.ops.op_comparison import Edits, OpComparison
from parfocal.explain.ops.remakes import feeding, giving
from parfocal.explain.ops.values import laid_out, rearranged, same


def between(comparison: OpComparison, mismatch: Mismatch) -> tuple[list[Op], list[Op]]:
    """The ops on both sides that change values, back to what both have."""
    own = behind(comparison, mismatch)
    known = comparison.known_to_port(mismatch.reference)
    others = [] if known else comparison.reference.cone(mismatch.other_made, comparison.known_to_port)
    return (
        [op for op in own if not comparison.port.only_moves(op)],
        [op for op in others if not comparison.reference.only_moves(op)],
    )


def moving(comparison: OpComparison, mismatch: Mismatch) -> tuple[list[Op], list[Op]]:
    """The ops on both sides that only move values, right before the two."""
    found = []
    for log, op in ((comparison.port, mismatch.made), (comparison.reference, mismatch.other_made)):
        ops: list[Op] = []
        while op is not None and (op.name in MOVING or log.only_moves(op)):
            ops.insert(0, op)
            op = log.maker(op, next(iter(op.inputs))) if len(op.inputs) == 1 else None
        found.append(ops)
    return found[0], found[1]


def transplanted(comparison: OpComparison, mismatch: Mismatch) -> float:
    """The score with the reference's value in place of the port's.

    That shows where the two part. What a rule says of it must follow from the ops on both sides.
    """
    values = _in_its_place(
        comparison.port.values[mismatch.port], comparison.reference.values[mismatch.reference]
    )
    choices = [edits for value in values for edits in _replacing(comparison, mismatch, value)]
    if comparison.on_the_way:
        comparison.accepted += choices
        return 0.0 if choices else float("inf")
    if mismatch.port == comparison.wrong:
        return min(map(comparison.judged, values), default=float("inf"))
    if choices:
        return comparison.try_edits(*choices)
    given = (
        comparison.on_ops_alone({}, {mismatch.port: comparison.case.backend.from_array(value)})
        for value in values
    )
    return min((score for score in given if score is not None), default=float("inf"))


def _in_its_place(mine: Array, theirs: Array) -> list[Array]:
    """The reference's value as the port would have it, the likeliest first."""
    if mine.size != theirs.size or same(mine.reshape(-1), theirs.reshape(-1)):
        return [theirs]  # the shape is what differs
    likely, plain = laid_out(theirs, mine.shape, mine), theirs.reshape(mine.shape)
    if likely is None or np.array_equal(likely, plain, equal_nan=True):
        return [plain]
    # of other values the layout is a guess
    return [likely] if rearranged(mine, theirs) else [likely, plain]


def _replacing(comparison: OpComparison, mismatch: Mismatch, value: Array) -> list[Edits]:
    """The changes that put a value in the place of the port's: at its making, or at its use."""
    backend, made = comparison.case.backend, mismatch.made
    making: list[Edits] = []
    if made is not None and made.function is not None:
        making.append({made.index: giving(backend, value)})
    if making and not comparison.knows(mismatch.port):
        return making
    if mismatch.user is None or mismatch.user.function is None or mismatch.slot is None:
        return []
    # a value that is used more than once may be wrong for all its users
    everywhere = making if len(list(comparison.port.taking(mismatch.port))) > 1 else []
    return [{mismatch.user.index: feeding(backend, mismatch.slot, value)}, *everywhere]


def elsewhere(comparison: OpComparison, op: Op, *, missing: bool) -> Op | None:
    """The same op, missing (or too many) at another place: it was moved."""
    calls = {check.reference[0]: check.port[0] for check in comparison.case.checks}
    if not missing and op.is_module and op.call in calls:
        return next((each for each in comparison.port.ops if each.call == calls[op.call]), None)
    for other in comparison.elsewhere():
        for mismatch in narrowed(other)[:1]:
            own, others = between(other, mismatch)
            here, there = (own, others) if missing else (others, own)
            if not here and [each.name for each in there] == [op.name]:
                return there[0]
    return None


def moved_op(comparison: OpComparison, op: Op, *, missing: bool) -> Op | None:
    """The other side's op of the same name, if both have it as often, where this side has none.

    ``missing``: the op is the reference's, and looked for in the port.
    """
    if comparison.on_the_way or op.is_module or op.name in ARITHMETIC | LAYOUT | SELECTING:
        return None
    mine, theirs = (
        [o for o in log.ops if o.name == op.name] for log in (comparison.port, comparison.reference)
    )
    if len(mine) != len(theirs):
        return None
    here, there = (mine, theirs) if missing else (theirs, mine)
    return next((o for o in here if not any(_on_the_same(comparison, o, other) for other in there)), None)


def _on_the_same(comparison: OpComparison, one: Op, other: Op) -> bool:
    mine, theirs = (one, other) if one in comparison.port.ops else (other, one)
    keys = list(theirs.inputs.values())
    return all(is_one_of(comparison, key, keys) for key in mine.inputs.values())


def is_one_of(comparison: OpComparison, key: Key, others: Iterable[Key]) -> bool:
    return any(comparison.matches.are_one(key, other) for other in others)


def same_sources(comparison: OpComparison, own: list[Op], others: list[Op]) -> bool:
    """Whether the ops of both sides start from the same values, among those that both have."""
    mine = [key for key in _taken(own) if comparison.knows(key)]
    theirs = [key for key in _taken(others) if comparison.known_to_port(key)]
    return all(is_one_of(comparison, key, theirs) for key in mine) and all(
        any(comparison.matches.are_one(key, other) for key in mine) for other in theirs
    )


def starts_alike(comparison: OpComparison, own: list[Op], others: list[Op]) -> bool:
    """Whether one side starts from nothing that the other does not start from, among what both have."""
    mine = [key for key in _taken(own) if comparison.knows(key)]
    theirs = [key for key in _taken(others) if comparison.known_to_port(key)]
    if not mine or not theirs:
        return False
    return all(is_one_of(comparison, key, theirs) for key in mine) or all(
        any(comparison.matches.are_one(key, other) for key in mine) for other in theirs
    )


def apart(own: list[Op], others: list[Op]) -> tuple[int, int]:
    """How many ops of either side the other does not have, by their names."""
    names, wanted = (Counter(op.name for op in ops) for ops in (own, others))
    return (names - wanted).total(), (wanted - names).total()


def _taken(ops: list[Op]) -> set[Key]:
    made = {key for op in ops for key in op.outputs.values()}
    return {key for op in ops for key in op.inputs.values()} - made


def one_more(longer: list[str], shorter: list[str]) -> int | None:
    """Which one must go for the two to be the same."""
    if len(longer) != len(shorter) + 1:
        return None
    return next((i for i in range(len(longer)) if longer[:i] + longer[i + 1 :] == shorter), None)
