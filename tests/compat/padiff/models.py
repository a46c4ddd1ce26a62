"""Pairs of models, torch and paddle, that are the same unless a test changes one of them."""

import numpy as np
import paddle
import torch


class TorchNet(torch.nn.Module):
    """x -> linear1 -> relu -> + x -> linear2"""

    def __init__(self, width=10, out=4):
        super().__init__()
        self.linear1 = torch.nn.Linear(width, width)
        self.linear2 = torch.nn.Linear(width, out)
        self.act = torch.nn.ReLU()

    def forward(self, x):
        return self.linear2(self.act(self.linear1(x)) + x)


class PaddleNet(paddle.nn.Layer):
    def __init__(self, width=10, out=4):
        super().__init__()
        self.linear1 = paddle.nn.Linear(width, width)
        self.linear2 = paddle.nn.Linear(width, out)
        self.act = paddle.nn.ReLU()

    def forward(self, x):
        return self.linear2(self.act(self.linear1(x)) + x)


class TorchChain(torch.nn.Module):
    """Three layers in a row, nothing else."""

    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(10, 20)
        self.second = torch.nn.Linear(20, 30)
        self.third = torch.nn.Linear(30, 4)

    def forward(self, x):
        return self.third(self.second(self.first(x)))


class PaddleChain(paddle.nn.Layer):
    def __init__(self):
        super().__init__()
        self.first = paddle.nn.Linear(10, 20)
        self.second = paddle.nn.Linear(20, 30)
        self.third = paddle.nn.Linear(30, 4)

    def forward(self, x):
        return self.third(self.second(self.first(x)))


class TorchNorm(torch.nn.Module):
    """A convolution with batch statistics."""

    def __init__(self):
        super().__init__()
        self.conv = torch.nn.Conv2d(3, 4, 3)
        self.bn = torch.nn.BatchNorm2d(4)

    def forward(self, x):
        return self.bn(self.conv(x))


class PaddleNorm(paddle.nn.Layer):
    def __init__(self):
        super().__init__()
        self.conv = paddle.nn.Conv2D(3, 4, 3)
        self.bn = paddle.nn.BatchNorm2D(4)

    def forward(self, x):
        return self.bn(self.conv(x))


class TorchLSTM(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = torch.nn.Embedding(11, 8)
        self.lstm = torch.nn.LSTM(8, 6, 2, bidirectional=True, batch_first=True)
        self.head = torch.nn.Linear(12, 3)

    def forward(self, x):
        y, (h, c) = self.lstm(self.embedding(x))
        return self.head(y), h, c


class PaddleLSTM(paddle.nn.Layer):
    def __init__(self):
        super().__init__()
        self.embedding = paddle.nn.Embedding(11, 8)
        self.lstm = paddle.nn.LSTM(8, 6, 2, direction="bidirect")
        self.head = paddle.nn.Linear(12, 3)

    def forward(self, x):
        y, (h, c) = self.lstm(self.embedding(x))
        return self.head(y), h, c


class TorchEncoder(torch.nn.Module):
    def __init__(self):
        super().__init__()
        layer = torch.nn.TransformerEncoderLayer(16, 4, 32, 0.0, batch_first=True)
        self.encoder = torch.nn.TransformerEncoder(layer, 2)

    def forward(self, x):
        return self.encoder(x)


class PaddleEncoder(paddle.nn.Layer):
    def __init__(self):
        super().__init__()
        layer = paddle.nn.TransformerEncoderLayer(16, 4, 32, 0.0)
        self.encoder = paddle.nn.TransformerEncoder(layer, 2)

    def forward(self, x):
        return self.encoder(x)


class TorchOutputs(torch.nn.Module):
    """Several outputs, nested, and a residual block."""

    def __init__(self):
        super().__init__()
        self.block = TorchNet()
        self.heads = torch.nn.ModuleList([torch.nn.Linear(4, 2), torch.nn.Linear(4, 3)])

    def forward(self, x):
        y = self.block(x)
        return {"features": y, "heads": [head(y) for head in self.heads]}


class PaddleOutputs(paddle.nn.Layer):
    def __init__(self):
        super().__init__()
        self.block = PaddleNet()
        self.heads = paddle.nn.LayerList([paddle.nn.Linear(4, 2), paddle.nn.Linear(4, 3)])

    def forward(self, x):
        y = self.block(x)
        return {"features": y, "heads": [head(y) for head in self.heads]}


def floats(*shape):
    return np.random.default_rng(0).standard_normal(shape).astype("float32")


def torch_input(array, grad=False):
    return {"x": torch.tensor(array, requires_grad=grad)}


def paddle_input(array, grad=False):
    return {"x": paddle.to_tensor(array, stop_gradient=not grad)}


def inputs(array, grad=False):
    """For the torch model first."""
    return torch_input(array, grad), paddle_input(array, grad)


def scale_gradient(layer, factor):
    """A paddle layer whose input gradient comes out wrong, and only that."""

    def hook(layer, given):
        def changed(gradient):
            return gradient * factor

        copied = given[0] * 1.0
        copied.register_hook(changed)
        return (copied,)

    layer.register_forward_pre_hook(hook)
