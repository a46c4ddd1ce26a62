"""Two ranks on one machine, both frameworks: launches with each other, and with one process."""

from __future__ import annotations

import pytest

import parfocal as pf
from parfocal.errors import UnsupportedError

OK = None

# reference, port: (ranks, training), then the first difference: phase, step, rank, code
RANK_BY_RANK = [
    ("plain", "plain", OK),
    ("sketched", "sketched", OK),
    ("plain", "reduced by hand", OK),
    ("reduced by hand", "plain", OK),
    ("reduced by hand", "reduced by hand", OK),
    ("not reduced", "not reduced", OK),
    ("summed", "summed", OK),
    ("batch norm", "batch norm", OK),
    ("synced norm", "synced norm", OK),
    ("filled up", "filled up", OK),
    ("blocks", "blocks", OK),
    ("clipped", "clipped by hand", OK),
    ("plain", "summed", ("gradient", 0, 0, "dist.reduction")),
    ("reduced by hand", "summed", ("gradient", 0, 0, "dist.reduction")),
    ("sketched", "summed, sketched", ("gradient", 0, 0, "dist.reduction")),
    ("batch norm", "batch norm, summed", ("gradient", 0, 0, "dist.reduction")),
    ("plain", "not reduced", ("gradient", 0, 0, "dist.reduction")),
    ("reduced by hand", "not reduced", ("gradient", 0, 0, "dist.reduction")),
    ("plain", "rate times ranks", ("lr", 0, 0, "dist.batch_scale")),
    ("plain", "other rate", ("lr", 0, 0, "lr.value")),
    ("plain", "loss over ranks", ("loss", 0, 0, "dist.batch_scale")),
    ("plain", "half the batch", ("data", 0, 0, "dist.batch_scale")),
    ("plain", "the same samples", ("data", 0, 0, "dist.sampler")),
    ("sketched", "the same samples, sketched", ("data", 0, 0, "dist.sampler")),
    ("plain", "swapped", ("data", 0, 0, "dist.sampler")),
    ("plain", "blocks", ("data", 0, 0, "dist.sampler")),
    ("filled up", "not filled up", ("data", 2, 1, "dist.sampler")),
    ("batch norm", "synced norm", ("forward", 0, 0, "dist.batch_norm")),
    ("synced norm", "batch norm", ("forward", 0, 0, "dist.batch_norm")),
    ("plain", "other weights on rank 1", ("weights", 0, 1, "dist.rank")),
]
WITH_ONE_PROCESS = [
    ("plain", "plain", OK),
    ("sketched", "sketched", OK),
    ("plain", "reduced by hand", OK),
    ("plain", "swapped", OK),  # together the ranks have the same samples
    ("plain", "blocks", OK),
    ("batch norm", "synced norm", OK),
    ("clipped", "clipped", OK),
    ("clipped", "clipped by hand", OK),
    ("plain", "summed", ("gradient", 0, 0, "dist.reduction")),
    ("sketched", "summed, sketched", ("gradient", 0, 0, "dist.reduction")),
    ("plain", "not reduced", ("gradient", 0, 0, "dist.reduction")),
    ("plain", "rate times ranks", ("lr", 0, 0, "dist.batch_scale")),
    ("plain", "loss over ranks", ("loss", 0, 0, "dist.batch_scale")),
    ("plain", "half the batch", ("data", 0, 0, "dist.batch_scale")),
    ("plain", "the same samples", ("data", 0, 0, "dist.sampler")),
    ("short", "filled up", ("data", 2, 0, "dist.sampler")),
    ("short", "not filled up", ("loss", 2, 0, "dist.batch_scale")),
    ("batch norm", "batch norm", ("forward", 0, 0, "dist.batch_norm")),
    ("plain", "other weights on rank 1", ("weights", 0, 1, "dist.rank")),
]


def check(reference, port, expected):
    report = pf.compare(reference, port)
    first = report.first
    if expected is OK:
        assert report.ok, str(report)
        return report
    assert first is not None, str(report)
    code = first.cause.code if first.cause is not None else None
    assert (first.phase, first.step, first.rank, code) == expected, str(report)
    return report


@pytest.mark.parametrize(("reference", "port", "expected"), RANK_BY_RANK)
@pytest.mark.parametrize("frameworks", [("torch", "paddle"), ("paddle", "torch")], ids=" to ".join)
def test_two_launches(launches, frameworks, reference, port, expected):
    check(launches.path(frameworks[0], 2, reference), launches.path(frameworks[1], 2, port), expected)


@pytest.mark.parametrize(("reference", "port", "expected"), WITH_ONE_PROCESS)
@pytest.mark.parametrize("frameworks", [("torch", "paddle"), ("torch", "torch")], ids=" to ".join)
def test_one_process_and_a_launch(launches, frameworks, reference, port, expected):
    check(launches.path(frameworks[0], 1, reference), launches.path(frameworks[1], 2, port), expected)


@pytest.mark.parametrize(("single", "launched", "expected"), WITH_ONE_PROCESS)
def test_a_launch_and_one_process(launches, single, launched, expected):
    paths = launches.path("paddle", 2, launched), launches.path("torch", 1, single)
    check(*paths, expected)


def test_the_gradients_of_ranks_that_are_not_reduced_are_told_with_their_mean(launches):
    report = check(
        launches.path("torch", 2, "plain"),
        launches.path("paddle", 2, "not reduced"),
        ("gradient", 0, 0, "dist.reduction"),
    )
    assert "not reduced over the ranks; their mean over the 2 ranks is what the reference uses" in (
        report.first.cause.message
    )


def test_ranks_of_both_launches_that_drift_apart_are_noted(launches):
    report = pf.compare(launches.path("torch", 2, "not reduced"), launches.path("paddle", 2, "not reduced"))
    assert report.ok
    notes = [each.message for each in report.findings if each.code == "dist.rank"]
    assert len(notes) == 1
    assert "of rank 1 of the reference differs from that of rank 0" in notes[0]


def test_running_statistics_that_only_one_wrapper_broadcasts_are_noted(launches):
    report = pf.compare(launches.path("torch", 2, "batch norm"), launches.path("paddle", 2, "batch norm"))
    assert report.ok, str(report)
    notes = [each.message for each in report.findings if each.code == "dist.rank"]
    assert len(notes) == 1
    assert "all ranks of the reference begin with the buffers of rank 0" in notes[0]


@pytest.mark.parametrize("name", ["plain", "the same samples"])
def test_a_model_that_is_divided_over_ranks_is_no_data_parallel_one(launches, name):
    divided = launches.path("paddle", 2, "divided")
    whole = launches.path("torch", 1, "plain") if name == "plain" else launches.path("torch", 2, name)
    for pair, side in (((whole, divided), "port"), ((divided, whole), "reference")):
        with pytest.raises(UnsupportedError) as refused:
            pf.compare(*pair)
        assert f"the model of the {side} is divided over its 2 ranks" in refused.value.message
        assert "0.weight" in refused.value.message


def test_two_launches_that_divide_the_model_alike_are_compared_rank_by_rank(launches):
    report = pf.compare(launches.path("torch", 2, "divided"), launches.path("paddle", 2, "divided"))
    assert report.ok, str(report)


def test_one_rank_alone_can_be_compared(launches):
    paths = launches.path("torch", 2, "plain"), launches.path("paddle", 2, "other weights on rank 1")
    assert pf.compare(*paths, rank=0).divergences[0].phase != "weights"
    assert pf.compare(*paths, rank=1).first.phase == "weights"


def test_no_drift_is_told_of_ranks_that_agree(launches):
    report = pf.compare(launches.path("torch", 2, "plain"), launches.path("paddle", 2, "plain"))
    assert report.coverage.count("ranks with each other") == 4 * len({0, 1, 2})
    assert not [each for each in report.findings if each.code.startswith("dist.")]
