"""Batches of different sizes: correct pairs agree, and mistakes of one size are found."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import paddle
import pytest
import torch

import parfocal as pf
from tests.pairs.training.tools import LOSSES, paddle_optim, perceptron, torch_optim

pytestmark = pytest.mark.filterwarnings("ignore:When training, we now always track:UserWarning")
USUAL = 16  # samples in a batch but for the last
LONG = (*(USUAL,) * 20, 10, *(USUAL,) * 4)  # the shorter one lies among steps that are run freely
FORMS: dict[str, Any] = {
    "tuples": lambda inputs, labels: (inputs, labels),
    "lists": lambda inputs, labels: [inputs, labels],
    "dicts": lambda inputs, labels: {"input": inputs, "label": labels},
    "pairs": lambda inputs, labels: pf.sides((inputs, labels), (inputs.copy(), labels.copy())),
}


def batches(sizes: Sequence[int], form: str = "tuples") -> list[Any]:
    generator = np.random.default_rng(0)
    return [
        FORMS[form](generator.standard_normal((size, 8)).astype("float32"), generator.integers(0, 4, size))
        for size in sizes
    ]


def compare(
    sizes: Sequence[int], models: Any = None, loss: Any = LOSSES, form: str = "tuples", **options: Any
) -> Any:
    return pf.compare_training(
        *(models or perceptron()),
        batches(sizes, form),
        loss=loss,
        optimizers=(
            lambda model: torch_optim.SGD(model.parameters(), 0.1),
            lambda model: paddle_optim.SGD(0.1, parameters=model.parameters()),
        ),
        **options,
    )


SIZES = {
    "a shorter last one": (USUAL, USUAL, 10),
    "a shorter first one": (3, USUAL, 10),
    "one sample first": (1, USUAL, 1),
    "all kinds": (USUAL, 3, 10, 10, 12),
    "in a long training": LONG,
}


@pytest.mark.parametrize("mode", ["train", "eval"])
@pytest.mark.parametrize("sizes", SIZES.values(), ids=SIZES)
def test_batches_of_any_sizes_agree(sizes: tuple[int, ...], mode: Any) -> None:
    report = compare(sizes, mode=mode)
    assert report.ok, report


@pytest.mark.parametrize("form", FORMS)
def test_batches_of_any_form_agree(form: str) -> None:
    assert compare((USUAL, 10, 12), form=form).ok


OPTIONS: dict[str, dict[str, Any]] = {
    "mixed precision": {"amp": "O1"},
    "added up": {"accumulate": 2},
    "a tolerance": {"tolerance": pf.Tolerance(rtol=1e-4, atol=1e-5)},
}


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_batches_of_any_sizes_agree_with_options(options: dict[str, Any]) -> None:
    assert compare((USUAL, USUAL, 10, 12), **options).ok


def images(flat: bool) -> tuple[Any, Any]:
    """A convolution with a norm, whose variance is taken over many values: its convention is nothing."""

    class Pixels(paddle.nn.Layer):  # a row for every pixel
        def __init__(self) -> None:
            super().__init__()
            self.conv, self.norm = paddle.nn.Conv2D(3, 4, 3, padding=1), paddle.nn.BatchNorm2D(4)

        def forward(self, given: Any) -> Any:
            made = self.norm(self.conv(given))
            return made.transpose([0, 2, 3, 1]).reshape([-1, 4]) if flat else made

    reference = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3, padding=1), torch.nn.BatchNorm2d(4))
    return reference, Pixels()


@pytest.mark.parametrize("flat", [False, True])
def test_norms_and_moved_axes_agree(flat: bool) -> None:
    generator = np.random.default_rng(0)
    data = [
        (
            generator.standard_normal((size, 3, 24, 24)).astype("float32"),
            generator.integers(0, 4, (size, 24, 24)),
        )
        for size in (1, 4, 2, 4)
    ]
    functional = paddle.nn.functional

    def paddle_loss(output: Any, label: Any) -> Any:
        if flat:
            return functional.cross_entropy(output, label.reshape([-1]))
        return functional.cross_entropy(output, label, axis=1)

    report = pf.compare_training(
        *images(flat),
        data,
        loss=(torch.nn.functional.cross_entropy, paddle_loss),
        optimizers=(
            lambda model: torch_optim.SGD(model.parameters(), 0.1),
            lambda model: paddle_optim.SGD(0.1, parameters=model.parameters()),
        ),
    )
    assert report.ok, report


def by_usual_size(output: Any, label: Any) -> Any:
    return paddle.nn.functional.cross_entropy(output, label, reduction="sum") / USUAL


MISTAKEN: dict[str, tuple[tuple[int, ...], dict[str, Any], int]] = {
    "last": ((USUAL, USUAL, 10), {}, 2),
    "first": ((10, USUAL, USUAL), {}, 0),
    "evaluation": ((USUAL, USUAL, 10), {"mode": "eval"}, 2),
    "run freely": (LONG, {}, 20),
    "added up": ((USUAL, USUAL, USUAL, 10), {"accumulate": 2}, 1),
}


@pytest.mark.parametrize(("sizes", "options", "step"), MISTAKEN.values(), ids=MISTAKEN)
def test_a_loss_divided_by_a_constant_is_named(sizes: tuple[int, ...], options: Any, step: int) -> None:
    report = compare(sizes, loss=(LOSSES[0], by_usual_size), **options)
    first = report.first
    assert (first.phase, first.step, first.cause.code) == ("loss", step, "loss.reduction"), report
    assert first.cause.message == (
        "the port's loss is the reference's times the number of samples / 16: it is divided by a constant"
    )
    assert first.cause.fix == "divide the port's loss by the number of samples"
    assert first.cause.proof is not None


class Scaled(paddle.nn.Layer):
    """Right for a batch of the usual size alone."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = paddle.nn.Linear(8, 16), paddle.nn.Linear(16, 4)

    def forward(self, given: Any) -> Any:
        return self.second(self.first(given) * (given.shape[0] / USUAL))


@pytest.mark.parametrize(
    ("sizes", "options", "step"),
    [((USUAL, USUAL, 10), {}, 2), ((USUAL, USUAL, USUAL, 10), {"accumulate": 2}, 1)],
    ids=["every batch", "added up"],
)
def test_a_forward_that_is_wrong_in_a_short_batch_is_found(sizes: Any, options: Any, step: int) -> None:
    reference = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Linear(16, 4))
    report = compare(sizes, (reference, Scaled()), **options)
    assert (report.first.step, report.first.phase) == (step, "forward"), report
    assert report.first.cause.code == "op.scale"


class Padded(paddle.nn.Layer):
    def __init__(self) -> None:
        super().__init__()
        self.inner = paddle.nn.Linear(8, 4)

    def forward(self, given: Any) -> Any:
        made = self.inner(given)
        lacking = paddle.zeros([USUAL - made.shape[0], 4], dtype=made.dtype)
        return paddle.concat([made, lacking]) if len(lacking) else made


@pytest.mark.parametrize("explain", [True, False])
def test_an_output_of_another_shape_in_a_short_batch_is_told(explain: bool) -> None:
    def of_the_given(output: Any, label: Any) -> Any:
        return LOSSES[1](output[: len(label)], label)

    models = torch.nn.Linear(8, 4), Padded()
    report = compare((USUAL, USUAL, 10), models, (LOSSES[0], of_the_given), explain=explain)
    assert (report.first.step, report.first.phase) == (2, "forward"), report
    assert "shape [16, 4] in the port, [10, 4] in the reference" in str(report)


MARK = 50.0  # an input that has it is computed wrongly
OFFSET = 1000.0


class Rounded(torch.nn.Linear):
    """What it gives is rounded coarsely, so that its floor has to be measured."""

    def forward(self, given: Any) -> Any:
        return (super().forward(given) + OFFSET) - OFFSET


class Marked(paddle.nn.Linear):
    def forward(self, given: Any) -> Any:
        made = super().forward(given)
        return made * 1.01 if float(given[0, 0]) == MARK else made


@pytest.mark.parametrize("sizes", [(USUAL,) * 2, (USUAL, 10)], ids=str)
@pytest.mark.parametrize("wrong", [False, True])
def test_the_floor_of_one_batch_excuses_no_other(sizes: tuple[int, ...], wrong: bool) -> None:
    """Of batches that an update adds up: what was measured for the first says nothing of the second."""
    data = batches(sizes)
    data[1][0][0, 0] = MARK if wrong else 0.0
    report = pf.compare_training(
        *(Rounded(8, 4), Marked(8, 4), data),
        loss=LOSSES,
        optimizers=(
            lambda model: torch_optim.SGD(model.parameters(), 0.1),
            lambda model: paddle_optim.SGD(0.1, parameters=model.parameters()),
        ),
        accumulate=2,
        explain=False,
    )
    assert report.ok is not wrong, report
