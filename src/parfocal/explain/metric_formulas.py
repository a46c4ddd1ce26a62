"""Well-known metrics by name, to recognise what a metric of unknown code computes.

A new one is one entry of ``FORMULAS``. Each takes scores or class numbers and labels, and returns None
where it has no meaning for them.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from parfocal.backends.protocol import Array
from parfocal.judge import limits
from parfocal.phrases import phrase

Formula = Callable[[Array, Array], float | None]
LARGEST_K = limits.searches.LARGEST_K.value
MOST_CLASSES = limits.searches.METRIC_CLASSES.value


def is_dense(predictions: Array, labels: Array) -> bool:
    """Whether every place of a sample has a label, and scores of the classes along axis 1."""
    return (
        labels.dtype.kind in "iu"
        and labels.ndim > 1
        and predictions.ndim == labels.ndim + 1
        and (predictions.shape[:1] + predictions.shape[2:]) == labels.shape
    )


def without_label(predictions: Array, labels: Array, label: int) -> tuple[Array, Array] | None:
    """The samples, or the places of all samples in a row, that have another label; None: there are none."""
    keep = labels != label
    if labels.shape[:1] != predictions.shape[:1] or not keep.any():
        return None
    if is_dense(predictions, labels):
        row = (1,) * (labels.ndim - 1)
        kept = np.moveaxis(predictions, 1, -1)[keep].T
        return kept.reshape(1, len(kept), *row[1:], -1), labels[keep].reshape(*row, -1)
    if keep.ndim == 1 or predictions.shape == labels.shape:
        return predictions[keep], labels[keep]
    return None


def _ranks(scores: Array, labels: Array) -> Array | None:
    """How many classes score higher than the right one, a sample each."""
    if scores.ndim != 2 or scores.dtype.kind != "f" or labels.shape != scores.shape[:1]:
        return None
    if (
        labels.dtype.kind not in "iu"
        or not len(labels)
        or labels.min() < 0
        or labels.max() >= scores.shape[1]
    ):
        return None
    own = scores[np.arange(len(labels)), labels]
    return np.asarray((scores > own[:, None]).sum(axis=1))


def _top(k: int) -> Formula:
    def formula(scores: Array, labels: Array) -> float | None:
        ranks = _ranks(scores, labels)
        return None if ranks is None else float((ranks < k).mean())

    return formula


def _classes(predictions: Array, labels: Array) -> Array | None:
    """The predicted class of every sample."""
    if labels.dtype.kind not in "iu" or labels.ndim != 1:
        return None
    if predictions.shape == labels.shape and predictions.dtype.kind in "iu":
        return predictions
    if predictions.ndim == 2 and predictions.shape[0] == len(labels) and predictions.dtype.kind == "f":
        return np.asarray(predictions.argmax(axis=1))
    return None


def _counts(predictions: Array, labels: Array) -> tuple[Array, Array, Array] | None:
    """Per class: hits, how often predicted, how often right."""
    predicted = _classes(predictions, labels)
    if predicted is None or not len(labels) or min(labels.min(), predicted.min()) < 0:
        return None
    count = int(max(labels.max(), predicted.max())) + 1
    if count > MOST_CLASSES:
        return None
    hits = np.bincount(labels[predicted == labels], minlength=count)
    return hits, np.bincount(predicted, minlength=count), np.bincount(labels, minlength=count)


# What the hits of a class are divided by, and how much each class counts: from how often it was predicted,
# and how often it was right.
DIVISORS: dict[str, Callable[[Array, Array], Array]] = {
    phrase("recall"): lambda predicted, right: right,
    phrase("precision"): lambda predicted, right: predicted,
    "F1": lambda predicted, right: (predicted + right) / 2,
}
WEIGHTS: dict[str, Callable[[Array, Array], Array]] = {
    phrase("averaged over classes"): lambda predicted, right: (predicted + right) > 0,
    phrase("averaged over the labels' classes"): lambda predicted, right: right > 0,
    phrase("weighted by class"): lambda predicted, right: right,
}


def _averaged(kind: str, average: str) -> Formula:
    def formula(predictions: Array, labels: Array) -> float | None:
        counts = _counts(predictions, labels)
        if counts is None:
            return None
        hits, predicted, right = (each.astype(np.float64) for each in counts)
        over, weights = DIVISORS[kind](predicted, right), WEIGHTS[average](predicted, right)
        values = np.divide(hits, over, out=np.zeros_like(hits), where=over > 0)
        return float((values * weights).sum() / weights.sum())

    return formula


def _of_errors(reduce: Callable[[Array], float]) -> Formula:
    def formula(predictions: Array, labels: Array) -> float | None:
        if predictions.shape != labels.shape or predictions.dtype.kind != "f" or not predictions.size:
            return None
        return reduce(predictions.astype(np.float64) - labels.astype(np.float64))

    return formula


def _accuracy(predictions: Array, labels: Array) -> float | None:
    predicted = _classes(predictions, labels)
    return None if predicted is None or not len(labels) else float((predicted == labels).mean())


TOP_K = {phrase("top-{k} accuracy", k=k): k for k in range(2, LARGEST_K + 1)}
FORMULAS: dict[str, Formula] = {
    phrase("accuracy"): _accuracy,
    **{name: _top(k) for name, k in TOP_K.items()},
    **{
        phrase("{kind} {average}", kind=kind, average=average): _averaged(kind, average)
        for kind in DIVISORS
        for average in WEIGHTS
    },
    phrase("mean absolute error"): _of_errors(lambda error: float(np.abs(error).mean())),
    phrase("mean squared error"): _of_errors(lambda error: float(np.square(error).mean())),
    phrase("root mean squared error"): _of_errors(lambda error: float(np.sqrt(np.square(error).mean()))),
    phrase("largest error"): _of_errors(lambda error: float(np.abs(error).max())),
    phrase("sum of squared errors"): _of_errors(lambda error: float(np.square(error).sum())),
    phrase("sum of absolute errors"): _of_errors(lambda error: float(np.abs(error).sum())),
}
