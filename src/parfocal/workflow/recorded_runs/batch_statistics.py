"""A norm over the batch on several ranks: are its statistics those of one rank or of all. Computed again."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from parfocal.backends.protocol import Array
from parfocal.judge import limits
from parfocal.judge.verdict import Cause, Claim, Grounds, ProvenBy
from parfocal.phrases import phrase
from parfocal.replay.trace import Node
from parfocal.workflow.recorded_runs.gathering import same_calls
from parfocal.workflow.recorded_runs.pair import StepPair
from parfocal.workflow.recorded_runs.rank_causes import ranks_of
from parfocal.workflow.recorded_runs.steps import RecordedStep

FITTED = limits.causes.FITTED.value
CLEARLY = limits.recorded.CLEARLY_WORSE.value
BATCH_NORM = "BatchNorm"  # in the kinds of layers whose statistics are those of a batch


def statistics_cause(pair: StepPair, ours: Node, theirs: Node) -> Cause | None:
    """A norm over the batch whose statistics are of one rank on one side and of all on the other."""
    if ranks_of(pair) < 2 or not all(BATCH_NORM in node.kind and node.training for node in (ours, theirs)):
        return None
    shown = [_is_over_all(side, node) for side, node in ((pair.reference, ours), (pair.port, theirs))]
    whole = [None if each is None else each.over_all for each in shown]
    if None in whole:  # from sketches nothing can be computed again; one process has all samples in any case
        whole = [side.ranks < 2 for side in (pair.reference, pair.port)]
        if any(side.ranks > 1 and "Sync" in node.class_name for side, node in _launched(pair, ours, theirs)):
            return None
    if whole[0] == whole[1]:
        return None
    words = [
        phrase("all samples of the step") if each else phrase("each rank's own samples") for each in whole
    ]
    message = phrase(
        "the mean and the variance of {layer} are those of {reference} in the reference and of {port} in "
        "the port",
        layer=theirs.path or theirs.kind,
        reference=words[0],
        port=words[1],
    )
    fix = (
        phrase(
            "convert the port with SyncBatchNorm.convert_sync_batchnorm (it has kernels for GPUs only), or "
            "compare launches of equally many ranks"
        )
        if whole[0]
        else phrase("use a plain BatchNorm in the port, which takes the samples of one rank")
    )
    claim = Claim("dist.batch_norm", message, fix)
    known = [each for each in shown if each is not None]
    if len(known) < len(shown):
        return claim.likely(Grounds.SETTINGS)
    return claim.proven(
        ProvenBy.RECOMPUTED,
        max(each.otherwise for each in known) / FITTED,
        max(each.left for each in known) / FITTED,
    )


class BatchStatistics(NamedTuple):
    """Over which samples outputs were normalised, and what that and the other way leave unexplained."""

    over_all: bool
    left: float
    otherwise: float


def _launched(pair: StepPair, ours: Node, theirs: Node) -> Sequence[tuple[RecordedStep, Node]]:
    return ((pair.reference, ours), (pair.port, theirs))


def _is_over_all(side: RecordedStep, node: Node) -> BatchStatistics | None:
    """Whether the outputs are those of statistics over all ranks; None where that cannot be told."""
    if side.ranks < 2:
        return BatchStatistics(True, 0.0, 0.0)
    steps = side.launch
    if not same_calls(steps):
        return None
    parts: list[tuple[Array, Array]] = []
    for step in steps:
        own = step.trace.nodes[node.order]
        values = [next(iter(each.values()), None) for each in (own.inputs, own.outputs)]
        arrays = [None if value is None else step.tensors.array(value.data) for value in values]
        if arrays[0] is None or arrays[1] is None or arrays[0].ndim < 2:
            return None
        parts.append((arrays[0].astype(np.float64), arrays[1].astype(np.float64)))
    given = [given for given, _ in parts]
    outputs = np.concatenate([output for _, output in parts])
    for axis in (1, outputs.ndim - 1):
        together = _left_over(_normalised(np.concatenate(given), axis), outputs, axis)
        apart = _left_over(np.concatenate([_normalised(each, axis) for each in given]), outputs, axis)
        if min(together, apart) < FITTED and max(together, apart) > CLEARLY * min(together, apart):
            return BatchStatistics(together < apart, min(together, apart), max(together, apart))
    return None


def _normalised(values: Array, axis: int) -> Array:
    axes = tuple(each for each in range(values.ndim) if each != axis)
    spread = values.std(axis=axes, keepdims=True)
    return np.asarray((values - values.mean(axis=axes, keepdims=True)) / np.where(spread > 0, spread, 1.0))


def _left_over(normalised: Array, outputs: Array, axis: int) -> float:
    """The share of outputs that a scale and an offset for each channel leave unexplained."""
    columns = [np.moveaxis(each, axis, 0).reshape(each.shape[axis], -1) for each in (normalised, outputs)]
    left = 0.0
    for x, y in zip(*columns, strict=True):
        basis = np.stack([x, np.ones_like(x)], axis=1)
        solved, *_ = np.linalg.lstsq(basis, y, rcond=None)
        left += float(np.sum((basis @ solved - y) ** 2))
    size = float(np.sum(outputs**2))
    return math.sqrt(left / size) if size else 0.0
