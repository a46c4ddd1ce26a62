"""``compare_forward`` and ``compare_loss_and_backward``: what must pass, and what must not."""

import re

import numpy as np
import paddle
import pytest
import torch

from parfocal.compat.reprod_log.compare import compare_forward, compare_loss_and_backward
from parfocal.errors import InputError
from tests.compat.reprod_log.models import INPUTS, copy_weights, paddle_loss, pair, torch_loss

VALUE = re.compile(r"value: \S+")


class TorchFunction(torch.nn.Module):
    def __init__(self, function, *layers):
        super().__init__()
        self.function, self.layers = function, torch.nn.ModuleList(layers)

    def forward(self, x):
        return self.function(x, *self.layers)


class PaddleFunction(paddle.nn.Layer):
    def __init__(self, function, *layers):
        super().__init__()
        self.function, self.layers = function, paddle.nn.LayerList(layers)

    def forward(self, x):
        return self.function(x, *self.layers)


def functions(torch_function, paddle_function=None):
    return TorchFunction(torch_function), PaddleFunction(paddle_function or torch_function)


def printed_lines(capsys):
    """What is printed, but for the numbers."""
    return VALUE.sub("value", capsys.readouterr().out).splitlines()


def test_equal_models_pass_with_ids_as_integers_and_dropout_off(capsys):
    assert compare_forward(*pair(), INPUTS) is True
    assert printed_lines(capsys) == [
        "output: ",
        "\tmean diff: check passed: True, value",
        "diff check passed",
    ]


def test_models_that_differ_fail(capsys):
    reference, port = pair()
    port.head.bias.set_value(port.head.bias.numpy() + np.float32(1e-3))
    assert compare_forward(reference, port, INPUTS) is False
    assert printed_lines(capsys)[1:] == ["\tmean diff: check passed: False, value", "diff check failed"]
    assert compare_forward(reference, port, INPUTS, diff_threshold=1e-2) is True


def test_every_method_and_lists_of_them(capsys):
    reference, port = pair()
    assert compare_forward(reference, port, INPUTS, diff_method="all") is True
    assert [line.split()[0] for line in printed_lines(capsys)[1:4]] == ["min", "max", "mean"]
    assert compare_forward(reference, port, INPUTS, diff_method=["max", "min"]) is True
    assert [line.split()[0] for line in printed_lines(capsys)[1:3]] == ["max", "min"]
    with pytest.raises(InputError, match="known are min, max, mean, all"):
        compare_forward(reference, port, INPUTS, diff_method="median")


def test_nested_outputs_are_compared_leaf_by_leaf(capsys):
    models = functions(lambda x: (x, {"twice": x * 2, "list": [x + 1, None]}, 7))
    assert compare_forward(*models, {"x": np.ones(2)}) is True
    assert printed_lines(capsys) == [
        "output",
        "\t0: ",
        "\t\tmean diff: check passed: True, value",
        "\t1",
        "\t\ttwice: ",
        "\t\t\tmean diff: check passed: True, value",
        "\t\tlist",
        "\t\t\t0: ",
        "\t\t\t\tmean diff: check passed: True, value",
        "\t2: ",
        "\t\tmean diff: check passed: True, value",
        "diff check passed",
    ]
    deep = functions(lambda x: (x, {"twice": x * 2}), lambda x: (x, {"twice": x * 3}))
    assert compare_forward(*deep, {"x": np.ones(2)}) is False


def test_outputs_of_another_structure_fail_by_name(capsys):
    assert (
        compare_forward(*functions(lambda x: {"a": x, "b": x}, lambda x: {"a": x}), {"x": np.ones(2)})
        is False
    )
    assert "\tb in torch_model but not found in paddle_model" in printed_lines(capsys)
    assert compare_forward(*functions(lambda x: x, lambda x: (x,)), {"x": np.ones(2)}) is False
    assert "\toutput is a dict in paddle_model but not in torch_model" in printed_lines(capsys)
    assert compare_forward(*functions(lambda x: x, lambda x: x.reshape([2, 2])), {"x": np.ones(4)}) is False


def test_nan_outputs_fail_on_both_sides_alike():
    assert compare_forward(*functions(lambda x: x / (x - x)), {"x": np.zeros(2)}) is False


def test_models_in_float64_are_fed_float64():
    reference, port = torch.nn.Linear(3, 3).double(), paddle.nn.Linear(3, 3)
    port.to(dtype="float64")
    copy_weights(reference, port, turned=("weight",))
    inputs = {"input": np.random.default_rng(0).standard_normal((2, 3))}
    outputs = (
        TorchFunction(lambda x, layer: layer(x), reference),
        PaddleFunction(lambda x, layer: layer(x), port),
    )
    assert compare_forward(*outputs, {"x": inputs["input"]}, diff_threshold=1e-12) is True


def test_train_flags_are_left_as_they_were_also_after_an_error():
    reference, port = pair()
    reference.drop.eval()
    port.norm.eval()
    before = [module.training for module in (*reference.modules(), *port.sublayers(include_self=True))]
    compare_forward(reference, port, INPUTS)
    compare_loss_and_backward(reference, port, torch_loss, paddle_loss, INPUTS, steps=1)
    with pytest.raises((RuntimeError, ValueError)):
        compare_forward(reference, port, {**INPUTS, "x": np.ones((2, 7))})
    assert [
        module.training for module in (*reference.modules(), *port.sublayers(include_self=True))
    ] == before
    assert len(set(before)) == 2


def test_inputs_must_be_a_dict():
    with pytest.raises(InputError, match=r"input_dict is \[1\], not a dict of arrays"):
        compare_forward(*pair(), [1])


def test_equal_training_passes_every_step(capsys):
    assert compare_loss_and_backward(*pair(), torch_loss, paddle_loss, INPUTS, lr=0.1, steps=3) is True
    lines = printed_lines(capsys)
    assert [line for line in lines if "iter" in line] == [f"diff check passed in iter {i}" for i in range(3)]
    assert lines[-1] == "diff check passed"
    names = [
        "embed.weight",
        "square.weight",
        "square.bias",
        "norm.weight",
        "norm.bias",
        "head.weight",
        "head.bias",
    ]
    first = lines[: lines.index("diff check passed in iter 0")]
    assert [line for line in first if "diff:" not in line] == [
        "loss: ",
        *(f"{name}: " for name in names),
        "weights",
        *(f"\t{name}: " for name in names),
    ]


def test_convolutions_and_norms_are_compared_as_they_are(capsys):
    reference = TorchFunction(
        lambda x, *layers: layers[1](layers[0](x)), torch.nn.Conv2d(2, 2, 2), torch.nn.BatchNorm2d(2)
    )
    port = PaddleFunction(
        lambda x, *layers: layers[1](layers[0](x)), paddle.nn.Conv2D(2, 2, 2), paddle.nn.BatchNorm2D(2)
    )
    copy_weights(reference, port)
    inputs = {"x": np.random.default_rng(5).standard_normal((1, 2, 4, 4))}

    def loss(inputs, outputs):
        return (outputs**2).mean()

    assert compare_loss_and_backward(reference, port, loss, loss, inputs, steps=2) is True
    names = [line.strip(": ") for line in printed_lines(capsys) if line.startswith("layers")]
    assert names[:4] == ["layers.0.weight", "layers.0.bias", "layers.1.weight", "layers.1.bias"]
    port.layers[0].weight.set_value(port.layers[0].weight.numpy().transpose(1, 0, 2, 3))
    assert compare_loss_and_backward(reference, port, loss, loss, inputs, steps=1) is False


def test_training_moves_the_weights_of_both_models_and_leaves_no_gradients():
    reference, port = pair()
    before = reference.square.weight.detach().numpy().copy()
    compare_loss_and_backward(reference, port, torch_loss, paddle_loss, INPUTS, lr=0.1, steps=2)
    after = reference.square.weight.detach().numpy()
    assert np.abs(after - before).max() > 1e-4
    np.testing.assert_allclose(port.square.weight.numpy().T, after, atol=1e-6)
    assert all(parameter.grad is None for parameter in reference.parameters())
    assert all(parameter.grad is None for parameter in port.parameters())


def test_gradients_from_before_do_not_count():
    reference, port = pair()
    torch_loss({"x": torch.ones(1)}, reference(torch.tensor(INPUTS["ids"]), torch.ones(2, 4)))[
        "loss"
    ].backward()
    assert compare_loss_and_backward(reference, port, torch_loss, paddle_loss, INPUTS, steps=2) is True


def test_a_square_linear_layer_that_was_not_turned_is_found():
    reference, port = pair()
    port.square.weight.set_value(np.ascontiguousarray(port.square.weight.numpy().T))
    assert compare_loss_and_backward(reference, port, torch_loss, paddle_loss, INPUTS, steps=1) is False


def test_a_loss_that_differs_fails_in_its_step(capsys):
    def other(inputs, outputs):
        return {"loss": (outputs**2).mean() + 1}

    assert compare_loss_and_backward(*pair(), torch_loss, other, INPUTS, steps=3) is False
    lines = printed_lines(capsys)
    assert lines[:2] == ["loss: ", "\tmean diff: check passed: False, value"]
    assert lines[-1] == "diff check failed in iter 0"


def test_an_update_that_differs_shows_in_the_weights_only(capsys):
    models = pair(square_rate=3.0)
    assert compare_loss_and_backward(*models, torch_loss, paddle_loss, INPUTS, lr=0.1, steps=3) is False
    lines = printed_lines(capsys)
    failed = [lines[index - 1] for index, line in enumerate(lines) if "passed: False" in line]
    assert failed == ["\tsquare.weight: "]
    assert lines[-1] == "diff check failed in iter 0"


def test_a_gradient_on_one_side_only_fails_by_name(capsys):
    reference, port = pair()
    port.square.bias.stop_gradient = True
    assert compare_loss_and_backward(reference, port, torch_loss, paddle_loss, INPUTS, steps=1) is False
    assert "\tsquare.bias in torch_model but not found in paddle_model" in printed_lines(capsys)


def test_a_loss_may_return_the_scalar_itself():
    def loss(inputs, outputs):
        return (outputs**2).mean()

    assert compare_loss_and_backward(*pair(), loss, loss, INPUTS, steps=2, diff_method="all") is True


def test_a_first_layer_that_works_in_place_or_needs_live_inputs():
    reference = TorchFunction(
        lambda x, prelu, head: head(prelu(x.mul_(2))), torch.nn.PReLU(), torch.nn.Linear(3, 2)
    )
    port = PaddleFunction(
        lambda x, prelu, head: head(prelu(x.scale_(2.0))), paddle.nn.PReLU(), paddle.nn.Linear(3, 2)
    )
    copy_weights(reference, port, turned=("layers.1.weight",))
    inputs = {"x": np.array([[-0.1, 0.2, -0.3]])}  # small: the threshold is fixed

    def loss(inputs, outputs):
        return {"loss": (outputs**2).mean()}

    assert compare_loss_and_backward(reference, port, loss, loss, inputs, steps=2) is True
    assert inputs["x"].tolist() == [[-0.1, 0.2, -0.3]]


def test_no_steps_are_refused():
    with pytest.raises(InputError, match="steps is 0: without a step nothing is compared"):
        compare_loss_and_backward(*pair(), torch_loss, paddle_loss, INPUTS, steps=0)


def test_an_output_with_an_axis_of_length_1_more_is_told_and_compared_by_value(capsys):
    models = functions(lambda x: x * 2, lambda x: (x * 2).reshape([2, 1]))
    assert compare_forward(*models, {"x": np.ones(2)}) is True
    assert "shapes (2,) and (2, 1) differ by axes of length 1 only" in capsys.readouterr().out
