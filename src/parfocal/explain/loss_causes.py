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
    weighted_mean,
    weights_of_smoothing,
    weights_of_targets,
)
from parfocal.explain.metric_formulas import is_dense, without_label
from parfocal.judge import limits
from parfocal.judge.verdict import SIDES, Cause, Claim, Grounds, ProvenBy
from parfocal.phrases import phrase

CLOSE = limits.causes.FITTED.value
CLEAR = limits.verdicts.CLEARLY_RIGHT.value
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


Value = Array | float | None


@dataclass(frozen=True, slots=True)
class LossClaim:
    """A hypothesis, and the values that it makes beside those that they should be; none: nothing was made."""

    claim: Claim
    values: Sequence[tuple[Value, Value]] = ()


def off(a: Value, b: Value) -> float:
    """How far two losses are apart, in units of what may be left; infinite for other shapes."""
    if a is None or b is None or np.shape(a) != np.shape(b):
        return np.inf
    with np.errstate(all="ignore"):
        apart = np.abs(np.subtract(a, b, dtype=np.float64)) / (CLOSE * np.abs(b) + CLOSE * 1e-3)
    apart = np.where(np.equal(a, b), 0.0, np.where(np.isnan(apart), np.inf, apart))
    return float(np.max(apart, initial=0.0))


def near(a: Value, b: Value) -> bool:
    return off(a, b) <= 1.0


def cause_of(losses: LossPair) -> Cause | None:
    """The first hypothesis that holds on every sample."""
    before = max(off(each.port, each.reference) for each in losses.samples)
    for found in (each for make in HYPOTHESES for each in make(losses)):
        if not found.values:
            return found.claim.likely(Grounds.VALUES)
        after = max(off(*each) for each in found.values)
        if after < before / CLEAR:  # losses that differ by little fit many a formula as well as none
            return found.claim.proven(ProvenBy.RECOMPUTED, before, after)
    return None


def _made(losses: LossPair, value: Callable[[LossSample], Value]) -> list[tuple[Value, Value]]:
    """What every sample of the reference gives, beside the port's."""
    return [(value(sample), sample.port) for sample in losses.samples]


def _fit(values: Sequence[tuple[Value, Value]]) -> bool:
    return all(near(*each) for each in values)


def _reduced(losses: LossPair) -> Iterator[LossClaim]:
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
            values = [(reduce(a), b) for a, b in zip(full, single, strict=True)]
            if _fit(values):
                other = phrase("reference") if sides == "port" else phrase("port")
                message = phrase(
                    "the {sides} gives a loss for every element, the {other} their {name}",
                    sides=sides,
                    other=other,
                    name=name,
                )
                right = str(name) if sides == "port" else "none"
                fix = phrase('write reduction="{right}" in the port\'s loss', right=right)
                yield LossClaim(Claim("loss.reduction", message, fix), values)
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


def _ratio(losses: LossPair) -> Iterator[LossClaim]:
    """A sum instead of a mean, or a mean over another count."""
    if any(np.ndim(sample.reference) or np.ndim(sample.port) for sample in losses.samples):
        return
    names = list(_counts(losses.samples[0]))
    for over in names:
        values = _made(losses, lambda sample, over=over: sample.reference * _counts(sample)[over])  # type: ignore[misc]
        if _fit(values):
            message = phrase(
                "the port's loss is the sum, the reference's the mean over {over}", over=over.value
            )
            fix = phrase("divide the port's loss by the number of {over}", over=over.value)
            yield LossClaim(Claim("loss.reduction", message, fix), values)
            return
        values = _made(losses, lambda sample, over=over: sample.reference / _counts(sample)[over])  # type: ignore[misc]
        if _fit(values):
            message = phrase(
                "the port's loss is the mean over {over}, the reference's the sum", over=over.value
            )
            fix = phrase('write reduction="sum" in the port\'s loss')
            yield LossClaim(Claim("loss.reduction", message, fix), values)
            return
    for mine in names:
        for right in names:
            values = _made(losses, partial(_other_count, mine, right))
            if mine != right and _fit(values):
                ignored = Counted.NOT_NEGATIVE in (mine, right)
                message = phrase(
                    "the port's mean is over {mine}, the reference's over {right}",
                    mine=mine.value,
                    right=right.value,
                )
                fix = phrase("sum the port's loss and divide by the number of {right}", right=right.value)
                code = "loss.ignore_index" if ignored else "loss.reduction"
                yield LossClaim(Claim(code, message, fix), values)
                return


def _other_count(mine: Counted, right: Counted, sample: LossSample) -> Array | None:
    counts = _counts(sample)
    return sample.reference * counts[right] / counts[mine] if counts[mine] else None


def _constant(losses: LossPair) -> Iterator[LossClaim]:
    """The port divides by the size that a batch usually has."""
    first = losses.samples[0]
    if np.ndim(first.reference) or np.ndim(first.port) or not first.port:
        return
    for over in (Counted.SAMPLES, Counted.NOT_NEGATIVE, Counted.ELEMENTS):
        counts = [_counts(sample).get(over) for sample in losses.samples]
        if None in counts or len(set(counts)) < 2:
            continue
        usual = rounded(float(first.reference * _counts(first)[over] / first.port))
        values = _made(losses, partial(_by_constant, over, usual))
        if _fit(values):
            message = phrase(
                "the port's loss is the reference's times the number of {over} / {usual}: it is divided by a "
                "constant",
                over=over.value,
                usual=number(usual),
            )
            fix = phrase("divide the port's loss by the number of {over}", over=over.value)
            yield LossClaim(Claim("loss.reduction", message, fix), values)
            return


def _by_constant(over: Counted, usual: float, sample: LossSample) -> Value:
    return float(sample.reference * _counts(sample)[over] / usual) if usual else None


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


def _input(losses: LossPair) -> Iterator[LossClaim]:
    """One side applies a function to its first input, which the other expects its caller to apply."""
    for name in TRANSFORMS:
        values = [(losses.port(_transformed(name, s.inputs)), s.reference) for s in losses.samples]
        if _fit(values):
            message = phrase(
                "the reference applies {name} to its first input, the port expects that it was applied",
                name=name,
            )
            fix = phrase("give the port's loss the {name} of its first input", name=name)
            yield LossClaim(Claim("loss.input", message, fix), values)
            return
        values = [(losses.reference(_transformed(name, s.inputs)), s.port) for s in losses.samples]
        if _fit(values):
            message = phrase("the port applies {name} to its first input, the reference does not", name=name)
            fix = phrase("take {name} out of what the port's loss is given", name=name)
            yield LossClaim(Claim("loss.input", message, fix), values)
            return


def _axes(losses: LossPair) -> Iterator[LossClaim]:
    """Classes along another axis."""
    if any(sample.inputs[0].ndim < 3 for sample in losses.samples):
        return

    def moved(inputs: Arrays) -> Arrays:
        return (np.ascontiguousarray(np.moveaxis(inputs[0], 1, -1)), *inputs[1:])

    values = [(losses.port(moved(sample.inputs)), sample.reference) for sample in losses.samples]
    if _fit(values):
        message = phrase("the reference's classes are along axis 1, the port's along the last axis")
        yield LossClaim(Claim("loss.input", message, phrase("write axis=1 in the port's loss")), values)


def _labels(losses: LossPair) -> Iterator[LossClaim]:
    """A label that one side leaves out."""
    labels = losses.samples[0].inputs[-1]
    if labels.dtype.kind not in "iu" or len(losses.samples[0].inputs) < 2:
        return
    present = [int(value) for value in np.unique(labels)]
    for value in sorted(present, key=lambda each: (0 <= each < 255, each))[:8]:
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
            values = [
                (None if part is None else compute(part), getattr(sample, wanted))
                for part, sample in zip(parts, losses.samples, strict=True)
            ]
            if _fit(values):
                fix = (
                    phrase("count the label {value} in the port's loss", value=value)
                    if wanted == "port"
                    else phrase("write {right} in the port's loss", right=f"ignore_index={value}")
                )
                yield LossClaim(Claim("loss.ignore_index", words, fix), values)
                return


def _without(label: int, inputs: Arrays) -> Arrays | None:
    keep = inputs[-1] != label
    if len(inputs) == 2 and is_dense(*inputs):
        return without_label(*inputs, label)
    if keep.ndim != 1 or not keep.any() or any(len(each) != len(keep) for each in inputs):
        return None
    return tuple(each[keep] for each in inputs)


def _smoothing(losses: LossPair) -> Iterator[LossClaim]:
    found = [identify_smoothing([(s.inputs, getattr(s, side)) for s in losses.samples]) for side in SIDES]
    if None not in found and not near(*found):
        shares = [rounded(float(each or 0.0), 0.0) for each in found]
        right, wrong = map(number, shares)
        message = phrase(
            "label smoothing is {reference} in the reference, {port} in the port", reference=right, port=wrong
        )
        fix = phrase("write label_smoothing={right} in the port's loss", right=right)
        claim = Claim("loss.label_smoothing", message, fix)
        yield LossClaim(claim, _made(losses, partial(_smoothed, shares[1] - shares[0])))


def _smoothed(more: float, sample: LossSample) -> Value:
    """The reference's loss, a mean or a sum, with so much more of its labels smoothed."""
    parts = class_losses(sample.inputs)
    assert parts is not None  # smoothing was identified by them
    values = [
        float(sample.reference + more * (reduce(parts[1]) - reduce(parts[0]))) for reduce in (np.mean, np.sum)
    ]
    return min(values, key=lambda value: off(value, sample.port))


def _weights(losses: LossPair) -> Iterator[LossClaim]:
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
    fix = phrase("give the port's loss the weights {right}", right=right)
    sample = losses.samples[0]
    values = [
        (weighted_mean(inputs, weights), value)
        for weights, value in zip(found, (sample.reference, sample.port), strict=True)
        if weights is not None
    ]
    yield LossClaim(Claim("loss.weight", message, fix), values)


def _soft_weights(losses: LossPair) -> Iterator[LossClaim]:
    """Weights of classes where targets are probabilities, or labels are smoothed: in one side only.

    Both are looked at one sample at a time, where the weights of whole samples cancel.
    """
    inputs = losses.samples[0].inputs
    for identify, told in ((weights_of_targets, _told_targets), (weights_of_smoothing, _told_smoothing)):
        found = [identify(inputs, evaluate) for evaluate in (losses.reference, losses.port)]
        if found[0] is None or found[1] is None or near(*found):
            continue
        right, wrong = (brief([float(f"{w:.4g}") for w in each]) for each in found if each is not None)
        yield LossClaim(Claim("loss.weight", *told(right, wrong)))
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


def _shaped(losses: LossPair) -> Iterator[LossClaim]:
    """The same numbers in another shape."""
    first = losses.samples[0]
    if np.shape(first.reference) == np.shape(first.port):
        return
    if not all(np.size(s.reference) == np.size(s.port) > 1 for s in losses.samples):
        return
    values = [(np.reshape(s.port, np.shape(s.reference)), s.reference) for s in losses.samples]
    if not _fit(values):
        return
    message = phrase(
        "the losses are the same numbers in another shape: {reference} in the reference, {port} in the port",
        reference=brief(list(np.shape(first.reference))),
        port=brief(list(np.shape(first.port))),
    )
    fix = phrase("squeeze the labels that the port's loss is given, or what it gives")
    yield LossClaim(Claim("loss.input", message, fix), values)


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
    fix = phrase("skip batches in which no label counts, on both sides")
    return Claim("loss.ignore_index", message, fix).likely(Grounds.VALUES)


def _curved(losses: LossPair) -> Iterator[LossClaim]:
    """Smooth L1 and Huber of one number differ by a factor, which says less than what they are."""
    right, wrong = _distances(losses)
    if right is not None and wrong is not None and right.reduction == wrong.reduction:
        yield from (each for each in _distance(losses) if each.claim.code == "loss.beta")


def _distances(losses: LossPair) -> tuple[Distance | None, Distance | None]:
    ours, theirs = (
        identify_distance([(s.inputs, getattr(s, side)) for s in losses.samples]) for side in SIDES
    )
    return ours, theirs


def _distance(losses: LossPair) -> Iterator[LossClaim]:
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
    fix = phrase("make the port's loss {right}", right=right.in_words())
    values = [
        (loss.of(sample.inputs), value)
        for sample in losses.samples
        for loss, value in ((right, sample.reference), (wrong, sample.port))
    ]
    yield LossClaim(Claim("loss.beta" if curved else "op.kind", message, fix), values)


Hypothesis = Callable[[LossPair], Iterator[LossClaim]]


def _number(losses: LossPair) -> Iterator[LossClaim]:
    """One number that the port's loss is multiplied by, or that is added to it, on every sample.

    A small one of either kind nearly fits as the other: only one that is clearly nearer is told.
    """
    first = losses.samples[0]
    if len(losses.samples) < 2 or np.ndim(first.reference) or np.ndim(first.port) or not first.reference:
        return
    apart = [float(each.port) - float(each.reference) for each in losses.samples]
    ratio, distance = float(first.port / first.reference), float(np.median(apart))
    factor, scaled = _first_that_fits(losses, (1 + rounded(ratio - 1), ratio), lambda a, each: a * each)
    amount, moved = _first_that_fits(losses, (rounded(distance), distance), lambda a, each: a + each)
    multiplied = Claim(
        "loss.reduction",
        phrase("the port's loss is {factor} times the reference's", factor=number(factor)),
        phrase("divide the port's loss by {factor}, or leave its factor out", factor=number(factor)),
    )
    told = LossClaim(multiplied, scaled), LossClaim(offset_claim(amount), moved)
    nearest, other = sorted(told, key=_farthest)
    if _fit(nearest.values) and _farthest(nearest) < _farthest(other) / CLEAR:
        yield nearest


def _farthest(found: LossClaim) -> float:
    return max(off(*values) for values in found.values)


def _first_that_fits(
    losses: LossPair, numbers: tuple[float, ...], made: Callable[[Array, float], Array]
) -> tuple[float, list[tuple[Value, Value]]]:
    """The round number that was most likely meant, if losses that are made with it fit, or the exact one."""
    for each in numbers:
        values = _made(losses, lambda sample, each=each: made(sample.reference, each))  # type: ignore[misc]
        if _fit(values):
            break
    return each, values


def offset_claim(amount: float) -> Claim:
    """A constant, of which no gradient tells."""
    message = phrase(
        "the port's loss differs from the reference's by {amount} and its gradient is equal: a constant is "
        "added on one side",
        amount=number(amount),
    )
    fix = phrase("leave the constant out of the loss, or add it on both sides")
    return Claim("loss.offset", message, fix)


HYPOTHESES: tuple[Hypothesis, ...] = (
    _shaped,
    _reduced,
    _curved,
    _ratio,
    _number,
    _constant,
    _labels,
    _input,
    _axes,
    _smoothing,
    _weights,
    _soft_weights,
    _distance,
)
