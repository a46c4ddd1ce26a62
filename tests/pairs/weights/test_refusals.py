"""What cannot be transferred is named by full path, and the port stays exactly as it was."""

from __future__ import annotations

from typing import Any

import numpy as np
import paddle
import pytest
import torch

import parfocal as pf
from parfocal.errors import InputError, TransferError
from tests.pairs.weights.tools import gap, randomise, run, state_bytes

T, P = torch.nn, paddle.nn
X = np.random.default_rng(0).standard_normal((2, 3, 8, 8)).astype("float32")


def torch_net(widths: tuple[int, ...] = (4, 6, 6), bias: bool = True) -> Any:
    layers: list[Any] = []
    before = 3
    for width in widths:
        layers += [T.Conv2d(before, width, 3, padding=1, bias=bias), T.BatchNorm2d(width), T.ReLU()]
        before = width
    return T.Sequential(T.Sequential(*layers), T.AdaptiveAvgPool2d(1), T.Flatten(), T.Linear(before, 5))


def paddle_net(widths: tuple[int, ...] = (4, 6, 6), bias: bool = True) -> Any:
    layers: list[Any] = []
    before = 3
    for width in widths:
        convolution = P.Conv2D(before, width, 3, padding=1, bias_attr=None if bias else False)
        layers += [convolution, P.BatchNorm2D(width), P.ReLU()]
        before = width
    return P.Sequential(P.Sequential(*layers), P.AdaptiveAvgPool2D(1), P.Flatten(), P.Linear(before, 5))


def refused(reference: Any, port: Any, inputs: Any) -> str:
    """The message; and nothing at all has changed on either side."""
    randomise(reference, 1)
    randomise(port, 2)
    port.train()
    reference[0].train()
    flags = (
        [layer.training for layer in port.sublayers()],
        [module.training for module in reference.modules()],
    )
    before = state_bytes(port), state_bytes(reference)
    seeds = paddle.get_rng_state()[0].current_seed(), torch.get_rng_state().tolist()
    with pytest.raises(TransferError) as caught:
        pf.transfer(reference, port, inputs)
    assert (state_bytes(port), state_bytes(reference)) == before
    assert (
        [layer.training for layer in port.sublayers()],
        [m.training for m in reference.modules()],
    ) == flags
    assert (paddle.get_rng_state()[0].current_seed(), torch.get_rng_state().tolist()) == seeds
    assert isinstance(caught.value.plan, pf.Plan)
    assert not caught.value.plan.complete
    return str(caught.value)


INPUTS = pytest.mark.parametrize("inputs", [None, X], ids=["without inputs", "with inputs"])


@INPUTS
def test_a_layer_too_many(inputs: Any) -> None:
    message = refused(torch_net((4, 6, 6)), paddle_net((4, 6, 6, 6)), inputs)
    assert "unmatched in the port: 0.9.weight [6, 6, 3, 3]" in message
    assert "unmatched in the port: 0.10._mean [6]" in message
    assert "unmatched in the reference" not in message


@INPUTS
def test_a_layer_missing(inputs: Any) -> None:
    message = refused(torch_net((4, 6, 6, 6)), paddle_net((4, 6, 6)), inputs)
    assert "unmatched in the reference: 0.9.weight [6, 6, 3, 3]" in message
    assert "unmatched in the reference: 0.10.running_var [6]" in message
    assert "unmatched in the port" not in message


@INPUTS
def test_another_width(inputs: Any) -> None:
    message = refused(torch_net((4, 6, 7)), paddle_net((4, 6, 8)), inputs)
    assert (
        "0.6.weight [7, 6, 3, 3]: Conv2d 6->7 (kernel 3x3) here, 0.6 is 6->8 (kernel 3x3) in the port"
        in message
    )
    assert "0.6.weight [8, 6, 3, 3]: Conv2d 6->8 (kernel 3x3) here, 0.6 is 6->7" in message
    assert "3.weight" in message


@INPUTS
@pytest.mark.parametrize("where", ["reference", "port"])
def test_a_bias_on_one_side_only(inputs: Any, where: str) -> None:
    pair = torch_net(bias=where == "reference"), paddle_net(bias=where == "port")
    message = refused(*pair, inputs)
    assert message.count("unmatched in the") == 3
    for number in (0, 3, 6):
        assert f"unmatched in the {where}: 0.{number}.bias" in message
        assert f"0.{number} has a bias in the {where} only" in message


def test_partial_writes_what_fits() -> None:
    reference, port = randomise(torch_net((4, 6, 7)), 1), randomise(paddle_net((4, 6, 8)), 2)
    plan = pf.transfer(reference, port, partial=True)
    assert not plan.complete
    assert np.array_equal(port[0][3].weight.numpy(), reference[0][3].weight.detach().numpy())


def test_a_bias_on_one_side_only_in_part() -> None:
    reference, port = randomise(torch_net(), 1), randomise(paddle_net(bias=False), 2)
    pf.transfer(reference, port, partial=True)
    assert np.array_equal(port[0][0].weight.numpy(), reference[0][0].weight.detach().numpy())


def test_the_layers_argument_wins() -> None:
    reference = randomise(T.Sequential(T.Linear(4, 4), T.Linear(4, 4)), 1)
    port = randomise(P.Sequential(P.Linear(4, 4), P.Linear(4, 4)), 2)
    plan = pf.transfer(reference, port, layers={"0": "1", "1": "0"})
    assert {(entry.source, entry.target) for entry in plan.entries} == {
        ("0.weight", "1.weight"), ("0.bias", "1.bias"), ("1.weight", "0.weight"), ("1.bias", "0.bias"),
    }  # fmt: skip
    assert np.array_equal(port[1].weight.numpy().T, reference[0].weight.detach().numpy())
    swapped = pf.transfer(reference, port, X[:, 0, 0, :4], layers={"0": "1", "1": "0"})
    assert swapped.verified is False


def test_unknown_paths_in_layers() -> None:
    reference, port = torch_net(), paddle_net()
    with pytest.raises(InputError, match=r"layers= names '0.33', which the reference does not have; alike: "):
        pf.transfer(reference, port, layers={"0.33": "0.3"})
    with pytest.raises(InputError, match=r"maps two reference paths to the same port path '0\.3'"):
        pf.transfer(reference, port, layers={"0.0": "0.3", "0.3": "0.3"})


def test_wrong_arguments() -> None:
    with pytest.raises(InputError, match="the same object"):
        pf.transfer(model := torch_net(), model)
    with pytest.raises(InputError, match="the reference cannot run on these inputs"):
        pf.transfer(torch_net(), paddle_net(), X[:, :1])
    with pytest.raises(InputError, match="belongs to no known framework"):
        pf.transfer({"a": 1}, paddle_net())
    with pytest.raises(InputError, match="the port is a Tensor, not a model"):
        pf.transfer(torch_net(), paddle.ones([2]))


def test_a_port_that_cannot_run_still_takes_weights() -> None:
    class Broken(P.Layer):
        def __init__(self) -> None:
            super().__init__()
            self.fc = P.Linear(3, 2)

        def forward(self, x: Any) -> Any:
            raise RuntimeError("no such luck")

    plan = pf.transfer(T.Sequential(T.Linear(3, 2)), Broken(), X[:, :, 0, 0])
    assert plan.complete
    assert plan.verified is None
    assert any(
        "the port does not run on these inputs: RuntimeError: no such luck" in note for note in plan.notes
    )


def test_settings_that_differ_are_noted() -> None:
    port = paddle_net()
    for layer in port.sublayers():
        if isinstance(layer, P.BatchNorm2D):
            layer._epsilon = 1e-3
    plan = pf.transfer(torch_net(), port)
    assert "0.1, 0.4, 0.7 BatchNorm2d epsilon: 1e-05 in the reference, 0.001 in the port" in plan.notes
    clean = pf.transfer(torch_net(), paddle_net())
    assert not any("epsilon" in note for note in clean.notes)


class Forgetful(P.Layer):
    def __init__(self) -> None:
        super().__init__()
        self.one, self.two = P.Linear(8, 8), P.Linear(8, 5)

    def forward(self, x: Any) -> Any:
        return self.two(self.one(x))  # the reference has a ReLU between


class Mended(Forgetful):
    def forward(self, x: Any) -> Any:
        return self.two(P.functional.relu(self.one(x)))


def test_a_difference_in_the_code_is_placed() -> None:
    reference = randomise(T.Sequential(T.Linear(8, 8), T.ReLU(), T.Linear(8, 5)), 1)
    plan = pf.transfer(reference, Forgetful(), X[:, 0, 0])
    assert plan.verified is False
    assert "the input of two is not that of 2 in the reference" in plan.notes[-1]
    assert "between one and two" in plan.notes[-1]


def test_a_plan_that_is_used_again_does_not_tell_the_difference_of_before() -> None:
    reference = randomise(T.Sequential(T.Linear(8, 8), T.ReLU(), T.Linear(8, 5)), 1)
    plan = pf.transfer(reference, Forgetful(), X[:, 0, 0])
    again = pf.transfer(reference, Mended(), X[:, 0, 0], plan=plan)
    assert again.verified is True
    assert again.notes == plan.notes[:-1]
    still = pf.transfer(reference, Forgetful(), X[:, 0, 0], plan=plan)
    assert [each.is_first_difference for each in still.noted].count(True) == 1


def test_different_inputs_for_the_two_sides() -> None:
    class Last(P.Layer):
        def __init__(self) -> None:
            super().__init__()
            self.conv = P.Conv2D(3, 4, 3, data_format="NHWC")

        def forward(self, x: Any) -> Any:
            return self.conv(x)

    reference, port = randomise(T.Conv2d(3, 4, 3), 1), randomise(Last(), 2)
    plan = pf.transfer(reference, port, pf.sides(X, X.transpose(0, 2, 3, 1)))
    assert plan.verified is True
    ours = run(port, np.ascontiguousarray(X.transpose(0, 2, 3, 1)))[0].transpose(0, 3, 1, 2)
    assert gap(run(reference, X), [ours]) < 1e-5
