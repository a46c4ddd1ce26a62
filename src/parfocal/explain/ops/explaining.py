"""From a divergence made by a model's own code to the op that is wrong."""

from __future__ import annotations

from collections.abc import Iterator

from parfocal.explain.case import Case
from parfocal.explain.causes import Proof
from parfocal.explain.ops.hypotheses import HYPOTHESES
from parfocal.explain.ops.scene import make_scene


def ops(case: Case) -> Iterator[Proof]:
    """The first hypothesis that holds for an op of the port's own code."""
    if case.node.framework_layer or case.counterpart is None:
        return
    scene = make_scene(case)
    if scene is None:
        return
    for hypothesis in HYPOTHESES:
        proofs = list(hypothesis(scene))
        if proofs:
            yield from proofs
            return
