"""What is stated of a data set against what is read: number, classes, shape, dtype."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from parfocal.workflow.guide import data_facts
from parfocal.workflow.guide.data_facts import ANY, DataFacts, judge_facts, read_facts


class Loader:
    """Batches of a dataset, as a framework's loader gives them."""

    def __init__(
        self, samples: list[Any], size: int, *, drop_last: bool = False, dataset: Any = None
    ) -> None:
        stop = len(samples) // size * size if drop_last else len(samples)
        self.batches = [samples[at : at + size] for at in range(0, stop, size)]
        if dataset is not None:
            self.dataset = dataset

    def __len__(self) -> int:
        return len(self.batches)

    def __iter__(self) -> Any:
        for batch in self.batches:
            yield tuple(np.stack([np.asarray(sample[place]) for sample in batch]) for place in (0, 1))


def made(count: int, classes: int, shape: tuple[int, ...] = (3, 8, 8)) -> list[Any]:
    return [(np.zeros(shape, "float32"), np.int64(index % classes)) for index in range(count)]


def wrong(stated: DataFacts, source: Any, other: Any = None) -> list[str]:
    read = [read_facts(source, "reference"), read_facts(source if other is None else other, "port")]
    return [each.key for each in judge_facts(stated, read)[0]]


RIGHT = DataFacts(100, 10, (3, 8, 8), "float32")
OTHER = {
    "samples": DataFacts(99, 10, (3, 8, 8), "float32"),
    "classes": DataFacts(100, 11, (3, 8, 8), "float32"),
    "shape": DataFacts(100, 10, (8, 8, 3), "float32"),
    "dtype": DataFacts(100, 10, (3, 8, 8), "float64"),
}


@pytest.mark.parametrize("source", [made(100, 10), Loader(made(100, 10), 16)], ids=["dataset", "loader"])
def test_each_fact_by_itself(source: Any) -> None:
    assert wrong(RIGHT, source) == []
    for key, stated in OTHER.items():
        assert wrong(stated, source) == [key]


def test_one_side_is_enough_and_both_are_told() -> None:
    read = [read_facts(made(count, 10), "reference") for count in (100, 90)]
    (found,), _ = judge_facts(RIGHT, read)
    assert (found.key, found.sides) == ("samples", ("100", "90"))


def test_all_wrong_at_once_are_told_in_order() -> None:
    assert wrong(DataFacts(1, 2, (3,), "int8"), made(100, 10)) == ["samples", "classes", "shape", "dtype"]


def test_a_dropped_last_batch_hides_no_more_than_a_batch() -> None:
    samples = made(100, 10)
    dropping = Loader(samples, 16, drop_last=True, dataset=samples)
    assert wrong(DataFacts(samples=100), dropping) == []
    assert wrong(DataFacts(samples=96), dropping) == []  # what the loader itself says
    assert wrong(DataFacts(samples=120), dropping) == ["samples"]
    part = Loader(samples[:50], 16, dataset=samples)  # a sampler that takes half
    assert wrong(DataFacts(samples=100), part) == ["samples"]
    assert wrong(DataFacts(samples=50), part) == []


LABELS = {
    "one-hot": ([np.eye(4, dtype="float32")[index % 4] for index in range(20)], 4),
    "soft": ([np.full(5, 0.2, "float32")] * 20, 5),
    "several at once": ([np.array([1, 0, 1]), np.array([0, 0, 1])], 3),
    "words": (["cat", "dog", "cat", "bird"], 3),
    "from one": ([1, 2, 3, 3], 3),
    "floats that are whole": ([np.float32(0), np.float32(1)], 2),
    "pictures of classes": ([np.array([[0, 1], [2, 255]]), np.array([[0, 0], [2, 255]])], 3),
    "words of a text": ([np.array([0, 7, 7, 300000, 5, 2]), np.array([7, 1, 1, 1, 1, 1])], 6),
}


@pytest.mark.parametrize("kind", LABELS)
def test_labels_of_every_kind(kind: str) -> None:
    labels, count = LABELS[kind]
    samples = [(np.zeros(2, "float32"), label) for label in labels]
    for number in range(1, 9):
        stated = DataFacts(classes=number, ignored=255)
        fits = number == count or (kind == "several at once" and number == 2)  # or two labels, in rows
        assert wrong(stated, samples) == ([] if fits else ["classes"]), number


def test_labels_that_are_no_classes_are_told() -> None:
    read = read_facts([(np.zeros(2), np.float32(0.25)), (np.zeros(2), np.float32(0.5))], "reference")
    (found,), _ = judge_facts(DataFacts(classes=2), [read, read])
    assert found.sides[0] == "labels that are no classes (float32 0.25)"


def test_lengths_that_vary() -> None:
    samples = [(np.zeros((3, size, 4)), 0) for size in (5, 6, 7)]
    assert wrong(DataFacts(shape=(3, ANY, 4)), samples) == []
    assert wrong(DataFacts(shape=(3, ANY, ANY)), samples) == []
    assert wrong(DataFacts(shape=(3, 5, 4)), samples) == ["shape"]
    assert wrong(DataFacts(shape=(ANY, ANY)), samples) == ["shape"]


class Sorted:
    """More samples than are read, sorted by class, as data sets on disk are."""

    def __init__(self, count: int, classes: int) -> None:
        self.count, self.classes, self.asked = count, classes, 0

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> Any:
        self.asked += 1
        return np.zeros(1, "float32"), index * self.classes // self.count


def test_of_many_samples_a_part_is_read_and_every_class_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(data_facts, "MOST_READ", 200)
    source = Sorted(5000, 50)
    assert wrong(DataFacts(5000, 50), source) == []
    assert source.asked <= 400  # for both sides
    assert wrong(DataFacts(5000, 49), source) == ["classes"]
    assert wrong(DataFacts(5001, 50), source) == ["samples"]


def test_what_a_part_cannot_decide_is_said_and_is_no_mistake(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(data_facts, "MOST_READ", 20)
    read = [read_facts(Sorted(5000, 50), "reference")] * 2
    mistakes, undecided = judge_facts(DataFacts(classes=50), read)
    assert mistakes == []
    assert undecided == [
        "classes: 50 stated, 20 (from 0 to 49) in the reference and 20 (from 0 to 49) in the port among the "
        "samples that were read: not decided"
    ]


def test_a_stream_without_an_end_is_not_read_to_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(data_facts, "MOST_READ", 64)

    def endless() -> Any:
        while True:
            yield np.zeros((16, 3), "float32"), np.arange(16)

    read = [read_facts(endless(), "reference"), read_facts(endless(), "port")]
    assert judge_facts(DataFacts(samples=10_000), read)[0] == []
    (found,), _ = judge_facts(DataFacts(samples=50), read)
    assert found.sides == ("64 or more", "64 or more")


@given(
    st.lists(st.lists(st.integers(-3, 70_000), min_size=1, max_size=9), min_size=1, max_size=6),
    st.integers(-1, 3),
)
def test_classes_are_the_different_labels(rows: list[list[int]], ignored: int) -> None:
    distinct = {label for row in rows for label in row} - {ignored}
    samples = [(np.zeros(1), np.array(row)) for row in rows]
    binary = {len(row) for row in rows} if all({*row} <= {0, 1} and len(row) > 1 for row in rows) else set()
    for number in range(1, 12):
        fits = number == len(distinct) or binary == {number}
        assert (wrong(DataFacts(classes=number, ignored=ignored), samples) == []) == fits
