"""Single step: every call on the base's values, forward and backward in one run, either base."""

import copy

import numpy as np
import paddle
import pytest
import torch

from parfocal.compat.padiff import auto_diff, create_model
from tests.compat.padiff import models
from tests.compat.padiff.models import (
    PaddleChain,
    PaddleNet,
    TorchChain,
    TorchNet,
    floats,
    inputs,
    scale_gradient,
)
from tests.pairs.vision import torchvision_models

TRAINING_WARNING = "ignore:When training, we now always track global mean and variance:UserWarning"
IDS = np.random.default_rng(0).integers(0, 11, (3, 5))
PAIRS = {
    "Chain": floats(3, 10),
    "Net": floats(3, 10),
    "LSTM": IDS,
    "Encoder": floats(2, 3, 16),
    "Outputs": floats(3, 10),
    "Norm": floats(2, 3, 8, 8),
}


def pair(name):
    return getattr(models, f"Torch{name}")(), getattr(models, f"Paddle{name}")()


@pytest.mark.filterwarnings(TRAINING_WARNING)
@pytest.mark.parametrize("base", ["torch", "paddle"])
@pytest.mark.parametrize("name", sorted(PAIRS))
def test_the_same_models_pass_whichever_is_the_base(name, base):
    order = slice(None) if base == "torch" else slice(None, None, -1)
    first, second = pair(name)[order]
    given = inputs(PAIRS[name], grad=PAIRS[name].dtype == np.float32)[order]
    assert auto_diff(first, second, given, single_step=True, atol=1e-5, compare_mode="strict")


def relative_noise(network, given):
    """By how much rounding moves a network's values, in PaDiff's measure: mean error over mean size.

    That of a whole run, which is more than what a single step of it can have.
    """
    values = {}
    for dtype in (torch.float32, torch.float64):
        copied, seen = copy.deepcopy(network).to(dtype), []
        for module in copied.modules():
            module.register_forward_hook(lambda *called, seen=seen: seen.append(called[2].detach()))
        copied(torch.tensor(given, dtype=dtype)).mean().backward()
        values[dtype] = [*seen, *(parameter.grad for parameter in copied.parameters())]
    pairs = zip(values[torch.float32], values[torch.float64], strict=True)
    return max(float((rounded - right).abs().mean() / right.abs().mean()) for rounded, right in pairs)


@pytest.mark.parametrize("base", ["torch", "paddle"])
def test_resnet50_passes_whichever_is_the_base(base):
    """Its logits are near 200, which no fixed ``atol`` suits."""
    order = slice(None) if base == "torch" else slice(None, None, -1)
    networks = torchvision_models.resnet50().eval(), paddle.vision.models.resnet50()
    networks[1].eval()
    given = floats(1, 3, 32, 32)
    noise = relative_noise(networks[0], given)
    options = {"single_step": True, "atol": 0.0}
    assert auto_diff(*networks[order], inputs(given)[order], rtol=8 * noise, **options)
    with torch.no_grad():
        networks[0].layer4[0].conv2.weight.mul_(1 + 100 * noise)
    assert not auto_diff(*networks[order], inputs(given)[order], rtol=8 * noise, auto_init=False, **options)


@pytest.mark.parametrize("name", ["Encoder", "LSTM"])
def test_mapped_layers_pass(name):
    base, raw = (create_model(model) for model in pair(name))
    base.auto_layer_map("base")
    raw.auto_layer_map("raw")
    assert auto_diff(base, raw, inputs(PAIRS[name]), single_step=True, atol=1e-5)


def faults():
    """How to break a paddle layer, the stage in which that shows, and the layer to blame."""
    yield "Forward", "second", lambda net: net.second.bias.set_value(net.second.bias + 1)
    yield "Forward", "first", lambda net: net.first.register_forward_post_hook(lambda *given: given[2] * 1.01)
    yield "Backward", "second", lambda net: scale_gradient(net.second, 1.5)
    yield "Backward", "third", lambda net: scale_gradient(net.third, 1.5)


@pytest.mark.parametrize(("stage", "path", "spoil"), list(faults()))
def test_the_guilty_layer_is_found(stage, path, spoil, capsys):
    base, raw = TorchChain(), PaddleChain()
    assert auto_diff(base, raw, inputs(floats(3, 10)), single_step=True, atol=1e-6)
    spoil(raw)
    capsys.readouterr()
    assert not auto_diff(base, raw, inputs(floats(3, 10)), single_step=True, atol=1e-6, auto_init=False)
    printed = capsys.readouterr().out
    assert f"Diff found in {stage} Stage" in printed
    assert f"Route: TorchChain(base_model).{path}\n" in printed
    assert f"In single step mode, diff found at {stage.lower()} stage!" in printed


def test_an_error_is_not_passed_on_to_later_layers():
    """Two errors that cancel out in the end: the plain run sees nothing, the single step does."""
    base, raw = TorchChain(), PaddleChain()
    given = inputs(floats(3, 10))
    assert auto_diff(base, raw, given, atol=1e-4)
    raw.second.register_forward_post_hook(lambda layer, given, output: output + 1)
    raw.third.register_forward_post_hook(lambda layer, given, output: output - raw.third.weight.sum(0))
    assert auto_diff(base, raw, given, atol=1e-4, auto_init=False)
    assert not auto_diff(base, raw, given, atol=1e-4, auto_init=False, single_step=True)


def test_only_what_is_asked_for_is_checked():
    base, raw = TorchChain(), PaddleChain()
    scale_gradient(raw.second, 1.5)
    given = inputs(floats(3, 10))
    options = {"single_step": True, "atol": 1e-6}
    assert auto_diff(base, raw, given, diff_phase="forward", **options)
    assert not auto_diff(base, raw, given, diff_phase="backward", **options)


@pytest.mark.filterwarnings(TRAINING_WARNING)
def test_the_rehearsal_leaves_no_trace():
    base, raw = pair("Norm")
    torch.manual_seed(3)
    before = torch.get_rng_state()
    assert auto_diff(raw, base, inputs(floats(2, 3, 8, 8))[::-1], single_step=True, atol=1e-5)
    assert base.bn.num_batches_tracked == 1
    assert torch.equal(torch.get_rng_state(), before)


def test_layers_that_work_in_place_are_followed():
    base, raw = TorchNet(), PaddleNet()
    base.act = torch.nn.ReLU(inplace=True)
    for first, second, given in (
        (base, raw, inputs(floats(3, 10))),
        (raw, base, inputs(floats(3, 10))[::-1]),
    ):
        assert auto_diff(first, second, given, single_step=True, atol=1e-5)


def test_a_change_in_place_that_the_caller_relies_on_is_told(capsys):
    class InPlace(TorchNet):
        def forward(self, x):
            y = self.linear1(x) * 1
            torch.nn.Module.__call__(self.act, y)
            return self.linear2(y)

    base = InPlace()
    base.act = torch.nn.ReLU(inplace=True)
    auto_diff(base, base.__class__(), (inputs(floats(3, 10))[0],) * 2, single_step=True)
    assert "changes its input in place" not in capsys.readouterr().out  # it hands its input out again

    class Silent(torch.nn.Module):
        def forward(self, x):
            x.mul_(2)
            return x.sum()

    base.act = Silent()
    auto_diff(base, base.__class__(), (inputs(floats(3, 10))[0],) * 2, single_step=True)
    assert "WARNING: act changes its input in place; single_step gives it a copy." in capsys.readouterr().out
