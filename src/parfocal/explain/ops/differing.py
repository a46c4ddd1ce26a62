"""What the smallest difference between two ways is called, and the proof that it is all there is.

Every rule looks at one gap: the port's ops and the reference's between values that both have and the
two that should be one. A rule speaks only of what it can put right in a repetition of the port's call.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import permutations

import numpy as np

from parfocal.backends.protocol import Array
from parfocal.explain.causes import Proof, Where
from parfocal.explain.ops.arguments import Said, default_of, said, told
from parfocal.explain.ops.gaps import Gap, narrowed, paired_inputs, producers
from parfocal.explain.ops.locating import behind, line_of_use, order_of_making
from parfocal.explain.ops.log import Key, Log, Op
from parfocal.explain.ops.looking import equal
from parfocal.explain.ops.names import ARITHMETIC, MASKING, MOVING, POINTWISE, REDUCTIONS, SCALING
from parfocal.explain.ops.remakes import (
    bridging,
    feeding,
    followed_by,
    giving,
    picking,
    reordering,
    retelling,
)
from parfocal.explain.ops.scene import Scene
from parfocal.explain.ops.telling import (
    argument_proof,
    early_proof,
    extra_proof,
    formula_proof,
    hidden_proof,
    mask_proof,
    masks,
    missing_proof,
    moved_proof,
    order_proof,
    replaced_proof,
)
from parfocal.explain.ops.values import covered, is_mask, laid_out, rearranged, same

Rule = Callable[[Scene, Gap], Iterator[Proof]]
MOST_TENSORS = 4  # more are not tried in every order


def differences(scene: Scene) -> Iterator[Proof]:
    """By the size of the edit, and of the innermost gaps first."""
    yield from _by(RULES, scene)


def otherwise(scene: Scene) -> Iterator[Proof]:
    """What can still be said where no op is wrong by itself."""
    yield from _by(LAST_RULES, scene)


def _by(ranks: tuple[tuple[Rule, ...], ...], scene: Scene) -> Iterator[Proof]:
    gaps = narrowed(scene)
    for rules in ranks:
        for gap in gaps:
            for rule in rules:
                yield from rule(scene, gap)


def other_arguments(scene: Scene, gap: Gap) -> Iterator[Proof]:
    """The same op, told something else."""
    mine, theirs = producers(scene, gap)
    known = scene.knows(gap.port) and not scene.matches.are_one(gap.port, gap.reference)
    if mine is None or mine.function is None or known:
        return
    if theirs is None or theirs.name != mine.name:  # what it was told may make no difference in the reference
        theirs = next(scene.like(mine), None)
    if theirs is None or (are_masks(scene, gap) and theirs.name in MASKING):
        return
    own = said(mine, scene.case.backend.is_tensor)
    others = told(theirs, scene.case.reference_backend.is_tensor)
    for name, argument in own.items():
        value = others.get(name, default_of(mine, argument))
        if value is None or equal(name, argument.value, value, scene, mine):
            continue
        score = scene.try_remade(mine, retelling(mine, argument, value))
        if score <= scene.case.limit:
            other = Said(name, value, argument.native, argument.back)
            yield argument_proof(scene, mine, theirs, argument, other, score)
            return


def other_factor(scene: Scene, gap: Gap) -> Iterator[Proof]:
    """A number to multiply with or to divide by, which is another one in the reference."""
    mine, theirs = producers(scene, gap)
    if mine is None or theirs is None or mine.function is None or theirs.function is None:
        return
    if mine.name not in SCALING or theirs.name not in SCALING or len(mine.inputs) != 1:
        return
    own = said(mine, scene.case.backend.is_tensor).get("scalar")
    other = said(theirs, scene.case.reference_backend.is_tensor).get("scalar")
    if own is None or other is None or not other.value:
        return
    value = float(other.value) if mine.name == theirs.name else 1.0 / float(other.value)
    if equal("scalar", own.value, value, scene, mine):
        return
    score = scene.try_remade(mine, retelling(mine, own, value))
    if score <= scene.case.limit:
        yield argument_proof(scene, mine, theirs, own, Said("scalar", value, own.native, own.back), score)


def other_mask(scene: Scene, gap: Gap) -> Iterator[Proof]:
    """A mask that covers other places."""
    if not are_masks(scene, gap):
        return
    score = transplanted(scene, gap)
    if score <= scene.case.limit:
        yield mask_proof(scene, gap, line_of_use(scene, gap), score)


def are_masks(scene: Scene, gap: Gap) -> bool:
    mine, right = scene.port.values[gap.port], scene.reference.values[gap.reference]
    return mine.size == right.size and is_mask(mine) and is_mask(right)


def other_order_of_tensors(scene: Scene, gap: Gap) -> Iterator[Proof]:
    """The same op on the same tensors in another order."""
    mine, theirs = producers(scene, gap)
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
        if not all(scene.matches.are_one(keys[i], other) for i, other in zip(order, others, strict=True)):
            continue
        score = scene.try_remade(mine, reordering(slots, order))
        if score <= scene.case.limit:
            where = order_of_making(scene, [keys[i] for i in order], others)
            if where is None or where.line == mine.line:
                where = mine.where
            yield order_proof(mine, theirs, order, where, score)
            return


def values_moved(scene: Scene, gap: Gap) -> Iterator[Proof]:
    """The right values in the wrong places."""
    mine, right = scene.port.values[gap.port], scene.reference.values[gap.reference]
    if not rearranged(mine, right) or are_masks(scene, gap):
        return
    own, others = moving(scene, gap)
    if not own and not others:
        return
    score = transplanted(scene, gap)
    if score <= scene.case.limit:
        yield moved_proof(scene, gap, own, others, line_of_use(scene, gap), score)


def moving(scene: Scene, gap: Gap) -> tuple[list[Op], list[Op]]:
    """The ops on both sides that only move values, right before the two."""
    found = []
    for log, op in ((scene.port, gap.made), (scene.reference, gap.other_made)):
        ops: list[Op] = []
        while op is not None and op.name in MOVING:
            ops.insert(0, op)
            op = log.maker(op, next(iter(op.inputs))) if len(op.inputs) == 1 else None
        found.append(ops)
    return found[0], found[1]


def between(scene: Scene, gap: Gap) -> tuple[list[Op], list[Op]]:
    """The ops on both sides that change values, back to what both have."""
    own = behind(scene, gap)
    known = scene.known_to_port(gap.reference)
    others = [] if known else scene.reference.cone(gap.other_made, scene.known_to_port)
    return (
        [op for op in own if not scene.port.only_moves(op)],
        [op for op in others if not scene.reference.only_moves(op)],
    )


def op_missing(scene: Scene, gap: Gap) -> Iterator[Proof]:
    """The reference does one thing more to a value that the port uses as it is."""
    if len(between(scene, gap)[1]) == 1:
        yield from ops_missing(scene, gap)


def op_extra(scene: Scene, gap: Gap) -> Iterator[Proof]:
    """The port does one thing more to a value that the reference uses as it is."""
    if len(between(scene, gap)[0]) == 1:
        yield from ops_extra(scene, gap)


def ops_missing(scene: Scene, gap: Gap) -> Iterator[Proof]:
    """The reference goes on from a value that the port uses as it is."""
    own, others = between(scene, gap)
    if own or not others or rearranged(scene.port.values[gap.port], scene.reference.values[gap.reference]):
        return
    if not any(_is_one_of(scene, gap.port, op.inputs.values()) for op in others):
        return
    score = transplanted(scene, gap)
    if score > scene.case.limit:
        return
    where = line_of_use(scene, gap)
    moved = [op for op in others if op.is_module] if len(others) > 1 else others
    for op in moved:
        if (found := _elsewhere(scene, op, missing=False)) is not None:
            yield early_proof(found, op, min(where or found.where, found.where, key=_line), score)
            return
    yield missing_proof(scene, others, where, score, gap)


def ops_extra(scene: Scene, gap: Gap) -> Iterator[Proof]:
    """The port goes on from a value that the reference uses as it is."""
    own, others = between(scene, gap)
    if others or not own or rearranged(scene.port.values[gap.port], scene.reference.values[gap.reference]):
        return
    if not any(scene.matches.are_one(key, gap.reference) for op in own for key in op.inputs.values()):
        return
    last = own[-1]
    score = float("inf")
    are_one = scene.matches.are_one
    right = [(op, slot) for op in own for slot, key in op.inputs.items() if are_one(key, gap.reference)]
    _, slot = right[-1]
    if len(own) == 1 and last.function is not None:
        score = scene.try_remade(last, picking(slot))
    if score > scene.case.limit:
        score = transplanted(scene, gap)
    if score > scene.case.limit:
        return
    if len(own) == 1 and (found := _elsewhere(scene, last, missing=True)) is not None:
        yield early_proof(last, found, last.where, score)
        return
    yield extra_proof(scene, own, score, right[-1])


def _elsewhere(scene: Scene, op: Op, *, missing: bool) -> Op | None:
    """The same op, missing (or too many) at another place: it was moved."""
    calls = {check.reference[0]: check.port[0] for check in scene.case.checks}
    if not missing and op.is_module and op.call in calls:
        return next((each for each in scene.port.ops if each.call == calls[op.call]), None)
    for other in scene.elsewhere():
        for gap in narrowed(other)[:1]:
            own, others = between(other, gap)
            here, there = (own, others) if missing else (others, own)
            if not here and [each.name for each in there] == [op.name]:
                return there[0]
    return None


def _line(where: Where) -> int:
    return where.line or 0


def another_op(scene: Scene, gap: Gap) -> Iterator[Proof]:
    """One op in place of another, on the same values."""
    own, others = between(scene, gap)
    if len(own) != 1 or len(others) != 1 or own[0].name == others[0].name:
        return
    mine, theirs = own[0], others[0]
    groups = (POINTWISE, REDUCTIONS, ARITHMETIC)
    group = next((group for group in groups if mine.name in group and theirs.name in group), None)
    pooling = "pool" in mine.name and "pool" in theirs.name
    if group is None and not pooling:
        return
    pairs = paired_inputs(scene, mine, theirs)
    if not pairs or not all(scene.matches.are_one(mine.inputs[a], theirs.inputs[b]) for a, b in pairs):
        return
    score = float("inf")
    if mine.function is not None and theirs.function is not None:
        score = scene.try_remade(mine, bridging(scene.case.backend, scene.case.reference_backend, theirs))
    if score > scene.case.limit:
        score = transplanted(scene, gap)
    if score <= scene.case.limit:
        yield replaced_proof(scene, mine, theirs, score)


def another_formula(scene: Scene, gap: Gap) -> Iterator[Proof]:
    """A function written by hand on one side, and another one on the other."""
    own, others = between(scene, gap)
    if not own or not others or len(own) + len(others) < 3:
        return
    if not all(op.name in POINTWISE | ARITHMETIC and not op.is_module for op in (*own, *others)):
        return
    sources = _sources(scene, own, mine=True)
    if len(sources) != 1 or sources != _sources(scene, others, mine=False):
        return
    if scene.port.values[gap.port].shape != scene.reference.values[gap.reference].shape:
        return
    score = transplanted(scene, gap)
    if score <= scene.case.limit:
        yield formula_proof(scene, own, others, score)


def masked_otherwise(scene: Scene, gap: Gap) -> Iterator[Proof]:
    """The reference hides places, and the port does so by other means or at another point, if at all."""
    own, others = between(scene, gap)
    hiding = [op for op in others if op.name in MASKING or masks(scene.reference, op)]
    alike = {op.name for op in own} & {op.name for op in others}
    if not own or len(hiding) != 1 or not alike or _hides_alike(scene, own, hiding[0]):
        return
    covering = [key for op in own for key in op.inputs.values() if is_mask(scene.port.values[key])]
    score = transplanted(scene, gap)
    if score <= scene.case.limit:
        yield hidden_proof(scene, own, others, hiding[0], bool(covering), score)


def _hides_alike(scene: Scene, own: list[Op], hiding: Op) -> bool:
    """Whether the port hides the same places by the same op: then the mask is not what is wrong."""
    wanted = [_hidden(scene.reference, key) for key in hiding.inputs.values()]
    return any(
        np.array_equal(mine, right)
        for op in own
        if op.name == hiding.name
        for mine in (_hidden(scene.port, key) for key in op.inputs.values())
        for right in wanted
        if mine is not None and right is not None
    )


def _hidden(log: Log, key: Key) -> Array | None:
    array = log.values[key]
    return covered(array).reshape(-1) if is_mask(array) else None


def ops_in_another_order(scene: Scene, gap: Gap) -> Iterator[Proof]:
    """The same ops, one after the other in another order; or one more or less in a row of several."""
    own, others = between(scene, gap)
    if not own or not others or len(own) + len(others) < 3:
        return
    names, wanted = [op.name for op in own], [op.name for op in others]
    if _sources(scene, own, mine=True) != _sources(scene, others, mine=False):
        return
    if names != wanted and sorted(names) == sorted(wanted):
        score = transplanted(scene, gap)
        if score <= scene.case.limit:
            first = next(op for op, name in zip(own, wanted, strict=True) if op.name != name)
            yield order_proof(first, others[-1], (), first.where, score, (names, wanted))
    extra = _one_more(names, wanted)
    if extra is not None and own[extra].function is not None:
        for slot in own[extra].inputs:
            score = scene.try_remade(own[extra], picking(slot))
            if score <= scene.case.limit:
                yield extra_proof(scene, [own[extra]], score, (own[extra], slot))
                return
    lacking = _one_more(wanted, names)
    if lacking and others[lacking].function is not None and len(others[lacking].inputs) == 1:
        before, backends = own[lacking - 1], (scene.case.backend, scene.case.reference_backend)
        score = scene.try_remade(before, followed_by(bridging(*backends, others[lacking])))
        if score <= scene.case.limit:
            yield missing_proof(scene, [others[lacking]], before.where, score)


def another_value(scene: Scene, gap: Gap) -> Iterator[Proof]:
    """The port takes a value that both sides have, but not here."""
    if not scene.knows(gap.port) or not scene.known_to_port(gap.reference) or gap.user is None:
        return
    if rearranged(scene.port.values[gap.port], scene.reference.values[gap.reference]):
        return
    score = transplanted(scene, gap)
    if score > scene.case.limit:
        return
    mine, theirs = producers(scene, gap)
    where = line_of_use(scene, gap)
    own = [] if mine is None or mine.is_module else list(mine.inputs.values())
    others = [] if theirs is None or theirs.is_module else list(theirs.inputs.values())
    if theirs is not None and _is_one_of(scene, gap.port, others):
        yield missing_proof(scene, [theirs], where, score, gap)
    elif mine is not None and any(scene.matches.are_one(key, gap.reference) for key in own):
        yield extra_proof(scene, [mine], score)
    else:
        names = ([mine.spelled] if mine else ["an input"], [theirs.spelled] if theirs else ["an input"])
        yield order_proof(gap.user, gap.other_user, (), line_of_use(scene, gap), score, names)


# The smallest edits first: one word of one op, one op, several ops, another value altogether.
RULES: tuple[tuple[Rule, ...], ...] = (
    (other_arguments, other_factor, other_mask, other_order_of_tensors),
    (values_moved, op_missing, op_extra, another_op),
    (ops_missing, ops_extra, ops_in_another_order),
)
# What is said only if nothing else fits.
LAST_RULES: tuple[tuple[Rule, ...], ...] = ((another_formula,), (masked_otherwise,), (another_value,))


def transplanted(scene: Scene, gap: Gap) -> float:
    """The score with the reference's value in the place of the port's."""
    mine, theirs = scene.port.values[gap.port], scene.reference.values[gap.reference]
    value: Array | None = theirs  # in a shape of its own, where the shape is what differs
    if mine.size == theirs.size and not same(mine.reshape(-1), theirs.reshape(-1)):
        value = laid_out(theirs, mine.shape, mine)
    if value is None:
        return float("inf")
    backend = scene.case.backend
    if gap.port == scene.wrong:
        return scene.judged(value)
    made = gap.made
    if made is not None and made.function is not None and not scene.knows(gap.port):
        return scene.try_edits({made.index: giving(backend, value)})
    if gap.user is not None and gap.user.function is not None and gap.slot is not None:
        here = {gap.user.index: feeding(backend, gap.slot, value)}
        if made is None or made.function is None or len(list(scene.port.taking(gap.port))) < 2:
            return scene.try_edits(here)
        # a value that is used more than once may be wrong for all its users
        return scene.try_edits(here, {made.index: giving(backend, value)})
    return scene.judged(scene.recomputed({}, {gap.port: backend.from_array(value)}))


def _is_one_of(scene: Scene, key: Key, others: object) -> bool:
    return any(scene.matches.are_one(key, other) for other in others)  # type: ignore[attr-defined]


def _sources(scene: Scene, ops: list[Op], *, mine: bool) -> set[Key]:
    """The known values that ops start from, by the port's names."""
    made = {key for op in ops for key in op.outputs.values()}
    taken = {key for op in ops for key in op.inputs.values()} - made
    to_reference, to_port = scene.matches.to_reference, scene.matches.to_port
    if mine:
        return {to_reference[key] for key in taken if key in to_reference}
    return {to_reference[to_port[key]] for key in taken if key in to_port}


def _one_more(longer: list[str], shorter: list[str]) -> int | None:
    """Which one must go for the two to be the same."""
    if len(longer) != len(shorter) + 1:
        return None
    return next((i for i in range(len(longer)) if longer[:i] + longer[i + 1 :] == shorter), None)
