"""Learning rates of the two frameworks' schedulers: correct pairs are the same, mistakes are named."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import paddle
import pytest
import torch

import parfocal as pf
from parfocal.errors import InputError

STEPS = 50
torch_lr, paddle_lr = torch.optim.lr_scheduler, paddle.optimizer.lr


def sgd(rate: float = 0.1, groups: int = 1) -> torch.optim.SGD:
    parameters = [
        {"params": [torch.nn.Parameter(torch.ones(2))], "lr": rate / (1 + n)} for n in range(groups)
    ]
    return torch.optim.SGD(parameters, lr=rate)


def paddle_sgd(rate: Any) -> Any:
    return paddle.optimizer.SGD(rate, parameters=[paddle.create_parameter([2], "float32")])


def warm_cosine(optimizer: Any) -> Any:
    warm = torch_lr.LambdaLR(optimizer, lambda step: step / 5)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return torch_lr.SequentialLR(optimizer, [warm, torch_lr.CosineAnnealingLR(optimizer, 45)], [5])


CORRECT: dict[str, tuple[Callable[[Any], Any], Callable[[], Any]]] = {
    "step": (lambda o: torch_lr.StepLR(o, 10, 0.5), lambda: paddle_lr.StepDecay(0.1, 10, 0.5)),
    "multi step": (
        lambda o: torch_lr.MultiStepLR(o, [10, 30], 0.1),
        lambda: paddle_lr.MultiStepDecay(0.1, [10, 30], 0.1),
    ),
    "exponential": (lambda o: torch_lr.ExponentialLR(o, 0.9), lambda: paddle_lr.ExponentialDecay(0.1, 0.9)),
    "natural exponential": (
        lambda o: torch_lr.LambdaLR(o, lambda n: math.exp(-0.1 * n)),
        lambda: paddle_lr.NaturalExpDecay(0.1, 0.1),
    ),
    "inverse time": (
        lambda o: torch_lr.LambdaLR(o, lambda n: 1 / (1 + 0.1 * n)),
        lambda: paddle_lr.InverseTimeDecay(0.1, 0.1),
    ),
    "cosine": (
        lambda o: torch_lr.CosineAnnealingLR(o, 60, 0.001),
        lambda: paddle_lr.CosineAnnealingDecay(0.1, 60, 0.001),
    ),
    "cosine beyond its end": (
        lambda o: torch_lr.CosineAnnealingLR(o, 20),
        lambda: paddle_lr.CosineAnnealingDecay(0.1, 20),
    ),
    "warm restarts": (
        lambda o: torch_lr.CosineAnnealingWarmRestarts(o, 10, 2),
        lambda: paddle_lr.CosineAnnealingWarmRestarts(0.1, 10, 2),
    ),
    "polynomial": (
        lambda o: torch_lr.PolynomialLR(o, 40, 0.9),
        lambda: paddle_lr.PolynomialDecay(0.1, 40, end_lr=0.0, power=0.9),
    ),
    "lambda": (
        lambda o: torch_lr.LambdaLR(o, lambda n: 0.95**n),
        lambda: paddle_lr.LambdaDecay(0.1, lambda n: 0.95**n),
    ),
    "multiplicative": (
        lambda o: torch_lr.MultiplicativeLR(o, lambda n: 0.95),
        lambda: paddle_lr.MultiplicativeDecay(0.1, lambda n: 0.95),
    ),
    "linear": (
        lambda o: torch_lr.LinearLR(o, 1 / 3, 1.0, 20),
        lambda: paddle_lr.LinearLR(0.1, 20, 1 / 3, 1.0),
    ),
    "cyclic": (
        lambda o: torch_lr.CyclicLR(o, 0.01, 0.1, 10, cycle_momentum=False),
        lambda: paddle_lr.CyclicLR(0.01, 0.1, 10),
    ),
    "one cycle": (
        lambda o: torch_lr.OneCycleLR(o, 0.1, total_steps=60),
        lambda: paddle_lr.OneCycleLR(0.1, total_steps=60, end_learning_rate=0.1 / 25 / 1e4),
    ),
    "plateau": (
        lambda o: torch_lr.ReduceLROnPlateau(o, factor=0.5, patience=3),
        lambda: paddle_lr.ReduceOnPlateau(0.1, factor=0.5, patience=3),
    ),
    "constant": (
        lambda o: torch_lr.LambdaLR(o, lambda n: 1.0),
        lambda: paddle_lr.LambdaDecay(0.1, lambda n: 1.0),
    ),
    "warm-up and cosine": (
        warm_cosine,
        lambda: paddle_lr.LinearWarmup(paddle_lr.CosineAnnealingDecay(0.1, 45), 5, 0.0, 0.1),
    ),
}


@pytest.mark.parametrize("name", CORRECT)
def test_a_correct_pair_is_the_same(name: str) -> None:
    ours, theirs = CORRECT[name]
    scheduler = theirs()
    report = pf.compare_schedule(ours(sgd()), paddle_sgd(scheduler), STEPS)
    assert report.ok, report
    assert report.coverage.count("learning rates") == STEPS
    assert "calls" not in str(report)
    again = pf.compare_schedule(ours(sgd()), scheduler, STEPS)  # a scheduler alone, put back where it was
    assert again.ok, again


WRONG: dict[str, tuple[Callable[[Any], Any], Callable[[], Any], str, int, str]] = {
    "end of a polynomial": (
        lambda o: torch_lr.PolynomialLR(o, 40, 1.0),
        lambda: paddle_lr.PolynomialDecay(0.1, 40),
        "lr.end",
        1,
        "falls to 0.0001 at the end, the reference's to 0",
    ),
    "end of one cycle": (
        lambda o: torch_lr.OneCycleLR(o, 0.1, total_steps=STEPS),
        lambda: paddle_lr.OneCycleLR(0.1, total_steps=STEPS),
        "lr.end",
        15,
        "0.0001 at the end",
    ),
    "natural exponential for exponential": (
        lambda o: torch_lr.ExponentialLR(o, 0.9),
        lambda: paddle_lr.NaturalExpDecay(0.1, 0.9),
        "lr.value",
        1,
        "multiplies the learning rate by 0.9 in the reference, by 0.4066 in the port (the exponential of it)",
    ),
    "length of a cosine": (
        lambda o: torch_lr.CosineAnnealingLR(o, 25),
        lambda: paddle_lr.CosineAnnealingDecay(0.1, 50),
        "lr.value",
        1,
        "a cosine from 0.1 to 0 over 25 updates in the reference; a cosine from 0.1 to 0 over 50 updates",
    ),
    "inverse time for its root": (
        lambda o: torch_lr.LambdaLR(o, lambda n: 1 / math.sqrt(1 + 0.1 * n)),
        lambda: paddle_lr.InverseTimeDecay(0.1, 0.1),
        "lr.value",
        1,
        "0.1 over the root of (1 + updates / 10) in the reference; 0.1 over (1 + updates / 10) in the port",
    ),
    "factor of steps": (
        lambda o: torch_lr.StepLR(o, 10, 0.1),
        lambda: paddle_lr.StepDecay(0.1, 10, 0.5),
        "lr.value",
        10,
        "by 0.1 in the reference, by 0.5 in the port",
    ),
    "milestones": (
        lambda o: torch_lr.MultiStepLR(o, [10, 30]),
        lambda: paddle_lr.MultiStepDecay(0.1, [10, 20]),
        "lr.value",
        20,
        "at updates 10, 30 in the reference, 10, 20 in the port",
    ),
    "another rate": (
        lambda o: torch_lr.CosineAnnealingLR(o, 60),
        lambda: paddle_lr.CosineAnnealingDecay(0.01, 60),
        "lr.value",
        0,
        "0.1 times the reference's (0.01 for 0.1)",
    ),
    "warm-up that is longer": (
        lambda o: torch_lr.LambdaLR(o, lambda n: min(1.0, n / 5)),
        lambda: paddle_lr.LinearWarmup(0.1, 10, 0.0, 0.1),
        "lr.value",
        1,
        "only the first 10 updates differ",
    ),
    "no schedule": (
        lambda o: torch_lr.CosineAnnealingLR(o, 60),
        lambda: paddle_lr.LambdaDecay(0.1, lambda n: 1.0),
        "lr.constant",
        1,
        "stays 0.1; the reference's goes from 0.1 to",
    ),
    "a schedule too many": (
        lambda o: torch_lr.LambdaLR(o, lambda n: 1.0),
        lambda: paddle_lr.ExponentialDecay(0.1, 0.9),
        "lr.constant",
        1,
        "the reference's stays 0.1",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_mistake_is_found_at_its_update_and_named(name: str) -> None:
    ours, theirs, code, step, words = WRONG[name]
    report = pf.compare_schedule(ours(sgd()), paddle_sgd(theirs()), STEPS)
    first = report.first
    assert first is not None
    assert (first.phase, first.step) == ("lr", step)
    assert (first.cause.code if first.cause else "") == code, report
    assert words in (first.cause.message if first.cause else "")


@pytest.mark.parametrize(("by", "words"), [(1, "1 step ahead"), (3, "3 steps ahead"), (-1, "1 step behind")])
def test_a_schedule_that_runs_early_or_late_is_off_by_so_many_steps(by: int, words: str) -> None:
    def curve(step: int) -> float:
        return 0.1 * 0.9 ** max(0, step)

    report = pf.compare_schedule(curve, lambda step: curve(step + by), STEPS)
    assert report.first is not None
    assert report.first.cause is not None
    # what decays by a factor is also another rate: both fit, and both are said
    said = [report.first.cause, *report.first.cause.alternatives]
    assert any(each.code == "lr.offset" and words in each.message for each in said), report


def test_a_step_in_the_loop_before_the_first_update() -> None:
    scheduler = paddle_lr.CosineAnnealingDecay(0.1, 60)
    scheduler.step()
    report = pf.compare_schedule(torch_lr.CosineAnnealingLR(sgd(), 60), paddle_sgd(scheduler), STEPS)
    assert report.first is not None
    assert report.first.cause is not None
    assert report.first.cause.code == "lr.offset"
    assert scheduler.last_epoch == 1  # put back


def test_a_schedule_by_epochs_in_a_loop_over_updates() -> None:
    def cosine(step: int) -> float:
        return 0.05 * (1 + math.cos(math.pi * step / 60))

    report = pf.compare_schedule(cosine, lambda step: cosine(step // 5), STEPS)
    assert report.first is not None
    assert report.first.cause is not None
    assert report.first.cause.code == "lr.value"
    assert "every 5 updates" in report.first.cause.message


def test_an_optimizer_that_was_given_a_number_and_not_its_scheduler() -> None:
    scheduler = paddle_lr.CosineAnnealingDecay(0.1, 60)
    optimizer = sgd()
    report = pf.compare_schedule(
        (optimizer, torch_lr.CosineAnnealingLR(optimizer, 60)), (paddle_sgd(0.1), scheduler), STEPS
    )
    assert report.first is not None
    assert report.first.cause is not None
    assert report.first.cause.code == "lr.constant"
    assert "was given a number" in report.first.cause.message


def test_groups_have_rates_of_their_own() -> None:
    ours, theirs = torch_lr.StepLR(sgd(groups=2), 10), torch_lr.StepLR(sgd(groups=2), 10)
    theirs.optimizer.param_groups[1]["lr"] = 0.2
    report = pf.compare_schedule(ours, theirs, STEPS)
    assert [each.what.partition(":")[0] for each in report.divergences] == [
        "learning rate of group 1 of update 0"
    ]
    fewer = pf.compare_schedule(ours, torch_lr.StepLR(sgd(), 10), STEPS)
    assert fewer.ok
    assert "1 more parameter group (only the reference has it)" in str(fewer)


def test_nothing_is_left_changed() -> None:
    optimizer = sgd()
    scheduler = torch_lr.OneCycleLR(optimizer, 0.1, total_steps=60)
    inside = paddle_lr.CosineAnnealingDecay(0.1, 45)
    warm = paddle_lr.LinearWarmup(inside, 5, 0.0, 0.1)
    before = (scheduler.state_dict(), dict(optimizer.param_groups[0]), warm.state_dict(), dict(vars(inside)))
    pf.compare_schedule(scheduler, warm, STEPS)
    after = (scheduler.state_dict(), dict(optimizer.param_groups[0]), warm.state_dict(), dict(vars(inside)))
    assert before == after
    assert warm.learning_rate is inside


def test_wrong_calls_are_refused_in_words() -> None:
    curve = torch_lr.StepLR(sgd(), 10)
    with pytest.raises(InputError, match="compared with itself"):
        pf.compare_schedule(curve, curve, STEPS)
    with pytest.raises(InputError, match="steps=0 is not a number of updates"):
        pf.compare_schedule(curve, lambda step: 0.1, 0)
    with pytest.raises(InputError, match=r"the port is 0\.1: neither a scheduler"):
        pf.compare_schedule(curve, 0.1, STEPS)
    with pytest.raises(InputError, match="belongs to another optimizer"):
        pf.compare_schedule((sgd(), curve), lambda step: 0.1, STEPS)
    with pytest.raises(InputError, match=r"the reference's OneCycleLR raised ValueError at update \d+"):
        pf.compare_schedule(torch_lr.OneCycleLR(sgd(), 0.1, total_steps=5), lambda step: 0.1, STEPS)


def test_rates_that_make_the_same_update_are_the_same() -> None:
    report = pf.compare_schedule(lambda step: 0.1, lambda step: float(np.float32(0.1)), STEPS)
    assert report.ok
    report = pf.compare_schedule(lambda step: 0.1, lambda step: 0.1 * (1 + 2e-6), STEPS)
    assert not report.ok


@pytest.mark.parametrize(("port", "shown"), [([1, 3], "1, 3"), ([2], "2")])
def test_milestones_of_a_schedule_of_few_epochs_are_no_warm_up(port: list[int], shown: str) -> None:
    report = pf.compare_schedule(
        torch_lr.MultiStepLR(sgd(), [2, 3], gamma=0.2),
        paddle_sgd(paddle_lr.MultiStepDecay(0.1, port, gamma=0.2)),
        4,
    )
    assert report.first is not None
    assert report.first.cause is not None
    assert f"at updates 2, 3 in the reference, {shown} in the port" in report.first.cause.message
    assert "warm-up" not in str(report)


def test_a_falling_curve_that_differs_at_its_beginning_is_no_warm_up() -> None:
    def curve(step: int) -> float:
        return 0.1 - 0.001 * step

    report = pf.compare_schedule(curve, lambda step: curve(step) - (0.0007 if step == 1 else 0.0), STEPS)
    assert not report.ok
    assert "warm-up" not in str(report)
