"""The ways that older versions of paddle and of torch need, taken on any version."""

from __future__ import annotations

import gc
import operator
import warnings

import numpy as np
import paddle
import pytest
import torch

import parfocal as pf
from parfocal.backends import registry
from parfocal.backends.paddle import layer_hooks, memory, tensors, watch
from parfocal.backends.torch import capabilities, checkpoints, ops, recording
from parfocal.backends.torch import older as torch_older
from parfocal.backends.torch import watch as torch_watch
from parfocal.errors import UnsafeFileError

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


@pytest.fixture
def older_torch(monkeypatch):
    """The torch backend as it is loaded where torch has less."""
    monkeypatch.setattr(torch_watch, "fast_path", torch_older.FastPath())
    monkeypatch.setattr(recording, "ONE_BACKWARD_DOOR", False)
    return registry.get("torch")


def test_the_fused_path_is_off_while_torch_is_watched_and_as_it_was_afterwards(older_torch):
    asked = torch.overrides.has_torch_function
    model = torch.nn.TransformerEncoder(torch.nn.TransformerEncoderLayer(4, 2, 8, batch_first=True), 2).eval()
    inputs, told = torch.ones(2, 3, 4), []
    with torch.no_grad():
        before = model(inputs)
        with older_torch.watch(model, lambda call: told.append(call.path)), older_torch.watch(model):
            assert not torch.overrides.has_torch_function((inputs,))
            watched = model(inputs)
            with older_torch.unwatched():
                assert torch.overrides.has_torch_function is asked
                assert torch.allclose(model(inputs), before, atol=1e-5)
    assert {"layers.0.self_attn", "layers.0.linear1", "layers.1.norm2"} <= {*told}
    assert torch.allclose(watched, before, atol=1e-5)
    assert torch.overrides.has_torch_function is asked


def test_a_fused_path_that_the_user_turned_off_stays_off(older_torch):
    torch_watch.fast_path.set_fastpath_enabled(False)
    try:
        with older_torch.watch(torch.nn.Linear(1, 1)), older_torch.unwatched():
            assert not torch_watch.fast_path.get_fastpath_enabled()
        assert not torch_watch.fast_path.get_fastpath_enabled()
    finally:
        torch_watch.fast_path.set_fastpath_enabled(True)


class Engine:
    """An engine that torch calls as its older versions do."""

    def __init__(self):
        self.ran = []

    def run_backward(self, outputs, *rest, **settings):
        self.ran.append(outputs)
        if rest:
            raise ValueError(rest)

    def queue_callback(self, callback):
        return callback


def test_an_engine_in_its_place_is_watched(older_torch, monkeypatch):
    engine = Engine()
    monkeypatch.setattr(torch.autograd.Variable, "_execution_engine", engine)
    told = []
    with older_torch.watch_backward(lambda outputs: told.append(outputs), told.append):
        torch.autograd.Variable._execution_engine.run_backward(("a", "b"))
        assert torch.autograd.Variable._execution_engine.queue_callback(len) is len
        with pytest.raises(ValueError):
            torch.autograd.Variable._execution_engine.run_backward(("c",), 1)
    assert told == [("a", "b"), True, ("c",), False]
    assert engine.ran == [("a", "b"), ("c",)]
    assert torch.autograd.Variable._execution_engine is engine


def test_every_index_is_told_and_nothing_is_left_behind(monkeypatch):
    monkeypatch.setattr(ops, "MODES_SEE_INDICES", False)
    x = torch.arange(12.0).reshape(4, 3)
    indices = (1, np.int64(1), slice(1, None), None, ..., x > 3, torch.tensor([0, 2]), (0, 1), [0, 1], True)
    expected, getitem, own = [x[index] for index in indices], torch.Tensor.__getitem__, {*vars(torch.Tensor)}

    class Indexed(torch.nn.Module):
        def forward(self, x):
            return [x[index] for index in indices]

    model, told = Indexed(), []
    watched = registry.get("torch").watch
    with watched(model, on_op=told.append), watched(model, on_op=lambda op: None):
        outputs = model(x)
    assert [op.name for op in told] == ["getitem"] * len(indices)
    assert all(torch.equal(*pair) for pair in zip(outputs, expected, strict=True))
    assert torch.Tensor.__getitem__ is getitem
    assert {*vars(torch.Tensor)} == own


def unhooked(monkeypatch):
    """An optimizer as a compiler leaves it that takes the caller of the hooks away."""
    weight = torch.nn.Parameter(torch.ones(2))
    weight.grad = torch.ones(2)
    optimizer = torch.optim.SGD([weight], 0.5)
    step = torch.optim.SGD.step
    step = getattr(step, "__wrapped__", step)
    monkeypatch.setattr(step, "hooked", True, raising=False)
    monkeypatch.setattr(torch.optim.SGD, "step", step)
    return optimizer


@pytest.mark.parametrize("scheduled", [False, True])
def test_steps_are_told_where_a_compiler_took_their_hooks_away(monkeypatch, scheduled):
    optimizer, told = unhooked(monkeypatch), []
    if scheduled:
        torch.optim.lr_scheduler.ConstantLR(optimizer, 1.0)
    before = {**vars(optimizer)}
    backend = registry.get("torch")
    with backend.watch_optimizer(optimizer, lambda: told.append("before"), lambda: told.append("after")):
        optimizer.step()
    optimizer.step()
    assert told == ["before", "after"]
    assert vars(optimizer).get("step") == before.get("step")
    assert optimizer.param_groups[0]["params"][0].tolist() == [0.0, 0.0]


def test_steps_of_all_optimizers_are_told_where_a_compiler_took_their_hooks_away(monkeypatch):
    optimizer, told = unhooked(monkeypatch), []
    step = torch.optim.SGD.step
    with registry.get("torch").watch_updates(told.append, told.append):
        optimizer.step()
    optimizer.step()
    assert told == [optimizer, optimizer]
    assert torch.optim.SGD.step is step


def test_scripts_are_looked_for_where_torch_would_load_them(monkeypatch, tmp_path):
    path = str(tmp_path / "x.pt")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.jit.script(torch.nn.Linear(2, 2)).save(path)
    monkeypatch.setattr(checkpoints, "refuses_scripts", lambda: False)
    monkeypatch.setattr(torch, "load", None)
    with pytest.raises(UnsafeFileError, match="is a TorchScript archive, which holds code"):
        registry.get("torch").load_checkpoint(path)


@pytest.mark.skipif(not capabilities.ALLOWS_GLOBALS, reason="there is nothing to allow")
def test_what_a_file_may_ask_for_is_as_it_was_afterwards():
    before = {*torch.serialization.get_safe_globals()}  # later versions keep them in no order
    with torch_older.safe_globals([Engine, (len, "operator.length")]):
        added = {*torch.serialization.get_safe_globals()} - before
        assert Engine in added
        (named,) = added - {Engine}
        assert (named.__module__, named.__name__, named("four")) == ("operator", "length", 4)
    assert {*torch.serialization.get_safe_globals()} == before
