"""From a divergence made by a model's own code to the op that is wrong."""

from __future__ import annotations

from collections.abc import Iterator

from parfocal.explain.case import Case
from parfocal.explain.causes import Proof, Where
from parfocal.explain.ops.differing import differences, otherwise
from parfocal.explain.ops.hypotheses import HYPOTHESES
from parfocal.explain.ops.locating import located
from parfocal.explain.ops.scene import Scene, make_scene


def ops(case: Case) -> Iterator[Proof]:
    """The first difference that holds, or the first guess that does."""
    scene = scene_of(case)
    if scene is None:
        return
    for hypothesis in (differences, *HYPOTHESES, otherwise):
        for proof in hypothesis(scene):
            yield proof
            return


def place(case: Case) -> Where | None:
    """The line of the port's code that a divergence comes from, whatever the cause."""
    scene = scene_of(case)
    return None if scene is None else located(scene)


def scene_of(case: Case) -> Scene | None:
    """What a call's own code does; None for a layer of the framework. Looked at once."""
    if case.node.framework_layer or case.direction != "forward":
        return None
    if "scene" not in case.looked_up:
        case.looked_up["scene"] = make_scene(case)
    found: Scene | None = case.looked_up["scene"]
    return found
