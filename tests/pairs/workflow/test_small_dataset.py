"""``small_dataset``: balanced, the same by the same seed, and read back by both frameworks as it was."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import paddle
import pytest
import scipy
import torch
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

import parfocal as pf
from parfocal.errors import EmptyComparisonError, InputError
from parfocal.workflow.small_datasets import png_of
from tests.pairs.vision import torchvision_datasets

GENERATOR = np.random.default_rng(0)
COUNT, KINDS = 240, 12
LABELS = GENERATOR.integers(0, KINDS, COUNT)
PICTURES = GENERATOR.integers(0, 256, (COUNT, 5, 7, 3)).astype("uint8")
SAMPLES = list(zip(PICTURES, LABELS, strict=True))


class OfTorch(torch.utils.data.Dataset):  # type: ignore[type-arg]
    def __len__(self) -> int:
        return COUNT

    def __getitem__(self, index: int) -> Any:
        return Image.fromarray(PICTURES[index]), int(LABELS[index])


class OfPaddle(paddle.io.Dataset):  # type: ignore[misc]
    def __len__(self) -> int:
        return COUNT

    def __getitem__(self, index: int) -> Any:
        return PICTURES[index], LABELS[index]


def files(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in sorted(folder.rglob("*.png"))}


def test_both_frameworks_give_the_same_pictures_and_read_them_as_they_were(tmp_path: Path) -> None:
    ours = pf.small_dataset(OfTorch(), tmp_path / "ours", per_class=3, seed=4)
    theirs = pf.small_dataset(OfPaddle(), tmp_path / "theirs", per_class=3, seed=4)
    assert files(ours) == files(theirs)
    assert len(files(ours)) == 3 * KINDS
    for read in (
        torchvision_datasets.ImageFolder(str(ours)).samples,
        paddle.vision.datasets.DatasetFolder(str(ours)).samples,
    ):
        assert Counter(label for _, label in read) == dict.fromkeys(range(KINDS), 3)
        for path, label in read:
            index = int(Path(path).stem)
            assert LABELS[index] == label
            np.testing.assert_array_equal(np.asarray(Image.open(path)), PICTURES[index])


def test_another_seed_takes_others_and_the_same_takes_the_same(tmp_path: Path) -> None:
    made = [
        files(pf.small_dataset(SAMPLES, tmp_path / str(number), per_class=3, seed=seed))
        for number, seed in enumerate((0, 1, 0))
    ]
    assert made[0] == made[2]
    assert made[0].keys() != made[1].keys()


def test_each_sample_of_a_class_is_taken_as_often_as_any_other(tmp_path: Path) -> None:
    """The first and the last as well: against a uniform distribution, at one false alarm in 10,000."""
    samples = [(np.full((1, 1), index, "uint8"), 0) for index in range(20)]
    taken: Counter[int] = Counter()
    for seed in range(1000):
        out = pf.small_dataset(samples, tmp_path / "x", per_class=5, form="batches", seed=seed)
        taken.update(
            int(value) for inputs, _ in pf.load_batches(out, "numpy") for value in inputs.reshape(-1)
        )
    assert sum(taken.values()) == 5000
    # drawn without putting back: the counts vary by 15/19 of what independent draws would
    statistic = sum((taken[index] - 250) ** 2 / 250 for index in range(20)) / (15 / 19)
    assert scipy.stats.chi2.sf(statistic, 19) > 1e-4


@pytest.mark.parametrize("framework", ["torch", "paddle", "numpy"])
def test_batches_are_balanced_and_mixed(tmp_path: Path, framework: str) -> None:
    loader = torch.utils.data.DataLoader([(picture, int(label)) for picture, label in SAMPLES], batch_size=32)
    out = pf.small_dataset(loader, tmp_path / "small.safetensors", per_class=4, form="batches", batch_size=10)
    batches = pf.load_batches(out, framework)
    assert [len(labels) for _, labels in batches] == [10, 10, 10, 10, 8]
    labels = np.concatenate([np.asarray(each) for _, each in batches])
    assert Counter(labels.tolist()) == dict.fromkeys(range(KINDS), 4)
    assert len(set(labels[:10].tolist())) > 3  # not sorted by class
    known = {picture.tobytes(): label for picture, label in SAMPLES}
    for inputs, own in batches:
        for picture, label in zip(np.asarray(inputs), np.asarray(own), strict=True):
            assert known[picture.tobytes()] == label


class Counting(OfTorch):
    def __init__(self) -> None:
        self.read: list[int] = []

    def __getitem__(self, index: int) -> Any:
        self.read.append(index)
        return super().__getitem__(index)


def test_with_the_labels_no_more_is_read_than_is_taken(tmp_path: Path) -> None:
    source = Counting()
    made = pf.small_dataset(source, tmp_path / "few", per_class=2, labels=LABELS)
    assert len(source.read) == 2 * KINDS
    whole = pf.small_dataset(OfTorch(), tmp_path / "all", per_class=2)
    assert files(made) == files(whole)
    with pytest.raises(InputError, match=r"sample \d+ has the label \d+, not \d+"):
        pf.small_dataset(source, tmp_path / "wrong", per_class=2, labels=np.roll(LABELS, 1))
    with pytest.raises(InputError, match="3 labels for a dataset of 240"):
        pf.small_dataset(source, tmp_path / "wrong", labels=[0, 1, 2])


def test_words_are_folders(tmp_path: Path) -> None:
    samples = [(picture, ("cat", "dog")[index % 2]) for index, picture in enumerate(PICTURES[:8])]
    made = pf.small_dataset(samples, tmp_path / "words", per_class=2)
    assert {path.name for path in made.iterdir()} == {"cat", "dog"}


WRONG = {
    "too few": (SAMPLES[:13], {"per_class": 9}, "have fewer than 9 samples"),
    "no label": ([PICTURES[0]] * 3, {}, r"sample 0 is .*, not \(input, label\)"),
    "a label of several": (
        [(PICTURES[0], np.zeros(3))] * 3,
        {},
        "the label of sample 0 is .*, not one class",
    ),
    "floats": ([(PICTURES[0] / 255.0, 0)], {"per_class": 1}, r"the first float64\[5, 7, 3\]: not a picture"),
    "a way out": ([(PICTURES[0], "../x")], {"per_class": 1}, "cannot be the name of a folder"),
    "no number": (SAMPLES, {"per_class": 0}, "per_class=0 is not a whole number from 1"),
    "no form": (SAMPLES, {"form": "video"}, "form='video' is not known"),
}


@pytest.mark.parametrize("kind", WRONG)
def test_what_cannot_be_made_is_one_error_and_leaves_nothing(tmp_path: Path, kind: str) -> None:
    samples, arguments, message = WRONG[kind]
    with pytest.raises(InputError, match=message):
        pf.small_dataset(samples, tmp_path / "out", **arguments)
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_written_over_and_nothing_is_made_of_nothing(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is there already"):
        pf.small_dataset(SAMPLES, tmp_path, per_class=1)
    with pytest.raises(EmptyComparisonError):
        pf.small_dataset([], tmp_path / "none")


@given(st.integers(1, 9), st.integers(1, 9), st.sampled_from([1, 3, 4]), st.integers(0, 99))
def test_a_png_is_read_by_another_library_as_it_was_written(
    rows: int, columns: int, channels: int, seed: int
) -> None:
    from io import BytesIO

    picture = np.random.default_rng(seed).integers(0, 256, (rows, columns, channels)).astype("uint8")
    with Image.open(BytesIO(png_of(picture))) as found:
        found.load()
        np.testing.assert_array_equal(np.asarray(found).reshape(picture.shape), picture)
