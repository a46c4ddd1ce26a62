"""Where two computations part: traced back from the wrong value, op by op, while both sides do the same."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from parfocal.explain.ops.arguments import told
from parfocal.explain.ops.log import Key, Op, OpLog, hides_where
from parfocal.explain.ops.names import (
    ARITHMETIC,
    COMMUTATIVE,
    LAYOUT,
    MASKING,
    POINTWISE,
    REDUCTIONS,
    SCALING,
)
from parfocal.explain.ops.op_comparison import OpComparison, is_same
from parfocal.explain.ops.queries import equal
from parfocal.explain.ops.values import rearranged
from parfocal.judge import limits

PRODUCTS = frozenset({"mul", "outer", "matmul", "einsum"})
CONTRACTING = frozenset({"matmul", "einsum"})
STEPS = limits.searches.MISMATCH_STEPS.value


@dataclass(frozen=True, slots=True)
class Mismatch:
    """A value of the port, the reference's value that it should be, and the ops that use them."""

    port: Key
    reference: Key
    user: Op | None = None
    slot: str | None = None  # of the user's input
    other_user: Op | None = None
    made: Op | None = None  # by these ops
    other_made: Op | None = None

    @property
    def producers(self) -> tuple[Op | None, Op | None]:
        """The ops that gave the two values."""
        return self.made, self.other_made


def narrowed(comparison: OpComparison) -> list[Mismatch]:
    """The innermost mismatches, where no further step back is possible, then those that led to them."""
    inner, outer = _walked(comparison)
    seen = {(mismatch.port, mismatch.reference) for mismatch in (*inner, *outer)}
    aside = [mismatch for mismatch in _aside(comparison) if (mismatch.port, mismatch.reference) not in seen]
    return [*inner, *reversed(outer), *aside]


def innermost(comparison: OpComparison, *, moved: bool) -> list[Mismatch]:
    """The mismatches where no further step back is possible: several, where several things are wrong.

    ``moved``: also where one of an op's tensors is only laid out otherwise and another is wrong.
    """
    return _walked(comparison, moved=moved)[0]


def ways_through(comparison: OpComparison) -> tuple[list[Mismatch], list[Mismatch]]:
    """The innermost mismatches and those that led to them, also through ops that differ themselves."""
    return _walked(comparison, through=True)


def _walked(
    comparison: OpComparison, *, moved: bool = False, through: bool = False
) -> tuple[list[Mismatch], list[Mismatch]]:
    if comparison.right is None:
        return [], []
    waiting = [
        Mismatch(
            comparison.wrong, comparison.right, *_users(comparison), comparison.end, comparison.other_end
        )
    ]
    inner: list[Mismatch] = []
    outer: list[Mismatch] = []
    seen: set[tuple[object, ...]] = set()
    while waiting and len(seen) < STEPS:
        mismatch = waiting.pop(0)
        # a value that is right in itself is wrong for one user and right for another
        user = mismatch.user.index if mismatch.user is not None and comparison.knows(mismatch.port) else None
        makers = [None if op is None else op.index for op in (mismatch.made, mismatch.other_made)]
        met = (mismatch.port, mismatch.reference, *makers, user)  # an op may give what it was given
        if met in seen:
            continue
        seen.add(met)
        further = list(_further(comparison, mismatch, moved=moved, through=through))
        waiting += further
        (outer if further else inner).append(mismatch)
    return inner, outer


def _aside(comparison: OpComparison) -> Iterator[Mismatch]:
    """Ops of the same name on both sides that differ in one input only, wherever they stand."""
    for mine in comparison.suspects:
        for theirs in comparison.counterparts:
            if mine.name != theirs.name or mine.is_module:
                continue
            pairs = paired_inputs(comparison, mine, theirs)
            apart = [pair for pair in pairs if not _are_one(comparison, mine, pair[0], theirs, pair[1])]
            if len(apart) == 1 and comparison.knows(mine.inputs[apart[0][0]]):
                slot, other = apart[0]
                yield Mismatch(
                    mine.inputs[slot],
                    theirs.inputs[other],
                    mine,
                    slot,
                    theirs,
                    comparison.port.maker(mine, slot),
                    comparison.reference.maker(theirs, other),
                )


def _further(
    comparison: OpComparison, mismatch: Mismatch, *, moved: bool = False, through: bool = False
) -> Iterator[Mismatch]:
    mine, theirs = mismatch.producers
    known = comparison.knows(mismatch.port) or comparison.known_to_port(mismatch.reference)
    alike = (
        mine is not None
        and theirs is not None
        and not mine.is_module
        and (mine.name == theirs.name or {mine.name, theirs.name} <= MASKING)
    )
    if known and not alike and not comparison.matches.are_one(mismatch.port, mismatch.reference):
        return  # one side stops here, or goes on from here
    if mine is None or theirs is None or not _are_steps_alike(mine, theirs, through=through):
        yield from _without_layout(comparison, mismatch, mine, theirs)
        return
    if mine.is_module and comparison.knows(mismatch.port):
        return
    if {mine.name, theirs.name} == {"where", "masked_fill"}:
        pairs = _masking_pairs(comparison, mine, theirs)
        if hides_where(comparison.port, mine) != hides_where(comparison.reference, theirs):
            yield from _opposite(comparison, mine, theirs, pairs[0])
            pairs = pairs[1:]
    elif not (
        mine.name == theirs.name
        or _scale_alike(comparison, mine, theirs)
        or _are_outer(comparison, mine, theirs)
        or _contract(mine, theirs)
        or (through and _are_kin(mine, theirs))
    ):
        yield from _without_layout(comparison, mismatch, mine, theirs)
        return
    else:
        pairs = paired_inputs(comparison, mine, theirs)
    unknown = [
        pair for pair in pairs if not comparison.matches.are_one(mine.inputs[pair[0]], theirs.inputs[pair[1]])
    ]
    if moved or not unknown:
        unknown = [
            pair for pair in pairs if not is_same(comparison, mine.inputs[pair[0]], theirs.inputs[pair[1]])
        ]
    for slot, other in unknown:
        yield Mismatch(
            mine.inputs[slot],
            theirs.inputs[other],
            mine,
            slot,
            theirs,
            comparison.port.maker(mine, slot),
            comparison.reference.maker(theirs, other),
        )


def _are_steps_alike(mine: Op, theirs: Op, *, through: bool) -> bool:
    """Two layers, two functions, or a layer and a function that do the same to one tensor."""
    if mine.is_module == theirs.is_module:
        return True
    alike = mine.name == theirs.name or (through and _are_kin(mine, theirs))
    return alike and len(mine.inputs) == len(theirs.inputs) == 1


def _scale_alike(comparison: OpComparison, mine: Op, theirs: Op) -> bool:
    """Whether one op divides by a number and the other multiplies by its inverse."""
    if {mine.name, theirs.name} != SCALING:
        return False
    own = told(mine, comparison.case.backend.is_tensor).get("scalar")
    other = told(theirs, comparison.case.reference_backend.is_tensor).get("scalar")
    if not isinstance(own, (int, float)) or not isinstance(other, (int, float)):
        return False
    return equal("scalar", 1.0, own * other, comparison, mine)


def _are_outer(comparison: OpComparison, mine: Op, theirs: Op) -> bool:
    """Whether both multiply all of one tensor with all of another, by whatever op."""
    return (
        mine.name != theirs.name
        and _is_outer(comparison.port, mine)
        and _is_outer(comparison.reference, theirs)
    )


def _contract(mine: Op, theirs: Op) -> bool:
    """Whether both are sums of products of two tensors, whichever of them comes first."""
    return {mine.name, theirs.name} <= CONTRACTING


def _is_outer(log: OpLog, op: Op) -> bool:
    sizes = [log.values[key].size for key in op.inputs.values()]
    if op.name not in PRODUCTS or len(sizes) != 2 or min(sizes) < 2:
        return False
    return [sizes[0] * sizes[1]] == [log.values[key].size for key in op.outputs.values()]


def _are_kin(mine: Op, theirs: Op) -> bool:
    """Whether one op may stand in the place of another."""
    families = (ARITHMETIC, REDUCTIONS, POINTWISE)
    return any(mine.name in family and theirs.name in family for family in families)


def _without_layout(
    comparison: OpComparison, mismatch: Mismatch, mine: Op | None, theirs: Op | None
) -> Iterator[Mismatch]:
    """One side only rearranges values here: compare the value before that."""
    if rearranged(comparison.port.values[mismatch.port], comparison.reference.values[mismatch.reference]):
        return
    for op, is_port in ((mine, True), (theirs, False)):
        log = comparison.port if is_port else comparison.reference
        if op is None or not log.only_moves(op) or len(op.inputs) != 1:
            continue
        if mine is not None and theirs is not None and mine.name == theirs.name:
            continue
        ((slot, key),) = op.inputs.items()
        if is_port and not comparison.knows(mismatch.port):
            made = comparison.port.maker(op, slot)
            yield Mismatch(key, mismatch.reference, op, slot, mismatch.other_user, made, mismatch.other_made)
            return
        if not is_port and not comparison.known_to_port(mismatch.reference):
            made = comparison.reference.maker(op, slot)
            yield Mismatch(mismatch.port, key, mismatch.user, mismatch.slot, op, mismatch.made, made)
            return


def told_alike(comparison: OpComparison, mine: Op, theirs: Op) -> bool:
    """Whether the arguments that both ops were given are equal."""
    if mine.name in LAYOUT:
        return True  # said in too many ways; their results tell
    ours = told(mine, comparison.case.backend.is_tensor)
    others = told(theirs, comparison.case.reference_backend.is_tensor)
    return all(
        equal(name, ours[name], others[name], comparison, mine) for name in ours.keys() & others.keys()
    )


def paired_inputs(comparison: OpComparison, mine: Op, theirs: Op) -> list[tuple[str, str]]:
    """The slots that stand for each other; empty when the two take different numbers of tensors."""
    if len(mine.inputs) != len(theirs.inputs):
        return []
    if not (mine.name in COMMUTATIVE or _contract(mine, theirs) or _are_outer(comparison, mine, theirs)):
        return list(zip(mine.inputs, theirs.inputs, strict=True))
    left = list(theirs.inputs)
    found: list[tuple[str, str]] = []
    for test in (_are_one, _made_alike, _anything):
        for slot in mine.inputs:
            if any(slot == done for done, _ in found):
                continue
            other = next((o for o in left if test(comparison, mine, slot, theirs, o)), None)
            if other is not None:
                left.remove(other)
                found.append((slot, other))
    return found


def _masking_pairs(comparison: OpComparison, mine: Op, theirs: Op) -> list[tuple[str, str]]:
    """The masks, and what is masked, of ops that put a value where a mask is true."""
    sorted_out = []
    for op, log in ((mine, comparison.port), (theirs, comparison.reference)):
        arrays = {slot: log.values[key] for slot, key in op.inputs.items()}
        masks = [slot for slot, array in arrays.items() if array.dtype == np.bool_]
        varied = [s for s, a in arrays.items() if s not in masks and a.size > 1 and (a != a.flat[0]).any()]
        sorted_out.append((masks, varied))
    (masks, varied), (other_masks, others) = sorted_out
    return [*zip(masks, other_masks, strict=False), *zip(varied, others, strict=False)]


def _opposite(comparison: OpComparison, mine: Op, theirs: Op, masks: tuple[str, str]) -> Iterator[Mismatch]:
    """Masks of which one is the other's opposite, seen before one of them is inverted."""
    keys = [mine.inputs[masks[0]], theirs.inputs[masks[1]]]
    made = [comparison.port.maker(mine, masks[0]), comparison.reference.maker(theirs, masks[1])]
    logs = (comparison.port, comparison.reference)
    own, other = (log.values[key].reshape(-1) for log, key in zip(logs, keys, strict=True))
    if own.size == other.size and np.array_equal(own, ~other):
        return
    for index, log in enumerate(logs):
        op = made[index]
        while op is not None and op.name in LAYOUT and len(op.inputs) == 1:
            op = log.maker(op, next(iter(op.inputs)))
        if op is not None and op.name == "logical_not":
            slot, keys[index] = next(iter(op.inputs.items()))
            made[index] = log.maker(op, slot)
            yield Mismatch(keys[0], keys[1], mine, masks[0], theirs, made[0], made[1])
            return


def _are_one(comparison: OpComparison, mine: Op, slot: str, theirs: Op, other: str) -> bool:
    return comparison.matches.are_one(mine.inputs[slot], theirs.inputs[other])


def _made_alike(comparison: OpComparison, mine: Op, slot: str, theirs: Op, other: str) -> bool:
    """Whether ops of the same name gave two values."""
    a, b = comparison.port.maker(mine, slot), comparison.reference.maker(theirs, other)
    return a is not None and b is not None and a.name == b.name


def _anything(comparison: OpComparison, mine: Op, slot: str, theirs: Op, other: str) -> bool:
    return True


def _users(comparison: OpComparison) -> tuple[Op | None, str | None, Op | None]:
    """Of the wrong value itself: the call that takes it, unless the code gives it back."""
    found = []
    for log, place in (
        (comparison.port, comparison.check.port),
        (comparison.reference, comparison.check.reference),
    ):
        takes = place[1] == "input"
        found.append(next((op for op in log.ops if takes and op.call == place[0]), None))
    return found[0], comparison.check.port[2], found[1]
