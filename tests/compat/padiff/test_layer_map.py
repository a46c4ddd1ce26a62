"""Layer maps: mapped layers are copied, compared with each other, and a valid map is not called a failure."""

import numpy as np
import paddle
import pytest
import torch

from parfocal.compat.padiff import assign_weight, auto_diff, create_model
from tests.compat.padiff.models import PaddleNet, TorchNet, floats, inputs


def mapped(models, *paths):
    """Both models as proxies with the layers at these (base path, raw path) mapped."""
    proxies = tuple(create_model(model) for model in models)
    for proxy, names in zip(proxies, zip(*paths, strict=True), strict=True):
        proxy.set_layer_map([proxy.backend.modules(proxy.model)[name] for name in names])
    return proxies


class TorchScale(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.scale = torch.nn.Parameter(torch.rand(width))

    def forward(self, x):
        return x * self.scale


class PaddleScale(paddle.nn.Layer):
    def __init__(self, width):
        super().__init__()
        self.gain = self.create_parameter([width])

    def forward(self, x):
        return x * self.gain


class TorchMixed(torch.nn.Module):
    """Leaves of several kinds, one of them the user's own, and a layer that holds others."""

    def __init__(self):
        super().__init__()
        self.conv = torch.nn.Conv2d(3, 4, 3)
        self.norm = torch.nn.LayerNorm(6)
        self.scale = TorchScale(6)
        self.block = torch.nn.Sequential(torch.nn.Linear(6, 5), torch.nn.ReLU(), torch.nn.Linear(5, 2))

    def forward(self, x):
        return self.block(self.scale(self.norm(self.conv(x))))


class PaddleMixed(paddle.nn.Layer):
    def __init__(self):
        super().__init__()
        self.head = paddle.nn.Sequential(paddle.nn.Linear(6, 5), paddle.nn.ReLU(), paddle.nn.Linear(5, 2))
        self.multiply = PaddleScale(6)
        self.layer_norm = paddle.nn.LayerNorm(6)
        self.kernel = paddle.nn.Conv2D(3, 4, 3)

    def forward(self, x):
        return self.head(self.multiply(self.layer_norm(self.kernel(x))))


MIXED = (("conv", "kernel"), ("norm", "layer_norm"), ("scale", "multiply"), ("block", "head"))


@pytest.mark.parametrize(
    ("classes", "paths", "array"),
    [
        ((TorchNet, PaddleNet), (("linear1", "linear1"), ("linear2", "linear2")), floats(3, 10)),
        ((TorchMixed, PaddleMixed), MIXED, floats(2, 3, 8, 8)),
        ((TorchMixed, PaddleMixed), MIXED[:2], floats(2, 3, 8, 8)),
        ((TorchMixed, PaddleMixed), (("block", "head"),), floats(2, 3, 8, 8)),
    ],
)
@pytest.mark.parametrize("turned", [False, True], ids=["torch as base", "paddle as base"])
@pytest.mark.parametrize("single_step", [False, True])
def test_mapped_layers_without_a_special_init_are_copied(classes, paths, array, turned, single_step, capsys):
    order = slice(None, None, -1) if turned else slice(None)
    base, raw = mapped([each() for each in classes][order], *(pair[order] for pair in paths))
    assert auto_diff(base, raw, inputs(array)[order], atol=1e-4, single_step=single_step) is True
    printed = capsys.readouterr().out
    assert "not supported" not in printed
    assert "FAILED" not in printed
    assert "[AutoDiff] Check layer_map SUCCESS!!!\n" in printed


def test_the_map_decides_which_layer_gets_which_weights():
    base, raw = mapped((TorchNet(out=10), PaddleNet(out=10)), ("linear1", "linear2"), ("linear2", "linear1"))
    assert assign_weight(base, raw)
    for first, second in (("linear1", "linear2"), ("linear2", "linear1")):
        ours, theirs = getattr(base.model, first), getattr(raw.model, second)
        np.testing.assert_array_equal(ours.weight.detach().numpy().T, theirs.weight.numpy())
        np.testing.assert_array_equal(ours.bias.detach().numpy(), theirs.bias.numpy())


def test_a_mapped_layer_takes_no_part_in_the_matching_of_the_others():
    """Unmapped layers of the same shape must not get the weights of a mapped one, nor lose theirs."""

    class TorchThree(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b, self.c = (torch.nn.Linear(4, 4) for _ in range(3))

    class PaddleThree(paddle.nn.Layer):
        def __init__(self):
            super().__init__()
            self.b, self.a, self.c = (paddle.nn.Linear(4, 4) for _ in range(3))

    base, raw = mapped((TorchThree(), PaddleThree()), ("a", "b"))
    assert assign_weight(base, raw)
    np.testing.assert_array_equal(base.model.a.bias.detach().numpy(), raw.model.b.bias.numpy())
    np.testing.assert_array_equal(base.model.c.bias.detach().numpy(), raw.model.c.bias.numpy())
    np.testing.assert_array_equal(base.model.b.bias.detach().numpy(), raw.model.a.bias.numpy())


def test_mapped_framework_layers_of_other_shapes_fail(capsys):
    models = (
        torch.nn.Sequential(torch.nn.Linear(4, 4)),
        paddle.nn.Sequential(paddle.nn.Linear(4, 5)),
    )
    base, raw = mapped(models, ("0", "0"))
    before = raw.model[0].weight.numpy().copy()
    assert assign_weight(base, raw) is False
    assert "Assign weight Failed !!!" in capsys.readouterr().out
    np.testing.assert_array_equal(raw.model[0].weight.numpy(), before)


def test_a_map_of_layers_that_do_different_things_is_told(capsys):
    class Torch(TorchNet):
        def forward(self, x):
            return self.act(self.linear1(x)) + x

    class Paddle(PaddleNet):
        def forward(self, x):
            return self.act(self.linear1(x)) + x

    base, raw = mapped((Torch(), Paddle()), ("linear1", "act"), ("act", "linear1"))
    auto_diff(base, raw, inputs(floats(3, 10)), auto_init=False)
    printed = capsys.readouterr().out
    assert "find that raw_model can not matchs base_model.\n    base_model:  `torch::Linear`" in printed
    assert "[AutoDiff] Check layer_map FAILED!!!\n" in printed
    base, raw = mapped((Torch(), Paddle()), ("linear1", "linear1"), ("act", "act"))
    raw.set_layer_map([raw.model.linear1])
    auto_diff(base, raw, inputs(floats(3, 10)), auto_init=False)
    assert (
        "Error: The number of submodels which need special init is not the same!" in capsys.readouterr().out
    )
