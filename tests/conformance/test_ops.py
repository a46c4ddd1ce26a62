from __future__ import annotations

import sys

import numpy as np
import pytest

from parfocal.backends import vocabulary
from tests.conformance import toy
from tests.conformance.models import KITS, kit_for


class Log:
    def __init__(self):
        self.ops = []

    def __call__(self, op):
        self.ops.append(op)

    def names(self):
        return [op.name for op in self.ops]


def ops_of(kit, forward, *arguments, **children):
    model = kit.module(forward, **children)
    log = Log()
    with kit.backend.watch(model, on_op=log):
        model(*arguments)
    return log


def api(kit):
    """The functions of a framework that differ in name only."""
    return kit.torch if kit.name == "torch" else kit.paddle


FORWARDS = {
    "arithmetic": (
        lambda kit, x: ((1.0 - x) + x * 2.0 - x / 2.0 + 1.0 / x) ** 2.0,
        ["rsub", "mul", "add", "div", "sub", "rdiv", "add", "pow"],
    ),
    "comparison": (
        lambda kit, x: (x > 1.0) | ((x <= 2.0) & ~(x == 3.0)),
        ["greater_than", "less_equal", "equal", "logical_not", "logical_and", "logical_or"],
    ),
    "matrix": (lambda kit, x: x @ x.T, ["transpose", "matmul"]),
    "method matmul": (lambda kit, x: api(kit).matmul(x, x.t()), ["transpose", "matmul"]),
    "shape": (
        lambda kit, x: x.reshape([4, 1]).flatten().unsqueeze(0).squeeze(0)[1:],
        ["reshape", "reshape", "unsqueeze", "squeeze", "getitem"],
    ),
    "joining": (
        lambda kit, x: api(kit).stack([api(kit).concat([x, x], -1), api(kit).concat([x, x], -1)]),
        ["concat", "concat", "stack"],
    ),
    "parts": (lambda kit, x: x.chunk(2, 0)[0] + x.unbind(0)[1], ["split", "unbind", "add"]),
    "reductions": (
        lambda kit, x: x.sum() + x.mean() + x.max() + x.min() + x.prod(),
        ["sum", "mean", "add", "max", "add", "min", "add", "prod", "add"],
    ),
    "functions": (lambda kit, x: x.exp().log().sqrt().abs().tanh(), ["exp", "log", "sqrt", "abs", "tanh"]),
    "activations": (
        lambda kit, x: kit.functional.silu(kit.functional.gelu(kit.functional.relu(x))).sigmoid(),
        ["relu", "gelu", "silu", "sigmoid"],
    ),
    "softmax": (
        lambda kit, x: kit.functional.log_softmax(kit.functional.softmax(x, -1), -1),
        ["softmax", "log_softmax"],
    ),
    "norm": (lambda kit, x: kit.functional.layer_norm(x, [2]), ["layer_norm"]),
    "attention": (
        lambda kit, x: kit.functional.scaled_dot_product_attention(
            x.reshape([1, 1, 2, 2]), x.reshape([1, 1, 2, 2]), x.reshape([1, 1, 2, 2])
        ),
        ["reshape", "reshape", "reshape", "scaled_dot_product_attention"],
    ),
    "convolution": (
        lambda kit, x: kit.functional.conv2d(x.reshape([1, 1, 2, 2]), x.reshape([1, 1, 2, 2])),
        ["reshape", "reshape", "conv2d"],
    ),
    "resize": (
        lambda kit, x: kit.functional.interpolate(x.reshape([1, 1, 2, 2]), scale_factor=2.0),
        ["reshape", "interpolate"],
    ),
    "masks": (
        lambda kit, x: api(kit).where(x > 1.0, x, x).masked_fill(x > 1.0, 0.0).cumsum(0),
        ["greater_than", "where", "greater_than", "masked_fill", "cumsum"],
    ),
    "creation": (
        lambda kit, x: api(kit).zeros([2, 2]) + api(kit).ones_like(x) + api(kit).arange(2.0),
        ["zeros", "ones_like", "add", "arange", "add"],
    ),
    "dropout": (lambda kit, x: kit.functional.dropout(x, 0.5, training=False), ["dropout"]),
    "expand": (lambda kit, x: x.expand([3, 2, 2]), ["expand"]),
    "clamp": (lambda kit, x: x.clip(0.0, 1.0), ["clamp"]),
    "write": (lambda kit, x: write_part(x * 1.0), ["mul", "setitem", "add"]),
    "loss": (lambda kit, x: kit.functional.mse_loss(x, x * 2.0), ["mul", "mse_loss"]),
}


FEW = {"arithmetic", "matrix", "dropout", "write"}  # what the smallest framework has, too


def write_part(x):
    x[0] = 0.0
    return x + 1.0


@pytest.mark.parametrize("name", sorted(FORWARDS))
def test_the_same_code_gives_the_same_common_names(kit, name):
    if name not in FEW:
        kit.need("a library of functions")
    forward, expected = FORWARDS[name]
    x = kit.tensor([[1.0, 2.0], [3.0, 4.0]])
    log = ops_of(kit, lambda self, x: forward(kit, x), x)
    assert log.names() == expected
    assert set(expected) <= set(vocabulary.functional_ops())
    assert [op.order for op in log.ops] == list(range(len(expected)))
    assert {(op.module, op.call) for op in log.ops} == {("", 0)}
    assert all(op.native.startswith(kit.name) for op in log.ops)


def test_casts_have_one_name(kit):
    def forward(self, x):
        return kit.backend.cast(x, "float64")

    assert ops_of(kit, forward, kit.tensor([1.0])).names() == ["cast"]


def test_a_layer_of_the_framework_is_one_with_its_ops(kit):
    def forward(self, x):
        return self.linear(x) + self.inner(x)

    inner = kit.module(lambda self, x: x * 2.0)
    log = ops_of(kit, forward, kit.tensor([[1.0, 2.0]]), linear=kit.linear(2, 2), inner=inner)
    assert [(op.name, op.module) for op in log.ops] == [("mul", "inner"), ("add", "")]


def test_a_users_subclass_with_its_own_code_shows_its_ops(kit):
    linear = type(kit.linear(2, 2))
    own = type("Own", (linear,), {"forward": lambda self, x: linear.forward(self, x) * 2.0})(2, 2)
    silent = type("Silent", (linear,), {})(2, 2)
    log = ops_of(
        kit, lambda self, x: self.own(self.silent(x)), kit.tensor([[1.0, 2.0]]), own=own, silent=silent
    )
    inside = ["matmul", "add"] if kit.name == "toybox" else ["linear"]
    assert [(op.name, op.module) for op in log.ops] == [(name, "own") for name in (*inside, "mul")]


def test_nothing_is_reported_outside_a_call(kit, backend):
    model = kit.module(lambda self, x: x + 1.0)
    log = Log()
    with backend.watch(model, on_op=log):
        x = kit.tensor([1.0]) * 2.0
        model(x) * 3.0
    assert log.names() == ["add"]


def test_a_watchers_own_ops_are_not_the_models(kit, backend):
    log = Log()

    def busy(*anything):
        kit.tensor([1.0]) * 2.0

    def on_op(op):
        log(op)
        op.output * 2.0

    model = kit.module(lambda self, x: self.inner(x) + 1.0, inner=kit.module(lambda self, x: x - 1.0))
    with backend.watch(model, busy, busy, on_op):
        model(kit.tensor([1.0]))
    assert log.names() == ["sub", "add"]


def test_arguments_are_as_passed_and_outputs_as_returned(kit):
    log = ops_of(kit, lambda self, x: kit.functional.softmax(x, -1), kit.tensor([[1.0, 1.0]]))
    (op,) = log.ops
    assert kit.array(op.args[0]).tolist() == [[1.0, 1.0]]
    assert kit.array(op.output).tolist() == [[0.5, 0.5]]
    assert -1 in [*op.args[1:], *op.kwargs.values()]


def test_an_op_in_place_shows_the_values_it_was_given(kit):
    tens = kit.tensor([10.0, 10.0])

    def forward(self, x):
        y = x * 1.0
        kit.relu_(y)
        kit.add_(y, tens)
        y[0] = 5.0
        return y

    log = ops_of(kit, forward, kit.tensor([-1.0, 2.0]))
    shown = [(op.name, kit.array(op.args[0]).tolist()) for op in log.ops]
    assert shown == [
        ("mul", [-1.0, 2.0]),
        ("relu", [-1.0, 2.0]),
        ("add", [0.0, 2.0]),
        ("setitem", [10.0, 12.0]),
    ]
    assert kit.array(log.ops[-1].output).tolist() == [5.0, 12.0]


def test_torchs_inplace_argument_counts_as_in_place():
    kit = kit_for("torch")
    for forward in (
        lambda self, x: kit.functional.relu(x * 1.0, inplace=True),
        lambda self, x: kit.functional.relu(x * 1.0, True),
    ):
        log = ops_of(kit, forward, kit.tensor([-1.0]))
        assert kit.array(log.ops[-1].args[0]).tolist() == [-1.0]


def test_an_output_is_replaced(kit, backend):
    model = kit.module(lambda self, x: (x + 1.0) * 2.0)
    with backend.watch(model, on_op=lambda op: op.output * 10.0 if op.name == "add" else None):
        assert kit.array(model(kit.tensor([1.0]))).tolist() == [40.0]
    assert kit.array(model(kit.tensor([1.0]))).tolist() == [4.0]


def test_the_graph_is_left_alone(kit, backend):
    model = kit.module(lambda self, x: kit.functional.gelu(x * 2.0).sum())
    gradients = []
    for watched in (False, True):
        x = kit.tensor([1.0, -0.5], grad=True)
        if watched:
            with backend.watch(model, on_op=lambda op: None):
                loss = model(x)
        else:
            loss = model(x)
        backend.backward([loss], [None])
        gradients.append(backend.gradient(x).tolist())
    assert gradients[0] == gradients[1]


def test_gradients_of_ops_are_watched(kit, backend):
    seen = {}

    def on_op(op):
        backend.watch_gradient(
            op.output, lambda gradient: seen.update({op.name: kit.array(gradient).tolist()})
        )

    model = kit.module(lambda self, x: ((x * 2.0) + 1.0).sum())
    with backend.watch(model, on_op=on_op):
        loss = model(kit.tensor([1.0, 2.0], grad=True))
    backend.backward([loss], [None])
    assert seen == {"sum": 1.0, "add": [1.0, 1.0], "mul": [1.0, 1.0]}


def test_a_hook_on_a_gradient_is_reported_and_can_be_taken_away(kit, backend):
    def forward(self, x):
        y = x * 2.0
        y.register_hook(lambda gradient: gradient * 100.0)
        return y.sum()

    gradients = []
    for on_op in (None, lambda op: op.output.remove() if op.name == "register_hook" else None):
        x = kit.tensor([1.0, -0.5], grad=True)
        with backend.watch(model := kit.module(forward), on_op=on_op):
            loss = model(x)
        backend.backward([loss], [None])
        gradients.append(backend.gradient(x).tolist())
    assert gradients == [[200.0, 200.0], [2.0, 2.0]]


def test_what_is_computed_with_gradients_inside_no_grad_has_one(kit, backend):
    x = kit.tensor([1.0, -0.5], grad=True)
    with backend.no_grad():
        assert not backend.requires_grad(x * 2.0)
        with backend.with_grad():
            assert backend.requires_grad(x * 2.0)
        assert not backend.grad_enabled()


def test_two_watchers_see_the_same_ops(kit, backend):
    model = kit.module(lambda self, x: x + 1.0)
    first, second = Log(), Log()
    with backend.watch(model, on_op=first):
        with backend.watch(model, on_op=second):
            model(kit.tensor([1.0]))
        model(kit.tensor([1.0]))
    assert (first.names(), second.names()) == (["add", "add"], ["add"])


def test_an_op_that_raises_is_not_the_end(kit, backend):
    def forward(self, x):
        try:
            x @ kit.tensor(np.ones((7, 7)))
        except (RuntimeError, ValueError):
            return x + 1.0
        raise AssertionError("nothing was raised")

    assert ops_of(kit, forward, kit.tensor([[1.0, 2.0]])).names()[-1] == "add"


def surroundings():
    """Everything an interception could have touched, by identity."""
    paddle = kit_for("paddle").paddle
    torch = kit_for("torch").torch
    owners = {
        "Tensor": paddle.Tensor,
        "torch.Tensor": torch.Tensor,
        **{
            name: module
            for name, module in sys.modules.items()
            if name in ("paddle", "paddle._C_ops", "paddle.nn.functional", "paddle.linalg", "paddle.fft")
            or name in ("paddle.compat", "paddle.compat.nn.functional", "paddle.incubate.nn.functional")
            or name in ("torch", "torch.nn.functional")
        },
        "_C_ops": paddle._C_ops,
    }
    return {name: dict(vars(owner)) for name, owner in owners.items()}


def assert_same(before, after):
    for name, attributes in before.items():
        assert attributes.keys() == after[name].keys()
        changed = [key for key, value in attributes.items() if value is not after[name][key]]
        assert changed == [], name


@pytest.mark.parametrize("end", ["normal", "model raises", "callback raises", "nested"])
def test_everything_is_put_back_exactly(kit, backend, end):
    def forward(self, x):
        if end == "model raises":
            raise ValueError("model")
        return x + 1.0

    def on_op(op):
        if end == "callback raises":
            raise ValueError("callback")

    model = kit.module(forward)
    x = kit.tensor([1.0])
    before = surroundings()
    if end in ("normal", "nested"):
        with backend.watch(model, on_op=on_op):
            if end == "nested":
                with backend.watch(model, on_op=on_op):
                    model(x)
            model(x)
    else:
        with pytest.raises(ValueError, match=end.split()[0]), backend.watch(model, on_op=on_op):
            model(x)
    assert_same(before, surroundings())
    assert kit.array(x + x).tolist() == [2.0]


def test_the_check_of_exactness_can_fail():
    before = surroundings()
    paddle = kit_for("paddle").paddle
    original = paddle.Tensor.__dict__["__add__"]
    paddle.Tensor.__add__ = lambda self, other: original(self, other)
    try:
        with pytest.raises(AssertionError):
            assert_same(before, surroundings())
    finally:
        paddle.Tensor.__add__ = original
    assert_same(before, surroundings())


def test_every_kit_is_a_backend():
    from parfocal.backends import registry

    with toy.installed():
        assert set(KITS) == set(registry.names())
    assert "toybox" not in registry.names()
