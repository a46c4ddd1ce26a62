"""Compare: the loss, what enters the model from outside, gradients that are cut, and every rank."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import paddle
import pytest
import torch

import parfocal as pf
from parfocal.report.coverage import LeftOut, Reason
from tests.pairs.workflow.recordings import Side, as_rank, compare_sides, digest, record_side

RANDOM = np.random.default_rng(7)
IMAGES = RANDOM.normal(size=(4, 6, 3, 8, 8)).astype("float32")
LABELS = RANDOM.integers(0, 5, size=(4, 6)).astype("int64")
BATCHES = list(zip(IMAGES, LABELS, strict=True))
EITHER = pytest.mark.parametrize("tensors", ["full", "sketch"])


def torch_net() -> Any:
    nn = torch.nn
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(3, 4, 3, padding=1),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(256, 16),
        nn.Tanh(),
        nn.Linear(16, 5),
    )


def paddle_net() -> Any:
    nn = paddle.nn
    return nn.Sequential(
        nn.Conv2D(3, 4, 3, padding=1),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(256, 16),
        nn.Tanh(),
        nn.Linear(16, 5),
    )


def torch_side(**changes: Any) -> Side:
    loss = torch.nn.functional.cross_entropy
    return replace(Side(torch_net(), loss, lambda m: torch.optim.SGD(m.parameters(), lr=0.1)), **changes)


def paddle_side(reference: Side, **changes: Any) -> Side:
    model = paddle_net()
    pf.transfer(reference.model, model)

    def optimizer(m: Any) -> Any:
        return paddle.optimizer.SGD(learning_rate=0.1, parameters=m.parameters())

    return replace(Side(model, paddle.nn.functional.cross_entropy, optimizer), **changes)


def pair(**changes: Any) -> tuple[Side, Side]:
    """A correct pair of torch and paddle, with changes to the port."""
    reference = torch_side()
    return reference, paddle_side(reference, **changes)


@EITHER
def test_a_correct_training_is_the_same(tmp_path: Path, tensors: str) -> None:
    report = compare_sides(tmp_path, *pair(), BATCHES, tensors=tensors)
    assert report.ok, str(report)
    assert report.coverage.count("losses") == 4
    assert report.coverage.count("inputs of the model") == 4


# The loss.


@EITHER
def test_a_sum_for_a_mean_is_the_loss(tmp_path: Path, tensors: str) -> None:
    def summed(output: Any, target: Any) -> Any:
        return paddle.nn.functional.cross_entropy(output, target, reduction="sum")

    report = compare_sides(tmp_path, *pair(loss=summed), BATCHES, tensors=tensors)
    assert digest(report) == ("loss", 0, 0, "", "loss.reduction")
    assert "6 times" in report.first.cause.message
    entering = [each for each in report.divergences if "enters the model" in each.what and each.step == 0]
    assert [each.inherited for each in entering] == [True]
    assert not [each for each in report.divergences if not each.inherited and each.phase != "loss"]


@EITHER
def test_another_loss_is_the_loss_and_no_reduction(tmp_path: Path, tensors: str) -> None:
    def smoothed(output: Any, target: Any) -> Any:
        return paddle.nn.functional.cross_entropy(output, target, label_smoothing=0.1)

    report = compare_sides(tmp_path, *pair(loss=smoothed), BATCHES, tensors=tensors)
    assert digest(report) == ("loss", 0, 0, "", None)


@EITHER
def test_a_weighted_loss_is_a_factor(tmp_path: Path, tensors: str) -> None:
    def halved(output: Any, target: Any) -> Any:
        return paddle.nn.functional.cross_entropy(output, target) * 0.7

    report = compare_sides(tmp_path, *pair(loss=halved), BATCHES, tensors=tensors)
    assert digest(report) == ("loss", 0, 0, "", "loss.weight")


@EITHER
def test_a_gradient_that_enters_otherwise_is_not_the_models(tmp_path: Path, tensors: str) -> None:
    def half_detached(output: Any, target: Any) -> Any:
        loss = paddle.nn.functional.cross_entropy(output, target)
        return loss * 0.5 + loss.detach() * 0.5

    report = compare_sides(tmp_path, *pair(loss=half_detached), BATCHES, tensors=tensors)
    assert digest(report) == ("backward", 0, 0, "", "grad.scale")
    assert report.first.what == "gradient that enters the model from the loss"


@EITHER
def test_a_loss_that_cancels_is_no_difference(tmp_path: Path, tensors: str) -> None:
    """The difference to a mean that is nearly the same is nothing but what rounding leaves of it."""
    reference = torch_side(optimizer=None)
    nearly = float(reference.model(torch.from_numpy(IMAGES[0])).mean().detach())
    reference = replace(reference, loss=lambda y, _: y.mean() - nearly)
    port = paddle_side(reference, optimizer=None, loss=lambda y, _: y.mean() - nearly)
    report = compare_sides(tmp_path, reference, port, BATCHES[:1], tensors=tensors)
    assert report.ok, str(report)


# Data.


def swapped_samples(batch: Any) -> Any:
    images, labels = batch
    return images[::-1].copy(), labels[::-1].copy()


def normalised(batch: Any) -> Any:
    images, labels = batch
    means, stds = (np.array(each, "float32").reshape(3, 1, 1) for each in ([0.1, 0.2, 0.3], [0.5, 0.6, 0.7]))
    return (images - means) / stds, labels


def scaled(batch: Any) -> Any:
    return batch[0] * np.float32(2.0) - np.float32(1.0), batch[1]


def reversed_channels(batch: Any) -> Any:
    return batch[0][:, ::-1].copy(), batch[1]


@pytest.mark.parametrize(
    ("change", "code", "sketch_code"),
    [
        (swapped_samples, "data.order", "data.order"),
        (normalised, "data.normalisation", None),
        (scaled, "data.normalisation", "data.normalisation"),
        (reversed_channels, "data.channel_order", "data.order"),
        (
            lambda batch: (batch[0] + RANDOM.normal(size=batch[0].shape).astype("float32"), batch[1]),
            None,
            None,
        ),
    ],
)
@EITHER
def test_other_data_is_data(
    tmp_path: Path, tensors: str, change: Callable[[Any], Any], code: str | None, sketch_code: str | None
) -> None:
    report = compare_sides(tmp_path, *pair(change=change), BATCHES, tensors=tensors)
    assert digest(report) == ("data", 0, 0, "", code if tensors == "full" else sketch_code)
    own = {each.phase for each in report.divergences if not each.inherited}
    assert own == {"data"}, str(report)


@EITHER
def test_another_order_of_batches_is_data(tmp_path: Path, tensors: str) -> None:
    reference, port = pair()
    paths = [
        record_side(reference, tmp_path / "reference", BATCHES, tensors=tensors),
        record_side(port, tmp_path / "port", [BATCHES[each] for each in (0, 2, 1, 3)], tensors=tensors),
    ]
    report = pf.compare(*paths)
    assert digest(report) == ("data", 1, 0, "", "data.order")
    assert "the port's batch of step 1 is the reference's of step 2" in report.first.cause.message


def test_rounding_of_data_is_no_difference(tmp_path: Path) -> None:
    def rounded(batch: Any) -> Any:
        return (batch[0] / np.float32(3.0)) * np.float32(3.0), batch[1]

    report = compare_sides(tmp_path, *pair(change=rounded), BATCHES)
    assert report.ok, str(report)


# Gradients that are cut.


class TorchTwo(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.first, self.second, self.last = (torch.nn.Linear(*sizes) for sizes in ((6, 8), (8, 8), (8, 5)))

    def forward(self, x: Any) -> Any:
        hidden = torch.tanh(self.first(x))
        return self.last(torch.relu(self.second(hidden)) + hidden)


class PaddleTwo(paddle.nn.Layer):
    def __init__(self, where: str = "") -> None:
        super().__init__()
        self.where = where
        self.first, self.second, self.last = (paddle.nn.Linear(*sizes) for sizes in ((6, 8), (8, 8), (8, 5)))

    def forward(self, x: Any) -> Any:
        hidden = paddle.tanh(self.first(x))
        if self.where == "hidden":
            hidden = hidden.detach()
        inner = paddle.nn.functional.relu(self.second(hidden))
        if self.where == "inner":
            inner = inner.detach()
        return self.last(inner + hidden)


VECTORS = [(RANDOM.normal(size=(6, 6)).astype("float32"), LABELS[0]) for _ in range(2)]


@EITHER
@pytest.mark.parametrize(
    ("where", "parameter"), [("", None), ("hidden", "first.weight"), ("inner", "second.weight")]
)
def test_a_cut_gradient_is_named(tmp_path: Path, tensors: str, where: str, parameter: str | None) -> None:
    reference = Side(TorchTwo(), torch.nn.functional.cross_entropy)
    model = PaddleTwo(where)
    pf.transfer(reference.model, model)
    port = Side(model, paddle.nn.functional.cross_entropy)
    report = compare_sides(tmp_path, reference, port, VECTORS, tensors=tensors)
    if parameter is None:
        assert report.ok, str(report)
        return
    assert report.first is not None
    assert report.first.phase in ("backward", "gradient")
    without = [each.what for each in report.divergences if "no gradient arrives in the port" in each.message]
    assert any(parameter in what for what in without), str(report)


# Ranks.


def of_ranks(folder: Path, sides: Callable[[int], Side], share: Callable[[int], Any], **options: Any) -> Path:
    for rank in (0, 1):
        with as_rank(rank, 2, folder.name):
            path = record_side(sides(rank), folder, share(rank), **options)
    return path


@EITHER
@pytest.mark.parametrize("wrong", [None, "data", "swapped", "loss"])
def test_every_rank_is_compared(tmp_path: Path, tensors: str, wrong: str | None) -> None:
    def reference(rank: int) -> Side:
        return torch_side()

    def port(rank: int) -> Side:
        changes: dict[str, Any] = {}
        if wrong == "data" and rank == 1:
            changes["change"] = scaled
        if wrong == "loss" and rank == 1:
            changes["loss"] = lambda y, t: 2 * paddle.nn.functional.cross_entropy(y, t)
        return paddle_side(torch_side(), **changes)

    def share(rank: int) -> Any:
        return BATCHES[2 * rank : 2 * rank + 2]

    def other_share(rank: int) -> Any:
        return share(1 - rank) if wrong == "swapped" else share(rank)

    ours = of_ranks(tmp_path / "ours", reference, share, tensors=tensors)
    theirs = of_ranks(tmp_path / "theirs", port, other_share, tensors=tensors)
    report = pf.compare(ours, theirs)
    expected = {
        None: None,
        "data": ("data", 0, 1, "", "data.normalisation"),
        "swapped": ("data", 0, 0, "", "dist.sampler"),
        "loss": ("loss", 0, 1, "", "loss.weight"),
    }
    assert digest(report) == expected[wrong], str(report)
    assert report.coverage.count("losses") == 4
    if wrong == "loss":
        assert pf.compare(ours, theirs, rank=0).ok
        assert "rank 1" in str(report)


def test_a_missing_rank_is_said(tmp_path: Path) -> None:
    ours = of_ranks(tmp_path / "ours", lambda _: torch_side(), lambda _: BATCHES[:1])
    with as_rank(0, 2, "theirs"):  # the other rank was killed before it recorded anything
        theirs = record_side(paddle_side(torch_side()), tmp_path / "theirs", BATCHES[:1])
    report = pf.compare(ours, theirs)
    assert report.divergences == (), str(report)
    assert LeftOut("rank 1", Reason.ONLY_REFERENCE) in report.coverage.left_out
    with pytest.raises(pf.ParfocalError, match="rank 1 is not in both runs"):
        pf.compare(ours, theirs, rank=1)


@EITHER
@pytest.mark.parametrize(("factor", "code"), [(1.0, None), (2.0, "dist.reduction"), (3.0, "grad.scale")])
def test_gradients_that_are_scaled_on_every_rank(
    tmp_path: Path, tensors: str, factor: float, code: str | None
) -> None:
    def port(rank: int) -> Side:
        side = paddle_side(torch_side())
        for parameter in side.model.parameters():
            parameter.register_hook(lambda gradient: gradient * factor)
        return side

    ours = of_ranks(
        tmp_path / "ours", lambda _: torch_side(), lambda rank: BATCHES[rank:][:1], tensors=tensors
    )
    theirs = of_ranks(tmp_path / "theirs", port, lambda rank: BATCHES[rank:][:1], tensors=tensors)
    report = pf.compare(ours, theirs)
    found = digest(report)
    assert (found and (found[0], found[4])) == (code and ("gradient", code)), str(report)
