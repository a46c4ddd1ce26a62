"""Datasets and loaders of the two frameworks: the same are the same, and every planted mistake is named."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import paddle
import pytest
import torch
from PIL import Image

import parfocal as pf
from parfocal.errors import EmptyComparisonError, FileFormatError, InputError

COUNT, SIZE = 60, 24
GENERATOR = np.random.default_rng(0)


def smooth(generator: np.random.Generator, size: int) -> np.ndarray[Any, Any]:
    """A picture with shapes in it, as pictures have."""
    coarse = generator.integers(0, 256, (6, 6, 3)).astype("uint8")
    return np.asarray(Image.fromarray(coarse).resize((size, size), Image.Resampling.BICUBIC))


PICTURES = [smooth(GENERATOR, 40) for _ in range(COUNT)]
LABELS = GENERATOR.integers(0, 5, COUNT)
MEAN, STD = np.asarray([0.485, 0.456, 0.406], "float32"), np.asarray([0.229, 0.224, 0.225], "float32")

Change = Callable[[np.ndarray[Any, Any]], np.ndarray[Any, Any]]


def prepared(
    index: int,
    *,
    mean: Any = MEAN,
    std: Any = STD,
    resample: Image.Resampling = Image.Resampling.BILINEAR,
    corner: tuple[int, int] = (4, 4),
    change: Change = lambda x: x,
) -> np.ndarray[Any, Any]:
    picture = Image.fromarray(PICTURES[index]).resize((32, 32), resample)
    picture = picture.crop((corner[1], corner[0], corner[1] + SIZE, corner[0] + SIZE))
    values = (np.asarray(picture, dtype="float32") / 255 - mean) / std
    return np.ascontiguousarray(change(values.transpose(2, 0, 1)), dtype="float32")


class TorchData(torch.utils.data.Dataset):
    def __len__(self) -> int:
        return COUNT

    def __getitem__(self, index: int) -> tuple[Any, int]:
        return torch.from_numpy(prepared(index)), int(LABELS[index])


class PaddleData(paddle.io.Dataset):
    def __init__(
        self, *, label: Callable[[int], int] = lambda y: y, count: int = COUNT, **changes: Any
    ) -> None:
        super().__init__()
        self.label, self.count, self.changes = label, count, changes

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        return prepared(index, **self.changes), np.int64(self.label(int(LABELS[index])))


def test_the_same_data_is_the_same() -> None:
    report = pf.compare_data(TorchData(), PaddleData())
    assert report.ok, report
    assert report.coverage.count("samples") == COUNT
    assert report.coverage.count("fields") == 2


def torch_loader(**options: Any) -> Any:
    return torch.utils.data.DataLoader(TorchData(), batch_size=8, **options)


def paddle_loader(data: Any = None, **options: Any) -> Any:
    return paddle.io.DataLoader(data or PaddleData(), **{"batch_size": 8, **options})


def test_the_same_loaders_are_the_same() -> None:
    report = pf.compare_data(torch_loader(), paddle_loader())
    assert report.ok, report
    assert report.coverage.count("samples") == COUNT


WRONG: dict[str, tuple[Any, str, str]] = {
    "normalisation": (
        {"mean": np.float32(0.5), "std": np.float32(0.5)},
        "data.normalisation",
        "the reference is ImageNet's mean and std, the port mean 0.5, std 0.5",
    ),
    "not normalised": (
        {"mean": np.float32(0), "std": np.float32(1)},
        "data.normalisation",
        "the port not normalised",
    ),
    "values to 255": (
        {"mean": np.float32(0), "std": np.float32(1 / 255)},
        "data.normalisation",
        "the port values from 0 to 255",
    ),
    "channels": ({"change": lambda x: x[::-1]}, "data.channel_order", "channels are reversed"),
    "channels before normalising": (
        {"mean": MEAN[::-1], "std": STD[::-1], "change": lambda x: x[::-1]},
        "data.channel_order",
        "channels are reversed in the port before they are normalised",
    ),
    "not divided by 255": (
        {"mean": MEAN / 255, "std": STD / 255},
        "data.normalisation",
        "the port ImageNet's mean and std, applied to values from 0 to 255",
    ),
    "layout": ({"change": lambda x: x.transpose(1, 2, 0)}, "layout.permuted", "in the order [1, 2, 0]"),
    "resize": ({"resample": Image.Resampling.NEAREST}, "data.resize", "resampled otherwise"),
    "interpolation": ({"resample": Image.Resampling.BICUBIC}, "data.resize", "resampled otherwise"),
    "crop": ({"corner": (2, 7)}, "data.crop", "2 rows up and 3 columns right"),
    "mirrored": ({"change": lambda x: x[:, :, ::-1]}, "data.crop", "mirrored along axis 2"),
    "labels from 1": ({"label": lambda y: y + 1}, "data.label", "plus 1"),
    "labels renumbered": ({"label": lambda y: (3 * y + 1) % 5}, "data.label", "0 is 1, 1 is 4"),
    "fewer": ({"count": COUNT - 7}, "data.length", "60 samples in the reference, 53 in the port"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_mistake_is_found_and_named(name: str) -> None:
    changes, code, words = WRONG[name]
    report = pf.compare_data(TorchData(), PaddleData(**changes))
    assert report.first is not None
    assert report.first.phase == "data"
    assert report.first.cause is not None, report
    assert report.first.cause.code == code, report
    assert words in report.first.cause.message
    assert len(report.divergences) == 1


BGR_BEFORE = {"mean": MEAN[::-1], "std": STD[::-1], "change": lambda x: x[::-1]}
# several mistakes at once -> the code of the first, and what is said of each
SEVERAL: dict[str, tuple[Any, str, list[str]]] = {
    "channels and interpolation": (
        {**BGR_BEFORE, "resample": Image.Resampling.BICUBIC},
        "data.channel_order",
        ["before they are normalised", "resampled otherwise"],
    ),
    "channels after normalising, and interpolation": (
        {"change": lambda x: x[::-1], "resample": Image.Resampling.BICUBIC},
        "data.channel_order",
        ["the 3 channels are reversed in the port (RGB against BGR)", "resampled otherwise"],
    ),
    "channels and crop": (
        {**BGR_BEFORE, "corner": (2, 7)},
        "data.channel_order",
        ["before they are normalised", "2 rows up and 3 columns right"],
    ),
    "channels and constants": (
        {"mean": np.float32(0.5), "std": np.float32(0.5), "change": lambda x: x[::-1]},
        "data.channel_order",
        ["channels are reversed", "the reference is ImageNet's mean and std, the port mean 0.5, std 0.5"],
    ),
    "constants and interpolation": (
        {"mean": np.float32(0.5), "std": np.float32(0.5), "resample": Image.Resampling.BICUBIC},
        "data.normalisation",
        ["the reference is ImageNet's mean and std, the port mean 0.5, std 0.5", "resampled otherwise"],
    ),
    "layout and constants": (
        {"mean": np.float32(0), "std": np.float32(1), "change": lambda x: x.transpose(1, 2, 0)},
        "layout.permuted",
        ["in the order [1, 2, 0]", "the port not normalised"],
    ),
    "mirrored and crop": (
        {"corner": (6, 4), "change": lambda x: x[:, :, ::-1]},
        "data.crop",
        ["mirrored along axis 2", "2 rows down and 0 columns right"],
    ),
}


@pytest.mark.parametrize("name", SEVERAL)
def test_several_mistakes_are_told_together(name: str) -> None:
    changes, code, words = SEVERAL[name]
    report = pf.compare_data(TorchData(), PaddleData(**changes))
    assert report.first is not None
    assert report.first.cause is not None, report
    assert report.first.cause.code == code, report
    message = report.first.cause.message
    assert message.count(", and ") == len(words) - 1, message
    assert [each for each in words if each in message] == words, message


def test_other_pictures_have_no_cause() -> None:
    """Neither steps together nor a scale make one thing of two."""
    report = pf.compare_data(
        [(prepared(index), 0) for index in range(8)], [(prepared(index + 8), 0) for index in range(8)]
    )
    assert report.first is not None
    assert report.first.cause is None, report


def test_a_dropped_batch() -> None:
    report = pf.compare_data(torch_loader(), paddle_loader(drop_last=True))
    assert report.first is not None
    assert report.first.cause is not None
    assert report.first.cause.code == "data.length"
    assert "the port drops the last, incomplete batch" in report.first.cause.message
    assert "drop_last=False" in report.first.cause.fix


def test_another_batch_size() -> None:
    report = pf.compare_data(torch_loader(), paddle_loader(batch_size=12))
    assert report.first is not None
    assert "batches of 8 in the reference, of 12 in the port" in report.first.what


def test_shuffling_that_is_not_there() -> None:
    torch.manual_seed(0)
    report = pf.compare_data(torch_loader(shuffle=True), paddle_loader())
    assert report.first is not None
    assert report.first.cause is not None
    assert report.first.cause.code == "data.order"
    assert "the reference shuffles, the port does not" in report.first.cause.message


class Reordered(PaddleData):
    def __init__(self, order: Any, **changes: Any) -> None:
        super().__init__(**changes)
        self.order = order

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        return super().__getitem__(int(self.order[index]))


@pytest.mark.parametrize(
    ("order", "words"),
    [
        (np.arange(COUNT)[::-1], "in reverse"),
        (np.random.default_rng(1).permutation(COUNT), "in another order ("),
        (np.arange(COUNT) ^ 1, "in another order (1, 0, 3, 2"),
    ],
)
def test_another_order_is_found_as_a_permutation(order: Any, words: str) -> None:
    report = pf.compare_data(TorchData(), Reordered(order))
    assert report.first is not None
    assert report.first.cause is not None, report
    assert report.first.cause.code == "data.order"
    assert words in report.first.cause.message


def test_another_order_is_seen_through_another_normalisation() -> None:
    order = np.random.default_rng(1).permutation(COUNT)
    report = pf.compare_data(TorchData(), Reordered(order, mean=np.float32(0.5), std=np.float32(0.5)))
    assert report.first is not None
    assert report.first.cause is not None, report
    assert report.first.cause.code == "data.order"


def test_only_so_many_samples() -> None:
    report = pf.compare_data(TorchData(), PaddleData(count=COUNT), samples=10)
    assert report.ok
    assert "samples after the first 10 (samples=10)" in " ".join(str(report).split())


def test_a_difference_without_a_known_cause() -> None:
    def noisy(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        return np.where(np.indices(values.shape).sum(0) % 7 == 0, -values * 3, values)

    report = pf.compare_data(TorchData(), PaddleData(change=noisy))
    assert report.first is not None
    assert report.first.cause is None


def test_words_and_dicts_are_compared() -> None:
    ours = [{"text": f"sentence {n}", "ids": np.arange(n + 5)} for n in range(8)]
    theirs = [{"text": f"sentence {n}", "ids": np.arange(n + 5)} for n in range(8)]
    assert pf.compare_data(ours, theirs).ok
    theirs[3]["text"] = "another"
    report = pf.compare_data(ours, theirs)
    assert report.first is not None
    assert report.first.what.startswith("field text of sample 3")


def test_what_only_one_side_has_and_other_dtypes_are_told() -> None:
    ours = [{"x": np.ones(3, "float32") * n, "id": n} for n in range(5)]
    theirs = [{"x": np.ones(3, "float64") * n} for n in range(5)]
    report = pf.compare_data(ours, theirs)
    assert report.ok
    text = " ".join(str(report).split())
    assert "field id (only the reference has it)" in text
    assert "x is float32 in the reference, float64 in the port" in text


def test_nothing_to_compare_is_an_error() -> None:
    with pytest.raises(EmptyComparisonError, match="the port has no samples"):
        pf.compare_data(TorchData(), [])
    with pytest.raises(EmptyComparisonError, match="no field in common"):
        pf.compare_data([{"a": 1}], [{"b": 1}])
    with pytest.raises(InputError, match="neither a dataset nor a loader"):
        pf.compare_data(TorchData(), 3)
    data = TorchData()
    with pytest.raises(InputError, match="compared with itself"):
        pf.compare_data(data, data)

    class Broken(PaddleData):
        def __getitem__(self, index: int) -> Any:
            raise OSError("no such file: 3.jpg")

    with pytest.raises(InputError, match=r"the port raised OSError at sample 0: no such file: 3\.jpg"):
        pf.compare_data(TorchData(), Broken())


def test_a_card_of_a_dataset() -> None:
    card = pf.data_card(PaddleData())
    assert card.count == COUNT
    picture, label = card.fields
    values = np.stack([prepared(index) for index in range(COUNT)]).astype("float64")
    assert picture.mean == pytest.approx(values.mean())
    assert picture.std == pytest.approx(values.std())
    assert (picture.minimum, picture.maximum) == (values.min(), values.max())
    assert picture.shapes == ((3, SIZE, SIZE),)
    assert label.classes == {
        int(k): int(n) for k, n in zip(*np.unique(LABELS, return_counts=True), strict=True)
    }
    assert card.to_json()["count"] == COUNT
    assert "PaddleData: 60 samples" in str(card)
    assert pf.data_card(TorchData()).hash == card.hash
    turned = pf.data_card(Reordered(np.arange(COUNT)[::-1]))
    assert turned.hash != card.hash
    assert turned.unordered_hash == card.unordered_hash
    with pytest.raises(EmptyComparisonError):
        pf.data_card([])


@pytest.mark.parametrize("framework", ["torch", "paddle", "numpy"])
def test_batches_of_one_side_for_the_other(tmp_path: Path, framework: str) -> None:
    path = pf.save_batches(torch_loader(), tmp_path / "batches.safetensors", 3)
    batches = pf.load_batches(path, framework)
    assert len(batches) == 3
    for index, (batch, expected) in enumerate(zip(batches, torch_loader(), strict=False)):
        assert type(batch) is type(expected), index
        for ours, theirs in zip(batch, expected, strict=True):
            np.testing.assert_array_equal(np.asarray(ours), theirs.numpy())
            assert type(ours).__module__.partition(".")[0] == framework
    assert pf.compare_data(batches, list(torch_loader())[:3]).ok


def test_batches_keep_their_structure(tmp_path: Path) -> None:
    given = [{"x": np.ones((2, 3), "float32"), "more": [np.arange(2), None, "word"], "n": 3}]
    path = pf.save_batches(given, tmp_path / "b.safetensors", 1)
    (batch,) = pf.load_batches(path, "numpy")
    assert batch.keys() == {"x", "more", "n"}
    np.testing.assert_array_equal(batch["x"], given[0]["x"])
    assert batch["more"][1:] == [None, "word"]


def test_bad_files_and_calls_are_told(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="the loader gave 1 batches, 2 were asked for"):
        pf.save_batches([np.ones(2)], tmp_path / "b.safetensors", 2)
    assert not (tmp_path / "b.safetensors").exists()
    with pytest.raises(EmptyComparisonError):
        pf.save_batches([], tmp_path / "b.safetensors", 1)
    with pytest.raises(InputError, match="there is no file"):
        pf.load_batches(tmp_path / "none.safetensors", "numpy")
    (tmp_path / "bad.safetensors").write_bytes(b"nonsense")
    with pytest.raises(FileFormatError, match="is no file of batches"):
        pf.load_batches(tmp_path / "bad.safetensors", "numpy")
    from safetensors.numpy import save_file

    save_file({"a": np.ones(2)}, tmp_path / "other.safetensors")
    with pytest.raises(FileFormatError, match="holds no batches"):
        pf.load_batches(tmp_path / "other.safetensors", "numpy")
    pf.save_batches([np.ones(2)], tmp_path / "c.safetensors", 1)
    with pytest.raises(InputError, match="there is no backend called 'jax'"):
        pf.load_batches(tmp_path / "c.safetensors", "jax")


@pytest.mark.parametrize(
    ("labels", "told"),
    [
        (np.repeat(np.arange(3), 20), "sorted by field 1 (3 classes in 60 samples, reference, port)"),
        (np.full(60, 2), "sorted by field 1 (1 classes in 60 samples, reference, port)"),
        (np.tile(np.arange(3), 20), ""),
        (np.arange(60), ""),  # numbers of samples, no classes
        (np.random.default_rng(0).integers(0, 2, 60), ""),
    ],
)
def test_samples_that_come_sorted_by_class_are_noted(labels: Any, told: str) -> None:
    ours, theirs = ([(prepared(at), int(label)) for at, label in enumerate(labels)] for _ in range(2))
    report = pf.compare_data(ours, theirs)
    assert report.ok
    messages = [each.message for each in report.findings if each.code == "data.sorted"]
    assert len(messages) == bool(told)
    assert all(told in message for message in messages)


LISTED = [(prepared(index), np.int64(LABELS[index])) for index in range(COUNT)]
SUBSETS = {
    "the next ones": (range(40), range(10, 50)),
    "another draw": (
        sorted(np.random.default_rng(0).permutation(COUNT)[:30]),
        sorted(np.random.default_rng(1).permutation(COUNT)[:30]),
    ),
}


@pytest.mark.parametrize("name", SUBSETS)
@pytest.mark.parametrize("scale", [1.0, 0.5])
def test_another_subset_of_equal_size(name: str, scale: float) -> None:
    ours, theirs = SUBSETS[name]
    port = [(LISTED[at][0] * np.float32(scale), LISTED[at][1]) for at in theirs]
    report = pf.compare_data([LISTED[at] for at in ours], port)
    (found,) = report.divergences
    assert found.cause is not None
    assert found.cause.code == "data.subset"
    common = len(set(ours) & set(theirs))
    assert f"{common} of its {len(port)} are among the reference's" in found.cause.message
    assert "the same list of files" in found.cause.fix


def test_a_subset_with_nothing_in_common_is_noted() -> None:
    report = pf.compare_data(LISTED[:30], LISTED[30:])
    assert not report.ok
    (note,) = [each for each in report.findings if each.code == "data.subset"]
    assert "none of the port's 30 samples is among the reference's" in note.message


def test_samples_that_were_changed_are_no_other_subset() -> None:
    """Some in their places, and the others unlike anything: an order or a subset would be made up."""
    port = [
        (-(np.abs(picture) ** 3) if at % 2 else picture, label) for at, (picture, label) in enumerate(LISTED)
    ]
    report = pf.compare_data(LISTED, port)
    assert report.first is not None
    assert report.first.what.startswith("field 0 of sample 1")
    assert not any(each.code == "data.subset" for each in report.findings)


def shares(label: int, smoothing: float) -> Any:
    return (np.eye(5)[label] * (1 - smoothing) + smoothing / 5).astype("float32")


MIXED = np.random.default_rng(0).dirichlet(np.ones(5), COUNT).astype("float32")
# labels of the reference and of the port -> words of the cause
SOFT: dict[str, tuple[Any, Any, str]] = {
    "hard for smoothed": (
        lambda at: shares(LABELS[at], 0.1),
        lambda at: LABELS[at],
        "the reference gives soft labels, shares of the classes (smoothed by 0.1); the port only the largest",
    ),
    "a one for smoothed": (
        lambda at: shares(LABELS[at], 0.2),
        lambda at: shares(LABELS[at], 0.0),
        "the reference gives soft labels, shares of the classes (smoothed by 0.2)",
    ),
    "hard for mixed": (
        lambda at: MIXED[at],
        lambda at: MIXED[at].argmax(),
        "the reference gives soft labels, shares of the classes; the port only the largest class",
    ),
    "smoothed for hard": (
        lambda at: LABELS[at],
        lambda at: shares(LABELS[at], 0.1),
        "the port gives soft labels",
    ),
    "floats from 1": (lambda at: LABELS[at], lambda at: np.float32(LABELS[at] + 1), "plus 1"),
    "an axis more": (
        lambda at: LABELS[at],
        lambda at: LABELS[at : at + 1],
        "[] in the reference, [1] in the port",
    ),
}


@pytest.mark.parametrize("name", SOFT)
def test_labels_of_another_form(name: str) -> None:
    ours, theirs, words = SOFT[name]
    report = pf.compare_data(
        [(prepared(at), ours(at)) for at in range(COUNT)], [(prepared(at), theirs(at)) for at in range(COUNT)]
    )
    (found,) = report.divergences
    assert found.cause is not None, report
    assert found.cause.code == "data.label"
    assert words in found.cause.message
    assert "the port's" in found.cause.fix


def test_soft_labels_of_other_classes_have_no_such_cause() -> None:
    wrong = np.random.default_rng(2).integers(0, 5, COUNT)
    report = pf.compare_data([(prepared(at), MIXED[at]) for at in range(COUNT)], list(listed_with(wrong)))
    assert report.first is not None
    assert report.first.cause is None


def listed_with(labels: Any) -> Any:
    return ((prepared(at), label) for at, label in enumerate(labels))


def test_whole_numbers_for_floats_are_noted_with_what_to_do() -> None:
    report = pf.compare_data(LISTED, [(picture, np.float32(label)) for picture, label in LISTED])
    assert report.ok
    (note,) = report.findings
    assert note.code == "data.dtype"
    assert "give the port's as int64" in note.message
