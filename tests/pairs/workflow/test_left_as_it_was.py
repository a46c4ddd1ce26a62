"""After ``align`` both models are as they were, but for the port's weights; also when something raises."""

from __future__ import annotations

import random

import numpy as np
import pytest

import parfocal as pf
from tests.conformance.models import kit_for
from tests.pairs.workflow.tools import IMAGES, PADDLE, TORCH, lively

pytestmark = pytest.mark.filterwarnings("ignore:When training, we now always track:UserWarning")

HOOKS = {
    TORCH: ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks"),
    PADDLE: ("_forward_post_hooks", "_forward_pre_hooks"),
}


class Everything:
    """All that could be changed of a model and around it, as comparable values."""

    def __init__(self, framework, model):
        backend = kit_for(framework).backend
        state = backend.state(model)
        self.parameters = {
            e.path: backend.to_array(e.value).tobytes() for e in state if e.role == "parameter"
        }
        self.buffers = {e.path: backend.to_array(e.value).tobytes() for e in state if e.role == "buffer"}
        self.trainable = {e.path: e.trainable for e in state}
        self.identities = {e.path: id(e.value) for e in state}
        gradients = {e.path: backend.gradient(e.value) for e in state}
        self.gradients = {path: None if g is None else g.tobytes() for path, g in gradients.items()}
        self.flags = backend.training_flags(model)
        self.dropout = {path: getattr(module, "p", None) for path, module in backend.modules(model).items()}
        self.hooks = {
            (path, name): list(getattr(module, name))
            for path, module in backend.modules(model).items()
            for name in HOOKS[framework]
        }
        generator = backend.rng_state()
        self.generator = backend.random_values().tobytes()
        backend.set_rng_state(generator)
        self.python = random.getstate()
        self.numpy = str(np.random.get_state())

    def differences(self, other):
        return {name for name, value in vars(self).items() if value != vars(other)[name]}


def net(framework, seed, *, broken=False):
    kit = kit_for(framework)
    dropout = kit.nn.Dropout(0.5)
    children = {
        "conv": kit.conv(3, 4, 3),
        "norm": kit.batch_norm(4),
        "dropout": dropout,
        "head": kit.conv(4, 2, 2),
    }

    def forward(self, x):
        y = self.dropout(self.norm(self.conv(x)))
        if self.broken:
            raise ArithmeticError("on purpose")
        return self.head(y)

    model = lively(kit, kit.module(forward, "Net", **children), seed)
    model.broken = broken
    model.train()
    model.norm.eval()  # flags that no single call of train() or eval() gives
    kit.freeze(model.conv.bias)
    return model


def with_gradients(framework, model):
    kit = kit_for(framework)
    broken, model.broken = model.broken, False
    kit.backend.backward([model.head(kit.tensor(np.ones((1, 4, 3, 3), "float32"))).sum()], [None])
    model.broken = broken
    return model


def pair(**options):
    return [
        with_gradients(f, net(f, seed, **(options if f == PADDLE else {})))
        for seed, f in enumerate((TORCH, PADDLE))
    ]


@pytest.mark.parametrize("mode", ["eval", "train", "keep"])
@pytest.mark.parametrize(
    "options", [{}, {"backward": False}, {"tolerance": pf.Tolerance(atol=1e-3)}], ids=str
)
def test_everything_but_the_weights_of_the_port_is_as_before(mode, options):
    reference, port = pair()
    kit_for(TORCH).torch.manual_seed(3)
    kit_for(PADDLE).paddle.seed(3)
    before = Everything(TORCH, reference), Everything(PADDLE, port)
    pf.align(reference, port, IMAGES, mode=mode, **options)
    after = Everything(TORCH, reference), Everything(PADDLE, port)
    assert before[0].differences(after[0]) == set()
    assert before[1].differences(after[1]) <= {"parameters", "buffers"}
    plan = pf.transfer(reference, net(PADDLE, 9))
    expected = Everything(PADDLE, transferred(reference))
    assert after[1].parameters == expected.parameters
    assert after[1].buffers == expected.buffers
    assert plan.complete


def transferred(reference):
    port = net(PADDLE, 1)
    pf.transfer(reference, port)
    return port


def test_without_transfer_nothing_at_all_is_changed():
    reference, port = pair()
    before = Everything(TORCH, reference), Everything(PADDLE, port)
    pf.align(reference, port, IMAGES, mode="train", transfer=False)
    assert before[0].differences(Everything(TORCH, reference)) == set()
    assert before[1].differences(Everything(PADDLE, port)) == set()


@pytest.mark.parametrize("mode", ["eval", "train"])
def test_after_an_exception_in_the_port_too(mode):
    reference, port = pair(broken=True)
    before = Everything(TORCH, reference), Everything(PADDLE, port)
    with pytest.raises(pf.ParfocalError, match="on purpose"):
        pf.align(reference, port, IMAGES, mode=mode, transfer=False)
    assert before[0].differences(Everything(TORCH, reference)) == set()
    assert before[1].differences(Everything(PADDLE, port)) == set()


def test_after_an_exception_in_the_loss_too():
    reference, port = pair()
    before = Everything(TORCH, reference), Everything(PADDLE, port)

    def loss(output):
        raise ArithmeticError("on purpose")

    with pytest.raises(pf.ParfocalError, match="on purpose"):
        pf.align(reference, port, IMAGES, transfer=False, loss=loss)
    assert before[0].differences(Everything(TORCH, reference)) == set()
    assert before[1].differences(Everything(PADDLE, port)) == set()


def test_a_user_s_own_hooks_stay_and_are_called():
    reference, port = pair()
    called = []
    reference.conv.register_forward_hook(lambda *args: called.append("reference"))
    port.conv.register_forward_post_hook(lambda *args: called.append("port"))
    before = Everything(TORCH, reference), Everything(PADDLE, port)
    assert pf.align(reference, port, IMAGES).ok
    assert before[0].differences(Everything(TORCH, reference)) == set()
    assert before[1].hooks == Everything(PADDLE, port).hooks
    assert {"reference", "port"} == set(called)


@pytest.mark.parametrize("framework", [TORCH, PADDLE])
def test_a_buffer_that_the_model_replaces_has_its_old_values_again(framework):
    kit = kit_for(framework)

    def counting(self, x):
        self.count = self.count + 1.0
        return self.layer(x) * 1.0

    def build(framework_, seed):
        own = kit_for(framework_)
        model = own.module(counting, layer=own.linear(4, 3))
        own.add_buffer(model, "count", [5.0])
        return lively(own, model, seed)

    reference, port = build(framework, 0), build(framework, 1)
    x = np.random.default_rng(0).normal(size=(5, 4)).astype("float32")
    before = kit.array(reference.count)
    assert pf.align(reference, port, x).ok
    assert np.array_equal(kit.array(reference.count), before)
    assert np.array_equal(kit.array(port.count), before)


@pytest.mark.parametrize("framework", [TORCH, PADDLE])
def test_a_model_that_draws_random_numbers_leaves_the_generator_as_it_was(framework):
    def forward(self, x):
        kit_for(framework).random()
        return self.layer(x)

    kit = kit_for(framework)
    models = [lively(kit, kit.module(forward, layer=kit.linear(4, 3)), seed) for seed in range(2)]
    before = Everything(framework, models[0])
    assert pf.align(*models, np.random.default_rng(0).normal(size=(5, 4)).astype("float32")).ok
    assert before.differences(Everything(framework, models[0])) == set()


def test_the_checks_here_can_fail():
    model = net(TORCH, 0)
    before = Everything(TORCH, model)
    model.eval()
    model.dropout.p = 0.1
    model(kit_for(TORCH).tensor(IMAGES)).sum().backward()
    model.norm.running_mean += 1
    model.register_forward_hook(lambda *args: None)
    kit_for(TORCH).torch.rand(1)
    random.random()
    np.random.rand()
    assert before.differences(Everything(TORCH, model)) == {
        "flags", "dropout", "gradients", "buffers", "hooks", "generator", "python", "numpy",
    }  # fmt: skip
