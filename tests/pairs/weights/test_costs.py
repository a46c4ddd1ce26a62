"""What a transfer costs, counted: how often weights are copied, and what is put back when it goes wrong."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import paddle
import pytest
import torch

import parfocal as pf
from parfocal.errors import InputError, TransferError
from parfocal.weights.rules import Rule
from parfocal.weights.writer import WritableModel
from tests.pairs.weights.tools import randomise, state_bytes

T, P = torch.nn, paddle.nn
X = np.random.default_rng(0).standard_normal((3, 4)).astype("float32")


def scaled(nn: Any, order: str) -> Any:
    """Two square layers, called in an order, and one parameter that only a rule can copy."""
    base = nn.Module if nn is T else nn.Layer

    class Scale(base):  # type: ignore[misc,valid-type]
        def __init__(self) -> None:
            super().__init__()
            self.linear = nn.Linear(4, 4)

        def forward(self, x: Any) -> Any:
            return self.linear(x)

    class Net(base):  # type: ignore[misc,valid-type]
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second, self.scale = nn.Linear(4, 4), nn.Linear(4, 4), Scale()

        def forward(self, x: Any) -> Any:
            for name in order.split():
                x = getattr(self, name)(x)
            return self.scale(x)

    return Net()


def copy_scale(reference: Any, port: Any) -> None:
    port.linear.weight.set_value(paddle.to_tensor(reference.linear.weight.detach().numpy().T))
    port.linear.bias.set_value(paddle.to_tensor(reference.linear.bias.detach().numpy()))


RULES = [Rule("torch", "Scale", "paddle", "Scale", copy_scale)]


@pytest.fixture
def copied(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Paths of the tensors that copies were made of."""
    paths: list[str] = []
    real = WritableModel.snapshot

    def snapshot(side: WritableModel, wanted: Any = None) -> Any:
        found = real(side, wanted)
        paths.extend(found)
        return found

    monkeypatch.setattr(WritableModel, "snapshot", snapshot)
    return paths


@pytest.mark.parametrize("order", ["first second", "second first"])
def test_inputs_cost_one_copy_of_the_port(order: str, copied: list[str]) -> None:
    reference, port = randomise(scaled(T, "first second")), randomise(scaled(P, order), 1)
    plan = pf.transfer(reference, port, X)
    assert plan.verified
    assert sorted(copied) == sorted(name for name, _ in port.named_parameters())


def test_without_inputs_nothing_is_copied(copied: list[str]) -> None:
    pf.transfer(scaled(T, "first second"), scaled(P, "first second"))
    assert copied == []


@pytest.mark.parametrize("order", ["first second", "second first"])
def test_what_a_rule_copied_is_kept_when_names_were_wrong(order: str, copied: list[str]) -> None:
    reference, port = randomise(scaled(T, "first second")), randomise(scaled(P, order), 1)
    plan = pf.transfer(reference, port, X, rules=RULES)
    assert plan.verified
    assert np.array_equal(port.scale.linear.weight.numpy().T, reference.scale.linear.weight.detach().numpy())
    ruled = ["scale.linear.bias", "scale.linear.weight"]
    assert sorted(copied) == sorted([*(name for name, _ in port.named_parameters()), *ruled])


@pytest.mark.parametrize("given", ["inputs", "inputs and rules", "a plan"])
def test_a_reference_that_does_not_run_leaves_the_port_as_it_was(given: str) -> None:
    reference, port = randomise(scaled(T, "first second")), randomise(scaled(P, "second first"), 1)
    options: dict[str, Any] = {"inputs and rules": {"rules": RULES}}.get(given, {})
    if given == "a plan":
        options = {"plan": pf.transfer(reference, scaled(P, "first second"))}
    before = state_bytes(port)
    with pytest.raises(InputError, match="the reference cannot run"):
        pf.transfer(reference, port, np.ones((3, 7), "float32"), **options)
    assert state_bytes(port) == before


def test_full_collections_wait_until_a_transfer_is_over() -> None:
    thresholds = gc.get_threshold()
    seen = []

    def failing(reference: Any, port: Any) -> None:
        seen.append(gc.get_threshold())
        raise ValueError("no")

    models = scaled(T, "first second"), scaled(P, "first second")
    with pytest.raises(TransferError, match="no"):
        pf.transfer(*models, rules=[Rule("torch", "Scale", "paddle", "Scale", failing)])
    assert seen[0][:2] == thresholds[:2]
    assert seen[0][2] > 10**6
    assert gc.get_threshold() == thresholds
