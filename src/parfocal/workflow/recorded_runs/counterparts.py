"""Pairs of calls that were made while one run was recorded following the other."""

from __future__ import annotations

from parfocal.capture.follow import may_correspond
from parfocal.matching.pairing import CallPair, Pairing
from parfocal.matching.table import PairReason
from parfocal.workflow.recorded_runs.steps import RecordedStep


def follows(reference: RecordedStep, port: RecordedStep) -> bool:
    """Whether the port's run was fed the reference's values: its counterparts are there, of such kinds."""
    ours, theirs = reference.trace.nodes, port.trace.nodes
    return bool(port.followed) and all(
        other in reference.positions
        and may_correspond(ours[reference.positions[other]].kind, theirs[order].kind)
        for order, other in port.followed.items()
    )


def followed_pairing(reference: RecordedStep, port: RecordedStep) -> Pairing:
    """The pairs that were made while the run was recorded."""
    pairs = tuple(
        CallPair(reference.positions[other], order, reference.positions[other], True, PairReason.FOLLOWED)
        for order, other in sorted(port.followed.items())
    )
    taken = {pair.reference for pair in pairs}, {pair.port for pair in pairs}
    left = [
        tuple(node.order for node in side.trace.nodes if node.order not in known)
        for side, known in zip((reference, port), taken, strict=True)
    ]
    return Pairing(pairs, left[0], left[1])
