"""Why data differs: another order of batches or samples, other ranks, a scale and offset, channels reversed.

Each is tried on the recorded values: it is the cause only if the reference's data, changed so, is the port's.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import islice

import numpy as np

from parfocal.backends.protocol import Array
from parfocal.explain.sample_scales import FITTED, AffineFit, fit_scale
from parfocal.explain.sample_values import CHANNELS, apart
from parfocal.judge import limits
from parfocal.judge.layouts import distance as sample_distance
from parfocal.judge.shape import error_shape
from parfocal.judge.sketch import relative_distance, sketch
from parfocal.judge.tolerance import Tolerance
from parfocal.judge.verdict import Cause, Claim, Grounds, ProvenBy
from parfocal.matching.values import SAME, distance
from parfocal.phrases import phrase
from parfocal.replay.trace import TensorData
from parfocal.run.reader import Run
from parfocal.run.records import CallRecord, TensorValue
from parfocal.workflow.recorded_runs.pair import StepPair
from parfocal.workflow.recorded_runs.tensors import TensorTable

SEARCHED = limits.recorded.BATCHES_SEARCHED.value


def explain_data(pair: StepPair, own: TensorData, other: TensorData) -> Cause | None:
    arrays = pair.port.tensors.array(own), pair.reference.tensors.array(other)
    if arrays[0] is None or arrays[1] is None:
        return _affine_sketch(pair, own, other) or _other_batch(pair, own, other) or _some_order(own, other)
    observed, expected = arrays[0], arrays[1]
    if observed.shape == expected.shape:
        return (
            _order(observed, expected)
            or _affine(observed, expected)
            or _other_batch(pair, own, other)
            or _other_samples(pair, observed, expected)
        )
    return _other_batch(pair, own, other)


def _order(observed: Array, expected: Array) -> Cause | None:
    """The same slices along one axis, in another order."""
    found = error_shape(observed, expected, Tolerance()).order
    if found is None:
        return None
    axis, order = found.axis, found.order
    made = expected.take(np.asarray(order), axis)

    def _moved(code: str, message: str, fix: str) -> Cause:
        return Claim(code, message, fix).proven(
            ProvenBy.RELATED, apart(expected, observed), apart(made, observed)
        )

    reverse = order == tuple(reversed(range(len(order))))
    if axis > 0 and reverse and len(order) <= CHANNELS:
        message = phrase(
            "the {count} channels (axis {axis}) are reversed in the port", count=len(order), axis=axis
        )
        fix = phrase("reverse axis {axis} of the port's input: RGB against BGR", axis=axis)
        return _moved("data.channel_order", message, fix)
    shown = ", ".join(map(str, order[:8])) + (", ..." if len(order) > 8 else "")
    what = phrase("samples") if axis == 0 else phrase("slices along axis {axis}", axis=axis)
    message = phrase("the {what} are the reference's in another order: [{shown}]", what=what, shown=shown)
    fix = (
        phrase("feed both sides the same batches: seed or switch off shuffling")
        if axis == 0
        else (phrase("take the reference's order along axis {axis}", axis=axis))
    )
    return _moved("data.order", message, fix)


def _affine(observed: Array, expected: Array) -> Cause | None:
    """A scale and an offset, for all values or for each channel."""
    if not observed.size:
        return None
    axes: list[int | None] = [None]
    if observed.ndim > 2:
        axes += [axis for axis in (1, observed.ndim - 1) if observed.shape[axis] <= CHANNELS]
    for axis in axes:
        fitted = fit_scale([(expected, observed)], axis)
        if fitted is not None:
            before = _unlike(expected, observed)
            after = _unlike(fitted.applied(expected, axis), observed)
            return _normalisation(fitted, axis).proven(ProvenBy.RELATED, before, after)
    return None


def _unlike(expected: Array, observed: Array) -> float:
    """The norm of the difference as a share of the port's, in units of what a fit may leave."""
    wide = observed.astype(np.float64)
    size = float(np.linalg.norm(wide)) or 1.0
    return float(np.linalg.norm(wide - expected)) / (FITTED * size)


def _normalisation(fit: AffineFit, axis: int | None) -> Claim:
    def told(numbers: Iterable[float]) -> str:
        return ", ".join(f"{number:.6g}" for number in numbers)

    where = "" if axis is None else phrase(" for each channel (axis {axis})", axis=axis)
    message = phrase(
        "the port's input is the reference's times {scales} plus {offsets}{where}",
        scales=told(fit.scales),
        offsets=told(fit.offsets),
        where=where,
    )
    return Claim("data.normalisation", message, phrase("normalise the port's input as the reference's is"))


def _affine_sketch(pair: StepPair, own: TensorData, other: TensorData) -> Cause | None:
    """The projection is linear: that of a scaled and shifted tensor is made of its own and that of ones."""
    if own.shape != other.shape:
        return None
    ours, theirs = pair.reference.tensors.sketch(other), pair.port.tensors.sketch(own)
    ones = sketch(np.ones(own.shape, np.float32))
    basis = np.array([ours.projection, ones.projection]).T
    wanted = np.array(theirs.projection)
    (scale, offset), *_ = np.linalg.lstsq(basis, wanted, rcond=None)
    before, after = _unlike(basis[:, 0], wanted), _unlike(basis @ (scale, offset), wanted)
    if not scale or after > 1.0:
        return None
    claim = _normalisation(AffineFit((float(scale),), (float(offset),)), None)
    return claim.proven(ProvenBy.RELATED, before, after)


def _some_order(own: TensorData, other: TensorData) -> Cause | None:
    """Sketches tell that the values are the same in another order, not which order."""
    if distance(own.fingerprint, other.fingerprint) > SAME:
        return None
    message = phrase("the port's input has the reference's values in another order")
    fix = phrase("feed both sides the same batches: seed or switch off shuffling")
    reversed_channels = Claim("data.channel_order", message, phrase("see that channels are not reversed"))
    return replace(
        Claim("data.order", message, fix).likely(Grounds.VALUES),
        alternatives=(reversed_channels.likely(Grounds.VALUES),),
    )


def _other_batch(pair: StepPair, own: TensorData, other: TensorData) -> Cause | None:
    """The port's batch is one that the reference has at another step or on another rank."""
    for call, data, tensors in _batches(pair.reference.run, own):
        if (call.step, call.rank) == (pair.step, pair.rank):
            continue
        after = _distance(pair, own, data, tensors)
        if after >= FITTED:
            continue
        shares = _distance(pair, own, other, pair.reference.tensors) / FITTED, after / FITTED
        if call.rank != pair.rank:
            message = phrase(
                "rank {rank} of the port has the data of the reference's rank {other}",
                rank=pair.rank,
                other=call.rank,
            )
            fix = phrase("give each rank the reference's share of the data")
            return Claim("dist.sampler", message, fix).proven(ProvenBy.RELATED, *shares)
        message = phrase(
            "the port's batch of step {step} is the reference's of step {other}",
            step=pair.step,
            other=call.step,
        )
        fix = phrase("feed both sides the same batches: seed or switch off shuffling")
        return Claim("data.order", message, fix).proven(ProvenBy.RELATED, *shares)
    return None


def _distance(pair: StepPair, own: TensorData, other: TensorData, tensors: TensorTable) -> float:
    mine, theirs = pair.port.tensors.array(own), tensors.array(other)
    if mine is not None and theirs is not None:
        return sample_distance(theirs, mine)
    return relative_distance(pair.port.tensors.sketch(own), tensors.sketch(other))


def _batches(run: Run, like: TensorData) -> Iterator[tuple[CallRecord, TensorData, TensorTable]]:
    """What entered the model in other calls, of the same shape."""
    tensors = TensorTable(run)
    outermost = (
        record for record in run.records() if isinstance(record, CallRecord) and record.parent is None
    )
    for call in islice(outermost, SEARCHED):
        for leaf in call.inputs.leaves.values():
            if isinstance(leaf, TensorValue) and leaf.shape == like.shape and leaf.dtype == like.dtype:
                yield call, tensors.data(leaf), tensors


def _other_samples(pair: StepPair, observed: Array, expected: Array) -> Cause | None:
    """Every sample of the port's batch is somewhere in the reference's data, in other batches."""
    like = TensorData(observed.shape, observed.dtype.name, None, None)  # type: ignore[arg-type]
    wanted = {row.tobytes() for row in observed}
    missing = set(wanted)
    before = len(wanted - {row.tobytes() for row in expected})
    for _, data, tensors in _batches(pair.reference.run, like):
        batch = tensors.array(data)
        if batch is not None:
            missing -= {row.tobytes() for row in batch}
        if not missing and len(wanted) > 1:
            message = phrase("the port's samples are the reference's, put together to other batches")
            claim = Claim("data.order", message, phrase("feed both sides the same batches"))
            # samples of the port's batch that the reference does not have
            return claim.proven(ProvenBy.RELATED, float(before), float(len(missing)))
    return None
