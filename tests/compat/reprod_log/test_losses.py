"""Losses: functions of inputs and outputs, and the frameworks' loss layers, which get the labels."""

import numpy as np
import paddle
import pytest
import torch

from parfocal.compat.reprod_log.compare import compare_forward, compare_loss_and_backward
from parfocal.errors import InputError
from tests.compat.reprod_log.models import INPUTS, copy_weights, pair

CLASSES = np.array([0, 2])
RNG = np.random.default_rng(0)


@pytest.mark.parametrize(
    ("torch_loss", "paddle_loss", "labels"),
    [
        (torch.nn.CrossEntropyLoss(), paddle.nn.CrossEntropyLoss(), CLASSES),
        (torch.nn.MSELoss(), paddle.nn.MSELoss(), RNG.standard_normal((2, 3))),
        (torch.nn.BCEWithLogitsLoss(), paddle.nn.BCEWithLogitsLoss(), RNG.integers(0, 2, (2, 3)) * 1.0),
        (torch.nn.SmoothL1Loss(), paddle.nn.SmoothL1Loss(), RNG.standard_normal((2, 3))),
    ],
)
def test_a_loss_layer_gets_the_output_and_the_labels(torch_loss, paddle_loss, labels, capsys):
    reference, port = pair()
    seen = []
    torch_loss.register_forward_hook(lambda layer, given, output: seen.append(output.item()))
    target = torch.tensor(labels.astype("float32") if labels.dtype == float else labels)
    given = {**INPUTS, "ground truth": labels}
    assert compare_loss_and_backward(reference, port, torch_loss, paddle_loss, given, steps=2) is True
    assert "square.weight: " in capsys.readouterr().out
    output = pair()[0].eval()(torch.tensor(INPUTS["ids"]), torch.tensor(INPUTS["x"]).float())
    assert seen[0] == pytest.approx(torch_loss(output, target).item(), rel=1e-5)


def test_another_label_or_loss_is_found(capsys):
    given = {**INPUTS, "label": CLASSES}
    losses = torch.nn.CrossEntropyLoss(), paddle.nn.CrossEntropyLoss(reduction="sum")
    assert compare_loss_and_backward(*pair(), *losses, given, steps=1) is False
    assert "the outputs agree and the losses do not" in capsys.readouterr().err


def test_a_users_own_loss_layer_is_given_labels_where_there_are_some():
    class TorchLoss(torch.nn.Module):
        def forward(self, output, label):
            return {"loss": ((output - label) ** 2).mean()}

    class PaddleLoss(paddle.nn.Layer):
        def forward(self, output, label):
            return {"loss": ((output - label) ** 2).mean()}

    given = {**INPUTS, "target": np.ones((2, 3))}
    assert compare_loss_and_backward(*pair(), TorchLoss(), PaddleLoss(), given, steps=2) is True

    class TorchOriginal(torch.nn.Module):
        def forward(self, inputs, outputs):
            return {"loss": (outputs**2).mean() + inputs["x"].mean()}

    class PaddleOriginal(paddle.nn.Layer):
        def forward(self, inputs, outputs):
            return {"loss": (outputs**2).mean() + inputs["x"].mean()}

    assert compare_loss_and_backward(*pair(), TorchOriginal(), PaddleOriginal(), INPUTS, steps=2) is True


def test_a_function_finds_the_labels_among_the_inputs():
    def loss(inputs, outputs):
        return {"loss": ((outputs - inputs["label"]) ** 2).mean()}

    given = {**INPUTS, "label": np.ones((2, 3))}
    assert compare_loss_and_backward(*pair(), loss, loss, given, steps=2) is True


def test_a_label_that_the_model_takes_too_is_known_by_its_name():
    class Torch(torch.nn.Linear):
        def forward(self, x, label):
            return super().forward(x)

    class Paddle(paddle.nn.Linear):
        def forward(self, x, label):
            return super().forward(x)

    reference, port = Torch(4, 3), Paddle(4, 3)
    copy_weights(reference, port, turned=("weight",))
    losses = torch.nn.CrossEntropyLoss(), paddle.nn.CrossEntropyLoss()
    given = {"x": RNG.standard_normal((2, 4)), "label": CLASSES}
    assert compare_loss_and_backward(reference, port, *losses, given, steps=2) is True


def test_missing_labels_and_unknown_inputs_are_refused():
    losses = torch.nn.CrossEntropyLoss(), paddle.nn.CrossEntropyLoss()
    with pytest.raises(
        InputError, match="CrossEntropyLoss wants labels, and input_dict has none: ids, x are"
    ):
        compare_loss_and_backward(*pair(), *losses, INPUTS, steps=1)

    def loss(inputs, outputs):
        return (outputs**2).mean()

    with pytest.raises(TypeError, match="unexpected keyword argument 'mask'"):
        compare_loss_and_backward(*pair(), loss, loss, {**INPUTS, "mask": np.ones(2)}, steps=1)
    with pytest.raises(TypeError, match="unexpected keyword argument 'label'"):
        compare_forward(*pair(), {**INPUTS, "label": CLASSES})


def test_several_outputs_leave_open_which_one_is_meant():
    class Torch(torch.nn.Linear):
        def forward(self, x):
            return super().forward(x), x

    class Paddle(paddle.nn.Linear):
        def forward(self, x):
            return super().forward(x), x

    given = {"x": RNG.standard_normal((2, 4)), "label": CLASSES}
    losses = torch.nn.CrossEntropyLoss(), paddle.nn.CrossEntropyLoss()
    with pytest.raises(InputError, match="the model gives 2 tensors, and a loss layer takes one of them"):
        compare_loss_and_backward(Torch(4, 3), Paddle(4, 3), *losses, given, steps=1)
