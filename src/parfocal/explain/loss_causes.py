"""Why two losses of the same inputs differ: each hypothesis has to give the port's value on every sample.

A sample is one set of inputs: what the user gave, parts of it, and other numbers of the same kind. Formulas
are computed plainly in float64, so the two losses themselves may be any code.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import partial

import numpy as np
import scipy  # loads its parts when they are first used

from parfocal.backends.protocol import Array
from parfocal.brief import brief
from parfocal.explain.causes import number, rounded
from parfocal.explain.loss_formulas import (
    Distance,
    class_losses,
    identify_distance,
    identify_smoothing,
    identify_weights,
    weights_of_smoothing,
    weights_of_targets,
)
from parfocal.judge import limits
from parfocal.judge.verdict import Cause
from parfocal.phrases import phrase

CLOSE = limits.causes.FITTED.value
Arrays = tuple[Array, ...]
Evaluate = Callable[[Arrays], Array | None]  # None: it cannot be had of these inputs


@dataclass(frozen=True, slots=True)
class LossSample:
    inputs: Arrays
    reference: Array
    port: Array


@dataclass(frozen=True, slots=True)
class LossPair:
    """The two sides on the same samples, and how to compute them on others."""

    samples: Sequence[LossSample]
    reference: Evaluate
    port: Evaluate


def near(a: Array | float | None, b: Array | float | None) -> bool:
    if a is None or b is None or np.shape(a) != np.shape(b):
        return False
    return bool(np.allclose(a, b, rtol=CLOSE, atol=CLOSE * 1e-3))


def cause_of(losses: LossPair) -> Cause | None:
    """The first hypothesis that holds on every sample."""
    return next((cause for make in HYPOTHESES for cause in make(losses)), None)


def _everywhere(losses: LossPair, value: Callable[[LossSample], Array | float | None]) -> bool:
    return all(near(value(sample), sample.port) for sample in losses.samples)


def _reduced(losses: LossPair) -> Iterator[Cause]:
    """One side gives a number for every element."""
    for ours, theirs, sides in (
        ("reference", "port", phrase("port")),
        ("port", "reference", phrase("reference")),
    ):
        full = [getattr(sample, theirs) for sample in losses.samples]
        single = [getattr(sample, ours) for sample in losses.samples]
        if not all(np.ndim(a) > np.ndim(b) == 0 for a, b in zip(full, single, strict=True)):
            continue
        for name, reduce in ((phrase("mean"), np.mean), (phrase("sum"), np.sum)):
            if all(near(reduce(a), b) for a, b in zip(full, single, strict=True)):
                other = phrase("reference") if sides == "port" else phrase("port")
                message = phrase(
                    "the {sides} gives a loss for every element, the {other} their {name}",
                    sides=sides,
                    other=other,
                    name=name,
                )
                right = str(name) if sides == "port" else "none"
                yield Cause(
                    "loss.reduction",
                    message,
                    phrase('write reduction="{right}" in the port\'s loss', right=right),
                    0.0,
                )
                return


class Counted(Enum):
    """What a loss may be divided by the number of."""

    ELEMENTS = phrase("elements")
    SAMPLES = phrase("samples")
    LABELS = phrase("labels")
    NOT_NEGATIVE = phrase("labels that are not negative")


def _counts(sample: LossSample) -> dict[Counted, float]:
    first, last = sample.inputs[0], sample.inputs[-1]
    counts = {
        Counted.ELEMENTS: float(first.size),
        Counted.SAMPLES: float(first.shape[0]) if first.ndim else 1.0,
    }
    if last.dtype.kind in "iu":
        counts[Counted.LABELS] = float(last.size)
        counts[Counted.NOT_NEGATIVE] = float((last >= 0).sum())
    return counts


def _ratio(losses: LossPair) -> Iterator[Cause]:
    """A sum instead of a mean, or a mean over another count."""
    if any(np.ndim(sample.reference) or np.ndim(sample.port) for sample in losses.samples):
        return
    names = list(_counts(losses.samples[0]))
    for over in names:
        if _everywhere(losses, lambda sample, over=over: sample.reference * _counts(sample)[over]):  # type: ignore[misc]
            message = phrase(
                "the port's loss is the sum, the reference's the mean over {over}", over=over.value
            )
            yield Cause(
                "loss.reduction",
                message,
                phrase("divide the port's loss by the number of {over}", over=over.value),
                0.0,
            )
            return
        if _everywhere(losses, lambda sample, over=over: sample.reference / _counts(sample)[over]):  # type: ignore[misc]
            message = phrase(
                "the port's loss is the mean over {over}, the reference's the sum", over=over.value
            )
            yield Cause("loss.reduction", message, phrase('write reduction="sum" in the port\'s loss'), 0.0)
            return
    for mine in names:
        for right in names:
            if mine != right and _everywhere(losses, partial(_other_count, mine, right)):
                ignored = Counted.NOT_NEGATIVE in (mine, right)
                message = phrase(
                    "the port's mean is over {mine}, the reference's over {right}",
                    mine=mine.value,
                    right=right.value,
                )
                fix = phrase("sum the port's loss and divide by the number of {right}", right=right.value)
                yield Cause("loss.ignore_index" if ignored else "loss.reduction", message, fix, 0.0)
                return


def _other_count(mine: Counted, right: Counted, sample: LossSample) -> Array | None:
    counts = _counts(sample)
    return sample.reference * counts[right] / counts[mine] if counts[mine] else None


TRANSFORMS: dict[str, Callable[[Array], Array]] = {
    "softmax": lambda x: scipy.special.softmax(x, axis=1 if x.ndim > 1 else -1),
    "log_softmax": lambda x: scipy.special.log_softmax(x, axis=1 if x.ndim > 1 else -1),
    "softmax (of the last axis)": lambda x: scipy.special.softmax(x, axis=-1),
    "log_softmax (of the last axis)": lambda x: scipy.special.log_softmax(x, axis=-1),
    "sigmoid": lambda x: scipy.special.expit(x),
    "log": lambda x: np.log(np.maximum(x, 1e-30)),
    "exp": np.exp,
    "negation": np.negative,
}


def _transformed(name: str, inputs: Arrays) -> Arrays:
    first = inputs[0]
    with np.errstate(all="ignore"):
        return (TRANSFORMS[name](first.astype(np.float64)).astype(first.dtype), *inputs[1:])


def _input(losses: LossPair) -> Iterator[Cause]:
    """One side applies a function to its first input, which the other expects its caller to apply."""
    for name in TRANSFORMS:
        if all(near(losses.port(_transformed(name, s.inputs)), s.reference) for s in losses.samples):
            message = phrase(
                "the reference applies {name} to its first input, the port expects that it was applied",
                name=name,
            )
            yield Cause(
                "loss.input",
                message,
                phrase("give the port's loss the {name} of its first input", name=name),
                0.0,
            )
            return
        if all(near(losses.reference(_transformed(name, s.inputs)), s.port) for s in losses.samples):
            message = phrase("the port applies {name} to its first input, the reference does not", name=name)
            yield Cause(
                "loss.input",
                message,
                phrase("take {name} out of what the port's loss is given", name=name),
                0.0,
            )
            return


def _axes(losses: LossPair) -> Iterator[Cause]:
    """Classes along another axis."""
    if any(sample.inputs[0].ndim < 3 for sample in losses.samples):
        return

    def moved(inputs: Arrays) -> Arrays:
        return (np.ascontiguousarray(np.moveaxis(inputs[0], 1, -1)), *inputs[1:])

    if all(near(losses.port(moved(sample.inputs)), sample.reference) for sample in losses.samples):
        message = phrase("the reference's classes are along axis 1, the port's along the last axis")
        yield Cause("loss.input", message, phrase("write axis=1 in the port's loss"), 0.0)


def _labels(losses: LossPair) -> Iterator[Cause]:
    """A label that one side leaves out."""
    labels = losses.samples[0].inputs[-1]
    if labels.dtype.kind not in "iu" or len(losses.samples[0].inputs) < 2:
        return
    values = [int(value) for value in np.unique(labels)]
    for value in sorted(values, key=lambda each: (0 <= each < 255, each))[:8]:
        without = [partial(_without, value, sample.inputs) for sample in losses.samples]
        for words, compute, wanted in (
            (
                phrase("the port leaves out the label {value}, the reference does not", value=value),
                losses.reference,
                "port",
            ),
            (
                phrase("the reference leaves out the label {value}, the port does not", value=value),
                losses.port,
                "reference",
            ),
        ):
            parts = [make() for make in without]
            if all(
                part is not None and near(compute(part), getattr(sample, wanted))
                for part, sample in zip(parts, losses.samples, strict=True)
            ):
                right = phrase("no ignored label") if wanted == "port" else f"ignore_index={value}"
                yield Cause(
                    "loss.ignore_index", words, phrase("write {right} in the port's loss", right=right), 0.0
                )
                return


def _without(label: int, inputs: Arrays) -> Arrays | None:
    keep = inputs[-1] != label
    if keep.ndim != 1 or not keep.any() or any(len(each) != len(keep) for each in inputs):
        return None
    return tuple(each[keep] for each in inputs)


def _smoothing(losses: LossPair) -> Iterator[Cause]:
    found = [
        identify_smoothing([(s.inputs, getattr(s, side)) for s in losses.samples])
        for side in ("reference", "port")
    ]
    if None not in found and not near(*found):
        right, wrong = (number(rounded(float(each or 0.0), 0.0)) for each in found)
        message = phrase(
            "label smoothing is {reference} in the reference, {port} in the port", reference=right, port=wrong
        )
        yield Cause(
            "loss.label_smoothing",
            message,
            phrase("write label_smoothing={right} in the port's loss", right=right),
            0.0,
        )


def _weights(losses: LossPair) -> Iterator[Cause]:
    inputs = losses.samples[0].inputs
    if class_losses(inputs) is None:
        return
    found = [identify_weights(inputs, evaluate) for evaluate in (losses.reference, losses.port)]
    if found[0] is None or found[1] is None or near(*found):
        return
    right, wrong = (brief([float(f"{w:.4g}") for w in each]) if each is not None else "" for each in found)
    message = phrase(
        "the classes weigh {reference} in the reference, {port} in the port", reference=right, port=wrong
    )
    yield Cause("loss.weight", message, phrase("give the port's loss the weights {right}", right=right), 0.0)


def _soft_weights(losses: LossPair) -> Iterator[Cause]:
    """Weights of classes where targets are probabilities, or labels are smoothed: in one side only.

    Both are looked at one sample at a time, where the weights of whole samples cancel.
    """
    inputs = losses.samples[0].inputs
    for identify, told in ((weights_of_targets, _told_targets), (weights_of_smoothing, _told_smoothing)):
        found = [identify(inputs, evaluate) for evaluate in (losses.reference, losses.port)]
        if found[0] is None or found[1] is None or near(*found):
            continue
        right, wrong = (brief([float(f"{w:.4g}") for w in each]) for each in found if each is not None)
        yield Cause("loss.weight", *told(right, wrong), 0.0)
        return


def _told_targets(right: str, wrong: str) -> tuple[str, str]:
    message = phrase(
        "with probabilities as targets the classes of a sample weigh {reference} in the reference, {port} in "
        "the port",
        reference=right,
        port=wrong,
    )
    return message, phrase("write -(target * weight * log_softmax(x)).sum(-1).mean() for the port's loss")


def _told_smoothing(right: str, wrong: str) -> tuple[str, str]:
    message = phrase(
        "label smoothing weighs the classes {reference} in the reference, {port} in the port",
        reference=right,
        port=wrong,
    )
    return message, phrase(
        "write the smoothed part of the port's loss out, with the weight of every class in it"
    )


def _shaped(losses: LossPair) -> Iterator[Cause]:
    """The same numbers in another shape."""
    first = losses.samples[0]
    if np.shape(first.reference) == np.shape(first.port):
        return
    if not all(
        np.size(s.reference) == np.size(s.port) > 1
        and near(np.reshape(s.port, np.shape(s.reference)), s.reference)
        for s in losses.samples
    ):
        return
    message = phrase(
        "the losses are the same numbers in another shape: {reference} in the reference, {port} in the port",
        reference=brief(list(np.shape(first.reference))),
        port=brief(list(np.shape(first.port))),
    )
    fix = phrase("squeeze the labels that the port's loss is given, or what it gives")
    yield Cause("loss.input", message, fix, 0.0)


def nothing_counted(inputs: Arrays, reference: Array, port: Array) -> Cause | None:
    """No label counts, so that a mean is over nothing: not a number on one side and zero on the other."""
    labels = inputs[-1]
    if labels.dtype.kind not in "i" or not labels.size or (labels >= 0).any():
        return None
    values = [float(np.reshape(each, -1)[0]) for each in (reference, port) if np.size(each) == 1]
    if len(values) != 2 or sum(map(np.isnan, values)) != 1:
        return None
    message = phrase(
        "no label counts: the mean over nothing is {reference} in the reference, {port} in the port",
        reference=f"{values[0]:g}",
        port=f"{values[1]:g}",
    )
    return Cause(
        "loss.ignore_index", message, phrase("skip batches in which no label counts, on both sides"), 0.0
    )


def _curved(losses: LossPair) -> Iterator[Cause]:
    """Smooth L1 and Huber of one number differ by a factor, which says less than what they are."""
    right, wrong = _distances(losses)
    if right is not None and wrong is not None and right.reduction == wrong.reduction:
        yield from (cause for cause in _distance(losses) if cause.code == "loss.beta")


def _distances(losses: LossPair) -> tuple[Distance | None, Distance | None]:
    ours, theirs = (
        identify_distance([(s.inputs, getattr(s, side)) for s in losses.samples])
        for side in ("reference", "port")
    )
    return ours, theirs


def _distance(losses: LossPair) -> Iterator[Cause]:
    """Losses of the difference of two arrays: L1, L2, smooth L1, Huber."""
    right, wrong = _distances(losses)
    if right is None or wrong is None or right == wrong:
        return
    curved = right.turning is not None and wrong.turning is not None
    message = phrase(
        "the reference is {reference}, the port {port}",
        reference=right.in_words(),
        port=wrong.in_words(),
    )
    yield Cause(
        "loss.beta" if curved else "op.kind",
        message,
        phrase("make the port's loss {right}", right=right.in_words()),
        0.0,
    )


Hypothesis = Callable[[LossPair], Iterator[Cause]]


def _factor(losses: LossPair) -> Iterator[Cause]:
    """One number that the port's loss is multiplied by, on every sample."""
    first = losses.samples[0]
    if len(losses.samples) < 2 or np.ndim(first.reference) or not first.reference:
        return
    factor = rounded(float(first.port / first.reference))
    if factor == 1.0 or not _everywhere(losses, lambda sample: sample.reference * factor):
        return
    message = phrase("the port's loss is {factor} times the reference's", factor=number(factor))
    fix = phrase("divide the port's loss by {factor}, or leave its factor out", factor=number(factor))
    yield Cause("loss.reduction", message, fix, 0.0)


HYPOTHESES: tuple[Hypothesis, ...] = (
    _shaped,
    _reduced,
    _curved,
    _ratio,
    _factor,
    _labels,
    _input,
    _axes,
    _smoothing,
    _weights,
    _soft_weights,
    _distance,
)
