"""Whether a metric is a mean over samples is seen by computing it, and never supposed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from parfocal.workflow.guide import metric_parts as module
from parfocal.workflow.guide.metric_parts import SHARES, metric_parts
from parfocal.workflow.metrics import named_numbers

GENERATOR = np.random.default_rng(0)
SCORES = GENERATOR.normal(size=(60, 3)).astype("float32")
LABELS = GENERATOR.integers(0, 3, 60)


def top1(scores: Any, labels: Any) -> float:
    return float((scores.argmax(1) == labels).mean())


def macro_f1(scores: Any, labels: Any) -> float:
    found = scores.argmax(1)
    rates = []
    for kind in range(3):
        hits = float(((found == kind) & (labels == kind)).sum())
        rates.append(2 * hits / max(1.0, float((found == kind).sum() + (labels == kind).sum())))
    return float(np.mean(rates))


def needs_two(scores: Any, labels: Any) -> float:
    if len(set(labels.tolist())) < 2:
        raise ValueError("only one class")
    return 0.5


def parts_of(metric: Any, scores: Any = SCORES, labels: Any = LABELS) -> dict[str, Any]:
    return metric_parts(metric, named_numbers(metric(scores, labels)), scores, labels)


def test_a_mean_over_samples_is_told_by_sample() -> None:
    found = parts_of(top1)
    np.testing.assert_array_equal(found["value"], SCORES.argmax(1) == LABELS)
    np.testing.assert_allclose(found[SHARES], 1 / 60)


@pytest.mark.parametrize("metric", [macro_f1, needs_two])
def test_what_is_no_mean_is_left_out(metric: Any) -> None:
    assert parts_of(metric) == {}


def test_of_several_metrics_those_that_are_means_are_kept() -> None:
    def several(scores: Any, labels: Any) -> dict[str, float]:
        return {"top1": 100 * top1(scores, labels), "f1": macro_f1(scores, labels)}

    found = parts_of(several)
    assert found.keys() == {SHARES, "top1"}
    assert set(found["top1"]) == {0.0, 100.0}


def test_more_samples_than_parts_are_taken_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST", 7)
    found = parts_of(top1)
    assert len(found["value"]) == 7
    assert found[SHARES].sum() == pytest.approx(1)
    assert (found[SHARES] * found["value"]).sum() == pytest.approx(top1(SCORES, LABELS))


def test_predictions_in_a_dict_and_labels_of_another_length() -> None:
    def of_dict(outputs: Any, labels: Any) -> float:
        return top1(outputs["scores"], labels)

    assert "value" in parts_of(of_dict, {"scores": SCORES})
    boxes = {"scores": SCORES, "anchors": np.zeros(4)}
    assert metric_parts(of_dict, {"value": 0.5}, boxes, LABELS) == {}
