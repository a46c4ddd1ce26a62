"""Optimizers of the two frameworks: with matching settings they are the same, and what differs is named."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from importlib import import_module
from typing import Any

import paddle
import pytest
import torch

from parfocal.backends import registry
from tests.pairs import vision  # noqa: F401  its operators, before timm asks for them
from tests.pairs.training.tools import LOSSES, compare, paddle_optim, perceptron, torch_optim

pytestmark = pytest.mark.filterwarnings("ignore:When training, we now always track global mean:UserWarning")

Make = Callable[[Any], Any]

CORRECT: dict[str, tuple[Make, Make]] = {
    "SGD": (lambda p: torch_optim.SGD(p, 0.1), lambda p: paddle_optim.SGD(0.1, parameters=p)),
    "SGD with decay": (
        lambda p: torch_optim.SGD(p, 0.1, weight_decay=0.01),
        lambda p: paddle_optim.SGD(0.1, parameters=p, weight_decay=0.01),
    ),
    "Momentum": (
        lambda p: torch_optim.SGD(p, 0.1, momentum=0.9, weight_decay=1e-4),
        lambda p: paddle_optim.Momentum(0.1, 0.9, parameters=p, weight_decay=1e-4),
    ),
    "Nesterov": (
        lambda p: torch_optim.SGD(p, 0.1, momentum=0.9, nesterov=True),
        lambda p: paddle_optim.Momentum(0.1, 0.9, parameters=p, use_nesterov=True),
    ),
    "Adam": (
        lambda p: torch_optim.Adam(p, 0.1),  # a rate at which its rounding is large
        lambda p: paddle_optim.Adam(0.1, parameters=p),
    ),
    "Adam with decay": (
        lambda p: torch_optim.Adam(p, 0.01, weight_decay=0.1),
        lambda p: paddle_optim.Adam(0.01, parameters=p, weight_decay=0.1),
    ),
    "AMSGrad": (
        lambda p: torch_optim.Adam(p, 0.01, amsgrad=True),
        lambda p: paddle_optim.Adam(0.01, parameters=p, amsgrad=True),
    ),
    "AdamW": (
        lambda p: torch_optim.AdamW(p, 0.01, weight_decay=0.05),
        lambda p: paddle_optim.AdamW(0.01, parameters=p, weight_decay=0.05),
    ),
    "Adamax": (
        lambda p: torch_optim.Adamax(p, 0.002),
        lambda p: paddle_optim.Adamax(0.002, parameters=p),
    ),
    "Adagrad": (
        lambda p: torch_optim.Adagrad(p, 0.05, eps=1e-6),
        lambda p: paddle_optim.Adagrad(0.05, parameters=p, epsilon=1e-6),
    ),
    "Adadelta": (
        lambda p: torch_optim.Adadelta(p, 1.0, rho=0.9, eps=1e-6),
        lambda p: paddle_optim.Adadelta(1.0, 1e-6, 0.9, parameters=p),
    ),
    "RMSProp": (
        lambda p: torch_optim.RMSprop(p, 0.01, alpha=0.99, eps=1e-12),
        lambda p: paddle_optim.RMSProp(0.01, 0.99, 1e-16, parameters=p),
    ),
    "NAdam": (
        lambda p: torch_optim.NAdam(p, 0.002),
        lambda p: paddle_optim.NAdam(0.002, parameters=p),
    ),
    "RAdam": (
        lambda p: torch_optim.RAdam(p, 0.01),
        lambda p: paddle_optim.RAdam(0.01, parameters=p),
    ),
    "Rprop": (
        lambda p: torch_optim.Rprop(p, 0.01, step_sizes=(1e-6, 50.0)),
        lambda p: paddle_optim.Rprop(0.01, (1e-6, 50.0), parameters=p),
    ),
    "ASGD": (
        lambda p: torch_optim.ASGD(p, 0.1, lambd=0.0, weight_decay=0.01),
        lambda p: paddle_optim.ASGD(0.1, parameters=p, weight_decay=0.01),
    ),
}


@pytest.mark.parametrize("name", CORRECT)
def test_matching_settings_are_the_same_for_50_steps(name: str) -> None:
    report = compare(*CORRECT[name], steps=50)
    assert report.ok, report
    assert report.coverage.count("steps") == 50
    freely = report.coverage.count("steps run freely")
    assert report.coverage.count("updates of parameters") >= 4 * (50 - freely)


def timm_lamb(**settings: Any) -> Make:
    """torch has no Lamb. This one counts its steps in its groups, and nothing tells the form of its decay."""
    return lambda p: import_module("timm.optim").Lamb(
        p, 0.01, max_grad_norm=None, always_adapt=True, **settings
    )


def test_an_optimizer_from_elsewhere_is_the_same_for_50_steps() -> None:
    report = compare(
        timm_lamb(weight_decay=0.05), lambda p: paddle_optim.Lamb(0.01, 0.05, parameters=p), steps=50
    )
    assert report.ok, report
    assert report.coverage.count("steps") == 50


def test_what_differs_from_an_optimizer_from_elsewhere_is_named() -> None:
    first = compare(timm_lamb(weight_decay=0.05), lambda p: paddle_optim.Lamb(0.01, 0.5, parameters=p)).first
    assert (first.phase, first.step, first.cause.code) == ("optimizer", 0, "optim.weight_decay")
    assert first.cause.message == "the weight decay is 0.05 in the reference and 0.5 in the port"


@pytest.mark.parametrize("lambd", [1e-4, 0.1])
@pytest.mark.parametrize("kind", ["ASGD", "SGD"])
def test_the_falling_rate_and_the_decay_of_averaged_descent_can_be_written(kind: str, lambd: float) -> None:
    """torch's ASGD is SGD with them; the rate is the one that takes effect, not the one of the group."""
    rate = paddle_optim.lr.LambdaDecay(0.1, lambda step: (1 + lambd * 0.1 * step) ** -0.75)
    report = compare(
        lambda p: torch_optim.ASGD(p, 0.1, lambd=lambd),
        lambda p: getattr(paddle_optim, kind)(rate, parameters=p, weight_decay=lambd),
        steps=50,
        schedulers=(None, rate),
    )
    assert report.ok, report


@pytest.mark.parametrize("most", [1, 3])
def test_averaged_gradients_are_a_rule_that_is_known(most: int) -> None:
    """Also where the reference has them: every kept gradient lies as the parameter does."""
    models, losses = (perceptron()[1], perceptron()[1]), (LOSSES[1], LOSSES[1])
    optimizers = [
        lambda p: paddle_optim.ASGD(0.1, 3, parameters=p),
        lambda p: paddle_optim.ASGD(0.1, most, p),
    ]
    report = compare(*optimizers, steps=8, models=models, loss=losses)
    if most == 3:
        assert report.ok, report
    else:
        first = report.first
        assert (first.phase, first.step, first.cause.code) == ("optimizer", 1, "optim.update")
        assert first.cause.message == "batch_num is 3 in the reference and 1 in the port"
        assert first.cause.fix == "write paddle.optimizer.ASGD(..., batch_num=3)"


def test_a_normalised_model_is_the_same_for_50_steps() -> None:
    report = compare(*CORRECT["Momentum"], steps=50, models=perceptron(norm=True))
    assert not [each for each in report.divergences if each.cause is None or each.phase != "buffer"], report


def in_groups(optimizer: Any, last: dict[str, Any], **settings: Any) -> Make:
    """The second half of the parameters in a group of its own."""

    def make(parameters: Any) -> Any:
        known = list(parameters)
        groups = [{"params": known[:2]}, {"params": known[2:], **last}]
        if optimizer.__module__.startswith("torch"):
            return optimizer(groups, **settings)
        return optimizer(parameters=groups, **settings)

    return make


# what differs -> the reference, the port, the code, and the first step
WRONG: dict[str, tuple[Make, Make, str, int]] = {
    "paddle's default momentum": (
        lambda p: torch_optim.SGD(p, 0.1),
        lambda p: paddle_optim.Momentum(0.1, parameters=p),
        "optim.momentum",
        1,
    ),
    "dampening": (
        lambda p: torch_optim.SGD(p, 0.1, momentum=0.9, dampening=0.5),
        lambda p: paddle_optim.Momentum(0.1, 0.9, parameters=p),
        "optim.momentum",
        1,
    ),
    "no nesterov": (
        lambda p: torch_optim.SGD(p, 0.1, momentum=0.9, nesterov=True),
        lambda p: paddle_optim.Momentum(0.1, 0.9, parameters=p),
        "optim.momentum",
        0,
    ),
    "another momentum": (
        lambda p: torch_optim.SGD(p, 0.1, momentum=0.9),
        lambda p: paddle_optim.Momentum(0.1, 0.99, parameters=p),
        "optim.momentum",
        1,
    ),
    "Adam for AdamW": (
        lambda p: torch_optim.AdamW(p, 0.01, weight_decay=0.1),
        lambda p: paddle_optim.Adam(0.01, parameters=p, weight_decay=0.1),
        "optim.weight_decay",
        0,
    ),
    "AdamW for Adam": (
        lambda p: torch_optim.Adam(p, 0.01, weight_decay=0.1),
        lambda p: paddle_optim.AdamW(0.01, parameters=p, weight_decay=0.1),
        "optim.weight_decay",
        0,
    ),
    "paddle's default decay of AdamW": (
        lambda p: torch_optim.AdamW(p, 0.01, weight_decay=0.05),
        lambda p: paddle_optim.AdamW(0.01, parameters=p),
        "optim.weight_decay",
        0,
    ),
    "no decay": (
        lambda p: torch_optim.SGD(p, 0.1, weight_decay=1e-4),
        lambda p: paddle_optim.SGD(0.1, parameters=p),
        "optim.weight_decay",
        0,
    ),
    "L1 for L2": (
        lambda p: torch_optim.SGD(p, 0.1, weight_decay=1e-3),
        lambda p: paddle_optim.SGD(0.1, parameters=p, weight_decay=paddle.regularizer.L1Decay(1e-3)),
        "optim.weight_decay",
        0,
    ),
    "a filter by name that matches nothing": (
        in_groups(torch_optim.AdamW, {"weight_decay": 0.0}, lr=0.01, weight_decay=0.1),
        lambda p: paddle_optim.AdamW(
            0.01, parameters=p, weight_decay=0.1, apply_decay_param_fun=lambda name: "layers.2" not in name
        ),
        "optim.weight_decay",
        0,
    ),
    "a group's rate that is a factor": (
        in_groups(torch_optim.SGD, {"lr": 0.01}, lr=0.1),
        in_groups(paddle_optim.SGD, {"learning_rate": 0.01}, learning_rate=0.1),
        "optim.lr_group",
        0,
    ),
    "another kind": (
        lambda p: torch_optim.Adam(p, 0.01),
        lambda p: paddle_optim.SGD(0.01, parameters=p),
        "optim.kind",
        0,
    ),
    "paddle's defaults of RMSProp": (
        lambda p: torch_optim.RMSprop(p, 0.01),
        lambda p: paddle_optim.RMSProp(0.01, parameters=p),
        "optim.betas",
        0,
    ),
    "epsilon of RMSProp inside of the root": (
        lambda p: torch_optim.RMSprop(p, 0.01, alpha=0.95, eps=1e-3),
        lambda p: paddle_optim.RMSProp(0.01, 0.95, 1e-3, parameters=p),
        "optim.epsilon",
        0,
    ),
    "paddle's default epsilon of Adagrad": (
        lambda p: torch_optim.Adagrad(p, 0.01),
        lambda p: paddle_optim.Adagrad(0.01, parameters=p),
        "optim.epsilon",
        0,
    ),
    "paddle's defaults of Adadelta": (
        lambda p: torch_optim.Adadelta(p, 1.0),
        lambda p: paddle_optim.Adadelta(1.0, parameters=p),
        "optim.betas",
        0,
    ),
    "paddle's default rate of Adamax": (
        lambda p: torch_optim.Adamax(p),
        lambda p: paddle_optim.Adamax(parameters=p),
        "lr.value",
        0,
    ),
    "other betas": (
        lambda p: torch_optim.Adam(p, 0.01, betas=(0.9, 0.95)),
        lambda p: paddle_optim.Adam(0.01, parameters=p),
        "optim.betas",
        0,
    ),
    "epsilon of Adam": (
        lambda p: torch_optim.Adam(p, 0.01, eps=1e-6),
        lambda p: paddle_optim.Adam(0.01, parameters=p),
        "optim.epsilon",
        0,
    ),
    "no AMSGrad": (
        lambda p: torch_optim.Adam(p, 0.01, betas=(0.9, 0.5), amsgrad=True),
        lambda p: paddle_optim.Adam(0.01, beta2=0.5, parameters=p),
        "optim.update",
        1,
    ),
    "Rprop with other step sizes": (
        lambda p: torch_optim.Rprop(p, 0.01),
        lambda p: paddle_optim.Rprop(0.01, (0.009, 0.011), parameters=p),
        "optim.update",
        1,
    ),
    "twice the rate": (
        lambda p: torch_optim.SGD(p, 0.1),
        lambda p: paddle_optim.SGD(0.2, parameters=p),
        "lr.value",
        0,
    ),
    "a parameter that is left out": (
        lambda p: torch_optim.SGD(p, 0.1),
        lambda p: paddle_optim.SGD(0.1, parameters=list(p)[:-1]),
        "optim.lr_group",
        0,
    ),
}


def test_another_rate_of_rprop_is_told_once() -> None:
    """The step sizes begin with it: led along the reference's rate, they are right."""
    report = compare(lambda p: torch_optim.Rprop(p), lambda p: paddle_optim.Rprop(parameters=p))
    assert [(each.phase, each.cause.code) for each in report.divergences] == [("lr", "lr.value")], report


@pytest.mark.parametrize("name", WRONG)
def test_what_differs_is_named(name: str) -> None:
    ours, theirs, code, step = WRONG[name]
    report = compare(ours, theirs)
    first = report.first
    assert first is not None, report
    assert first.cause is not None, report
    assert first.cause.code == code, report
    assert first.step == step, report
    assert first.phase == ("lr" if code.startswith("lr.") or "factor" in name else "optimizer")


def by_axes(optimizer: Any, **rest: Any) -> Make:
    """Only tensors of several axes decay, as is usual."""
    return lambda p: (
        lambda known: optimizer(
            [
                {"params": [each for each in known if each.ndim > 1], "weight_decay": 0.05},
                {"params": [each for each in known if each.ndim < 2], "weight_decay": 0.0},
            ],
            **rest,
        )
    )(list(p))


@pytest.mark.parametrize(
    ("ours", "theirs", "codes"),
    [
        (
            by_axes(torch_optim.SGD, lr=0.1, momentum=0.9),
            lambda p: paddle_optim.Momentum(0.1, 0.9, parameters=p, weight_decay=0.05),
            ["optim.weight_decay"],
        ),
        (
            by_axes(torch_optim.SGD, lr=0.1, momentum=0.9, nesterov=True),
            lambda p: paddle_optim.Momentum(0.1, 0.9, parameters=p, weight_decay=0.05),
            ["optim.weight_decay", "optim.momentum"],
        ),
        (
            lambda p: torch_optim.SGD(p, 0.1, momentum=0.9, weight_decay=0.05),
            lambda p: paddle_optim.Momentum(0.1, 0.9, parameters=p),
            ["optim.weight_decay"],
        ),
    ],
)
def test_a_bias_that_nothing_depends_on_is_no_parameter_left_out(
    ours: Make, theirs: Make, codes: Any
) -> None:
    """The gradient of a normalised layer's bias is rounding: without decay it stays where it is."""
    report = compare(ours, theirs, models=perceptron(norm=True), steps=1)
    assert [each.cause.code for each in report.divergences if each.phase == "optimizer"] == codes, report
    assert all(each.cause.proof is not None for each in report.divergences if len(codes) == 1), report


def test_what_else_is_wrong_is_told_beside_a_parameter_that_is_left_out() -> None:
    report = compare(
        lambda p: torch_optim.SGD(p, 0.1, weight_decay=0.05),
        lambda p: paddle_optim.SGD(0.1, parameters=list(p)[:-1]),
    )
    codes = [each.cause.code for each in report.divergences]
    assert codes[:2] == ["optim.lr_group", "optim.weight_decay"], report


WITHOUT_DECAY = ("Rprop", "LBFGS")


@pytest.mark.parametrize("framework", ["torch", "paddle"])
def test_what_is_written_of_a_setting_is_an_argument(framework: str) -> None:
    """Every row of the tables, against the signature of the class that it names."""
    home = {"torch": torch.optim, "paddle": paddle.optimizer}[framework]
    spelling = registry.dialect(framework).optimizers
    for kind, names in spelling.settings.items():
        optimizer = getattr(home, spelling.classes.get(kind, kind), None)
        if optimizer is None:  # of a version that is older
            continue
        own = [part for each in names.values() for part in (each if isinstance(each, tuple) else (each,))]
        own.append(spelling.shared["lr"])
        if kind not in WITHOUT_DECAY:
            own.append(spelling.decays.get(kind, spelling.shared["weight_decay"]))
        known = inspect.signature(optimizer).parameters
        lacking = {spelling.arguments.get(each, each) for each in own} - known.keys()
        assert not lacking, (kind, lacking)
