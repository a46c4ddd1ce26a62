"""Well-known losses computed in float64, and the parameters with which they reproduce a given loss."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import scipy  # loads its parts when they are first used

from parfocal.backends.protocol import Array
from parfocal.explain.causes import number, rounded
from parfocal.judge import limits
from parfocal.phrases import phrase

CLOSE = limits.causes.FITTED.value
CLOSE_FIT = limits.causes.LOSS_FITTED.value
FEW_ROWS = limits.causes.LOSS_ROWS.value
SOLVED_FROM = limits.causes.LOSS_SOLVED_FROM.value
Arrays = tuple[Array, ...]
Evaluate = Callable[[Arrays], Array | None]  # None: it cannot be had of these inputs
Valued = Sequence[tuple[Arrays, Array]]  # inputs and the loss of them


def class_losses(inputs: Arrays) -> tuple[Array, Array, Array] | None:
    """Of logits and class numbers: each sample's loss, its mean over all classes, and its label.

    Labels below 0 are left out. None where the inputs are no such pair.
    """
    if len(inputs) != 2:
        return None
    logits, labels = inputs
    if logits.dtype.kind != "f" or labels.dtype.kind not in "iu" or logits.ndim < 2:
        return None
    if labels.shape == (*logits.shape[:1], 1) and logits.ndim == 2:
        labels = labels[:, 0]
    if labels.shape != (logits.shape[0], *logits.shape[2:]):
        return None
    rows = np.moveaxis(logits, 1, -1).reshape(-1, logits.shape[1]).astype(np.float64)
    flat = labels.reshape(-1)
    keep = flat >= 0
    rows, flat = rows[keep], flat[keep]
    if not len(flat) or flat.max() >= rows.shape[1]:
        return None
    logs = -scipy.special.log_softmax(rows, axis=1)
    return logs[np.arange(len(flat)), flat], logs.mean(axis=1), flat


def identify_smoothing(valued: Valued) -> float | None:
    """The label smoothing that explains the mean (or sum) of a cross entropy on all inputs; 0 is none."""
    found = []
    for inputs, value in valued:
        parts = class_losses(inputs)
        if parts is None or np.ndim(value):
            return None
        for reduce in (np.mean, np.sum):
            plain, even = float(reduce(parts[0])), float(reduce(parts[1]))
            share = (float(value) - plain) / (even - plain) if even != plain else np.nan
            if -1e-3 < share < 1.0:
                found.append(share)
                break
        else:
            return None
    if len(found) < SOLVED_FROM or np.ptp(found) > 1e-3:
        return None
    middle = float(np.median(found))
    return 0.0 if abs(middle) < 1e-3 else middle


def identify_weights(inputs: Arrays, evaluate: Callable[[Arrays], Array | None]) -> Array | None:
    """The weights of classes, the first one's being 1, that explain a weighted mean of a cross entropy."""
    parts = class_losses(inputs)
    if parts is None or inputs[0].ndim != 2:
        return None
    labels = np.asarray(inputs[1]).reshape(-1)
    classes = np.unique(labels[labels >= 0])
    if len(classes) < 2:
        return None
    weights = [1.0]
    for label in classes[1:]:
        keep = (labels == classes[0]) | (labels == label)
        chosen = tuple(np.ascontiguousarray(each[keep]) for each in inputs)
        value, own = evaluate(chosen), class_losses(chosen)
        if value is None or np.ndim(value) or own is None:
            return None
        first = own[2] == classes[0]
        sums = float(own[0][first].sum()), float(own[0][~first].sum())
        counts = int(first.sum()), int((~first).sum())
        below = float(value) * counts[1] - sums[1]
        if below == 0.0:
            return None
        weights.append((sums[0] - float(value) * counts[0]) / below)
    found = np.asarray(weights)
    whole = evaluate(inputs)
    expected = weighted_mean(inputs, found)
    fits = whole is not None and not np.ndim(whole) and abs(float(whole) - expected) <= CLOSE * abs(expected)
    return found if fits and (found > 0).all() else None


def weighted_mean(inputs: Arrays, weights: Array) -> float:
    """The cross entropy of class numbers, every class that occurs with its weight."""
    parts = class_losses(inputs)
    assert parts is not None
    labels = np.asarray(inputs[1]).reshape(-1)
    weighing = weights[np.searchsorted(np.unique(labels[labels >= 0]), parts[2])]
    return float((weighing * parts[0]).sum() / weighing.sum())


_REDUCTIONS = {"mean": phrase("mean"), "sum": phrase("sum")}


@dataclass(frozen=True, slots=True)
class Distance:
    """A loss of the difference of two arrays."""

    name: str  # "L1", "L2", "smooth L1", "Huber"
    reduction: str
    turning: float | None = None  # beta or delta: where the parabola ends

    def of(self, inputs: Arrays) -> float:
        """The loss of two arrays."""
        difference = inputs[0].astype(np.float64) - inputs[1].astype(np.float64)
        curved = CURVED.get(self.name)
        each = PLAIN[self.name](difference) if curved is None else curved(difference, self.turning or 0.0)
        return float(each.mean() if self.reduction == "mean" else each.sum())

    def in_words(self) -> str:
        words = {"smooth L1": "beta", "Huber": "delta"}.get(self.name)
        which = (
            phrase(" with {words}={turning}", words=words, turning=number(self.turning))
            if words and self.turning is not None
            else ""
        )
        reduction = _REDUCTIONS.get(self.reduction, self.reduction)
        return phrase("the {reduction} of {name}{which}", reduction=reduction, name=self.name, which=which)


def smooth_l1(difference: Array, beta: float) -> Array:
    size = np.abs(difference)
    return np.where(size < beta, 0.5 * size**2 / beta, size - 0.5 * beta)


PLAIN: dict[str, Callable[[Array], Array]] = {"L1": np.abs, "L2": np.square, "half L2": lambda d: 0.5 * d**2}
CURVED: dict[str, Callable[[Array, float], Array]] = {
    "smooth L1": smooth_l1,
    "Huber": lambda difference, delta: delta * smooth_l1(difference, delta),
}


def identify_distance(valued: Valued) -> Distance | None:
    """Which of the losses of a difference explains the values on all inputs."""
    pairs = [
        (inputs[0].astype(np.float64) - inputs[1].astype(np.float64), float(value))
        for inputs, value in valued
        if len(inputs) == 2 and inputs[0].shape == inputs[1].shape and not np.ndim(value)
    ]
    if len(pairs) != len(valued) or not pairs:
        return None
    for reduction, reduce in (("mean", np.mean), ("sum", np.sum)):
        for name, formula in PLAIN.items():
            if all(_close(float(reduce(formula(d))), value) for d, value in pairs):
                return Distance(name, reduction)
    if len(pairs) < SOLVED_FROM:
        return None
    for reduction, reduce in (("mean", np.mean), ("sum", np.sum)):
        for name, curved in CURVED.items():
            turning = _turning(lambda t, c=curved, r=reduce: float(r(c(pairs[0][0], t))), *pairs[0])  # type: ignore[misc]
            if turning is not None and all(_close(float(reduce(curved(d, turning))), v) for d, v in pairs):
                return Distance(name, reduction, float(f"{rounded(turning):.6g}"))
    return None


def _close(a: float, b: float) -> bool:
    return abs(a - b) <= CLOSE * max(abs(a), abs(b))


def _turning(loss: Callable[[float], float], difference: Array, value: float) -> float | None:
    """The beta or delta (where the parabola ends) with which the loss has the given value."""
    low, high = 1e-6, float(np.abs(difference).max()) or 1.0
    at_ends = loss(low) - value, loss(high) - value
    if at_ends[0] * at_ends[1] > 0:
        return None
    return float(scipy.optimize.brentq(lambda t: loss(t) - value, low, high, rtol=1e-10))


def weights_of_targets(inputs: Arrays, evaluate: Evaluate) -> Array | None:
    """What every class of a sample is multiplied by, where targets are probabilities."""
    if len(inputs) != 2 or inputs[0].ndim != 2 or inputs[1].shape != inputs[0].shape:
        return None
    logits, targets = inputs
    if targets.dtype != logits.dtype or np.abs(targets.sum(1) - 1).max(initial=0.0) > 1e-3:
        return None
    found = []
    for row in logits[:FEW_ROWS]:
        losses = -scipy.special.log_softmax(row.astype(np.float64))
        values = [evaluate((row[None], np.eye(len(row), dtype=targets.dtype)[[c]])) for c in range(len(row))]
        if any(value is None or np.size(value) != 1 for value in values):
            return None
        found.append([float(np.reshape(v, -1)[0]) for v in values if v is not None] / losses)
    return _agreed(found)


def weights_of_smoothing(inputs: Arrays, evaluate: Evaluate) -> Array | None:
    """The weights of the classes in the smoothed part of a loss of labels, relative to the first class."""
    if len(inputs) != 2 or inputs[0].ndim != 2 or inputs[1].dtype.kind not in "iu" or inputs[1].ndim != 1:
        return None
    logits, labels = inputs
    rows, classes = logits[: 4 * logits.shape[1]], logits.shape[1]
    if len(rows) < classes + 2:
        return None
    losses = -scipy.special.log_softmax(rows.astype(np.float64), axis=1)
    label = np.zeros(1, labels.dtype)
    values = [evaluate((row[None], label)) for row in rows]
    if any(value is None or np.size(value) != 1 for value in values):
        return None
    wanted = np.array([float(np.reshape(value, -1)[0]) for value in values if value is not None])
    shares, *_ = np.linalg.lstsq(losses, wanted, rcond=None)
    if np.abs(losses @ shares - wanted).max() > CLOSE_FIT * np.abs(wanted).max() or (shares[1:] <= 0).any():
        return None
    smoothing = classes * (1 - shares[0]) / (classes - 1)  # the first class weighs 1 beside the others
    if smoothing <= CLOSE_FIT:
        return None
    return np.asarray(np.concatenate([[1.0], shares[1:] * classes / smoothing]))


def _agreed(found: list[Array]) -> Array | None:
    """The same in all rows, or None."""
    middle = np.median(np.asarray(found), axis=0)
    apart = np.abs(np.asarray(found) - middle).max()
    return np.asarray(middle) if apart <= CLOSE_FIT * np.abs(middle).max() else None
