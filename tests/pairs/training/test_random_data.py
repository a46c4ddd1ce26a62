"""Samples that change when they are read again: a correct pair passes, mistakes behind chance are found."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import paddle
import paddle.vision.transforms as paddle_transforms
import pytest
import torch
from PIL import Image

import parfocal as pf
from parfocal.workflow.random_samples import look_again
from parfocal.workflow.sample_streams import SampleStream
from tests.pairs.vision import torchvision_transforms

COUNT = 40
MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]
GENERATOR = np.random.default_rng(0)
PICTURES = [
    Image.fromarray(GENERATOR.integers(0, 256, (6, 6, 3)).astype("uint8")).resize(
        (40, 48), Image.Resampling.BICUBIC
    )
    for _ in range(COUNT)
]
Steps = Callable[..., list[Any]]


class Data:
    """Pictures and labels, changed by a list of steps."""

    def __init__(self, transform: Callable[[Any], Any], labels: Sequence[int] = range(COUNT)) -> None:
        self.transform, self.labels = transform, labels

    def __len__(self) -> int:
        return COUNT

    def __getitem__(self, index: int) -> tuple[Any, int]:
        return self.transform(PICTURES[index]), self.labels[index] % 5


def of(library: Any, steps: Steps, *, mean: Any = MEAN, std: Any = STD, **changes: Any) -> Data:
    return Data(
        library.Compose([*steps(library, **changes), library.ToTensor(), library.Normalize(mean, std)])
    )


def whole(
    library: Any,
    *,
    scale: Any = (0.08, 1.0),
    flip: float = 0.5,
    jitter: Any = (0.4, 0.4, 0.4, 0.1),
    **more: Any,
) -> list[Any]:
    return [
        library.RandomResizedCrop(24, scale=scale, **more),
        library.RandomHorizontalFlip(flip),
        library.ColorJitter(*jitter),
    ]


def padded(library: Any, *, padding: int = 4, flip: float = 0.5) -> list[Any]:
    return [
        library.Resize((32, 32)),
        library.RandomCrop(32, padding=padding),
        library.RandomHorizontalFlip(flip),
    ]


def flips(library: Any, *, flip: float = 0.5, up: float = 0.5) -> list[Any]:
    return [library.Resize((24, 24)), library.RandomHorizontalFlip(flip), library.RandomVerticalFlip(up)]


def turned(library: Any, *, degrees: float = 20.0) -> list[Any]:
    return [library.Resize((24, 24)), library.RandomRotation(degrees)]


@pytest.mark.parametrize("steps", [whole, padded, flips, turned])
def test_a_correct_pair_passes(steps: Steps) -> None:
    report = pf.compare_data(of(torchvision_transforms, steps), of(paddle_transforms, steps))
    assert report.ok, report
    (finding,) = report.findings
    assert finding.code == "data.random"
    assert "0 is random" in finding.message
    assert "32 of 32 samples are the same on both sides" in finding.message


class Reversed:
    """Red for blue, as OpenCV reads pictures."""

    def __call__(self, picture: Any) -> Any:
        return Image.fromarray(np.ascontiguousarray(np.asarray(picture)[..., ::-1]))


def reversed_channels(library: Any) -> list[Any]:
    return [*whole(library), Reversed()]


def without_flip(library: Any) -> list[Any]:
    return [each for each in whole(library) if type(each).__name__ != "RandomHorizontalFlip"]


# the port's data -> code, words of the cause, words of the fix
MISTAKES: dict[str, tuple[Callable[[Any], Data], str, str, str]] = {
    "normalisation": (
        lambda library: of(library, whole, mean=[0.5] * 3, std=[0.5] * 3),
        "data.normalisation",
        "the reference is ImageNet's mean and std, the port mean 0.5, std 0.5",
        "ImageNet's mean and std",
    ),
    "channels": (
        lambda library: of(library, reversed_channels),
        "data.channel_order",
        "channels are reversed",
        "reverse the channels",
    ),
    "interpolation": (
        lambda library: of(library, whole, interpolation="nearest"),
        "data.setting",
        "RandomResizedCrop has interpolation = 'bilinear' in the reference, 'nearest' in the port",
        "write interpolation='bilinear' for the port's RandomResizedCrop",
    ),
    "scale of crops": (
        lambda library: of(library, whole, scale=(0.5, 1.0)),
        "data.random",
        "RandomResizedCrop of the reference draws numbers from 0.08 to 1, RandomResizedCrop of the port "
        "numbers from 0.5 to 1",
        "let RandomResizedCrop of the port draw numbers from 0.08 to 1",
    ),
    "always flipped": (
        lambda library: of(library, whole, flip=1.0),
        "data.random",
        "left and right are exchanged in 50% of the reference's samples and in 100% of the port's",
        "with probability 0.5",
    ),
    "never flipped": (
        lambda library: of(library, whole, flip=0.0),
        "data.random",
        "left and right are exchanged in 50% of the reference's samples and in 0% of the port's",
        "with probability 0.5",
    ),
    "seldom flipped": (
        lambda library: of(library, whole, flip=0.3),
        "data.random",
        "left and right are exchanged in 50% of the reference's samples and in 30% of the port's",
        "with probability 0.5",
    ),
    "no flip": (
        lambda library: of(library, without_flip),
        "data.random",
        "RandomHorizontalFlip",
        "with probability 0.5",
    ),
    "colours": (
        lambda library: of(library, whole, jitter=(0.4, 0.4, 0.4, 0.3)),
        "data.random",
        "ColorJitter of the reference draws numbers from -0.1 to 0.1",
        "numbers from -0.1 to 0.1",
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_behind_chance_is_found(name: str) -> None:
    make, code, words, fix = MISTAKES[name]
    report = pf.compare_data(of(torchvision_transforms, whole), make(paddle_transforms))
    assert not report.ok
    causes = [each.cause for each in report.divergences if each.cause is not None]
    assert [each.code for each in causes] == [code], report
    assert words in causes[0].message, report
    assert fix in causes[0].fix
    assert report.findings[0].code == "data.random"


class OwnNumbers:
    """Flips, moves and brightens by a generator of its own, which nothing outside can turn."""

    def __init__(self, seed: int, *, flip: float = 0.5, least: float = 0.6) -> None:
        self.generator = np.random.default_rng(seed)
        self._flip, self._least = flip, least

    def __call__(self, picture: Any) -> Any:
        values = np.asarray(picture, "float32").transpose(2, 0, 1) / 255
        row, column = self.generator.integers(0, 9, 2)
        values = values[:, row : row + 32, column : column + 32] * self.generator.uniform(self._least, 1.4)
        values = values[..., ::-1] if self.generator.random() < self._flip else values
        return np.ascontiguousarray(values, dtype="float32")


def compare_own(seed: int, **changes: Any) -> Any:
    return pf.compare_data(Data(OwnNumbers(2 * seed)), Data(OwnNumbers(2 * seed + 1, **changes)))


@pytest.mark.parametrize("seed", range(12))
def test_equal_distributions_pass(seed: int) -> None:
    report = compare_own(seed)
    assert report.ok, report
    assert "its distribution over 12 draws of 32 samples each is compared" in report.findings[0].message


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"flip": 1.0}, "left against right"),
        ({"flip": 0.0}, "left against right"),
        ({"least": 1.0}, "the brightness (mean) lies in"),
    ],
)
def test_other_distributions_are_told(changes: Any, words: str) -> None:
    report = compare_own(0, **changes)
    assert report.first is not None
    assert report.first.what.startswith("field 0: the distributions differ: "), report.first.what
    assert words in report.first.what
    assert report.first.cause is None  # no constants, no exchanged channels, nothing that says how it is set


@pytest.mark.parametrize("change", ["constants", "channels"])
def test_channels_are_explained_from_distributions(change: str) -> None:
    """Of numbers that cannot be shared, and through flips, crops and brightness."""
    mine, other = OwnNumbers(0), OwnNumbers(1)
    half = np.float32(0.5)
    if change == "constants":
        report = pf.compare_data(Data(mine), Data(lambda picture: (other(picture) - half) / half))
        code, words = "data.normalisation", "the reference is not normalised, the port mean 0.5, std 0.5"
    else:
        report = pf.compare_data(Data(mine), Data(lambda picture: other(picture)[::-1]))
        code, words = "data.channel_order", "in reverse (RGB against BGR)"
    assert report.first is not None
    assert report.first.cause is not None, report.first.what
    assert (report.first.cause.code, report.first.cause.proof) == (code, None)
    assert words in report.first.cause.message


def test_what_is_random_on_one_side_only_is_told() -> None:
    still = of(paddle_transforms, lambda library: [library.Resize((24, 24))])
    report = pf.compare_data(of(torchvision_transforms, flips), still)
    assert report.first is not None
    assert report.first.cause is not None
    assert report.first.cause.code == "data.random"
    assert "RandomHorizontalFlip, RandomVerticalFlip" in report.first.cause.fix
    assert len(report.divergences) == 1


@pytest.mark.parametrize("steps", [whole, flips])
def test_two_mistakes_at_once_are_both_told(steps: Steps) -> None:
    port = of(paddle_transforms, steps, mean=[0.5] * 3, std=[0.5] * 3, flip=1.0)
    report = pf.compare_data(of(torchvision_transforms, steps), port)
    causes = {each.cause.code: each.cause for each in report.divergences if each.cause is not None}
    assert set(causes) == {"data.normalisation", "data.random"}, report
    assert "ImageNet's mean and std" in causes["data.normalisation"].fix
    assert "100% of the port's" in causes["data.random"].message


def test_labels_are_compared_sample_by_sample_behind_chance() -> None:
    port = of(paddle_transforms, whole)
    port.labels = [label + 1 for label in range(COUNT)]
    report = pf.compare_data(of(torchvision_transforms, whole), port)
    assert [each.cause.code for each in report.divergences if each.cause is not None] == ["data.label"]


def test_what_was_seeded_before_is_as_it_was() -> None:
    random.seed(3)
    np.random.seed(3)
    torch.manual_seed(3)
    before = random.getstate(), np.random.get_state()[1].tolist(), torch.get_rng_state().tolist()
    functions = random.random, np.random.uniform, torch.rand
    look_again(SampleStream(of(torchvision_transforms, whole), "reference"))
    look_again(SampleStream(of(paddle_transforms, whole), "port"))
    assert (random.random, np.random.uniform, torch.rand) == functions
    assert (random.getstate(), np.random.get_state()[1].tolist(), torch.get_rng_state().tolist()) == before


def test_loaders_that_shuffle_and_augment() -> None:
    """What is random in a sample is looked at in the datasets behind the loaders."""
    ours = torch.utils.data.DataLoader(of(torchvision_transforms, whole), batch_size=8)
    theirs = paddle.io.DataLoader(of(paddle_transforms, whole), batch_size=8)
    report = pf.compare_data(ours, theirs)
    assert report.ok, report
    assert "32 of 32 samples are the same on both sides" in report.findings[0].message
    wrong = paddle.io.DataLoader(of(paddle_transforms, whole, flip=1.0), batch_size=8)
    report = pf.compare_data(ours, wrong)
    assert [each.cause.code for each in report.divergences if each.cause is not None] == ["data.random"]


class Drawing:
    """A step of one's own, by torch's numbers or by Python's and NumPy's."""

    def __init__(self, library: Any, size: float) -> None:
        self.torch, self.size = library is torchvision_transforms, size


class Grey(Drawing):
    def __call__(self, picture: Any) -> Any:
        number = torch.rand(1).item() if self.torch else random.random()
        return picture.convert("L").convert("RGB") if number < self.size else picture


class Noise(Drawing):
    def __call__(self, values: Any) -> Any:
        noise = torch.randn(3, 24, 24).numpy() if self.torch else np.random.normal(size=(3, 24, 24))
        return (np.asarray(values) + self.size * noise).astype("float32")


def grey(library: Any, *, size: float = 0.1) -> list[Any]:
    return [library.Resize((24, 24)), Grey(library, size)]


def flipped_first(library: Any) -> list[Any]:
    crop, flip, jitter = whole(library)
    return [flip, crop, jitter]


def noisy(library: Any, size: float) -> Data:
    return Data(library.Compose([library.Resize((24, 24)), library.ToTensor(), Noise(library, size)]))


def test_steps_of_ones_own_are_given_the_same_numbers() -> None:
    for ours, theirs in (
        (of(torchvision_transforms, grey), of(paddle_transforms, grey)),
        (noisy(torchvision_transforms, 0.1), noisy(paddle_transforms, 0.1)),
    ):
        report = pf.compare_data(ours, theirs)
        assert report.ok, report
        assert "32 of 32 samples are the same on both sides" in report.findings[0].message


def test_an_order_of_steps_that_gives_the_same_distribution_passes() -> None:
    report = pf.compare_data(of(torchvision_transforms, whole), of(paddle_transforms, flipped_first))
    assert report.ok, report
    assert "its distribution over 12 draws" in report.findings[0].message


# the reference's and the port's data -> code, words of the cause or of the difference
OTHERS: dict[str, tuple[Data, Data, str, str]] = {
    "share of a step": (
        of(torchvision_transforms, grey),
        of(paddle_transforms, grey, size=0.3),
        "data.random",
        "a step is taken in 10% of the reference's samples and in 30% of the port's (Grey)",
    ),
    "padding": (
        of(torchvision_transforms, padded),
        of(paddle_transforms, padded, padding=2),
        "data.random",
        "RandomCrop of the reference draws whole numbers from 0 to 8, RandomCrop of the port whole numbers",
    ),
    "angle": (
        of(torchvision_transforms, turned),
        of(paddle_transforms, turned, degrees=10.0),
        "data.random",
        "RandomRotation of the reference draws numbers from -20 to 20",
    ),
    "bicubic": (
        of(torchvision_transforms, whole),
        of(paddle_transforms, whole, interpolation="bicubic"),
        "data.setting",
        "RandomResizedCrop has interpolation = 'bilinear' in the reference, 'bicubic' in the port",
    ),
    "flipped up and down": (
        of(torchvision_transforms, flips),
        of(paddle_transforms, flips, up=0.0),
        "data.random",
        "top and bottom are exchanged in 50% of the reference's samples and in 0% of the port's",
    ),
    "noise": (
        noisy(torchvision_transforms, 0.1),
        noisy(paddle_transforms, 0.15),
        "data.setting",
        "= 0.1 in the reference, 0.15 in the port",
    ),
}


@pytest.mark.parametrize("name", OTHERS)
def test_other_mistakes_behind_chance(name: str) -> None:
    ours, theirs, code, words = OTHERS[name]
    (found,) = pf.compare_data(ours, theirs).divergences
    assert (found.cause.code if found.cause else "") == code
    assert words in (found.cause.message if found.cause else found.what)


def loaders(*, port: Data | None = None, shuffle: tuple[bool, bool] = (True, True)) -> tuple[Any, Any]:
    return (
        torch.utils.data.DataLoader(of(torchvision_transforms, whole), batch_size=8, shuffle=shuffle[0]),
        paddle.io.DataLoader(port or of(paddle_transforms, whole), batch_size=8, shuffle=shuffle[1]),
    )


def test_loaders_that_both_shuffle_and_augment_pass() -> None:
    """No sample of theirs can be found again, and no label may be said to be another's."""
    report = pf.compare_data(*loaders())
    assert report.ok, report


def test_mistakes_behind_shuffling_and_augmentation_are_found() -> None:
    wrong = of(paddle_transforms, whole, mean=[0.5] * 3, std=[0.5] * 3)
    wrong.labels = [label + 1 for label in range(COUNT)]
    report = pf.compare_data(*loaders(port=wrong))
    codes = {each.cause.code for each in report.divergences if each.cause is not None}
    assert codes == {"data.label", "data.normalisation"}


def test_a_shuffle_of_one_side_is_told_through_augmentation() -> None:
    wrong = of(paddle_transforms, whole)
    wrong.labels = [label + 1 for label in range(COUNT)]
    found, label = pf.compare_data(*loaders(port=wrong, shuffle=(True, False))).divergences
    assert label.cause is not None
    assert label.cause.code == "data.label"
    assert found.cause is not None
    assert found.cause.code == "data.order"
    assert "the reference shuffles, the port does not" in found.cause.message
