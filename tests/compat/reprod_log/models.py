"""Small models, once in each framework, and the hand-made copy of their weights."""

import numpy as np
import paddle
import torch


class TorchNet(torch.nn.Module):
    """Ids and floats in; a square and an oblong linear layer, a norm and a dropout."""

    def __init__(self):
        super().__init__()
        self.embed = torch.nn.Embedding(10, 4)
        self.square = torch.nn.Linear(4, 4)
        self.norm = torch.nn.LayerNorm(4)
        self.drop = torch.nn.Dropout(0.5)
        self.head = torch.nn.Linear(4, 3)

    def forward(self, ids, x):
        hidden = torch.tanh(self.square(self.embed(ids).mean(1) + x))
        return self.head(self.drop(self.norm(hidden)))


class PaddleNet(paddle.nn.Layer):
    """The port of ``TorchNet``."""

    def __init__(self, square_rate=1.0):
        super().__init__()
        self.embed = paddle.nn.Embedding(10, 4)
        self.square = paddle.nn.Linear(4, 4, weight_attr=paddle.ParamAttr(learning_rate=square_rate))
        self.norm = paddle.nn.LayerNorm(4)
        self.drop = paddle.nn.Dropout(0.5)
        self.head = paddle.nn.Linear(4, 3)

    def forward(self, ids, x):
        hidden = paddle.tanh(self.square(self.embed(ids).mean(1) + x))
        return self.head(self.drop(self.norm(hidden)))


INPUTS = {
    "ids": np.array([[1, 2, 3], [4, 5, 9]]),
    "x": np.random.default_rng(3).standard_normal((2, 4)),  # float64, as NumPy makes it
}


def pair(**options):
    """The two nets with the same weights, which torch stores transposed in linear layers."""
    torch.manual_seed(0)
    reference, port = TorchNet(), PaddleNet(**options)
    copy_weights(reference, port, turned=("square.weight", "head.weight"))
    return reference, port


def copy_weights(reference, port, turned=()):
    """By name; ``turned`` are the weights of linear layers. Paddle's PReLU says ``_weight``."""
    parameters = {name.replace("._weight", ".weight"): tensor for name, tensor in port.named_parameters()}
    for name, tensor in reference.named_parameters():
        values = tensor.detach().numpy()
        parameters[name].set_value(np.ascontiguousarray(values.T if name in turned else values))


def torch_loss(inputs, outputs):
    return {"loss": (outputs**2).mean() + inputs["x"].sum() * 0}


def paddle_loss(inputs, outputs):
    return {"loss": (outputs**2).mean() + inputs["x"].sum() * 0}
