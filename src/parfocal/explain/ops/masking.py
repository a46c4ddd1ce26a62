"""Rules about masks: that cover other places, or that are applied otherwise."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from parfocal.backends.protocol import Array
from parfocal.explain.causes import Proof
from parfocal.explain.ops.gaps import Gap
from parfocal.explain.ops.locating import line_of_use
from parfocal.explain.ops.log import Key, Log, Op
from parfocal.explain.ops.scene import Scene
from parfocal.explain.ops.telling import hidden_proof, hides, mask_proof
from parfocal.explain.ops.values import covered, is_mask
from parfocal.explain.ops.ways import between, transplanted


def are_masks(scene: Scene, gap: Gap) -> bool:
    mine, right = scene.port.values[gap.port], scene.reference.values[gap.reference]
    return mine.size == right.size and is_mask(mine) and is_mask(right)


def other_mask(scene: Scene, gap: Gap) -> Iterator[Proof]:
    """A mask that covers other places."""
    if not are_masks(scene, gap):
        return
    score = transplanted(scene, gap)
    if score <= scene.case.limit:
        yield mask_proof(scene, gap, line_of_use(scene, gap), score)


def masked_otherwise(scene: Scene, gap: Gap) -> Iterator[Proof]:
    """The reference hides places, and the port does so by other means or at another point, if at all."""
    own, others = between(scene, gap)
    hiding = [op for op in others if hides(scene.reference, op)]
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
