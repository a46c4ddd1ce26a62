"""Metrics of the same predictions: correct pairs agree, mistakes are named, constants are nothing."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import parfocal as pf
from parfocal.errors import EmptyComparisonError, InputError

GENERATOR = np.random.default_rng(0)
COUNT, CLASSES = 211, 7
LABELS = GENERATOR.integers(0, CLASSES, COUNT)
SCORES = (np.eye(CLASSES)[LABELS] * 1.5 + GENERATOR.standard_normal((COUNT, CLASSES))).astype("float32")
VALUES = GENERATOR.standard_normal(COUNT).astype("float32")
TARGETS = (VALUES + 0.3 * GENERATOR.standard_normal(COUNT)).astype("float32")


def accuracy(scores: Any, labels: Any) -> float:
    return float((scores.argmax(1) == labels).mean())


def accuracy_in_float32(scores: Any, labels: Any) -> Any:
    return np.float32((scores.argmax(1) == labels).astype("float32").sum()) / np.float32(len(labels))


def top(k: int) -> Any:
    def metric(scores: Any, labels: Any) -> float:
        best = np.argsort(-scores, axis=1)[:, :k]
        return float((best == labels[:, None]).any(axis=1).mean())

    return metric


def f1(average: str) -> Any:
    """Written as a loop over classes, apart from the formulas of the library."""

    def metric(scores: Any, labels: Any) -> float:
        predicted, values, weights = scores.argmax(1), [], []
        for label in sorted({*labels.tolist(), *predicted.tolist()}):
            hits = sum(1 for a, b in zip(predicted, labels, strict=True) if a == b == label)
            guessed, right = int((predicted == label).sum()), int((labels == label).sum())
            values.append(2 * hits / (guessed + right))
            weights.append(right)
        return float(np.average(values, weights=weights if average == "weighted" else None))

    return metric


def in_batches(size: int, *, drop: bool = False) -> Any:
    def metric(scores: Any, labels: Any) -> float:
        parts = [slice(at, at + size) for at in range(0, len(labels), size)]
        if drop:
            hits = [(scores[p].argmax(1) == labels[p]) for p in parts if len(labels[p]) == size]
            return float(np.concatenate(hits).mean()) if hits else 0.0
        return float(np.mean([accuracy(scores[p], labels[p]) for p in parts]))

    return metric


def without(label: int) -> Any:
    def metric(scores: Any, labels: Any) -> float:
        return accuracy(scores[labels != label], labels[labels != label])

    return metric


def mean_squared(values: Any, targets: Any) -> float:
    return float(np.square(values - targets).mean(dtype="float64"))


WRONG: dict[str, tuple[Any, Any, str, str]] = {
    "percent": (accuracy, lambda s, y: 100 * accuracy(s, y), "metric.unit", "the port gives percent"),
    "fraction": (lambda s, y: 100 * accuracy(s, y), accuracy, "metric.unit", "the port gives a fraction"),
    "errors": (accuracy, lambda s, y: 1 - accuracy(s, y), "metric.value", "errors for hits"),
    "top 5": (accuracy, top(5), "metric.topk", "as accuracy, the port as top-5 accuracy"),
    "top 2 in percent": (
        accuracy,
        lambda s, y: 100 * top(2)(s, y),
        "metric.topk",
        "as accuracy as a fraction, the port as top-2 accuracy as percent",
    ),
    "top 3 for 5 in percent": (
        lambda s, y: 100 * top(5)(s, y),
        lambda s, y: 100 * top(3)(s, y),
        "metric.topk",
        "as top-5 accuracy, the port as top-3 accuracy",
    ),
    "average": (
        f1("macro"),
        f1("weighted"),
        "metric.value",
        "F1 averaged over classes, the port as F1 weighted by class",
    ),
    "recall for accuracy": (
        accuracy,
        lambda s, y: float(np.mean([(s[y == k].argmax(1) == k).mean() for k in np.unique(y)])),
        "metric.value",
        "the port as recall averaged over",
    ),
    "ignored": (accuracy, without(3), "metric.value", "the port leaves out the label 3"),
    "not ignored": (without(3), accuracy, "metric.value", "the reference leaves out the label 3"),
    "batches": (accuracy, in_batches(32), "metric.value", "averages over batches of 32"),
    "last batch": (accuracy, in_batches(32, drop=True), "metric.value", "do not fill a batch of 32"),
    "scaled": (accuracy, lambda s, y: 2.5 * accuracy(s, y), "metric.unit", "2.5 times"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_mistake_is_found_and_named(name: str) -> None:
    reference, port, code, words = WRONG[name]
    report = pf.compare_metric(reference, port, SCORES, LABELS)
    assert report.first is not None
    assert report.first.phase == "metric"
    assert report.first.cause is not None, report
    assert report.first.cause.code == code
    assert words in report.first.cause.message


CORRECT: dict[str, tuple[Any, Any]] = {
    "float32": (accuracy, accuracy_in_float32),
    "sorted": (accuracy, top(1)),
    "dict": (
        lambda s, y: {"top1": accuracy(s, y), "top5": top(5)(s, y)},
        lambda s, y: {"top5": top(5)(s, y), "top1": accuracy(s, y)},
    ),
    "sequence": (
        lambda s, y: (accuracy(s, y), top(5)(s, y)),
        lambda s, y: np.asarray([accuracy(s, y), top(5)(s, y)]),
    ),
}


@pytest.mark.parametrize("name", CORRECT)
def test_correct_metrics_are_the_same(name: str) -> None:
    report = pf.compare_metric(*CORRECT[name], SCORES, LABELS)
    assert report.ok, report
    assert "calls" not in str(report)


def test_errors_of_numbers() -> None:
    report = pf.compare_metric(mean_squared, lambda v, t: float(np.sqrt(mean_squared(v, t))), VALUES, TARGETS)
    assert report.first is not None
    assert report.first.cause is not None
    assert "root mean squared error" in report.first.cause.message
    same = pf.compare_metric(mean_squared, lambda v, t: float(((v - t) ** 2).sum() / len(v)), VALUES, TARGETS)
    assert same.ok, same


def test_a_difference_without_a_known_cause_is_told_without_one() -> None:
    report = pf.compare_metric(accuracy, lambda s, y: accuracy(s, y) ** 2, SCORES, LABELS)
    assert report.first is not None
    assert report.first.cause is None


def test_a_difference_that_only_smaller_batches_show_is_seen() -> None:
    def port(scores: Any, labels: Any) -> float:
        return (
            accuracy(scores, labels)
            if len(labels) == COUNT
            else accuracy(scores, labels) * len(labels) / COUNT
        )

    report = pf.compare_metric(accuracy, port, SCORES, LABELS)
    assert report.first is not None
    assert "samples" in report.first.what


def test_one_number_of_several_is_wrong() -> None:
    report = pf.compare_metric(
        lambda s, y: {"top1": accuracy(s, y), "top5": top(5)(s, y)},
        lambda s, y: {"top1": accuracy(s, y), "top5": top(4)(s, y), "more": 1.0},
        SCORES,
        LABELS,
    )
    assert [each.what.partition(":")[0] for each in report.divergences] == ["top5"]
    assert "more (only the port has it)" in str(report)


def test_equal_constants_are_nothing_compared() -> None:
    for constant in (0.0, 1.0):
        with pytest.raises(EmptyComparisonError, match="whatever part of the predictions"):
            pf.compare_metric(lambda s, y, c=constant: c, lambda s, y, c=constant: c, SCORES, LABELS)
    with pytest.raises(EmptyComparisonError, match="no number in common"):
        pf.compare_metric(lambda s, y: {"a": 1}, lambda s, y: {"b": 1}, SCORES, LABELS)


def test_wrong_calls_are_refused() -> None:
    with pytest.raises(InputError, match="compared with itself"):
        pf.compare_metric(accuracy, accuracy, SCORES, LABELS)
    with pytest.raises(InputError, match="the port's metric raised ZeroDivisionError"):
        pf.compare_metric(accuracy, lambda s, y: 1 / 0, SCORES, LABELS)
    with pytest.raises(InputError, match="a metric is a number"):
        pf.compare_metric(accuracy, lambda s, y: {"a": s}, SCORES, LABELS)


def test_a_result_within_its_bound() -> None:
    report = pf.compare_result([76.1, 76.3, 76.0], 76.2, within=0.15)
    assert report.ok
    assert "76.1333 ± 0.379 (3 runs, 95%) against 76.2 published" in " ".join(str(report).split())
    assert pf.compare_result(76.2, 76.2, within=0.1).ok


def test_a_result_out_of_its_bound() -> None:
    report = pf.compare_result([75.1, 75.3], 76.2, within=0.15)
    assert report.first is not None
    assert report.first.cause is None
    assert report.first.score == pytest.approx(1.0 / 0.15)


def test_percent_against_a_fraction_is_noticed() -> None:
    for runs, published, within in ((0.761, 76.2, 0.15), ([76.1, 76.2], 0.762, 0.0015)):
        report = pf.compare_result(runs, published, within=within)
        assert report.first is not None
        assert report.first.cause is not None
        assert report.first.cause.code == "metric.unit"


def test_curves_count_by_their_end_and_are_kept() -> None:
    report = pf.compare_result(
        {"top1": [[10.0, 60.0, 76.1], [12.0, 61.0, 76.3]]}, {"top1": 76.2, "top5": 93}, 0.15
    )
    assert report.ok
    assert [len(curve.port) for curve in report.curves] == [3, 3]
    assert "top5 (only the reference has it)" in str(report)


def test_results_that_say_nothing_are_refused() -> None:
    with pytest.raises(EmptyComparisonError):
        pf.compare_result([], 76.2, within=0.1)
    with pytest.raises(InputError, match="a result is nan"):
        pf.compare_result([76.0, float("nan")], 76.2, within=0.1)
    with pytest.raises(InputError, match="within=0 is not a distance"):
        pf.compare_result(76.0, 76.2, within=0)
    with pytest.raises(InputError, match="neither a number"):
        pf.compare_result("high", 76.2, within=0.1)


class Counting:
    """Accuracy of all that it was ever given."""

    def __init__(self) -> None:
        self.hits = self.count = 0

    def __call__(self, scores: Any, labels: Any) -> float:
        self.hits += int((scores.argmax(1) == labels).sum())
        self.count += len(labels)
        return self.hits / self.count


def test_a_metric_that_keeps_what_it_was_given_is_told() -> None:
    report = pf.compare_metric(accuracy, Counting(), SCORES, LABELS)
    assert report.first is not None
    assert report.first.cause is not None
    assert report.first.cause.code == "metric.value"
    assert "with the same predictions and labels: it keeps what it was given" in report.first.cause.message
    assert report.first.cause.fix == "reset the metric of the port at every call"
    fresh = pf.compare_metric(accuracy, lambda *given: Counting()(*given), SCORES, LABELS)
    assert fresh.ok


def test_what_cannot_be_called_is_an_error() -> None:
    with pytest.raises(InputError, match="the port's metric, a dict, cannot be called"):
        pf.compare_metric(accuracy, {}, SCORES, LABELS)


FEW = np.rint(SCORES)  # of which many are equal


def first_of_equals(scores: Any, labels: Any) -> float:
    return float((scores.argmax(1) == labels).mean())


def last_of_equals(scores: Any, labels: Any) -> float:
    return float((scores.shape[1] - 1 - scores[:, ::-1].argmax(1) == labels).mean())


def test_equal_scores_in_another_order_are_told() -> None:
    for ours, theirs in ((first_of_equals, last_of_equals), (last_of_equals, first_of_equals)):
        first = pf.compare_metric(ours, theirs, FEW, LABELS).first
        assert first is not None
        assert first.cause is not None
        assert first.cause.code == "metric.tie"


def test_another_difference_among_equal_scores_is_no_matter_of_ties() -> None:
    first = pf.compare_metric(top(1), top(2), FEW, LABELS).first
    assert first is not None
    assert first.cause is None or first.cause.code != "metric.tie"
    assert pf.compare_metric(first_of_equals, last_of_equals, SCORES, LABELS).ok  # none are equal


def test_a_metric_of_bit_patterns_is_told() -> None:
    def read(scores: Any) -> Any:
        return scores.astype(ml_dtypes.bfloat16).view(np.uint16)

    first = pf.compare_metric(accuracy, lambda s, y: accuracy(read(s), y), SCORES, LABELS).first
    assert first is not None
    assert first.cause is not None
    assert first.cause.code == "dtype.bits"
    rounded = pf.compare_metric(
        lambda s, y: float(s.astype(ml_dtypes.bfloat16).astype("float32").mean()),
        lambda s, y: float(s.mean()),
        *(SCORES, LABELS),
    ).first
    assert rounded is not None
    assert rounded.cause is None or rounded.cause.code != "dtype.bits"


MASKS = np.random.default_rng(5).integers(0, 2, (9, 6, 5)) * np.arange(9)[:, None, None] % 4
MASKS[:, 0] = 255
PLACES = np.random.default_rng(6).standard_normal((9, 4, 6, 5)).astype("float32")


def mean_iou(absent: float | None, *, ignored: int = 255) -> Any:
    """As a loop over classes; ``absent``: what a class counts that is nowhere."""

    def metric(scores: Any, labels: Any) -> float:
        predicted, keep, values = scores.argmax(1), labels != ignored, []
        for kind in range(4):
            guessed, right = (predicted == kind) & keep, (labels == kind) & keep
            either = int((guessed | right).sum())
            if either or absent is not None:
                values.append(float((guessed & right).sum()) / either if either else absent)
        return float(np.mean(values)) if values else 0.0

    return metric


@pytest.mark.parametrize(
    ("right", "wrong", "told"),
    [
        (None, 0.0, "is left out of the mean in the reference, counted as 0 in the port"),
        (None, 1.0, "is left out of the mean in the reference, counted as 1 in the port"),
        (1.0, None, "is counted as 1 in the reference, left out of the mean in the port"),
        (0.0, 1.0, "is counted as 0 in the reference, counted as 1 in the port"),
    ],
)
def test_classes_that_are_absent_are_told_of_dense_labels(right: Any, wrong: Any, told: str) -> None:
    """All samples together have all classes: only a part of them shows it."""
    assert mean_iou(right)(PLACES, MASKS) == mean_iou(wrong)(PLACES, MASKS)
    report = pf.compare_metric(mean_iou(right), mean_iou(wrong), PLACES, MASKS)
    assert report.first is not None
    assert report.first.cause.code == "metric.value"
    assert told in report.first.cause.message


def test_absent_classes_are_told_of_one_label_a_sample() -> None:
    report = pf.compare_metric(f1("macro"), lambda s, x: f1("macro")(s, x) * _there(s, x), SCORES, LABELS)
    assert report.ok  # every part of so many samples has all classes
    few = slice(0, 8)
    report = pf.compare_metric(
        f1("macro"), lambda s, x: f1("macro")(s, x) * _there(s, x), SCORES[few], LABELS[few]
    )
    assert "counted as 0 in the port" in report.first.cause.message


def _there(scores: Any, labels: Any) -> float:
    return len({*labels.tolist(), *scores.argmax(1).tolist()}) / CLASSES


def test_another_mean_iou_is_no_matter_of_absent_classes() -> None:
    squared = mean_iou(None)
    report = pf.compare_metric(mean_iou(None), lambda s, x: squared(s, x) ** 2, PLACES, MASKS)
    assert report.first is not None
    assert report.first.cause is None


@pytest.mark.parametrize(("right", "wrong"), [(255, -1), (-1, 255)])
def test_an_ignored_label_is_told_of_dense_labels(right: int, wrong: int) -> None:
    def pixels(ignored: int) -> Any:
        def metric(scores: Any, labels: Any) -> float:
            keep = labels != ignored
            return float((scores.argmax(1) == labels)[keep].mean())

        return metric

    report = pf.compare_metric(pixels(right), pixels(wrong), PLACES, MASKS)
    assert report.first is not None
    assert "the label 255" in report.first.cause.message
    assert report.first.cause.fix.startswith("leave out" if right == 255 else "count")


def test_dense_metrics_that_agree_are_the_same() -> None:
    for absent in (None, 0.0, 1.0):
        assert pf.compare_metric(mean_iou(absent), mean_iou(absent), PLACES, MASKS).ok
