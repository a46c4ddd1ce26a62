"""Learning rates, as ports have them."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from typing import Any

import paddle
import torch

import parfocal as pf
from tests.pairs.gaps.planted.row import Planted, Run
from tests.pairs.training.tools import LOSSES, batches, compare, perceptron


def schedule(ours: Callable[[Any], Any], theirs: Any, steps: int = 20) -> Run:
    def run() -> Any:
        optimizer = torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=0.1, momentum=0.9)
        return pf.compare_schedule(ours(optimizer), theirs(), steps)

    return run


TO, PO = torch.optim, paddle.optimizer
TS, PS = torch.optim.lr_scheduler, paddle.optimizer.lr


def wired(whole: bool) -> Run:
    def run() -> Any:
        scheduler = PS.StepDecay(0.1, 2, 0.5)
        return compare(
            lambda p: TO.SGD(p, 0.1),
            lambda p: PO.SGD(scheduler if whole else 0.1, parameters=p),
            steps=6,
            schedulers=(lambda optimizer: TS.StepLR(optimizer, 2, 0.5), scheduler),
        )

    return run


def cycled(cycle_momentum: bool) -> Run:
    def run() -> Any:
        scheduler = PS.OneCycleLR(0.1, 20, end_learning_rate=0.1 / 25 / 1e4)
        return compare(
            lambda p: TO.SGD(p, 0.1, momentum=0.9),
            lambda p: PO.Momentum(scheduler, 0.9, parameters=p),
            steps=6,
            schedulers=(
                lambda o: TS.OneCycleLR(
                    o,
                    0.1,
                    total_steps=20,
                    cycle_momentum=cycle_momentum,
                    base_momentum=0.85,
                    max_momentum=0.9,
                ),
                scheduler,
            ),
        )

    return run


def noam(ahead: int) -> Callable[[int], float]:
    """The factor of update ``step``, counted from ``ahead``; paddle counts from 0."""

    def factor(step: int) -> float:
        count = step + ahead
        return 16**-0.5 * min(count**-0.5 if count else 1.0, count * 4**-1.5)

    return factor


def halved(optimizer: Any) -> Any:
    return TS.StepLR(optimizer, 4, 0.5)


def accumulated(batches: Any) -> Run:
    return lambda: compare(
        lambda p: TO.SGD(p, 0.1), lambda p: PO.SGD(0.1, parameters=p), steps=3, passes=2, accumulate=batches
    )


def logged(read: Callable[[Any, Any], float]) -> Run:
    """Two recorded trainings that log their rate; ``read``: where the port's script takes it from."""

    def run() -> Any:
        ours, theirs = perceptron()
        pf.transfer(ours, theirs)
        rate = PS.CosineAnnealingDecay(0.1, 12)
        optimizers = TO.SGD(ours.parameters(), 0.1), PO.SGD(rate, parameters=theirs.parameters())
        schedulers = TS.CosineAnnealingLR(optimizers[0], 12), rate
        reads = (lambda _, scheduler: scheduler.get_last_lr()[0]), read
        with tempfile.TemporaryDirectory() as folder:
            paths = []
            for side, model in enumerate((ours, theirs)):
                optimizer, scheduler = optimizers[side], schedulers[side]
                tensor = (torch.tensor, paddle.to_tensor)[side]
                paths.append(f"{folder}/{side}")
                with pf.record(model, paths[side], optimizer=optimizer) as recorder:
                    for inputs, labels in batches(6):
                        given = [tensor(each) for each in (inputs, labels)]
                        LOSSES[side](model(given[0]), given[1]).backward()
                        optimizer.step()
                        recorder.log("rate", reads[side](optimizer, scheduler))
                        (optimizer.clear_grad if side else optimizer.zero_grad)()
                        scheduler.step()
            return pf.compare(*paths)

    return run


ROWS = {
    "scheduler-wiring": Planted(wired(True), wired(False), "lr", "lr.constant"),
    "reading-the-rate": Planted(
        logged(lambda optimizer, scheduler: optimizer.get_lr()),
        logged(lambda optimizer, scheduler: scheduler.get_lr()),
        *("metric", "metric.value"),
    ),
    "one-cycle-end": Planted(
        schedule(
            lambda o: TS.OneCycleLR(o, 0.1, total_steps=20, cycle_momentum=False),
            lambda: PS.OneCycleLR(0.1, 20, end_learning_rate=0.1 / 25 / 1e4),
        ),
        schedule(
            lambda o: TS.OneCycleLR(o, 0.1, total_steps=20, cycle_momentum=False),
            lambda: PS.OneCycleLR(0.1, 20),
        ),
        *("lr", "lr.end"),
    ),
    "one-cycle-end: momentum": Planted(
        cycled(cycle_momentum=False), cycled(cycle_momentum=True), "optimizer", "optim.momentum"
    ),
    "polynomial-end": Planted(
        schedule(lambda o: TS.PolynomialLR(o, 15), lambda: PS.PolynomialDecay(0.1, 15, 0.0, 1.0)),
        schedule(lambda o: TS.PolynomialLR(o, 15), lambda: PS.PolynomialDecay(0.1, 15, power=1.0)),
        *("lr", "lr.end"),
    ),
    "natural-exponential-and-noam": Planted(
        schedule(lambda o: TS.ExponentialLR(o, 0.5), lambda: PS.ExponentialDecay(0.1, 0.5)),
        schedule(lambda o: TS.ExponentialLR(o, 0.5), lambda: PS.NaturalExpDecay(0.1, 0.5)),
        *("lr", "lr.value"),
    ),
    "natural-exponential-and-noam: Noam": Planted(
        schedule(lambda o: TS.LambdaLR(o, noam(0)), lambda: PS.NoamDecay(16, 4, learning_rate=0.1)),
        schedule(lambda o: TS.LambdaLR(o, noam(1)), lambda: PS.NoamDecay(16, 4, learning_rate=0.1)),
        *("lr", "lr.offset"),
    ),
    "gradient-accumulation": Planted(accumulated(2), accumulated((2, 1)), "gradient", "grad.accumulated"),
    "gradient-accumulation: a step of the schedule at every batch": Planted(
        schedule(halved, lambda: PS.StepDecay(0.1, 4, 0.5)),
        schedule(halved, lambda: lambda step: 0.1 * 0.5 ** (2 * step // 4)),
        *("lr", "lr.value"),
    ),
}
