"""Compare: the reference's rule of update on the port's recorded numbers; momentum through other rates."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import paddle
import pytest
import torch

import parfocal as pf
from tests.pairs.workflow.recordings import Side, compare_sides, digest
from tests.pairs.workflow.test_recorded_training import (
    BATCHES,
    EITHER,
    adam,
    paddle_adam,
    paddle_momentum,
    paddle_sgd,
    pair,
    sgd,
)

STATE = ("parameter", "optimizer")
MADE_AGAIN = "updates made again by the reference's rule"


def secret(model: Any) -> Any:
    """An optimizer whose steps are made with another beta than it says."""
    optimizer = paddle.optimizer.Adam(0.01, parameters=model.parameters())
    step = optimizer.step

    def secretly() -> None:
        said, optimizer._beta1 = optimizer._beta1, 0.5
        step()
        optimizer._beta1 = said

    optimizer.step = secretly
    return optimizer


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (adam(), paddle_adam()),
        (adam("AdamW", weight_decay=0.1), paddle_adam("AdamW", weight_decay=0.1)),
        (sgd(momentum=0.9, weight_decay=0.01), paddle_momentum(weight_decay=0.01)),
    ],
    ids=["adam", "adamw", "momentum"],
)
def test_a_correct_update_is_what_the_references_rule_gives(tmp_path: Path, ours: Any, theirs: Any) -> None:
    report = compare_sides(tmp_path, *pair(ours, theirs), BATCHES, tensors="full", state=STATE)
    assert report.ok, str(report)
    assert report.coverage.count(MADE_AGAIN) == 3 * 8


def test_nothing_is_made_again_of_sketches(tmp_path: Path) -> None:
    report = compare_sides(tmp_path, *pair(adam(), paddle_adam()), BATCHES, tensors="sketch", state=STATE)
    assert report.ok, str(report)
    assert not report.coverage.count(MADE_AGAIN)


def test_a_small_epsilon_is_found_where_sizes_of_updates_agree(tmp_path: Path) -> None:
    """Of 1e-6 for 1e-8 no size of an update tells; the rule on the port's own numbers does."""
    sides = pair(adam(eps=1e-8), paddle_adam(epsilon=1e-6))
    report = compare_sides(tmp_path, *sides, BATCHES, tensors="full", state=STATE)
    found = digest(report)
    assert found is not None
    assert (found[0], found[1], found[4]) == ("optimizer", 0, "optim.epsilon"), str(report)


def test_a_beta_that_no_setting_tells_is_solved_for(tmp_path: Path) -> None:
    report = compare_sides(tmp_path, *pair(adam(), secret), BATCHES, tensors="full", state=STATE)
    assert (report.first.phase, report.first.cause.code) == ("optimizer", "optim.betas"), str(report)
    assert "show 0.5" in report.first.cause.message


def test_an_update_is_judged_though_gradients_part_before(tmp_path: Path) -> None:
    """A loss that is doubled in the port hides nothing of its update."""
    reference, port = pair(adam(eps=1e-8), paddle_adam(epsilon=1e-4))
    port = replace(port, loss=lambda output, label: 2 * paddle.nn.functional.cross_entropy(output, label))
    report = compare_sides(tmp_path, reference, port, BATCHES, tensors="full", state=STATE)
    codes = {each.phase: each.cause.code for each in report.divergences if each.cause and not each.inherited}
    assert codes["optimizer"] == "optim.epsilon", str(report)
    assert report.first.phase == "loss"


def scheduled(kit: Any, momentum: float) -> tuple[Any, Any]:
    """An optimizer with momentum whose rate falls after the first step, and its schedule."""
    rates = (1.0, 0.8, 0.8, 0.8)
    if kit is torch:
        return sgd(momentum=momentum), lambda optimizer: torch.optim.lr_scheduler.LambdaLR(
            optimizer, lambda step: rates[step]
        )

    def build(model: Any) -> Any:
        scheduler = paddle.optimizer.lr.LambdaDecay(0.1, lambda step: rates[step])
        built = paddle.optimizer.Momentum(scheduler, momentum, parameters=model.parameters())
        built.schedule = scheduler
        return built

    return build, lambda built: built.schedule


@EITHER
@pytest.mark.parametrize("momentum", [0.9, 0.5])
def test_momentum_is_solved_for_through_a_change_of_the_rate(
    tmp_path: Path, tensors: str, momentum: float
) -> None:
    (ours, our_schedule), (theirs, their_schedule) = scheduled(torch, 0.9), scheduled(paddle, momentum)
    reference, port = pair(ours, theirs, scheduler=their_schedule)
    report = compare_sides(
        tmp_path, replace(reference, scheduler=our_schedule), port, BATCHES, tensors=tensors
    )
    found = digest(report)
    if momentum == 0.9:
        assert found is None, str(report)
        return
    assert found is not None
    assert (found[0], found[1], found[4]) == ("optimizer", 1, "optim.momentum"), str(report)
    causes = [report.first.cause, *report.first.cause.alternatives]
    assert any("0.9 in the reference and 0.5 in the port" in each.message for each in causes), str(report)


@EITHER
def test_gradients_that_are_not_cleared_are_named(tmp_path: Path, tensors: str) -> None:
    reference, port = pair(sgd(), lambda model: paddle.optimizer.SGD(0.1, parameters=model.parameters()))
    kept: dict[int, Any] = {}

    def add_last(model: Any) -> None:
        for number, parameter in enumerate(model.parameters()):
            kept[number] = parameter.grad.clone()

    def with_last(output: Any, label: Any) -> Any:
        loss = paddle.nn.functional.cross_entropy(output, label)
        if kept:
            parameters = port.model.parameters()
            loss = loss + sum((kept[n] * each).sum() for n, each in enumerate(parameters))
            loss = loss - sum((kept[n] * each).sum() for n, each in enumerate(parameters)).detach()
        return loss

    port = replace(port, loss=with_last, before_update=add_last)
    report = compare_sides(tmp_path, reference, port, BATCHES[:2], tensors=tensors)
    causes = [each.cause.code for each in report.divergences if each.cause is not None]
    assert "grad.accumulated" in causes, str(report)
    assert min(each.step for each in report.divergences) == 1


class _ByHand(torch.optim.Optimizer):
    """Gradient descent that tells nothing but its rate."""

    def __init__(self, parameters: Any, momentum: float = 0.0, decay: float = 0.0) -> None:
        super().__init__(parameters, {"lr": 0.1})
        self.hidden = momentum, decay

    def step(self) -> None:  # type: ignore[override]
        momentum, decay = self.hidden
        with torch.no_grad():
            for parameter in self.param_groups[0]["params"]:
                gradient = parameter.grad + decay * parameter
                last = self.state[parameter].get("last", 0.0)
                self.state[parameter]["last"] = momentum * last + gradient
                parameter -= 0.1 * self.state[parameter]["last"]


@EITHER
@pytest.mark.parametrize(
    ("hidden", "theirs", "expected", "words"),
    [
        ({"momentum": 0.9}, paddle_momentum(), None, ""),
        (
            {"momentum": 0.9},
            paddle_momentum(momentum=0.5),
            ("optim.momentum", 1),
            "0.9 in the reference and 0.5",
        ),
        ({"decay": 0.1}, paddle_sgd(), ("optim.weight_decay", 0), "0.1 in the reference"),
        ({"decay": 0.1}, paddle_adam(), ("optim.kind", 0), "'_ByHand' in the reference and 'Adam'"),
    ],
    ids=["same", "momentum", "decay", "kind"],
)
def test_the_rule_of_an_optimizer_that_nobody_knows_is_inferred(
    tmp_path: Path, tensors: str, hidden: Any, theirs: Any, expected: Any, words: str
) -> None:
    sides = pair(lambda model: _ByHand(model.parameters(), **hidden), theirs)
    report = compare_sides(tmp_path, *sides, BATCHES, tensors=tensors)
    if expected is None:
        assert report.ok, str(report)
        return
    first = next(each for each in report.divergences if each.phase == "optimizer")
    assert (first.cause.code, first.step) == expected, str(report)
    assert words in first.cause.message


@EITHER
@pytest.mark.parametrize("right", [True, False])
@pytest.mark.parametrize("lambd", [1e-4, 0.1])
def test_averaged_descent_is_recorded_as_it_takes_effect(
    tmp_path: Path, tensors: str, lambd: float, right: bool
) -> None:
    """Its rate falls and its weights decay by a setting of its own."""
    rate = paddle.optimizer.lr.LambdaDecay(0.1, lambda step: (1 + lambd * 0.1 * step) ** -0.75)

    def theirs(model: Any) -> Any:
        decay = lambd if right else None
        return paddle.optimizer.ASGD(rate, parameters=model.parameters(), weight_decay=decay)

    ours, port = pair(lambda model: torch.optim.ASGD(model.parameters(), 0.1, lambd=lambd), theirs)
    port = replace(port, scheduler=lambda optimizer: rate)
    report = compare_sides(tmp_path, ours, port, BATCHES, tensors=tensors)
    if right:
        assert report.ok, str(report)
    else:
        assert (report.first.phase, report.first.cause.code) == ("optimizer", "optim.weight_decay")


@EITHER
def test_an_update_of_which_a_few_rows_show_is_seen(tensors: str, tmp_path: Path) -> None:
    """Paddle's updates move no counter of changes: all values are looked at, not some."""
    indices = np.array([[3, 5], [7, 11]])
    models = torch.nn.Embedding(500, 64), paddle.nn.Embedding(500, 64)
    pf.transfer(*models)
    sides = [
        Side(models[0], lambda output, target: output.sum(), lambda m: torch.optim.SGD(m.parameters(), 0.1)),
        Side(
            models[1],
            lambda output, target: output.sum(),
            lambda m: paddle.optimizer.SGD(0.1, parameters=m.parameters()),
        ),
    ]
    report = compare_sides(tmp_path, *sides, [(indices, indices)] * 2, tensors=tensors)
    assert report.ok, report
    assert report.coverage.count("updates of parameters")


LACKING = {
    "momentum": (sgd(momentum=0.9), paddle_sgd(), "paddle.optimizer.Momentum(..., momentum=0.9)"),
    "momentum with nesterov": (
        sgd(momentum=0.9, nesterov=True),
        paddle_sgd(),
        "paddle.optimizer.Momentum(..., momentum=0.9, use_nesterov=True)",
    ),
    "no momentum": (sgd(), paddle_momentum(), "paddle.optimizer.SGD(...)"),
    "decay apart from the gradient": (
        adam("AdamW", weight_decay=0.1),
        paddle_adam("Adam", weight_decay=0.1),
        "paddle.optimizer.AdamW(..., weight_decay=0.1)",
    ),
    "decay of the gradient": (
        adam("Adam", weight_decay=0.1),
        paddle_adam("AdamW", weight_decay=0.1),
        "paddle.optimizer.Adam(..., weight_decay=0.1)",
    ),
    "another beta": (
        adam(betas=(0.8, 0.99)),
        paddle_adam(beta2=0.99),
        "paddle.optimizer.Adam(..., beta1=0.8",
    ),
}


@pytest.mark.parametrize("state", [(), STATE], ids=["sketches", "kept in full"])
@pytest.mark.parametrize("name", LACKING)
def test_the_fix_of_a_setting_names_the_class_that_has_it(tmp_path: Path, name: str, state: Any) -> None:
    """As a live comparison does, also where the port's class knows no such setting."""
    ours, theirs, line = LACKING[name]
    options: dict[str, Any] = {"tensors": "full", "state": state} if state else {"tensors": "sketch"}
    report = compare_sides(tmp_path, *pair(ours, theirs), BATCHES, **options)
    causes = [each.cause for each in report.divergences if each.cause is not None and not each.inherited]
    fixes = [each.fix for cause in causes for each in (cause, *cause.alternatives)]
    assert any(fix.startswith(f"write {line}") for fix in fixes), str(report)
    assert not any("of the port's optimizer to" in fix for fix in fixes), str(report)


def without_decay_of_biases(model: Any) -> Any:
    biases = [each for name, each in model.named_parameters() if name.endswith("bias")]
    others = [each for name, each in model.named_parameters() if not name.endswith("bias")]
    groups = [{"params": biases, "weight_decay": 0.0}, {"params": others, "weight_decay": 0.1}]
    return torch.optim.AdamW(groups, lr=0.01)


def test_a_setting_of_some_parameters_is_a_group_of_its_own(tmp_path: Path) -> None:
    sides = pair(without_decay_of_biases, paddle_adam("AdamW", weight_decay=0.1))
    report = compare_sides(tmp_path, *sides, BATCHES, tensors="sketch")
    causes = [report.first.cause, *report.first.cause.alternatives]
    picked = '[p for n, p in port.named_parameters() if n.endswith("bias")]'
    line = "paddle.optimizer.AdamW(..., weight_decay=0.0)"
    wanted = f"give {picked} a group of its own, set as {line}"
    assert wanted in [each.fix for each in causes], str(report)


def test_an_optimizer_of_no_table_is_not_invented(tmp_path: Path) -> None:
    class Own(torch.optim.Optimizer):
        def __init__(self, parameters: Any) -> None:
            super().__init__(parameters, {"lr": 0.1})

        @torch.no_grad()
        def step(self, closure: Any = None) -> None:
            for parameter in self.param_groups[0]["params"]:
                parameter.sub_(0.1 * parameter.grad.sign())

    report = compare_sides(
        tmp_path, *pair(lambda model: Own(model.parameters()), paddle_sgd()), BATCHES, tensors="sketch"
    )
    assert "optimizer.Own" not in str(report)
