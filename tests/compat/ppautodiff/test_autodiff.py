"""autodiff prints what PPAutoDiff's document shows, and returns the verdict."""

import re
from pathlib import Path

import numpy as np
import paddle
import pytest
import torch

import parfocal
from parfocal.compat.ppautodiff import autodiff
from parfocal.errors import InputError, TransferError
from tests.compat.padiff.models import PaddleLSTM, TorchLSTM, floats, scale_gradient


class SimpleLayer(paddle.nn.Layer):
    def __init__(self):
        super().__init__()
        self.linear1 = paddle.nn.Linear(100, 100)
        self.linear2 = paddle.nn.Linear(100, 10)
        self.act = paddle.nn.ReLU()

    def forward(self, x):
        resdual = x
        x = self.linear1(x)
        x = self.act(x)
        x = x + resdual
        return self.linear2(x)


class SimpleModule(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear1 = torch.nn.Linear(100, 100)
        self.linear2 = torch.nn.Linear(100, 10)
        self.act = torch.nn.ReLU()

    def forward(self, x):
        resdual = x
        x = self.linear1(x)
        x = self.act(x)
        x = x + resdual
        return self.linear2(x)


OPTIONS = {"atol": 1e-4}
LINEAR = {
    (100, 100): (
        "paddle: at `Linear(in_features=100, out_features=100, dtype=float32)`.\n"
        "torch: at `Linear(in_features=100, out_features=100, bias=True)`.\n\n"
    ),
    (100, 10): (
        "paddle: at `Linear(in_features=100, out_features=10, dtype=float32)`.\n"
        "torch: at `Linear(in_features=100, out_features=10, bias=True)`.\n\n"
    ),
}


def states(*entries):
    return "".join(
        f"After training, {what} value is different for param `{name}`.\n{LINEAR[sizes]}"
        for what, name, sizes in entries
    )


@pytest.fixture
def pair():
    torch.manual_seed(0)
    paddle.seed(0)
    return SimpleLayer(), SimpleModule()


@pytest.fixture
def given():
    return np.abs(floats(100, 100))


def test_the_input_by_both_names_of_the_document(pair, given, capsys):
    assert autodiff(*pair, inp=given, auto_weights=True, options=OPTIONS) is True
    for wrong in ({}, {"example_inp": given, "inp": given}):
        with pytest.raises(TypeError, match=r"argument.* '(example_)?inp'"):
            autodiff(*pair, **wrong)


def test_success(pair, given, capsys):
    assert autodiff(*pair, given, auto_weights=True, options=OPTIONS) is True
    printed = capsys.readouterr().out
    first, rest = printed.split("\n", 1)
    assert float(re.fullmatch(r"Max output diff is (\S+)", first).group(1)) < 1e-4
    assert rest == "forward 4 steps compared.\nbacward 4 steps compared.\nSUCCESS !!!\n"


def test_other_weights_fail_in_the_forward_stage(pair, given, capsys):
    assert autodiff(*pair, given, auto_weights=False, options=OPTIONS) is False
    printed, own = capsys.readouterr()
    first, rest = printed.split("\n", 1)
    assert float(first.removeprefix("Max output diff is ")) > 0.1
    expected = states(
        ("weight", "weight", (100, 100)),
        ("grad", "weight", (100, 100)),
        ("weight", "bias", (100, 100)),
        ("grad", "bias", (100, 100)),
        ("weight", "weight", (100, 10)),
        ("grad", "weight", (100, 10)),
        ("weight", "bias", (100, 10)),
    )
    assert rest.startswith(
        expected + "FAILED !!!\n"
        "    Diff found in `Forward  Stagy` in step: 0, net_id is 1 vs 1\n"
        "    Type of layer is  : <class 'torch.nn.modules.linear.Linear'> vs "
        "<class 'paddle.nn.layer.common.Linear'>\n"
        "\n"
        "Not equal to tolerance rtol=1e-07, atol=0.0001\n"
        "\n"
        "Mismatched elements: "
    )
    assert re.search(r"\nMax absolute difference: \S+\nMax relative difference: \S+\n x: array\(\[\[", rest)
    assert own.startswith("parfocal: ")
    assert "linear1.weight (parameter), weights: linear1.weight differs in 10000 of 10000 values" in own
    paddle_stack, torch_stack = rest.split("Paddle Stacks:\n=========================\n")[1].split(
        "Torch  Stacks:\n=========================\n"
    )
    for stack in (paddle_stack, torch_stack):
        frame = (
            rf"         File {re.escape(__file__)}: \d+    forward\n                x = self\.linear1\(x\)\n"
        )
        assert re.search(frame, stack)
        assert "test_other_weights_fail_in_the_forward_stage\n" in stack
        assert str(Path(parfocal.__file__).parent) not in stack


def test_another_gradient_fails_in_the_backward_stage(pair, given, capsys):
    scale_gradient(pair[0].linear2, 1.5)
    assert autodiff(*pair, given, options={"atol": 1e-6}) is False
    rest = capsys.readouterr().out.split("\n", 1)[1]
    assert rest.startswith(
        states(("grad", "weight", (100, 100)), ("grad", "bias", (100, 100))) + "forward 4 steps compared.\n"
        "FAILED !!!\n"
        "    Diff found in `Backward Stagy` in step: 0, net_id is 2 vs 2\n"
    )


def test_several_inputs_and_outputs_and_integers():
    torch.manual_seed(0)
    assert autodiff(PaddleLSTM(), TorchLSTM(), np.arange(10).reshape(2, 5), options=OPTIONS)

    class PaddleAdd(SimpleLayer):
        def forward(self, x, y):
            return super().forward(x + y), x

    class TorchAdd(SimpleModule):
        def forward(self, x, y):
            return super().forward(x + y), x

    assert autodiff(PaddleAdd(), TorchAdd(), (floats(4, 100), floats(4, 100)), options=OPTIONS)


def test_a_gradient_that_differs_in_the_weights_alone_fails(pair, given, capsys):
    """No call shows it: the gradient is changed after the last one."""
    pair[0].linear1.bias.register_hook(lambda gradient: gradient * 2)
    assert autodiff(*pair, given, options={"atol": 1e-5}) is False
    printed, own = capsys.readouterr()
    assert states(("grad", "bias", (100, 100))) in printed
    assert printed.endswith("forward 4 steps compared.\nbacward 4 steps compared.\nFAILED !!!\n")
    assert own.startswith("parfocal: ")
    assert "gradient of the parameter linear1.bias is 2 times the reference's" in own


NORMED = {
    "linear": (
        lambda: torch.nn.Sequential(torch.nn.Linear(10, 6), torch.nn.BatchNorm1d(6), torch.nn.ReLU()),
        lambda **more: paddle.nn.Sequential(
            paddle.nn.Linear(10, 6), paddle.nn.BatchNorm1D(6, **more), paddle.nn.ReLU()
        ),
        floats(5, 10),
    ),
    "convolution": (
        lambda: torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.BatchNorm2d(4)),
        lambda **more: paddle.nn.Sequential(paddle.nn.Conv2D(3, 4, 3), paddle.nn.BatchNorm2D(4, **more)),
        floats(2, 3, 8, 8),
    ),
}
TRAINING_WARNING = "ignore:When training, we now always track global mean and variance:UserWarning"


@pytest.mark.filterwarnings(TRAINING_WARNING)
@pytest.mark.parametrize("kind", NORMED)
def test_the_two_conventions_of_a_running_variance_are_told_and_pass(kind, capsys):
    module, layer, array = NORMED[kind]
    assert autodiff(layer(), module(), array, options={"atol": 1e-5}) is True
    printed, own = capsys.readouterr()
    assert "1._variance: the running variance differs by no more than torch's division by n - 1" in own
    assert "After training" not in printed
    assert printed.endswith("SUCCESS !!!\n")


@pytest.mark.filterwarnings(TRAINING_WARNING)
@pytest.mark.parametrize("kind", NORMED)
def test_another_momentum_is_no_convention(kind, capsys):
    module, layer, array = NORMED[kind]
    assert autodiff(layer(momentum=0.5), module(), array, options={"atol": 1e-5}) is False
    printed = capsys.readouterr().out
    assert "After training, weight value is different for param `_variance`." in printed
    assert "After training, weight value is different for param `_mean`." in printed


def test_wrong_arguments_are_refused(pair, given):
    with pytest.raises(InputError, match="SimpleLayer is a model of paddle, where one of torch is expected"):
        autodiff(pair[1], pair[0], given)
    with pytest.raises(InputError, match="autodiff has no option called 'tol'"):
        autodiff(*pair, given, options={"tol": 1})
    with pytest.raises(TransferError):
        autodiff(torch_free(), pair[1], given)


def torch_free():
    layer = SimpleLayer()
    layer.linear2 = paddle.nn.Linear(100, 11)
    return layer
