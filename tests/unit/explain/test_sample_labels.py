"""Whole numbers of datasets: a rule is told where it holds of all samples, not where one is against it."""

from __future__ import annotations

import numpy as np
import pytest

import parfocal as pf
from parfocal.explain.sample_labels import label_cause

LABELS = np.array([0, 1, 2, 1, 0, 2, 2, 1, 0, 0])
ROWS = [np.array(row) for row in ([5, 6, 7, 0, 0], [8, 1, 0, 0, 0], [9, 2, 3, 4, 0], [1, 5, 0, 0, 0])]


def scalars(ours: np.ndarray, theirs: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    return [(np.asarray(a), np.asarray(b)) for a, b in zip(ours, theirs, strict=True)]


def in_front(row: np.ndarray) -> np.ndarray:
    held = row[row != 0]
    return np.concatenate([np.zeros(len(row) - len(held), int), held])


TOLD = {
    "from 1": (scalars(LABELS, LABELS + 1), "data.label", "the port's labels are the reference's plus 1"),
    "another numbering": (scalars(LABELS, (LABELS + 1) % 3), "data.label", "numbers the labels otherwise"),
    "vectors": (
        scalars(LABELS, np.eye(3, dtype="float32")[LABELS]),
        "data.label",
        "the port gives labels as vectors of zeros and a one, the reference their numbers",
    ),
    "numbers": (
        scalars(np.eye(3, dtype="int64")[LABELS], LABELS),
        "data.label",
        "the reference gives labels as vectors of zeros and a one, the port their numbers",
    ),
    "other samples'": (
        scalars(LABELS, np.roll(LABELS, 1)),
        "data.label",
        "the port gives the same labels to other samples: 7 of 10 samples have another's",
    ),
    "another fill": (
        [(row, np.where(row == 0, 1, row)) for row in ROWS],
        "data.label",
        "wherever the reference has 0 the port has 1; all other numbers agree",
    ),
    "filled in front": (
        [(row, in_front(row)) for row in ROWS],
        "data.crop",
        "the reference fills up with 0 at the end, the port at the beginning",
    ),
    "filled behind": (
        [(in_front(row), row) for row in ROWS],
        "data.crop",
        "the reference fills up with 0 at the beginning, the port at the end",
    ),
}


@pytest.mark.parametrize("name", TOLD)
def test_a_rule_that_holds_is_told(name: str) -> None:
    pairs, code, words = TOLD[name]
    cause = label_cause(pairs)
    assert cause is not None
    assert cause.code == code
    assert words in cause.message


@pytest.mark.parametrize(
    "pairs",
    [
        scalars(LABELS, np.where(np.arange(10) == 4, 2, LABELS)),  # one label is wrong
        scalars(LABELS, np.eye(3)[(LABELS + 1) % 3]),  # vectors of other labels
        [(row, np.where((row == 0) & (np.arange(5) > 3), 1, row)) for row in ROWS],  # not everywhere
        [(row, np.roll(in_front(row), 1)) for row in ROWS],  # not at the end
        [(np.float32([0.5]), np.float32([1.5]))] * 5,
    ],
)
def test_a_rule_that_one_sample_is_against_is_not_told(pairs: list) -> None:
    assert label_cause(pairs) is None


def test_samples_that_agree_speak_against_another_numbering() -> None:
    """Some labels of two classes are wrong, each the other one: that is no other numbering."""
    inputs = np.random.default_rng(0).standard_normal((40, 3)).astype("float32")
    labels = np.arange(40) % 2
    wrong = labels.copy()
    wrong[[3, 8, 9]] = 1 - wrong[[3, 8, 9]]
    report = pf.compare_data(list(zip(inputs, labels, strict=True)), list(zip(inputs, wrong, strict=True)))
    assert report.first is not None
    assert report.first.cause is None
    other = pf.compare_data(
        list(zip(inputs, labels, strict=True)), list(zip(inputs, 1 - labels, strict=True))
    )
    assert other.first is not None
    assert other.first.cause is not None
    assert "numbers the labels otherwise: 0 is 1, 1 is 0" in other.first.cause.message
