"""The benchmark of recorded runs: its table is sound, its scores can fail, a slice of it comes out right."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from benchmarks.recorded_runs.cases import all_cases, mistake_cases
from benchmarks.recorded_runs.correct import correct_cases
from benchmarks.recorded_runs.mistakes import MISTAKES
from benchmarks.recorded_runs.page import page
from benchmarks.recorded_runs.running import Answer, Case, Recordings, answer
from benchmarks.recorded_runs.scoring import Result, judge

pytestmark = pytest.mark.filterwarnings("ignore:When training, we now always track global mean:UserWarning")
BY_NAME = {mistake.name: mistake for mistake in MISTAKES}
# One of every kind, so that the slice takes seconds.
SLICE = (
    "other epsilon of a LayerNorm",
    "keys shared in turn",
    "small epsilon of one's own norm",
    "square matrix untransposed",
    "batches in another order",
    "sum for mean",
    "detach before one of two uses",
    "clipping to another norm",
    "rate one step ahead",
    "no weight decay",
    "other momentum of a BatchNorm",
    "metric in percent",
    "loss weighted on rank 1",
    "run ends in a layer",
)


@pytest.fixture(scope="module")
def recordings(tmp_path_factory: pytest.TempPathFactory) -> Recordings:
    return Recordings(tmp_path_factory.mktemp("runs"))


def test_the_table_is_as_large_as_it_says() -> None:
    assert len(BY_NAME) == len(MISTAKES) >= 60
    assert len(list(correct_cases())) >= 40
    assert set(SLICE) <= set(BY_NAME)
    assert len({case.title for case, _ in all_cases()}) == len(all_cases())


@pytest.mark.parametrize("tensors", ["full", "sketch"])
@pytest.mark.parametrize("name", SLICE)
def test_a_slice_is_located_and_named(recordings: Recordings, name: str, tensors: str) -> None:
    case, mistake = next(
        each for each in mistake_cases() if each[1].name == name and each[0].tensors == tensors
    )
    found = answer(case, recordings)
    assert judge(case, mistake, found).missed == "", found.told


@pytest.mark.parametrize(
    "name", ["perceptron, seed 1", "tables of every sample", "channels last", "two ranks"]
)
def test_a_slice_of_the_correct_ones_is_the_same(recordings: Recordings, name: str) -> None:
    cases = [each for each in correct_cases() if each.name == name and each.kits == ("torch", "paddle")]
    assert cases
    for case in cases:
        found = answer(case, recordings)
        assert found.same, found.told


def test_every_field_of_an_answer_counts() -> None:
    mistake = BY_NAME["rate one step ahead"]
    case = Case(mistake.name, mistake.side, mistake.plant(mistake.side))
    right = Answer(False, "lr", 1, 0, "", "learning rate", "lr.offset")
    wrong = {
        "not detected": Answer(True),
        "not located": replace(right, step=0),
        "located, not named": replace(right, code="lr.value"),
    }
    assert judge(case, mistake, right).missed == ""
    for words, each in wrong.items():
        assert judge(case, mistake, each).missed == words
    for each in (replace(right, phase="data"), replace(right, rank=1), replace(right, path="conv1")):
        assert judge(case, mistake, each).missed == "not located"
    assert judge(case, mistake, replace(right, error="ValueError: no")).missed == "not detected"


def test_a_noted_mistake_must_be_noted_and_not_more() -> None:
    mistake = BY_NAME["small epsilon of one's own norm"]
    case = Case(mistake.name, mistake.side, mistake.plant(mistake.side))
    noted = Answer(True, findings=(("run.settings", "layers.0.norm1 Norm epsilon: 1e-05, 2e-05"),))
    assert judge(case, mistake, noted).missed == ""
    assert judge(case, mistake, Answer(True)).missed == "not detected"
    assert judge(case, mistake, replace(noted, same=False)).missed == "not located"


def test_the_page_has_every_miss_by_name() -> None:
    mistake = BY_NAME["no clipping"]
    case = Case(mistake.name, mistake.side, mistake.plant(mistake.side))
    result = Result([judge(case, mistake, Answer(True))], [(case, Answer(False, "loss"))], correct=3)
    text = page(result)
    assert "- **no clipping**: not detected (torch to paddle, full). It says: same" in text
    assert "False alarms: 1 of 3 correct pairs" in text
    assert "**False alarm**: no clipping" in text
    assert not result.clean


def test_kinds_of_mistakes() -> None:
    kinds = Counter(mistake.group for mistake in MISTAKES)
    wanted = {"forward", "backward", "loss", "buffers", "schedule", "ranks", "logs", "settings", "weights"}
    assert wanted <= set(kinds)
