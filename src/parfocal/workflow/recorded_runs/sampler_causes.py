"""Why ranks get other samples: they overlap, are shared otherwise, filled up, or of another number."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from parfocal.judge import limits
from parfocal.judge.verdict import Cause, Claim, Grounds, ProvenBy, side_name
from parfocal.matching.values import SAME, distance
from parfocal.phrases import phrase
from parfocal.replay.trace import TensorData
from parfocal.workflow.recorded_runs.gathering import fingerprint_of_all
from parfocal.workflow.recorded_runs.pair import StepPair
from parfocal.workflow.recorded_runs.rank_causes import is_rank_count, ranks_of
from parfocal.workflow.recorded_runs.steps import RecordedStep

MOSTLY = limits.recorded.SHARED_SAMPLES.value


def sampler_cause(pair: StepPair, slot: str) -> Cause | None:
    """The ranks share the samples of a step in another way."""
    if pair.reference.ranks < 2 and pair.port.ranks < 2:
        return None
    ours, theirs = (_inputs(side, slot) for side in (pair.reference, pair.port))
    if not ours or not theirs:
        return None
    rows = [_rows(side, parts) for side, parts in ((pair.reference, ours), (pair.port, theirs))]
    if rows[0] is not None and rows[1] is not None:
        return _by_rows(pair, rows[0], rows[1])
    for name, parts, others in (("reference", ours, theirs), ("port", theirs, ours)):
        if _equal_parts(parts) and not _equal_parts(others):
            return _overlap(pair, name, str(parts[0].shape[0]), parts[0].shape[0])
    marks = [fingerprint_of_all([part.fingerprint for part in parts]) for parts in (ours, theirs)]
    if distance(*marks) <= SAME and pair.reference.ranks == pair.port.ranks:
        return _shared_otherwise().likely(Grounds.VALUES)
    return _batch_sizes(pair, [part.shape[0] for part in ours], [part.shape[0] for part in theirs])


def _by_rows(pair: StepPair, ours: Sequence[list[bytes]], theirs: Sequence[list[bytes]]) -> Cause | None:
    overlaps = [len(_on_every_rank(side)) for side in (ours, theirs)]
    for number, (name, side) in enumerate((("reference", ours), ("port", theirs))):
        if overlaps[number] > max(overlaps[1 - number], MOSTLY * len(side[0])):
            return _overlap(pair, name, str(overlaps[number]), len(side[0]))
    counts = [Counter(row for part in side for row in part) for side in (ours, theirs)]
    if counts[0] == counts[1]:
        left = sum(((counts[0] - counts[1]) + (counts[1] - counts[0])).values())
        moved = sum(len(set(part) - set(other)) for part, other in zip(theirs, ours, strict=False))
        return _shared_otherwise().proven(ProvenBy.RELATED, float(moved), float(left))
    filled = max(counts[0] - counts[1], counts[1] - counts[0], key=lambda each: sum(each.values()))
    contained = not (counts[0] - counts[1]) or not (counts[1] - counts[0])
    if contained and sum(filled.values()) < ranks_of(pair):
        return _padding(pair, [len(part) for part in ours], [len(part) for part in theirs])
    return _batch_sizes(pair, [len(part) for part in ours], [len(part) for part in theirs])


def _on_every_rank(parts: Sequence[list[bytes]]) -> set[bytes]:
    """Samples that no rank is without; none of a single process."""
    if len(parts) < 2:
        return set()
    return set(parts[0]).intersection(*(set(part) for part in parts[1:]))


def _padding(pair: StepPair, ours: Sequence[int], theirs: Sequence[int]) -> Cause:
    counts = [", ".join(map(str, side)) for side in (ours, theirs)]
    message = phrase(
        "the ranks of the reference have {reference} samples at step {step}, those of the port {port}: "
        "shares "
        "are filled up to equal lengths on one side only",
        reference=counts[0],
        step=pair.step,
        port=counts[1],
    )
    fix = phrase("fill up, or drop, the last samples as the reference's sampler does")
    return Claim("dist.sampler", message, fix).likely(Grounds.VALUES)


def _overlap(pair: StepPair, name: str, shared: str, count: int) -> Cause:
    message = phrase(
        "all ranks of the {side} read the same samples: {shared} of the {count} of step {step} are on "
        "every rank",
        side=side_name(name),
        shared=shared,
        count=count,
        step=pair.step,
    )
    fix = phrase("give each rank a share of its own, as a DistributedBatchSampler does")
    if name == "reference":
        fix = phrase(
            "give all ranks of the port the same samples, as the reference does, or mend the reference"
        )
    return Claim("dist.sampler", message, fix).likely(Grounds.VALUES)


def _shared_otherwise() -> Claim:
    message = phrase("all ranks together have the reference's samples of this step, each rank has others")
    return Claim("dist.sampler", message, phrase("give each rank the reference's share of the data"))


def _batch_sizes(pair: StepPair, ours: Sequence[int], theirs: Sequence[int]) -> Cause | None:
    totals = sum(ours), sum(theirs)
    if not totals[0] or not is_rank_count(totals[1] / totals[0], pair):
        return None
    message = phrase(
        "an update of the reference is made of {reference} samples ({ranks} x {each}), one of the port of "
        "{port} "
        "({port_ranks} x {port_each})",
        reference=totals[0],
        ranks=len(ours),
        each=ours[0],
        port=totals[1],
        port_ranks=len(theirs),
        port_each=theirs[0],
    )
    fix = phrase(
        "give each of the port's {ranks} ranks batches of {size}, or scale the learning rate",
        ranks=len(theirs),
        size=totals[0] // len(theirs),
    )
    return Claim("dist.batch_scale", message, fix).likely(Grounds.VALUES)


def _inputs(side: RecordedStep, slot: str) -> list[TensorData]:
    """What enters the model on every rank, at the first call of the step."""
    found = []
    for step in side.launch or (side,):
        if not step.roots:
            return []
        inputs = step.trace.nodes[step.roots[0]].inputs
        value = inputs.get(slot, next(iter(inputs.values()), None))
        if value is None or not value.data.shape:
            return []
        found.append(value.data)
    return found


def _rows(side: RecordedStep, parts: Sequence[TensorData]) -> list[list[bytes]] | None:
    found = []
    for step, part in zip(side.launch or (side,), parts, strict=True):
        array = step.tensors.array(part)
        if array is None:
            return None
        found.append([row.tobytes() for row in array])
    return found


def _equal_parts(parts: Sequence[TensorData]) -> bool:
    return len(parts) > 1 and all(part.fingerprint == parts[0].fingerprint for part in parts)
