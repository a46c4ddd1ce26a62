"""Whole numbers of datasets: a rule is told where it holds of all samples, not where one is against it."""

from __future__ import annotations

import numpy as np
import pytest

import parfocal as pf
from parfocal.explain.sample_labels import label_cause

LABELS = np.array([0, 1, 2, 1, 0, 2, 2, 1, 0, 0])
ROWS = [np.array(row) for row in ([5, 6, 7, 0, 0], [8, 1, 0, 0, 0], [9, 2, 3, 4, 0], [1, 5, 0, 0, 0])]
TEXTS = [np.random.default_rng(seed).integers(2, 60, size) for seed, size in enumerate((14, 17, 12, 16, 18))]
HEADS, TAILS = ([each[part] for each in TEXTS] for part in (slice(None, 12), slice(-12, None)))


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
    "the last words": (
        list(zip(HEADS, TAILS, strict=True)),
        "data.crop",
        "the port's sequences begin 2-6 places later than the reference's",
    ),
    "the first words": (
        list(zip(TAILS, HEADS, strict=True)),
        "data.crop",
        "the port's sequences begin 2-6 places earlier than the reference's",
    ),
    "without the first word": (
        [(row[:-1], row[1:]) for row in TEXTS],
        "data.crop",
        "the port's sequences begin 1 place later than the reference's",
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
        [*zip(HEADS, TAILS, strict=True), (TEXTS[0][:12], TEXTS[1][:12])],  # one is another text
        [(HEADS[0], TAILS[0]), (TAILS[1], HEADS[1])],  # now later, now earlier
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


def masks(blend: bool) -> list[np.ndarray]:
    """Boxes of labels; ``blend``: their rims are means, as a bilinear resize makes them."""
    found = []
    for seed in range(4):
        mask = np.zeros((16, 16))
        top, left = np.random.default_rng(seed).integers(2, 7, 2)
        mask[top : top + 7, left : left + 7] = (40, 100, 180, 255)[seed]
        if blend:
            mask[top, left : left + 7] *= 0.25 + seed / 9
            mask[top + 6, left : left + 7] *= 0.75 - seed / 9
        found.append(mask.astype(np.int64))
    return found


@pytest.mark.parametrize("blended", ["port", "reference"])
def test_masks_that_were_interpolated_are_told(blended: str) -> None:
    sides = masks(blended == "reference"), masks(blended == "port")
    cause = label_cause(list(zip(*sides, strict=True)))
    assert cause is not None
    assert (cause.code, cause.proof) == ("data.resize", None)
    assert cause.message.startswith(f"the {blended} has numbers that the ")


def test_masks_of_other_objects_were_not_interpolated() -> None:
    """The same labels elsewhere; and pictures, whose numbers are many on both sides."""
    moved = [(each, np.roll(each, 3, axis=1)) for each in masks(False)]
    assert label_cause(moved) is None
    generator = np.random.default_rng(0)
    pictures = [generator.integers(0, 256, (8, 8, 3)) for _ in range(4)]
    assert label_cause([(each, np.clip(each + 1, 0, 255)) for each in pictures]) is None
