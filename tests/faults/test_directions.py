"""The reference may be paddle's and the port torch's, or both of one framework."""

from __future__ import annotations

from typing import Any

import paddle
import torch
from paddle import nn as pnn
from torch import nn

import parfocal
from parfocal.attempts import STRICT
from parfocal.explain import explainer as explaining
from tests.faults.tools import numbers, own, seeded


def test_a_port_to_torch_gets_lines_of_torch() -> None:
    paddle.seed(3)
    reference = pnn.Sequential(pnn.Linear(8, 16), pnn.LayerNorm(16, epsilon=1e-6), pnn.Linear(16, 4))
    reference.eval()
    port = nn.Sequential(nn.Linear(8, 16), nn.LayerNorm(16, eps=1e-3), nn.Linear(16, 4)).eval()
    (divergence,) = own(parfocal.align(reference, port, numbers(6, 8)))
    assert divergence.cause is not None
    assert divergence.cause.code == "config.epsilon"
    assert divergence.cause.fix == "port[1] = torch.nn.LayerNorm(16, eps=1e-06)"
    exec(divergence.cause.fix, {"port": port, "torch": torch})
    port.eval()
    assert parfocal.align(reference, port, numbers(6, 8)).ok


class Branching(nn.Module):
    def __init__(self, axis: int) -> None:
        super().__init__()
        self.first, self.second, self.axis = nn.Linear(8, 8), nn.Linear(8, 8), axis

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.second(torch.softmax(self.first(x), dim=self.axis))


def test_two_models_of_one_framework() -> None:
    reference, port = seeded(lambda: Branching(-1)), Branching(1).eval()
    (divergence,) = own(parfocal.align(reference, port, numbers(3, 5, 8)))
    assert divergence.cause is not None
    assert divergence.cause.code == "op.axis"
    assert divergence.port is not None
    assert divergence.port.op == "softmax"


def test_a_hypothesis_that_breaks_is_noted_and_the_verdict_stands(monkeypatch: Any) -> None:
    def broken(case: Any) -> Any:
        raise RuntimeError("no such kernel")

    monkeypatch.delenv(STRICT)
    monkeypatch.setitem(explaining.ROUNDS, "forward", ((broken,), *explaining.FORWARD))
    reference, port = seeded(lambda: Branching(-1)), Branching(1).eval()
    report = parfocal.align(reference, port, numbers(3, 5, 8))
    assert own(report)[0].cause is not None
    (finding,) = [each for each in report.findings if each.code == "explain.problem"]
    assert finding.message == "could not be asked: broken of the model: RuntimeError: no such kernel"


def test_explaining_leaves_both_models_and_the_random_state_as_they_were() -> None:
    port = pnn.Sequential(pnn.Linear(8, 8), pnn.GELU(True), pnn.Linear(8, 8))
    reference = seeded(lambda: nn.Sequential(nn.Linear(8, 8), nn.GELU(), nn.Linear(8, 8)))
    parfocal.transfer(reference, port)
    before = {name: value.numpy().copy() for name, value in port.state_dict().items()}
    names = [parameter.name for parameter in port.parameters()]
    states = torch.random.get_rng_state(), paddle.get_rng_state()[0].current_seed()
    report = parfocal.align(reference, port, numbers(4, 8))
    assert own(report)[0].cause is not None
    assert all((value.numpy() == before[name]).all() for name, value in port.state_dict().items())
    assert names == [parameter.name for parameter in port.parameters()]
    assert torch.equal(states[0], torch.random.get_rng_state())
    assert states[1] == paddle.get_rng_state()[0].current_seed()
    assert isinstance(port[1], pnn.GELU)
    assert port[1]._approximate is True
