"""Stage: do the ranks of a launch hold the same weights when a step begins.

Ranks that have drifted apart train models of their own. Where both launches do, that is only noted: each rank
is compared with its counterpart all the same.
"""

from __future__ import annotations

from parfocal.judge.floors import NOTHING
from parfocal.judge.verdict import Divergence, Finding, Site
from parfocal.phrases import joined, phrase
from parfocal.report.coverage import Compared
from parfocal.workflow.recorded_runs.forward import inherited_from
from parfocal.workflow.recorded_runs.pair import NOTHING_FOUND, StageOutcome, StepPair
from parfocal.workflow.recorded_runs.rank_drift import (
    APART,
    DRIFTED,
    Drift,
    drift_cause,
    drifts_of,
    told_drift,
)


def compare_ranks(pair: StepPair, diverged: bool) -> StageOutcome:
    """Once a launch: with rank 0."""
    if pair.rank != 0 or max(pair.reference.ranks, pair.port.ranks) < 2:
        return NOTHING_FOUND
    drifts = [next(drifts_of(side), None) for side in (pair.reference, pair.port)]
    count = sum(side.ranks for side in (pair.reference, pair.port) if side.ranks > 1)
    compared = (Compared("ranks with each other", count),)
    told = DRIFTED in pair.memory.causes
    if drifts == [None, None] or told:
        return StageOutcome(compared=compared)
    pair.memory.causes.add(DRIFTED)
    ours, theirs = drifts
    if ours is not None and theirs is not None:
        words = joined("; ", (told_drift("reference", ours), told_drift("port", theirs)))
        return StageOutcome(findings=(Finding(DRIFTED, words),), compared=compared)
    side, drift = ("reference", ours) if ours is not None else ("port", theirs)
    assert drift is not None
    if pair.reference.ranks == pair.port.ranks and pair.first:
        return StageOutcome(compared=compared)  # told by the weights of that rank
    found = Divergence(
        "weights",
        *_sites(pair, side, drift),
        phrase("parameter {path} of rank {rank}", path=drift.path, rank=drift.rank),
        None,
        NOTHING,
        drift.error / APART,
        cause=drift_cause(side, drift),
        step=pair.step,
        rank=drift.rank,
    )
    return StageOutcome(inherited_from([found], diverged), compared=compared)


def _sites(pair: StepPair, side: str, drift: Drift) -> tuple[Site, Site]:
    owner = Site(drift.path.rpartition(".")[0], "")
    ours, theirs = pair.sites()
    return (owner, theirs) if side == "reference" else (ours, owner)
