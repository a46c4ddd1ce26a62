"""The ways that older versions of paddle need, taken on any version."""

from __future__ import annotations

import gc
import operator

import numpy as np
import paddle
import pytest
import torch

import parfocal as pf
from parfocal.backends import registry
from parfocal.backends.paddle import layer_hooks, memory, tensors, watch

KINDS = sorted({*tensors.DTYPES} - {*tensors.BITS})


@pytest.fixture
def older(monkeypatch):
    """The paddle backend as it is loaded where paddle has less."""
    monkeypatch.setattr(tensors, "EXPORTS_MEMORY", False)
    monkeypatch.setattr(tensors, "_same_dtype", operator.eq)
    monkeypatch.setattr(tensors, "VIEWS_KEEP_NOTHING", False)
    monkeypatch.setattr(watch.Watching, "set_hooks", staticmethod(layer_hooks.by_mark))
    return registry.get("paddle")


@pytest.mark.parametrize("kind", KINDS)
def test_memory_by_its_address_is_the_tensors_own(kind):
    tensor = paddle.to_tensor(np.arange(6).reshape(2, 3).astype(kind))
    found = memory.addressed(tensor, kind)
    assert found.dtype == kind
    assert found.tolist() == tensor.tolist()
    found[0, 0] = 1
    assert tensor.tolist()[0][0] == 1


@pytest.mark.parametrize(
    "cut", [lambda x: x.transpose([1, 0]), lambda x: x[1:], lambda x: x[:, 1:], lambda x: x.reshape([6])[:0]]
)
def test_memory_by_its_address_has_the_tensors_strides(cut):
    tensor = cut(paddle.arange(6, dtype="float32").reshape([2, 3]))
    found = memory.addressed(tensor, "float32")
    assert found.shape == tuple(tensor.shape)
    assert found.tolist() == tensor.tolist()


def test_memory_by_its_address_outlives_a_gradient_that_is_cleared():
    weight = paddle.ones([1000])
    weight.stop_gradient = False
    (weight * 3).sum().backward()
    found = memory.addressed(weight.grad, "float32")
    weight.clear_gradient(False)
    del weight
    gc.collect()
    others = [paddle.full([1000], 7.0) for _ in range(10)]
    assert set(found.tolist()) == {3.0}
    assert len(others) == 10


def layers():
    return (
        torch.nn.Sequential(torch.nn.Linear(4, 6), torch.nn.LayerNorm(6), torch.nn.GELU()),
        paddle.nn.Sequential(paddle.nn.Linear(4, 6), paddle.nn.LayerNorm(6), paddle.nn.GELU()),
    )


def rows():
    return np.random.default_rng(0).standard_normal((3, 4)).astype("float32")


@pytest.mark.usefixtures("older")
def test_a_pair_is_aligned_without_what_newer_versions_have():
    assert pf.align(*layers(), rows()).ok


@pytest.mark.usefixtures("older")
def test_a_mistake_is_named_without_what_newer_versions_have():
    reference, port = layers()
    port[1] = paddle.nn.LayerNorm(6, epsilon=1e-3)
    assert pf.align(reference, port, rows()).first.cause.code == "config.epsilon"


def test_marked_layers_call_back_around_the_users_hooks(older):
    told = []
    model = paddle.nn.Sequential(paddle.nn.Linear(4, 4))
    model.register_forward_pre_hook(lambda layer, inputs: told.append("user before"))
    model.register_forward_post_hook(lambda layer, inputs, output: told.append("user after"))
    call = paddle.nn.Layer._dygraph_call_func
    with older.watch(
        model,
        lambda call: told.append(f"enter {call.path}"),
        lambda call, output: told.append(f"leave {call.path}"),
    ):
        model(input=paddle.ones([2, 4]))
    assert told == ["enter ", "user before", "enter 0", "leave 0", "user after", "leave "]
    assert paddle.nn.Layer._dygraph_call_func is call
    assert len(model._forward_pre_hooks) == 1
    assert not model[0]._forward_pre_hooks


def test_marked_layers_are_put_back_when_a_call_raises(older):
    model = paddle.nn.Sequential(paddle.nn.Linear(4, 4))
    call = paddle.nn.Layer._dygraph_call_func
    seen = []
    with older.watch(model, lambda call: seen.append(call.depth)):
        with pytest.raises(ValueError):
            model(paddle.ones([2, 3]))
        model(paddle.ones([2, 4]))
    assert seen == [0, 1, 0, 1]  # the call that raised was taken off
    assert paddle.nn.Layer._dygraph_call_func is call
