"""LBFGS, which computes its loss several times in a step: judged by how exact its own steps are."""

from __future__ import annotations

from typing import Any

import pytest

from tests.pairs.training.tools import batches, compare, paddle_optim, torch_optim

pytestmark = pytest.mark.filterwarnings("ignore:To copy construct from a tensor:UserWarning")  # paddle's own
BATCH = batches(1, size=32)[0]
DESCENT = {"lr": 0.1, "max_iter": 4}
SEARCH = {"lr": 1.0, "max_iter": 4, "line_search_fn": "strong_wolfe"}


def lbfgs(ours: dict[str, Any], theirs: dict[str, Any], steps: int, batch: Any = BATCH) -> Any:
    named = {"learning_rate" if name == "lr" else name: value for name, value in theirs.items()}
    return compare(
        lambda parameters: torch_optim.LBFGS(parameters, **ours),
        lambda parameters: paddle_optim.LBFGS(parameters=parameters, **named),
        steps=steps,
        data=[batch] * steps,
    )


@pytest.mark.parametrize("settings", [DESCENT, SEARCH], ids=["descent", "search"])
def test_matching_settings_align_for_50_steps(settings: dict[str, Any]) -> None:
    report = lbfgs(settings, settings, 50)
    assert report.ok, report
    assert report.coverage.count("steps") == 50


@pytest.mark.parametrize(
    ("changed", "phase", "code"),
    [
        ({"max_iter": 5}, "optimizer", "optim.update"),
        ({"history_size": 1}, "optimizer", "optim.update"),
        ({"line_search_fn": "strong_wolfe"}, "optimizer", "optim.update"),
        ({"lr": 0.2}, "lr", "lr.value"),
    ],
)
def test_mistakes_are_named(changed: dict[str, Any], phase: str, code: str) -> None:
    report = lbfgs(DESCENT, {**DESCENT, **changed}, 2)
    assert (report.first.step, report.first.phase, report.first.cause.code) == (0, phase, code)


class Forgetful(paddle_optim.LBFGS):
    """Remembers nothing of the step before."""

    def step(self, closure: Any) -> Any:
        self.state.clear()
        return super().step(closure)


class Slower(paddle_optim.LBFGS):
    """Goes a thousandth too far from its fifth step on, by the directions that it remembers."""

    taken = 0

    def step(self, closure: Any) -> Any:
        self.taken += 1
        if self.taken > 5:
            self.state["H_diag"] = self.state["H_diag"] * 1.001
            self.state["old_sk"] = [each * 1.001 for each in self.state["old_sk"]]
        return super().step(closure)


@pytest.mark.parametrize(("optimizer", "step"), [(Forgetful, 1), (Slower, 5)])
def test_what_goes_wrong_between_steps_is_found_at_its_step(optimizer: Any, step: int) -> None:
    """The port begins every step with what the reference remembers: what it makes of that is not hidden."""
    settings = {"learning_rate": 0.1, "max_iter": 4}
    report = compare(
        lambda parameters: torch_optim.LBFGS(parameters, **DESCENT),
        lambda parameters: optimizer(parameters=parameters, **settings),
        steps=12,
        data=[BATCH] * 12,
    )
    assert (report.first.step, report.first.phase) == (step, "optimizer")


def test_another_rule_is_named() -> None:
    report = compare(
        lambda parameters: torch_optim.LBFGS(parameters, **DESCENT),
        lambda parameters: paddle_optim.SGD(0.1, parameters=parameters),
        steps=2,
    )
    assert (report.first.phase, report.first.cause.code) == ("optimizer", "optim.kind")


def test_a_line_search_is_cut_short_by_one_framework_only() -> None:
    """torch 2.13 searches with what is left of ``max_eval``, paddle always with up to 25 evaluations."""
    settings = {**SEARCH, "max_iter": 1}
    report = lbfgs(settings, settings, 1, batches(1)[0])
    assert (report.first.step, report.first.phase) == (0, "optimizer")
    assert lbfgs({**settings, "max_eval": 30}, settings, 1, batches(1)[0]).ok
