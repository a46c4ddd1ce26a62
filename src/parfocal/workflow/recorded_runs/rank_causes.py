"""Causes that only a training on several ranks has. Each is tested on what the ranks recorded."""

from __future__ import annotations

import numpy as np

from parfocal.judge import limits
from parfocal.judge.verdict import Cause, Claim, Proof, ProvenBy, side_name
from parfocal.phrases import phrase
from parfocal.workflow.recorded_runs.gathering import batch_of
from parfocal.workflow.recorded_runs.pair import StepPair, Vector
from parfocal.workflow.recorded_runs.parameters import ParameterTie, arrangement_of
from parfocal.workflow.recorded_runs.rank_drift import drift_cause, drifts_of
from parfocal.workflow.recorded_runs.steps import RecordedStep, Reduction
from parfocal.workflow.recorded_runs.vectors import project_pair, unlike

FITTED = limits.recorded.RANK_LOSS.value
WHOLE = limits.recorded.WHOLE_RATIO.value


def ranks_of(pair: StepPair) -> int:
    return max(pair.reference.ranks, pair.port.ranks)


def is_rank_count(ratio: float, pair: StepPair) -> bool:
    """Whether a ratio of the sides is the number of ranks, or one over it."""
    ranks = ranks_of(pair)
    return ranks > 1 and any(abs(ratio / count - 1) < WHOLE for count in (ranks, 1 / ranks))


def _of_the_ranks(claim: Claim, ratio: float, pair: StepPair) -> Cause:
    """The ratio of the sides is the number of ranks: divided by that, nothing is left of it."""
    counts = ranks_of(pair), 1 / ranks_of(pair)
    after = min(abs(ratio / count - 1) for count in counts)
    return claim.proven(ProvenBy.RELATED, abs(ratio - 1) / WHOLE, after / WHOLE)


def _on_all_ranks(pair: StepPair, ratio: float, name: str) -> bool:
    """Whether a number of a step has the same ratio on every rank, where ranks are compared one by one."""
    if pair.reference.ranks != pair.port.ranks:
        return True
    sides = [[getattr(step.end, name, None) for step in side.launch] for side in (pair.reference, pair.port)]
    return all(
        ours and theirs is not None and abs(theirs / ours / ratio - 1) < WHOLE
        for ours, theirs in zip(*sides, strict=True)
    )


def rate_cause(pair: StepPair, ours: float, theirs: float) -> Cause | None:
    if not ours or not is_rank_count(theirs / ours, pair):
        return None
    if not _on_all_ranks(pair, theirs / ours, "learning_rate"):
        return None
    message = phrase(
        "the learning rate is {reference} in the reference and {port} in the port, {times} times, and "
        "there are "
        "{ranks} ranks: it is scaled with their number on one side only",
        reference=f"{ours:.6g}",
        port=f"{theirs:.6g}",
        times=f"{theirs / ours:.6g}",
        ranks=ranks_of(pair),
    )
    fix = phrase("set the port's learning rate to {rate}", rate=f"{ours:.9g}")
    return _of_the_ranks(Claim("dist.batch_scale", message, fix), theirs / ours, pair)


def loss_scale_cause(pair: StepPair, ratio: float) -> Cause | None:
    if not is_rank_count(ratio, pair) or not _on_all_ranks(pair, ratio, "loss"):
        return None
    message = phrase(
        "the loss of the port is {times} times the reference's, and there are {ranks} ranks: it is scaled "
        "with "
        "their number on one side only",
        times=f"{ratio:.6g}",
        ranks=ranks_of(pair),
    )
    fix = phrase("divide the port's loss by {times}", times=f"{ratio:.6g}")
    return _of_the_ranks(Claim("dist.batch_scale", message, fix), ratio, pair)


def loss_share_cause(pair: StepPair, ours: float, theirs: float) -> Cause | None:
    """A mean of the ranks' means, where ranks have unequal numbers of samples."""
    for name, side, other in (("port", pair.port, ours), ("reference", pair.reference, theirs)):
        sizes = [batch_of(step) for step in side.launch]
        losses = [step.end.loss for step in side.launch if step.end is not None and step.end.loss is not None]
        if len(set(sizes)) < 2 or len(losses) < len(sizes):
            continue
        weighted = sum(n * loss for n, loss in zip(sizes, losses, strict=True)) / sum(sizes)
        if abs(weighted - other) <= FITTED * abs(other):
            message = phrase(
                "the ranks of the {side} have {counts} samples and weigh the same: the loss is a mean of "
                "their "
                "means, not over all samples",
                side=side_name(name),
                counts=", ".join(map(str, sizes)),
            )
            fix = phrase("give all ranks equally many samples: fill up or drop the last ones")
            before, after = (abs(loss - other) / (FITTED * abs(other)) for loss in (losses[0], weighted))
            return Claim("dist.batch_scale", message, fix).proven(ProvenBy.RECOMPUTED, before, after)
    return None


def weights_cause(pair: StepPair, tie: ParameterTie) -> Cause | None:
    """Weights that differ on this rank alone."""
    for name, side, path in (("port", pair.port, tie.port), ("reference", pair.reference, tie.reference)):
        found = [each for each in drifts_of(side) if each.rank == pair.rank and each.path == path]
        if found:
            return drift_cause(name, found[0])
    return None


def reduction_cause(pair: StepPair, factor: float | None = None, proof: Proof | None = None) -> Cause | None:
    """Gradients that are the other side's once they are averaged, or not summed, over the ranks.

    ``factor``: what all gradients of the port are the reference's times, with ``proof`` of that.
    """
    ranks = ranks_of(pair)
    if ranks < 2:
        return None
    fix = phrase("average the port's gradients over its ranks before the update, as DataParallel does")
    for name, side in (("port", pair.port), ("reference", pair.reference)):
        averaged = _averaged(pair, name) if side.reduction is Reduction.NONE else None
        if averaged is not None and averaged.after <= 1.0:
            other = "reference" if name == "port" else "port"
            message = phrase(
                "the gradients of the {side} are each rank's own: they are not reduced over the ranks; "
                "their mean "
                "over the {ranks} ranks is what the {other} uses",
                side=side_name(name),
                ranks=ranks,
                other=side_name(other),
            )
            return Cause("dist.reduction", message, fix, averaged)
    if factor is None or proof is None or not is_rank_count(factor, pair):
        return None
    message = phrase(
        "every gradient of the port is {times} times the reference's, and there are {ranks} ranks: a sum "
        "over "
        "them against a mean",
        times=f"{factor:.6g}",
        ranks=ranks,
    )
    fix = phrase("reduce gradients over ranks as the reference does")
    return Cause("dist.reduction", message, fix, proof)


def _averaged(pair: StepPair, name: str) -> Proof | None:
    """How far one side's gradients are from the other's, and how far once they are averaged over ranks."""
    single: list[Vector] = []
    means: list[Vector] = []
    others: list[Vector] = []
    launch = pair.port.launch if name == "port" else pair.reference.launch
    for tie in pair.parameters:
        vectors = [_gradients(pair, tie, step, name) for step in launch]
        known = [each for each in vectors if each is not None]
        if known and len(known) == len(launch):
            single.append(known[0][0])
            means.append(np.mean([mine for mine, _ in known], axis=0))
            others.append(known[0][1])
    if not means:
        return None
    other = np.concatenate(others)
    before, after = (unlike(np.concatenate(mine), other) for mine in (single, means))
    return Proof(ProvenBy.RECOMPUTED, before, after)


def _gradients(
    pair: StepPair, tie: ParameterTie, step: RecordedStep, name: str
) -> tuple[Vector, Vector] | None:
    """Of one rank of the named side, and of the other side."""
    port, reference = (step, pair.reference) if name == "port" else (pair.port, step)
    own, other = port.gradients.get(tie.port), reference.gradients.get(tie.reference)
    if own is None or other is None:
        return None
    lies = arrangement_of(tie, reference, port, own, other)
    found = project_pair(StepPair(reference, port), own, other, lies)
    if found is None:
        return None
    return found if name == "port" else (found[1], found[0])
