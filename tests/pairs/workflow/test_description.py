"""Trees of models: what is in them, and which modules of two stand on one line."""

from __future__ import annotations

import numpy as np
import paddle
import pytest
import torch

from parfocal.errors import InputError
from parfocal.workflow.description.model import describe_model
from parfocal.workflow.description.pair import describe_pair

IMAGES = np.random.default_rng(0).normal(size=(2, 3, 8, 8)).astype("float32")


class Reference(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = torch.nn.Conv2d(3, 4, 3, padding=1, bias=False)
        self.norm = torch.nn.BatchNorm2d(4)
        self.act = torch.nn.ReLU()
        self.blocks = torch.nn.ModuleList([torch.nn.Conv2d(4, 4, 1) for _ in range(2)])
        self.head = torch.nn.Linear(4, 5)
        self.unused = torch.nn.Linear(2, 2)

    def forward(self, x):
        x = self.act(self.norm(self.stem(x)))
        for block in self.blocks:
            x = self.act(block(x))
        return self.head(x.mean((2, 3)))


class Port(paddle.nn.Layer):
    def __init__(self):
        super().__init__()
        self.fc = paddle.nn.Linear(4, 5)  # defined in another order, under other names
        self.conv_in = paddle.nn.Conv2D(3, 4, 3, padding=1, bias_attr=False)
        self.bn = paddle.nn.BatchNorm2D(4, epsilon=1e-3)
        self.stages = paddle.nn.Sequential(*(paddle.nn.Conv2D(4, 4, 1) for _ in range(2)))
        self.spare = paddle.nn.Linear(2, 2)

    def forward(self, x):
        x = paddle.nn.functional.relu(self.bn(self.conv_in(x)))
        for stage in self.stages:
            x = paddle.nn.functional.relu(stage(x))
        return self.fc(x.mean([2, 3]))


def by_path(found):
    return {module.path: module for module in found.modules}


def partners(found):
    return {line.reference.path: line.port.path for line in found.lines if line.reference and line.port}


@pytest.mark.parametrize("build", [Reference, Port])
def test_counts_are_those_of_the_framework(build):
    model = build()
    found = describe_model(model)
    trainable = [
        p for p in model.parameters() if (p.requires_grad if build is Reference else not p.stop_gradient)
    ]
    assert found.totals.trainable == sum(int(np.prod(p.shape)) for p in trainable)
    assert found.totals.parameters == found.modules[0].parameters == found.totals.trainable
    assert found.totals.buffers == (9 if build is Reference else 8)  # torch counts batches too
    assert not found.ran
    assert all(module.calls == () for module in found.modules)


def test_calls_have_their_shapes_and_are_counted():
    found = describe_model(Reference(), (IMAGES,))
    modules = by_path(found)
    assert found.ran
    assert dict(modules["stem"].calls[0].inputs) == {"0": (2, 3, 8, 8)}
    assert dict(modules["stem"].calls[0].outputs) == {"0": (2, 4, 8, 8)}
    assert len(modules["act"].calls) == 3
    assert modules["unused"].calls == modules["blocks"].calls == ()
    assert found.totals.calls == 1 + 2 + 3 + 2 + 1
    assert dict(modules[""].calls[0].outputs) == {"0": (2, 5)}


def test_settings_that_matter_are_written_as_the_framework_writes_them():
    assert by_path(describe_model(Reference()))["stem"].written == "3, 4, 3, padding=1, bias=False"
    assert by_path(describe_model(Port()))["bn"].written == "4, epsilon=0.001"
    assert by_path(describe_model(Reference()))[""].written is None


def test_shared_weights_count_once_and_are_named():
    model = torch.nn.Sequential(torch.nn.Linear(3, 3, bias=False), torch.nn.Linear(3, 3, bias=False))
    model[1].weight = model[0].weight
    found = describe_model(model)
    assert found.totals.parameters == found.modules[0].parameters == 9
    assert by_path(found)["1"].tensors[0].tied_to == "0.weight"


@pytest.mark.parametrize("given", [(IMAGES,), None])
def test_modules_that_correspond_stand_on_one_line(given):
    found = describe_pair(Reference(), Port(), given)
    assert found.weights_agree
    expected = {"": "", "stem": "conv_in", "norm": "bn", "blocks": "stages", "blocks.0": "stages.0"}
    expected |= {"blocks.1": "stages.1", "head": "fc"}
    assert expected.items() <= partners(found).items()
    assert [line.reference.path for line in found.lines if line.port is None and line.reference] == [
        "act"
    ] + (["unused"] if "unused" not in partners(found) else [])
    (norm,) = (line for line in found.lines if line.reference and line.reference.path == "norm")
    assert norm.settings == ("epsilon",)
    assert [line.settings for line in found.lines if line.reference and line.reference.path == "head"] == [()]


def test_every_module_of_both_sides_is_shown_once():
    found = describe_pair(Reference(), Port(), (IMAGES,))
    ours = [line.reference.path for line in found.lines if line.reference and not line.part]
    theirs = [line.port.path for line in found.lines if line.port]
    assert ours == [module.path for module in found.reference.modules]
    assert sorted(theirs) == sorted(module.path for module in found.port.modules)


class Packed(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = torch.nn.Linear(6, 18)

    def forward(self, x):
        q, k, v = self.qkv(x).chunk(3, -1)
        return torch.softmax(q @ k.mT, -1) @ v


class Apart(paddle.nn.Layer):
    def __init__(self):
        super().__init__()
        self.q, self.k, self.v = (paddle.nn.Linear(6, 6) for _ in range(3))

    def forward(self, x):
        scores = paddle.matmul(self.q(x), self.k(x), transpose_y=True)
        return paddle.matmul(paddle.nn.functional.softmax(scores), self.v(x))


def test_one_module_beside_three_that_do_its_work():
    x = np.random.default_rng(1).normal(size=(2, 5, 6)).astype("float32")
    found = describe_pair(Packed(), Apart(), (x,))
    lines = [line for line in found.lines if line.reference and line.reference.path == "qkv"]
    assert sorted(line.port.path for line in lines) == ["k", "q", "v"]
    assert [line.part for line in lines] == [False, True, True]
    assert all(line.settings == () for line in lines)


@pytest.mark.parametrize("given", [(np.ones((2, 3), "float32"),), None])
def test_models_that_have_nothing_to_do_with_each_other_are_shown_all_the_same(given):
    ours = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 2))
    theirs = paddle.nn.Sequential(paddle.nn.Linear(3, 7), paddle.nn.Tanh(), paddle.nn.Linear(7, 7))
    found = describe_pair(ours, theirs, given)
    assert not found.weights_agree
    assert len([line for line in found.lines if line.reference]) == 4
    assert len([line for line in found.lines if line.port]) == 4
    assert partners(found)[""] == ""
    assert partners(found)["1"] == "1"  # the same kind at the same place


@pytest.mark.filterwarnings("ignore:When training, we now always track global mean")
def test_neither_model_is_changed():
    ours, theirs = Reference(), Port()
    states = [{k: v.numpy().copy() for k, v in m.state_dict().items()} for m in (ours, theirs)]
    theirs.train()
    describe_pair(ours, theirs, (IMAGES,), mode="train")
    for before, model in zip(states, (ours, theirs), strict=True):
        assert all(np.array_equal(before[k], v.numpy()) for k, v in model.state_dict().items())
    assert theirs.training
    assert all(p.grad is None for p in ours.parameters())


def test_misuse_is_told():
    model = Reference()
    with pytest.raises(InputError, match="a model beside itself shows nothing"):
        describe_pair(model, model)
    with pytest.raises(InputError, match="the forward pass of the model raised RuntimeError in stem"):
        describe_model(model, (IMAGES[:, :2],))
