"""Losses of the two frameworks: correct pairs agree in value and gradient, mistakes are named."""

from __future__ import annotations

from typing import Any

import numpy as np
import paddle
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import parfocal as pf
from parfocal.errors import EmptyComparisonError, InputError
from parfocal.explain.loss_causes import LossPair, LossSample, cause_of
from tests.versions.made import made

torch_functions, paddle_functions = torch.nn.functional, paddle.nn.functional
GENERATOR = np.random.default_rng(0)
COUNT, CLASSES = 24, 5
LOGITS = GENERATOR.standard_normal((COUNT, CLASSES)).astype("float32")
LABELS = GENERATOR.integers(0, CLASSES, COUNT)
IGNORED = np.where(np.arange(COUNT) % 4 == 0, -100, LABELS)
VALUES = GENERATOR.standard_normal((COUNT, 7)).astype("float32")
TARGETS = (VALUES + GENERATOR.standard_normal((COUNT, 7))).astype("float32")
CHANCES = GENERATOR.uniform(0.05, 0.95, (COUNT, 7)).astype("float32")
SOFT = np.exp(LOGITS) / np.exp(LOGITS).sum(1, keepdims=True)
MAPS = GENERATOR.standard_normal((4, CLASSES, CLASSES)).astype("float32")
MAP_LABELS = GENERATOR.integers(0, CLASSES, (4, CLASSES))
WEIGHTS = np.asarray([1.0, 2.0, 0.5, 3.0, 1.5], dtype="float32")


def mean_of_valid(logits: Any, labels: Any) -> Any:
    """As torch counts: the sum by the number of labels that are not ignored."""
    total = paddle_functions.cross_entropy(logits, labels, reduction="sum")
    return total / (labels != -100).astype("float32").sum()


CORRECT: dict[str, tuple[Any, Any, tuple[Any, ...]]] = {
    "cross entropy": (torch.nn.CrossEntropyLoss(), paddle.nn.CrossEntropyLoss(), (LOGITS, LABELS)),
    "sum": (
        torch.nn.CrossEntropyLoss(reduction="sum"),
        paddle.nn.CrossEntropyLoss(reduction="sum"),
        (LOGITS, LABELS),
    ),
    "functions": (torch_functions.cross_entropy, paddle_functions.cross_entropy, (LOGITS, LABELS)),
    "ignored labels": (torch.nn.CrossEntropyLoss(), mean_of_valid, (LOGITS, IGNORED)),
    "smoothing": (
        torch.nn.CrossEntropyLoss(label_smoothing=0.1),
        paddle.nn.CrossEntropyLoss(label_smoothing=0.1),
        (LOGITS, LABELS),
    ),
    "weights": (
        torch.nn.CrossEntropyLoss(weight=torch.tensor(WEIGHTS)),
        paddle.nn.CrossEntropyLoss(weight=paddle.to_tensor(WEIGHTS)),
        (LOGITS, LABELS),
    ),
    "squared": (torch.nn.MSELoss(), paddle.nn.MSELoss(), (VALUES, TARGETS)),
    "absolute": (torch.nn.L1Loss(), paddle.nn.L1Loss(), (VALUES, TARGETS)),
    "smooth": (torch.nn.SmoothL1Loss(), paddle.nn.SmoothL1Loss(), (VALUES, TARGETS)),
    "smooth with beta": (
        torch.nn.SmoothL1Loss(beta=0.5),
        made(paddle.nn.SmoothL1Loss, delta=0.5, is_huber=False),
        (VALUES, TARGETS),
    ),
    "chances": (torch.nn.BCELoss(), paddle.nn.BCELoss(), (CHANCES, (CHANCES > 0.5).astype("float32"))),
    "chances from logits": (
        torch.nn.BCEWithLogitsLoss(),
        paddle.nn.BCEWithLogitsLoss(),
        (VALUES, (TARGETS > 0).astype("float32")),
    ),
    "divergence": (
        torch.nn.KLDivLoss(reduction="batchmean"),
        paddle.nn.KLDivLoss(reduction="batchmean"),
        (np.log(SOFT), np.roll(SOFT, 1, axis=0)),
    ),
    "maps": (
        torch.nn.CrossEntropyLoss(),
        paddle.nn.CrossEntropyLoss(axis=1),
        (MAPS, pf.sides(MAP_LABELS, MAP_LABELS[:, None])),
    ),
    "triplet": (
        torch.nn.TripletMarginLoss(),
        paddle.nn.TripletMarginLoss(),
        (VALUES, TARGETS, np.roll(TARGETS, 1, axis=0)),
    ),
    "none": (
        torch.nn.MSELoss(reduction="none"),
        paddle.nn.MSELoss(reduction="none"),
        (VALUES, TARGETS),
    ),
}


@pytest.mark.parametrize("name", CORRECT)
def test_a_correct_pair_is_the_same(name: str) -> None:
    reference, port, inputs = CORRECT[name]
    report = pf.compare_loss(reference, port, *inputs)
    assert report.ok, report
    assert report.coverage.count("gradients") >= 1


WRONG: dict[str, tuple[Any, Any, tuple[Any, ...], str, str]] = {
    "sum for mean": (
        torch.nn.CrossEntropyLoss(),
        paddle.nn.CrossEntropyLoss(reduction="sum"),
        (LOGITS, LABELS),
        "loss.reduction",
        "reduction is 'mean' in the reference, 'sum' in the port",
    ),
    "sum for mean in code": (
        lambda o, y: torch_functions.cross_entropy(o, y),
        lambda o, y: paddle_functions.cross_entropy(o, y, reduction="sum"),
        (LOGITS, LABELS),
        "loss.reduction",
        "is the sum, the reference's the mean over samples",
    ),
    "none for mean": (
        lambda o, y: torch_functions.mse_loss(o, y),
        lambda o, y: paddle_functions.mse_loss(o, y, reduction="none"),
        (VALUES, TARGETS),
        "loss.reduction",
        "the port gives a loss for every element, the reference their mean",
    ),
    "all labels for those not ignored": (
        torch.nn.CrossEntropyLoss(),
        paddle.nn.CrossEntropyLoss(),
        (LOGITS, IGNORED),
        "loss.ignore_index",
        "the port's mean is over",
    ),
    "an ignored label": (
        torch.nn.CrossEntropyLoss(),
        paddle.nn.CrossEntropyLoss(ignore_index=3),
        (LOGITS, LABELS),
        "loss.ignore_index",
        "ignore_index is -100 in the reference, 3 in the port",
    ),
    "an ignored label in code": (
        lambda o, y: torch_functions.cross_entropy(o, y),
        lambda o, y: paddle_functions.cross_entropy(o, y, ignore_index=3),
        (LOGITS, LABELS),
        "loss.ignore_index",
        "the port leaves out the label 3",
    ),
    "no smoothing": (
        lambda o, y: torch_functions.cross_entropy(o, y, label_smoothing=0.1),
        lambda o, y: paddle_functions.cross_entropy(o, y),
        (LOGITS, LABELS),
        "loss.label_smoothing",
        "label smoothing is 0.1 in the reference, 0 in the port",
    ),
    "other smoothing": (
        torch.nn.CrossEntropyLoss(label_smoothing=0.1),
        paddle.nn.CrossEntropyLoss(label_smoothing=0.2),
        (LOGITS, LABELS),
        "loss.label_smoothing",
        "label_smoothing is 0.1 in the reference, 0.2 in the port",
    ),
    "no weights": (
        torch.nn.CrossEntropyLoss(weight=torch.tensor(WEIGHTS)),
        paddle.nn.CrossEntropyLoss(),
        (LOGITS, LABELS),
        "loss.weight",
        "the classes weigh [1.0, 2.0, 0.5, 3.0, 1.5] in the reference, [1.0, 1.0, 1.0, 1.0, 1.0] in the port",
    ),
    "Huber for smooth": (
        torch.nn.SmoothL1Loss(beta=0.5),
        paddle.nn.SmoothL1Loss(delta=0.5),
        (VALUES, TARGETS),
        "loss.beta",
        "is_huber is False in the reference, True in the port",
    ),
    "another beta in code": (
        lambda o, y: torch_functions.smooth_l1_loss(o, y, beta=0.5),
        lambda o, y: paddle_functions.smooth_l1_loss(o, y),
        (VALUES, TARGETS),
        "loss.beta",
        "smooth L1 with beta=0.5, the port the mean of smooth L1 with beta=1",
    ),
    "logits for chances": (
        lambda o, y: torch_functions.binary_cross_entropy_with_logits(o, y),
        lambda o, y: paddle_functions.binary_cross_entropy(o, y),
        (CHANCES, (CHANCES > 0.5).astype("float32")),
        "loss.input",
        "the reference applies sigmoid to its first input",
    ),
    "softmax twice": (
        lambda o, y: torch_functions.cross_entropy(o, y),
        lambda o, y: paddle_functions.cross_entropy(paddle_functions.softmax(o), y),
        (LOGITS, LABELS),
        "loss.input",
        "the port applies softmax to its first input",
    ),
    "logits for log-chances": (
        lambda o, y: torch_functions.cross_entropy(o, y),
        lambda o, y: paddle_functions.nll_loss(o, y),
        (LOGITS, LABELS),
        "loss.input",
        "the reference applies log_softmax",
    ),
    "absolute for squared": (
        torch.nn.MSELoss(),
        paddle.nn.L1Loss(),
        (VALUES, TARGETS),
        "op.kind",
        "the reference is the mean of L2, the port the mean of L1",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_mistake_is_found_and_named(name: str) -> None:
    reference, port, inputs, code, words = WRONG[name]
    report = pf.compare_loss(reference, port, *inputs)
    assert report.first is not None
    assert report.first.phase == "loss"
    assert report.first.cause is not None, report
    assert report.first.cause.code == code, report
    assert words in report.first.cause.message
    assert all(each.inherited for each in report.divergences[1:])


def test_a_fix_that_is_a_line_mends_it() -> None:
    report = pf.compare_loss(
        torch.nn.CrossEntropyLoss(), paddle.nn.CrossEntropyLoss(reduction="sum"), LOGITS, LABELS
    )
    assert report.first is not None
    assert report.first.cause is not None
    port = eval(report.first.cause.fix)
    assert pf.compare_loss(torch.nn.CrossEntropyLoss(), port, LOGITS, LABELS).ok


def test_classes_along_another_axis_of_the_same_length() -> None:
    report = pf.compare_loss(
        lambda o, y: torch_functions.cross_entropy(o, y),
        lambda o, y: paddle_functions.cross_entropy(o, y.unsqueeze(-1)),
        MAPS,
        MAP_LABELS,
    )
    assert report.first is not None
    assert report.first.cause is not None, report
    assert (report.first.cause.code, "axis" in report.first.cause.message) == ("loss.input", True)


def test_a_wrong_gradient_under_a_right_value_is_a_divergence_of_the_gradient() -> None:
    report = pf.compare_loss(
        lambda o, y: torch_functions.mse_loss(o, y),
        lambda o, y: paddle_functions.mse_loss(o, y) + o.sum() - o.sum().detach(),
        VALUES,
        TARGETS,
    )
    assert [(each.phase, each.inherited) for each in report.divergences] == [("gradient", False)]


def test_what_only_hard_inputs_show_is_worth_knowing() -> None:
    report = pf.compare_loss(torch.nn.CrossEntropyLoss(), paddle.nn.CrossEntropyLoss(), LOGITS, LABELS)
    assert report.ok
    assert any("labels of -100" in each.message for each in report.findings)
    right = pf.compare_loss(torch.nn.CrossEntropyLoss(), mean_of_valid, LOGITS, LABELS)
    assert not any("labels of -100" in each.message for each in right.findings)


def test_two_losses_of_one_framework() -> None:
    assert pf.compare_loss(torch.nn.MSELoss(), lambda o, y: ((o - y) ** 2).mean(), VALUES, TARGETS).ok
    assert not pf.compare_loss(torch.nn.MSELoss(), lambda o, y: ((o - y) ** 2).sum(), VALUES, TARGETS).ok


def test_tensors_of_either_framework_are_taken() -> None:
    report = pf.compare_loss(
        torch.nn.CrossEntropyLoss(),
        paddle.nn.CrossEntropyLoss(),
        torch.from_numpy(LOGITS),
        paddle.to_tensor(LABELS),
    )
    assert report.ok


def test_wrong_calls_are_refused() -> None:
    loss = torch.nn.MSELoss()
    with pytest.raises(InputError, match="compared with itself"):
        pf.compare_loss(loss, loss, VALUES, TARGETS)
    with pytest.raises(EmptyComparisonError, match="no inputs"):
        pf.compare_loss(loss, paddle.nn.MSELoss())
    with pytest.raises(InputError, match="not a loss that can be called"):
        pf.compare_loss(loss, 3, VALUES, TARGETS)
    with pytest.raises(InputError, match="takes the tensors of no framework"):
        pf.compare_loss(loss, lambda o, y: o.no_such_method(y), VALUES, TARGETS)
    with pytest.raises(InputError, match=r"the port's loss gives 1\.0, not a tensor|takes the tensors of no"):
        pf.compare_loss(loss, lambda o, y: 1.0, VALUES, TARGETS)


AMOUNTS = (3e-4, 0.001, 0.5, -0.1)
FACTORS = (1.0007, 0.999, 2.0)


def moved_by(amount: float, factor: float = 1.0) -> Any:
    return lambda output, label: paddle_functions.cross_entropy(output, label) * factor + amount


@pytest.mark.parametrize("amount", AMOUNTS)
def test_a_constant_is_told_from_a_factor(amount: float) -> None:
    report = pf.compare_loss(torch_functions.cross_entropy, moved_by(amount), LOGITS, LABELS)
    (found,) = report.divergences  # the gradient is equal
    assert (found.phase, found.cause.code) == ("loss", "loss.offset"), str(report)
    told = float(found.cause.message.partition(" by ")[2].split()[0])
    assert told == pytest.approx(amount, rel=0.05)
    assert found.cause.proof is not None


@pytest.mark.parametrize("amount", [1e-5, 1e-6])
def test_a_constant_near_rounding_is_no_factor(amount: float) -> None:
    report = pf.compare_loss(torch_functions.cross_entropy, moved_by(amount), LOGITS, LABELS)
    codes = {each.cause.code for each in report.divergences if each.cause is not None}
    assert codes <= {"loss.offset", "op.extra"}, report  # the constant, or the addition of it


@pytest.mark.parametrize("factor", FACTORS)
def test_a_factor_is_told_from_a_constant(factor: float) -> None:
    report = pf.compare_loss(torch_functions.cross_entropy, moved_by(0.0, factor), LOGITS, LABELS)
    assert report.first.cause.code == "loss.reduction", str(report)
    assert f"is {factor:g} times" in report.first.cause.message


def test_a_factor_and_a_constant_are_neither_alone() -> None:
    report = pf.compare_loss(torch_functions.cross_entropy, moved_by(0.1, 2.0), LOGITS, LABELS)
    assert not report.ok
    assert report.first.cause.code == "op.extra", str(report)
    assert "applies mul, add" in report.first.cause.message


@settings(max_examples=25, deadline=None)
@given(exponent=st.floats(-4, 1), negative=st.booleans(), factor=st.booleans(), seed=st.integers(0, 99))
def test_formulas_of_one_number_are_told_apart_whatever_it_is(
    exponent: float, negative: bool, factor: bool, seed: int
) -> None:
    """In float64, by the causes alone: a constant, or a factor, of any size and sign on any losses."""
    number = (-1 if negative else 1) * 10.0**exponent
    generator = np.random.default_rng(seed)
    samples = [
        LossSample(
            (generator.standard_normal((4, 3)), np.ones(4, np.int64)), np.array(value), np.array(other)
        )
        for value in generator.uniform(0.5, 3.0, 4)
        for other in [value * (1 + number) if factor else value + number]
    ]
    cause = cause_of(LossPair(samples, lambda inputs: None, lambda inputs: None))
    assert cause is not None
    assert cause.code == ("loss.reduction" if factor else "loss.offset"), cause
