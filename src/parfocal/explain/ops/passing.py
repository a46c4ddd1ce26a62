"""The line to write where a call is given too much or too little: its arguments, in the caller's names."""

from __future__ import annotations

from collections.abc import Collection

from parfocal.explain.case import Case
from parfocal.explain.fixes import fixing
from parfocal.explain.fixes.calls import leaving_out, passing
from parfocal.explain.fixes.fixing import Line
from parfocal.explain.fixes.splicing import Patch
from parfocal.explain.ops.calling import call_in, caller
from parfocal.explain.ops.rewriting import WORSE, verdict
from parfocal.explain.ops.scene import Scene
from parfocal.explain.ops.writing import Place, Writer


def without_arguments(case: Case, names: Collection[str], words: str) -> str:
    """The call without some of its arguments: positions or keywords."""
    scene, op = caller(case)
    spot = None if op is None else fixing.spot_of(op)
    return words if scene is None or spot is None else _tried(scene, leaving_out(spot, names), words)


def with_arguments(case: Case, slots: Collection[str], words: str) -> str:
    """The call with tensors that the reference's has besides, at the same positions or keywords."""
    scene, op = caller(case)
    spot = None if op is None else fixing.spot_of(op)
    theirs = None if scene is None else call_in(scene.reference.ops, case.counterpart)
    if scene is None or op is None or spot is None or theirs is None:
        return words
    writer = Writer(scene, Place(spot, None, op.index))
    texts = {
        slot: writer.write(theirs.inputs[slot], scene.reference.maker(theirs, slot))
        for slot in slots
        if slot in theirs.inputs
    }
    said = {slot: text for slot, text in texts.items() if text is not None}
    return _tried(scene, passing(spot, said), words) if said.keys() == set(slots) else words


def _tried(scene: Scene, patch: Patch | None, words: str) -> str:
    return words if patch is None or verdict(scene, patch) == WORSE else Line.of(patch)
