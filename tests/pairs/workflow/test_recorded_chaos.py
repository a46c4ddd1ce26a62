"""Compare: trainings at so large a rate that rounding grows by itself say nothing from some step on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import paddle
import pytest
import torch

import parfocal as pf
from parfocal.judge.floors import NOTHING
from parfocal.judge.verdict import Divergence, Site
from parfocal.workflow.recorded_runs.chaos import Chaos
from tests.pairs.workflow.recordings import Side, compare_sides

RANDOM = np.random.default_rng(0)
BATCH = RANDOM.standard_normal((32, 8)).astype("float32"), RANDOM.standard_normal((32, 1)).astype("float32")
STEPS = 14
SAID = "says nothing"


def net(kit: Any, activation: str = "Tanh", width: int = 32) -> Any:
    torch.manual_seed(2)
    layers: list[Any] = []
    for inputs in (8, width, width):
        layers += [kit.Linear(inputs, width), getattr(kit, activation)()]
    return kit.Sequential(*layers, kit.Linear(width, 1))


def sides(ours: Any, theirs: Any, activation: str = "Tanh", **changes: Any) -> tuple[Side, Side]:
    reference, port = net(torch.nn, activation), net(paddle.nn, activation)
    pf.transfer(reference, port)
    return (
        Side(reference, torch.nn.functional.mse_loss, ours),
        Side(port, paddle.nn.functional.mse_loss, theirs, **changes),
    )


def moved(ours: Any, activation: str = "Tanh") -> tuple[Side, Side]:
    """The reference and itself, begun a unit in the last place beside."""
    both = [Side(net(torch.nn, activation), torch.nn.functional.mse_loss, ours) for _ in range(2)]
    with torch.no_grad():
        for parameter in both[1].model.parameters():
            parameter *= 1 + 2.0**-23
    return both[0], both[1]


def descent(rate: float) -> tuple[Any, Any]:
    return (
        lambda model: torch.optim.SGD(model.parameters(), rate),
        lambda model: paddle.optimizer.SGD(rate, parameters=model.parameters()),
    )


def adam(rate: float) -> tuple[Any, Any]:
    return (
        lambda model: torch.optim.Adam(model.parameters(), rate),
        lambda model: paddle.optimizer.Adam(rate, parameters=model.parameters()),
    )


def compared(pair: tuple[Side, Side], folder: Path) -> Any:
    return compare_sides(folder, *pair, [BATCH] * STEPS)


def test_a_chaotic_training_says_nothing_from_some_step_on(tmp_path: Path) -> None:
    """Every pair is right; where chaos shows, the report says from where on."""
    reports = []
    for number, rate in enumerate((0.8, 0.85, 0.9)):
        reports.append(compared(sides(*descent(rate)), tmp_path / f"pair{number}"))
        reports.append(compared(moved(descent(rate)[0]), tmp_path / f"moved{number}"))
    for report in reports:
        assert report.ok, report
    told = [report for report in reports if SAID in str(report)]
    assert told
    for report in told:
        assert any(each.code == "training.horizon" for each in report.findings)
        assert any("from step" in str(each.what) for each in report.coverage.left_out)


@pytest.mark.parametrize("activation", ["ReLU", "GELU", "Tanh"])
@pytest.mark.parametrize(("kind", "rate"), [(adam, 1.0), (adam, 0.3), (descent, 0.6), (descent, 1.2)])
def test_other_optimizers_and_activations_too(
    kind: Any, rate: float, activation: str, tmp_path: Path
) -> None:
    """What saturates cancels, and turns a tiny error of its input into a large one: that is no mistake."""
    report = compared(sides(*kind(rate), activation=activation), tmp_path)
    assert report.ok, report


def test_trainings_that_overflow_say_nothing_from_there_on(tmp_path: Path) -> None:
    report = compared(sides(*descent(1.2), activation="GELU"), tmp_path)
    assert report.ok, report
    (told,) = [each.message for each in report.findings if each.code == "training.horizon"]
    assert "the loss is nan in the reference, nan in the port" in told
    assert report.coverage.left_out


def test_a_port_that_alone_overflows_is_wrong(tmp_path: Path) -> None:
    made: list[Any] = []

    def after(model: Any) -> None:
        made.append(model)
        if len(made) == 3:
            with paddle.no_grad():
                model[0].weight.scale_(float("nan"))

    report = compared(sides(*descent(0.05), after_update=after), tmp_path)
    assert not report.ok
    assert SAID not in str(report)


class Centered(torch.nn.Module):
    """The bias of its first layer changes nothing."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(3)
        self.first, self.last = torch.nn.Linear(8, 32), torch.nn.Linear(32, 1)

    def forward(self, x: Any) -> Any:
        made = self.first(x)
        return self.last((made - made.mean(0)).tanh())


class CenteredPort(paddle.nn.Layer):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = paddle.nn.Linear(8, 32), paddle.nn.Linear(32, 1)

    def forward(self, x: Any) -> Any:
        made = self.first(x)
        return self.last((made - made.mean(0)).tanh())


def test_weights_on_which_no_output_depends_are_no_chaos(tmp_path: Path) -> None:
    """Adam makes whole steps of gradients that are all rounding; a mistake after that is one."""
    reference, port = Centered(), CenteredPort()
    pf.transfer(reference, port)
    called = []
    port.last.register_forward_post_hook(
        lambda layer, given, output: called.append(layer) or (output * 1.01 if len(called) > 9 else output)
    )
    ours, theirs = adam(0.01)
    both = (
        Side(reference, torch.nn.functional.mse_loss, ours),
        Side(port, paddle.nn.functional.mse_loss, theirs),
    )
    report = compared(both, tmp_path)
    assert (report.first.step, report.first.phase) == (9, "forward")
    assert SAID not in str(report)


def test_a_mistake_before_is_found(tmp_path: Path) -> None:
    ours, _ = descent(0.85)
    wrong = sides(ours, lambda model: paddle.optimizer.SGD(0.86, parameters=model.parameters()))
    report = compared(wrong, tmp_path)
    assert report.first.cause.code == "lr.value"
    assert report.first.step == 0


def test_weights_that_change_between_steps_are_not_put_down_to_chaos(tmp_path: Path) -> None:
    taken = []

    def after(model: Any) -> None:
        taken.append(model)
        if len(taken) == 3:  # a weight is a ten thousandth larger
            with paddle.no_grad():
                model[2].weight.scale_(1.0001)

    report = compared(sides(*descent(0.85), after_update=after), tmp_path)
    assert SAID not in str(report)


def test_a_calm_training_is_judged_at_every_step(tmp_path: Path) -> None:
    """A layer that goes wrong at a late step: no chaos speaks for it."""
    seen = []

    def change(batch: Any) -> Any:
        seen.append(batch)
        return batch

    reference, port = sides(*descent(0.05), change=change)
    port.model[2].register_forward_post_hook(
        lambda layer, given, output: output * 1.01 if len(seen) > 9 else output
    )
    report = compared((reference, port), tmp_path)
    assert (report.first.step, report.first.phase) == (9, "forward")
    assert SAID not in str(report)


def difference(**changes: Any) -> Divergence:
    site = Site("1", "Tanh")
    given = {"phase": "forward", "score": 40.0, "cause": None, **changes}
    return Divergence(
        given["phase"], site, site, "output 0", None, NOTHING, given["score"], cause=given["cause"], step=7
    )


@pytest.mark.parametrize(
    ("changes", "by_chaos"),
    [
        ({}, True),
        ({"score": 101.0}, False),  # farther than the training drives any error in one step
        ({"phase": "lr"}, False),
        ({"phase": "data"}, False),
        ({"cause": "one that was found"}, False),
    ],
)
def test_chaos_explains_what_is_small_and_follows_from_weights(changes: Any, by_chaos: bool) -> None:
    assert Chaos(step=7, drift=1e-2, growth=100.0).explains(difference(**changes)) is by_chaos
