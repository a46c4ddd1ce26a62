"""The line of the port's source that is nearest to a mistake, known or not."""

from __future__ import annotations

from parfocal.explain.causes import Where
from parfocal.explain.ops.gaps import Gap, narrowed
from parfocal.explain.ops.log import Key, Op, key_of
from parfocal.explain.ops.names import LAYOUT, SELECTING
from parfocal.explain.ops.scene import Scene


def located(scene: Scene) -> Where | None:
    """The first suspect of the innermost gap; where nothing is suspect, the line that lets a value pass."""
    for gap in narrowed(scene):
        where = line_of_use(scene, gap)
        if where is not None:
            return where
    return _first(scene, scene.suspects).where if scene.suspects else None


def behind(scene: Scene, gap: Gap) -> list[Op]:
    """The port's ops between values that both sides have and the wrong one; none when it is known itself."""
    return [] if scene.knows(gap.port) else scene.port.cone(gap.made, scene.knows)


def _first(scene: Scene, suspects: list[Op]) -> Op:
    """The first that changes values, or else that arranges them, or else that takes a part."""
    moving = [op for op in suspects if op.name not in SELECTING]
    changing = [op for op in moving if not scene.port.only_moves(op)]
    return (changing or moving or suspects)[0]


def line_of_use(scene: Scene, gap: Gap) -> Where | None:
    """The first op that makes a value wrong; of a value that was right, the line that does nothing to it."""
    suspects = behind(scene, gap)
    if suspects:
        return _first(scene, suspects).where
    made = gap.made
    passed = _last_return(scene, gap, made)
    if passed is not None:
        return passed
    if gap.user is not None:
        return gap.user.where
    return None if made is None else made.where


def _last_return(scene: Scene, gap: Gap, made: Op | None) -> Where | None:
    """The last function that gave a value back as it was, before it was used."""
    begin = 0 if made is None else made.index
    end = len(scene.port.ops) if gap.user is None else gap.user.index
    backend = scene.case.backend
    for each in reversed(scene.port.returns):
        if begin < each.moment <= end and key_of(backend.to_array(each.tensor)) == gap.port:
            name = "return" if made is None else made.name
            return Where(name, each.file, each.line)
    return None


def order_of_making(scene: Scene, mine: list[Key], theirs: list[Key]) -> Where | None:
    """The line that makes values in another order than the reference does; None: it is only their use."""
    own = [scene.port.producers.get(key) for key in mine]
    others = [scene.reference.producers.get(_unmoved(scene, key)) for key in theirs]
    own = [_unmoved_op(scene, op) for op in own]
    if any(op is None or op.is_module for op in (*own, *others)):
        return None
    order = [op.index for op in own if op is not None]
    wanted = [op.index for op in others if op is not None]
    if sorted(range(len(order)), key=order.__getitem__) == sorted(range(len(wanted)), key=wanted.__getitem__):
        return None
    first = own[order.index(min(order))]
    return None if first is None else first.where


def _unmoved(scene: Scene, key: Key) -> Key:
    """The value of the reference before it was only moved about."""
    op = scene.reference.producers.get(key)
    while op is not None and op.name in LAYOUT and len(op.inputs) == 1:
        key = next(iter(op.inputs.values()))
        op = scene.reference.producers.get(key)
    return key


def _unmoved_op(scene: Scene, op: Op | None) -> Op | None:
    while op is not None and op.name in LAYOUT and len(op.inputs) == 1:
        op = scene.port.producers.get(next(iter(op.inputs.values())))
    return op
