"""The two ways of a gap: the ops on both sides, what they start from, and one side's value in the other."""

from __future__ import annotations

from collections.abc import Iterable

from parfocal.backends.protocol import Array
from parfocal.explain.ops.gaps import Gap, narrowed
from parfocal.explain.ops.locating import behind
from parfocal.explain.ops.log import Key, Op
from parfocal.explain.ops.names import MOVING
from parfocal.explain.ops.remakes import feeding, giving
from parfocal.explain.ops.scene import Scene
from parfocal.explain.ops.values import laid_out, same


def between(scene: Scene, gap: Gap) -> tuple[list[Op], list[Op]]:
    """The ops on both sides that change values, back to what both have."""
    own = behind(scene, gap)
    known = scene.known_to_port(gap.reference)
    others = [] if known else scene.reference.cone(gap.other_made, scene.known_to_port)
    return (
        [op for op in own if not scene.port.only_moves(op)],
        [op for op in others if not scene.reference.only_moves(op)],
    )


def moving(scene: Scene, gap: Gap) -> tuple[list[Op], list[Op]]:
    """The ops on both sides that only move values, right before the two."""
    found = []
    for log, op in ((scene.port, gap.made), (scene.reference, gap.other_made)):
        ops: list[Op] = []
        while op is not None and (op.name in MOVING or log.only_moves(op)):
            ops.insert(0, op)
            op = log.maker(op, next(iter(op.inputs))) if len(op.inputs) == 1 else None
        found.append(ops)
    return found[0], found[1]


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


def elsewhere(scene: Scene, op: Op, *, missing: bool) -> Op | None:
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


def is_one_of(scene: Scene, key: Key, others: Iterable[Key]) -> bool:
    return any(scene.matches.are_one(key, other) for other in others)


def same_sources(scene: Scene, own: list[Op], others: list[Op]) -> bool:
    """Whether the ops of both sides start from the same values, among those that both have."""
    mine = [key for key in _taken(own) if scene.knows(key)]
    theirs = [key for key in _taken(others) if scene.known_to_port(key)]
    return all(is_one_of(scene, key, theirs) for key in mine) and all(
        any(scene.matches.are_one(key, other) for key in mine) for other in theirs
    )


def _taken(ops: list[Op]) -> set[Key]:
    made = {key for op in ops for key in op.outputs.values()}
    return {key for op in ops for key in op.inputs.values()} - made


def one_more(longer: list[str], shorter: list[str]) -> int | None:
    """Which one must go for the two to be the same."""
    if len(longer) != len(shorter) + 1:
        return None
    return next((i for i in range(len(longer)) if longer[:i] + longer[i + 1 :] == shorter), None)
