"""Tensors that are changed in place: what cannot be observed is told, and is no difference."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import paddle
import pytest
import torch

import parfocal as pf
from parfocal.report.coverage import Reason
from tests.faults.tools import numbers, own, seeded

WIDTH = 8
Forward = Callable[[Any, Any], Any]


class TorchSwish(torch.nn.Module):
    """It uses its input once more before it overwrites it, as libraries write it."""

    inplace = True

    def forward(self, x: Any) -> Any:
        return x.mul_(x.sigmoid())


class TorchQuietReLU(torch.nn.Module):
    """Overwrites its input without a word."""

    def forward(self, x: Any) -> Any:
        return x.relu_()


class PaddleInPlaceReLU(paddle.nn.Layer):
    def forward(self, x: Any) -> Any:
        return paddle.nn.functional.relu_(x)


class PaddleInPlaceSwish(paddle.nn.Layer):
    inplace = True

    def forward(self, x: Any) -> Any:
        return x.multiply_(paddle.nn.functional.sigmoid(x))


class TorchBlock(torch.nn.Module):
    def __init__(self, forward: Forward, act: Callable[[], Any]) -> None:
        super().__init__()
        self.first, self.second = torch.nn.Linear(WIDTH, WIDTH), torch.nn.Linear(WIDTH, WIDTH)
        self.nothing, self.act, self.code = torch.nn.Identity(), act(), forward
        self.head = torch.nn.Linear(WIDTH, 3)

    def forward(self, x: Any) -> Any:
        return self.head(self.code(self, x))


class PaddleBlock(paddle.nn.Layer):
    def __init__(self, forward: Forward, act: Callable[[], Any]) -> None:
        super().__init__()
        self.first, self.second = paddle.nn.Linear(WIDTH, WIDTH), paddle.nn.Linear(WIDTH, WIDTH)
        self.nothing, self.act, self.code = paddle.nn.Identity(), act(), forward
        self.head = paddle.nn.Linear(WIDTH, 3)

    def forward(self, x: Any) -> Any:
        return self.head(self.code(self, x))


def _after_a_sum(self: Any, x: Any) -> Any:
    return self.act(self.nothing(self.first(x) + self.second(x)))


def _after_a_layer(self: Any, x: Any) -> Any:
    return self.act(self.nothing(self.first(x)))


def _of_a_view(self: Any, x: Any) -> Any:
    hidden = self.first(x)
    return self.second(self.act(hidden.reshape([-1])).reshape([3, WIDTH]))


def _of_a_part(self: Any, x: Any) -> Any:
    hidden = self.first(x)
    part = self.act(hidden[:, : WIDTH // 2])
    return self.second(torch.cat([part, part], 1) if isinstance(x, torch.Tensor) else _joined(part))


def _joined(part: Any) -> Any:
    return paddle.concat([part, part], axis=1)


def _added_to(self: Any, x: Any) -> Any:
    hidden = self.nothing(self.first(x))
    hidden += self.second(x)
    return self.act(hidden)


def _beside_another_use(self: Any, x: Any) -> Any:
    hidden = self.first(x)
    doubled = hidden * 2.0
    return self.act(hidden) + self.second(doubled)


FORWARDS = (_after_a_sum, _after_a_layer, _of_a_view, _of_a_part, _added_to, _beside_another_use)
ACTS: tuple[tuple[Callable[[], Any], Callable[[], Any]], ...] = (
    (lambda: torch.nn.ReLU(inplace=True), paddle.nn.ReLU),
    (lambda: torch.nn.LeakyReLU(0.1, inplace=True), lambda: paddle.nn.LeakyReLU(0.1)),
    (TorchSwish, paddle.nn.Silu),
    (TorchQuietReLU, PaddleInPlaceReLU),
    (torch.nn.SiLU, PaddleInPlaceSwish),
)
NAMES = ("relu", "leaky", "swish", "quiet", "in the port")


@pytest.mark.parametrize("acts", ACTS, ids=NAMES)
@pytest.mark.parametrize("forward", FORWARDS, ids=lambda forward: forward.__name__.strip("_"))
def test_a_correct_port_of_what_overwrites_is_the_same(forward: Forward, acts: Any) -> None:
    reference = seeded(lambda: TorchBlock(forward, acts[0]))
    port = PaddleBlock(forward, acts[1])
    report = pf.align(reference, port, numbers(3, WIDTH))
    assert report.ok, str(report)
    turned = pf.align(port, reference, numbers(3, WIDTH))  # the weights are the reference's by now
    assert turned.ok, str(turned)


@pytest.mark.parametrize("forward", FORWARDS, ids=lambda forward: forward.__name__.strip("_"))
def test_whether_a_layer_overwrites_makes_no_difference(forward: Forward) -> None:
    def build(act: Callable[[], Any]) -> torch.nn.Module:
        return seeded(lambda: TorchBlock(forward, act))

    pairs = ((torch.nn.ReLU, TorchQuietReLU), (lambda: torch.nn.ReLU(inplace=True), torch.nn.ReLU))
    for acts in (*pairs, *((other, one) for one, other in pairs)):
        report = pf.align(build(acts[0]), build(acts[1]), numbers(3, WIDTH))
        assert report.ok, str(report)


def _unseen(report: pf.Report) -> tuple[str, ...]:
    return tuple(
        path
        for each in report.coverage.left_out
        if each.reason is Reason.UNSEEN and each.what == "gradients at tensors"
        for path in each.where
    )


def test_what_could_not_be_observed_is_told() -> None:
    reference = seeded(lambda: TorchBlock(_added_to, torch.nn.ReLU))
    report = pf.align(reference, PaddleBlock(_added_to, paddle.nn.ReLU), numbers(3, WIDTH))
    assert report.ok
    assert _unseen(report) == ("nothing",)
    assert "gradients at tensors of nothing (the tensor was overwritten in place" in " ".join(
        str(report).split()
    )


def test_what_can_be_observed_is_not_left_out() -> None:
    reference = seeded(lambda: TorchBlock(_after_a_sum, lambda: torch.nn.ReLU(inplace=True)))
    report = pf.align(reference, PaddleBlock(_after_a_sum, paddle.nn.ReLU), numbers(3, WIDTH))
    assert _unseen(report) == ()
    (act,) = [pair for pair in report.pairs if pair.port.path == "act"]
    assert act.backward is not None


def _cut_before(self: Any, x: Any) -> Any:
    return self.act(self.nothing(self.first(x).detach() + self.second(x)))


def _cut_after(self: Any, x: Any) -> Any:
    hidden = self.first(x)
    return self.act(self.nothing(hidden + self.second(x))).detach() + 0.1 * hidden


def _after_and_before(self: Any, x: Any) -> Any:
    hidden = self.first(x)
    return self.act(self.nothing(hidden + self.second(x))) + 0.1 * hidden


def _added_cut(self: Any, x: Any) -> Any:
    hidden = self.nothing(self.first(x))
    hidden += self.second(x).detach()
    return self.act(hidden)


@pytest.mark.parametrize(
    ("reference", "port"),
    [(_after_a_sum, _cut_before), (_after_and_before, _cut_after), (_added_to, _added_cut)],
    ids=["before", "after", "added"],
)
def test_a_gradient_that_is_really_cut_is_found(reference: Forward, port: Forward) -> None:
    model = seeded(lambda: TorchBlock(reference, lambda: torch.nn.ReLU(inplace=True)))
    report = pf.align(model, PaddleBlock(port, paddle.nn.ReLU), numbers(3, WIDTH))
    (found,) = own(report)
    assert found.phase == "backward"
    assert found.cause is not None
    assert found.cause.code == "grad.detached"


@pytest.mark.parametrize("forward", FORWARDS, ids=lambda forward: forward.__name__.strip("_"))
def test_recorded_runs_agree(forward: Forward, tmp_path: Any) -> None:
    def recorded(act: Callable[[], Any], name: str) -> Any:
        model = seeded(lambda: TorchBlock(forward, act))
        with pf.record(model, tmp_path / name):
            model(torch.from_numpy(numbers(3, WIDTH))).square().sum().backward()
        return pf.load_run(tmp_path / name)

    for index, act in enumerate((lambda: torch.nn.ReLU(inplace=True), TorchQuietReLU)):
        report = pf.compare(recorded(act, f"in place {index}"), recorded(torch.nn.ReLU, f"plain {index}"))
        assert report.ok, str(report)
