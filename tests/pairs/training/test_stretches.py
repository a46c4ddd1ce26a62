"""Steps that are run freely between those in lockstep: nothing is missed, moved or invented."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import paddle
import pytest
import torch

import parfocal as pf
from parfocal.workflow.training import stretches
from tests.pairs.training.tools import LOSSES, batches, compare, paddle_optim, perceptron, torch_optim

LATE = 23  # a step inside of a stretch


def adam(parameters: Any) -> Any:
    return torch_optim.Adam(parameters, 0.01)


def paddle_adam(parameters: Any) -> Any:
    return paddle_optim.Adam(0.01, parameters=parameters)


class LateDecay(paddle_optim.SGD):
    """Shrinks the weights once, at a late step."""

    calls = 0

    def step(self) -> None:
        super().step()
        if self.calls == LATE:
            with paddle.no_grad():
                for parameter in self._parameter_list:
                    parameter.set_value(parameter * 0.999)
        self.calls += 1


class LateClip(paddle_optim.SGD):
    """Halves the gradients of one parameter at a late step."""

    calls = 0

    def step(self) -> None:
        if self.calls == LATE:
            gradient = self._parameter_list[0].grad
            gradient.set_value(gradient * 0.5)
        self.calls += 1
        super().step()


def sgd(parameters: Any) -> Any:
    return torch_optim.SGD(parameters, 0.1)


def test_steps_of_a_correct_pair_are_run_freely():
    report = compare(adam, paddle_adam, steps=60)
    assert report.ok, report
    assert report.coverage.count("steps") == 60
    assert report.coverage.count("steps run freely") > 40
    assert len(report.curves[0].reference) == 60


@pytest.mark.parametrize("wrong", [LateDecay, LateClip])
def test_an_update_that_parts_inside_a_stretch_is_found_at_its_step(wrong):
    report = compare(sgd, lambda p: wrong(0.1, parameters=p), steps=40)
    assert report.first is not None, report
    assert (report.first.phase, report.first.step) == ("optimizer", LATE), report


def test_a_batch_that_differs_inside_a_stretch_is_found_at_its_step():
    data = batches(40)
    pairs = [pf.sides(each, each) for each in data]
    inputs, label = data[LATE]
    pairs[LATE] = pf.sides(data[LATE], (2 * inputs, label))
    report = compare(adam, paddle_adam, steps=40, data=pairs)
    assert (report.first.phase, report.first.step) == ("data", LATE), report
    assert report.first.cause.code == "data.normalisation"


def test_a_rate_that_parts_inside_a_stretch_is_found_at_its_step():
    report = pf.compare_training(
        *perceptron(),
        batches(40),
        loss=LOSSES,
        optimizers=(
            lambda model: torch_optim.SGD(model.parameters(), 0.1),
            lambda model: paddle_optim.SGD(
                paddle.optimizer.lr.MultiStepDecay(0.1, [LATE]), parameters=model.parameters()
            ),
        ),
        schedulers=(
            lambda optimizer: torch.optim.lr_scheduler.MultiStepLR(optimizer, [LATE + 2]),
            lambda optimizer: optimizer._learning_rate,
        ),
    )
    assert (report.first.phase, report.first.step) == ("lr", LATE), report


def test_stretches_end_where_lockstep_ends(monkeypatch):
    freely = _trained()
    monkeypatch.setattr(stretches, "TRIES", 0)
    assert compare(adam, paddle_adam, steps=20).coverage.count("steps run freely") == 0
    for one, other in zip(freely, _trained(), strict=True):
        np.testing.assert_array_equal(one, other)


def _trained() -> list[Any]:
    """The reference after a training: led by nobody, it is what it is by itself."""
    reference, port = perceptron()
    compare(adam, paddle_adam, steps=30, models=(reference, port))
    return [parameter.detach().numpy() for parameter in reference.parameters()]


def test_a_stretch_that_fails_leaves_no_trace():
    reference, port = perceptron()
    report = compare(sgd, lambda p: LateDecay(0.1, parameters=p), steps=LATE + 8, models=(reference, port))
    assert report.first.step == LATE
    twin, _ = perceptron()
    optimizer = torch_optim.SGD(twin.parameters(), 0.1)
    for inputs, label in batches(LATE + 8):
        LOSSES[0](twin(torch.from_numpy(inputs)), torch.from_numpy(label)).backward()
        optimizer.step()
        optimizer.zero_grad()
    for one, other in zip(reference.parameters(), twin.parameters(), strict=True):
        np.testing.assert_allclose(one.detach().numpy(), other.detach().numpy(), rtol=1e-5, atol=1e-6)


class Dropping(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = torch.nn.Linear(8, 16), torch.nn.Linear(16, 4)

    def forward(self, given: Any) -> Any:
        hidden = torch.nn.functional.dropout(self.first(given), 0.5, self.training)
        return self.last(hidden.tanh())


class PaddleDropping(paddle.nn.Layer):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = paddle.nn.Linear(8, 16), paddle.nn.Linear(16, 4)

    def forward(self, given: Any) -> Any:
        hidden = paddle.nn.functional.dropout(self.first(given), 0.5, training=self.training)
        return self.last(hidden.tanh())


def test_functions_that_drop_are_muted_in_stretches_too():
    report = compare(adam, paddle_adam, steps=30, models=(Dropping(), PaddleDropping()))
    assert report.ok, report
    assert report.coverage.count("steps run freely")


def test_what_ends_the_batches_is_raised_after_what_was_read_before_it():
    def broken() -> Iterator[Any]:
        yield from batches(LATE + 3)
        raise OSError("the disk is gone")

    with pytest.raises(OSError, match="the disk is gone"):
        compare(adam, paddle_adam, steps=60, data=broken())


def test_a_large_model_goes_in_lockstep(monkeypatch):
    monkeypatch.setattr(stretches, "LARGE", 10)
    assert compare(adam, paddle_adam, steps=20).coverage.count("steps run freely") == 0
