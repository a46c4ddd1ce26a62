"""What decides between two sides' trainings is named, with what chance allows and how many runs decide."""

from __future__ import annotations

import numpy as np
import pytest

import parfocal as pf
from parfocal.errors import InputError
from parfocal.workflow.trained_results import ALARMS, Decides, TrainedMetric, judge_trained

REFERENCE = (0.760, 0.764, 0.758, 0.762, 0.761)


def test_what_decides_is_named() -> None:
    near, chance, apart = (
        TrainedMetric("top1", REFERENCE, tuple(each - off for each in REFERENCE), 0.0015)
        for off in (0.001, 0.004, 0.02)
    )
    found = judge_trained([near, chance, apart])
    assert [each.decides for each in found] == [Decides.WITHIN, Decides.CHANCE, Decides.APART]
    assert "0.001 apart, which within = 0.0015 allows" in found[0].message
    assert "no difference is shown; " in found[1].message
    assert "trainings a side would decide whether there is one" in found[1].message
    assert "0.02 apart, more than within = 0.0015; chance alone makes up to" in found[2].message


def test_the_alarms_of_all_metrics_together_are_those_of_one() -> None:
    one = TrainedMetric("top1", REFERENCE, REFERENCE, 0.0015)
    (alone,), several = judge_trained([one]), judge_trained([one] * 4)
    assert alone.alarms == ALARMS
    assert sum(each.alarms for each in several) == pytest.approx(ALARMS)
    assert several[0].chance.allowed > alone.chance.allowed


def test_a_published_value_counts_as_one_training() -> None:
    against_runs = judge_trained([TrainedMetric("top1", REFERENCE, REFERENCE, 1e-6)])[0].chance.allowed
    published = judge_trained([TrainedMetric("top1", REFERENCE, REFERENCE, 1e-6, 0.75)])[0].chance.allowed
    assert published / against_runs == pytest.approx(np.sqrt(1 / 5 + 1) / np.sqrt(2 / 5))


def test_a_port_that_ends_in_nan_is_different_and_a_reference_is_an_error() -> None:
    nan = float("nan")
    (found,) = judge_trained([TrainedMetric("top1", (0.7, 0.7), (0.7, nan), 0.0015)])
    assert found.decides is Decides.APART
    assert found.message.startswith("top1 is nan")
    with pytest.raises(InputError, match="a result is nan"):
        judge_trained([TrainedMetric("top1", (0.7, nan), (0.7, 0.7), 0.0015)])


def test_runs_of_both_sides_by_the_public_name() -> None:
    same = pf.compare_result([0.757, 0.763, 0.755, 0.761, 0.760], list(REFERENCE), within=0.0015)
    assert same.ok
    assert "chance alone makes up to" in str(same.findings[0].message)
    other = pf.compare_result({"top1": [each - 0.02 for each in REFERENCE]}, {"top1": REFERENCE}, 0.0015)
    assert not other.ok
    assert other.first is not None
    assert other.first.score > 1
    assert [curve.name for curve in other.curves] == [f"top1, run {run}" for run in range(5)]


def test_curves_of_both_sides_count_by_their_ends() -> None:
    report = pf.compare_result([[0.1, 0.76], [0.2, 0.762]], [[0.3, 0.761], [0.1, 0.76]], within=0.0015)
    assert report.ok
    assert report.curves[0].reference == (0.3, 0.761)
    assert report.curves[0].port == (0.1, 0.76)
