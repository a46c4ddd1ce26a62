"""Layers that the two models define in another order, and whose weights were copied by name, correspond."""

import paddle
import pytest
import torch

from parfocal.compat.padiff import assign_weight, auto_diff, check_params, check_report, create_model
from parfocal.compat.ppautodiff import autodiff
from tests.compat.padiff.models import floats, inputs


class TorchPlain(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(10, 10)
        self.second = torch.nn.Linear(10, 10)
        self.act = torch.nn.ReLU()
        self.squash = torch.nn.Tanh()

    def forward(self, x):
        return self.squash(self.second(self.act(self.first(x))))


class PaddlePlain(paddle.nn.Layer):
    """The same names, everything defined the other way round."""

    def __init__(self):
        super().__init__()
        self.squash = paddle.nn.Tanh()
        self.act = paddle.nn.ReLU()
        self.second = paddle.nn.Linear(10, 10)
        self.first = paddle.nn.Linear(10, 10)

    def forward(self, x):
        return self.squash(self.second(self.act(self.first(x))))


class TorchBlock(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.up = torch.nn.Linear(10, width)
        self.norm = torch.nn.LayerNorm(width)
        self.down = torch.nn.Linear(width, 10)

    def forward(self, x):
        return x + self.down(torch.relu(self.norm(self.up(x))))


class PaddleBlock(paddle.nn.Layer):
    def __init__(self, width):
        super().__init__()
        self.contract = paddle.nn.Linear(width, 10)
        self.expand = paddle.nn.Linear(10, width)
        self.layer_norm = paddle.nn.LayerNorm(width)

    def forward(self, x):
        return x + self.contract(paddle.nn.functional.relu(self.layer_norm(self.expand(x))))


class TorchNested(torch.nn.Module):
    """Blocks that differ in width alone; the second is called twice."""

    def __init__(self):
        super().__init__()
        self.narrow = TorchBlock(6)
        self.wide = TorchBlock(20)
        self.head = torch.nn.Linear(10, 3)

    def forward(self, x):
        return self.head(self.wide(self.wide(self.narrow(x))))


class PaddleNested(paddle.nn.Layer):
    """Other names and another order: only shapes tell which layer is which."""

    def __init__(self):
        super().__init__()
        self.classifier = paddle.nn.Linear(10, 3)
        self.b = PaddleBlock(20)
        self.a = PaddleBlock(6)

    def forward(self, x):
        return self.classifier(self.b(self.b(self.a(x))))


PAIRS = pytest.mark.parametrize(
    "classes", [(TorchPlain, PaddlePlain), (TorchNested, PaddleNested)], ids=["names", "shapes"]
)


@PAIRS
@pytest.mark.parametrize("turned", [False, True], ids=["torch as base", "paddle as base"])
def test_single_step_gives_every_call_its_own_partners_values(classes, turned):
    order = slice(None, None, -1) if turned else slice(None)
    base, raw = [each() for each in classes][order]
    given = inputs(floats(3, 10), grad=True)[order]
    assert auto_diff(base, raw, given, single_step=True, atol=1e-5, compare_mode="strict")


@PAIRS
def test_the_layer_that_differs_is_named(classes, capsys):
    base, raw = (each() for each in classes)
    guilty = {PaddlePlain: "second", PaddleNested: "b.expand"}[classes[1]]
    layer = dict(raw.named_sublayers())[guilty]
    layer.register_forward_post_hook(lambda layer, given, output: output.abs())
    assert not auto_diff(base, raw, inputs(floats(3, 10)), atol=1e-5)
    printed = capsys.readouterr().out
    partner = {"second": "second", "b.expand": "wide.up"}[guilty]
    assert f"Route: {classes[0].__name__}(base_model).{partner}\n" in printed
    assert f"{classes[1].__name__}(raw_model).{guilty}\n" in printed


@PAIRS
def test_autodiff_compares_the_layers_whose_weights_it_copied(classes):
    module, layer = (each() for each in classes)
    assert autodiff(layer, module, floats(3, 10), options={"atol": 1e-5}) is True


@PAIRS
def test_autodiff_finds_the_weight_that_differs(classes, capsys):
    module, layer = (each() for each in classes)
    weight = (layer.first if classes[1] is PaddlePlain else layer.a.expand).weight
    weight.register_hook(lambda gradient: gradient * 2)
    assert autodiff(layer, module, floats(3, 10), options={"atol": 1e-5}) is False
    printed = capsys.readouterr().out
    assert printed.count("After training, ") == 1
    assert "After training, grad value is different for param `weight`." in printed


def test_dumps_are_paired_by_names_where_these_are_the_same():
    base, raw = TorchPlain(), PaddlePlain()
    assert assign_weight(base, raw)
    array = floats(3, 10)
    proxies = create_model(base, "base"), create_model(raw, "raw")
    for proxy, given in zip(proxies, (torch.tensor(array), paddle.to_tensor(array)), strict=True):
        proxy.backward(proxy(given).mean())
        proxy.try_dump()
    paths = [proxy.dump_path for proxy in proxies]
    settings = {"atol": 1e-5, "compare_mode": "strict"}
    assert check_report(*paths, settings, single_step=True)  # looks at the inner calls too
    assert check_params(*paths, settings)
