"""Gradients against values worked out by hand, or by the same model without in-place ops."""

from __future__ import annotations

import numpy as np
import pytest

from parfocal.errors import InputError

X = [[1.0, -2.0, 3.0]]


class Gradients(dict):
    def of(self, backend, name, tensor):
        def callback(gradient):
            self.setdefault(name, []).append(backend.to_array(gradient).tolist())

        return backend.watch_gradient(tensor, callback)


def test_the_gradient_of_a_value_in_the_middle(kit, backend):
    seen = Gradients()
    x = kit.tensor(X, grad=True)
    middle = x * 2.0
    seen.of(backend, "middle", middle)
    seen.of(backend, "leaf", x)
    backend.backward([(middle * 3.0).sum()], [None])
    assert seen == {"middle": [[[3.0, 3.0, 3.0]]], "leaf": [[[6.0, 6.0, 6.0]]]}


def test_a_value_that_is_then_changed_in_place(kit, backend):
    seen = Gradients()
    x = kit.tensor(X, grad=True)
    y = x * 2.0
    seen.of(backend, "before", y)
    kit.relu_(y)
    seen.of(backend, "after", y)
    backend.backward([(y * 3.0).sum()], [None])
    assert seen == {"before": [[[3.0, 0.0, 3.0]]], "after": [[[3.0, 3.0, 3.0]]]}


def test_a_chain_of_changes_in_place(kit, backend):
    seen = Gradients()
    x = kit.tensor(X, grad=True)
    y = x * 2.0
    seen.of(backend, "first", y)
    kit.add_(y, kit.tensor([[1.0, 5.0, 1.0]]))
    seen.of(backend, "second", y)
    kit.relu_(y)
    seen.of(backend, "third", y)
    backend.backward([(y * y).sum()], [None])
    final = np.array([[3.0, 1.0, 7.0]])
    assert seen["third"] == [(2 * final).tolist()]
    assert seen["second"] == seen["first"] == [(2 * final).tolist()]


def test_in_place_activations_agree_with_the_model_without_them(kit, backend):
    def gradients(in_place):
        seen = Gradients()

        def forward(self, x):
            y = self.conv(x)
            seen.of(backend, "conv", y)
            y = kit.relu_(y) if in_place else kit.functional.relu(y)
            seen.of(backend, "relu", y)
            return self.last(y)

        model = kit.fill(kit.module(forward, conv=kit.conv(1, 2, 2), last=kit.conv(2, 1, 1)))
        backend.write(model.conv.bias, np.array([-1.5, 0.2], "float32"))
        image = np.random.default_rng(1).normal(size=(1, 1, 4, 4)).astype("float32")
        output = model(kit.tensor(image, grad=True))
        backend.backward([output], [kit.tensor(np.arange(9).reshape(1, 1, 3, 3))])
        return seen

    with_relu, without = gradients(True), gradients(False)
    assert with_relu == without
    assert 0.0 in np.array(without["conv"])
    assert without["conv"] != without["relu"]


def test_a_value_used_twice_gets_one_full_gradient(kit, backend):
    seen = Gradients()
    x = kit.tensor(X, grad=True)
    y = x * 2.0
    seen.of(backend, "y", y)
    seen.of(backend, "x", x)
    backend.backward([(y * 3.0 + y * y + x).sum()], [None])
    expected = 3.0 + 2.0 * 2.0 * np.array(X)
    assert seen == {"y": [expected.tolist()], "x": [(expected * 2.0 + 1.0).tolist()]}


def test_one_of_several_outputs_and_views(kit, backend):
    seen = Gradients()
    x = kit.tensor([[1.0, 2.0, 3.0, 4.0]], grad=True)
    left, right = (x * 1.0)[:, :2], (x * 1.0)[:, 2:]
    seen.of(backend, "left", left)
    seen.of(backend, "right", right)
    backend.backward([(left * 2.0).sum() + (right * right).sum()], [None])
    assert seen == {"left": [[[2.0, 2.0]]], "right": [[[6.0, 8.0]]]}


def test_every_pass_calls_back_again(kit, backend):
    seen = Gradients()
    x = kit.tensor(X, grad=True)
    y = x * 2.0
    seen.of(backend, "y", y)
    loss = (y * 3.0).sum()
    backend.backward([loss], [None], retain=True)
    backend.backward([loss], [None])
    assert seen["y"] == [[[3.0, 3.0, 3.0]]] * 2
    assert backend.gradient(x).tolist() == [[12.0, 12.0, 12.0]]


def test_a_gradient_is_replaced(kit, backend):
    x = kit.tensor(X, grad=True)
    y = x * 2.0
    backend.watch_gradient(y, lambda gradient: gradient * 10.0)
    backend.backward([(y * 3.0).sum()], [None])
    assert backend.gradient(x).tolist() == [[60.0, 60.0, 60.0]]
    leaf = kit.tensor(X, grad=True)
    backend.watch_gradient(leaf, lambda gradient: gradient * 10.0)
    backend.backward([(leaf * 3.0).sum()], [None])
    assert backend.gradient(leaf).tolist() == [[30.0, 30.0, 30.0]]


def test_the_remover_removes(kit, backend):
    seen = Gradients()
    x = kit.tensor(X, grad=True)
    y = x * 2.0
    remove = seen.of(backend, "y", y)
    remove()
    backend.backward([y.sum()], [None])
    assert seen == {}


def test_tensors_without_a_graph_have_no_gradient(kit, backend):
    def never(gradient):
        raise AssertionError

    assert backend.watch_gradient(kit.tensor(X), never) is None
    x = kit.tensor(X, grad=True)
    with backend.no_grad():
        assert backend.watch_gradient(x * 2.0, never) is None
    assert backend.watch_gradient((x * 2.0).detach(), never) is None


def test_a_callback_that_raises_is_heard(kit, backend):
    x = kit.tensor(X, grad=True)
    y = x * 2.0

    def fail(gradient):
        raise ValueError("from the callback")

    backend.watch_gradient(y, fail)
    with pytest.raises(Exception, match="from the callback"):
        backend.backward([y.sum()], [None])


def test_backward_from_several_outputs_adds_up(kit, backend):
    x = kit.tensor(X, grad=True)
    y = x * 2.0
    z = y * 3.0
    ones = kit.tensor(np.ones((1, 3)))
    backend.backward([y, z, y], [ones, ones, ones * 4.0])
    assert backend.gradient(x).tolist() == [[(5.0 + 3.0) * 2.0] * 3]


def test_backward_refuses_what_frameworks_answer_differently(kit, backend):
    x = kit.tensor(X, grad=True)
    with pytest.raises(InputError, match=r"output 0 has shape \(1, 3\): only a single number"):
        backend.backward([x * 2.0], [None])
    with pytest.raises(InputError, match=r"output 0 has shape \(1, 3\) and its gradient \(3,\)"):
        backend.backward([x * 2.0], [kit.tensor([1.0, 1.0, 1.0])])
    with pytest.raises(InputError, match="takes no part in autograd"):
        backend.backward([kit.tensor(1.0)], [None])
    with pytest.raises(InputError, match="1 outputs and 0 gradients"):
        backend.backward([x.sum()], [])


def test_clearing_makes_gradients_absent(kit, backend):
    model = kit.linear(3, 1)
    assert backend.gradient(model.weight) is None
    backend.backward([model(kit.tensor(X, grad=True)).sum()], [None])
    assert backend.gradient(model.weight) is not None
    backend.clear_gradients(model)
    assert backend.gradient(model.weight) is None
    assert backend.gradient(model.bias) is None


def test_a_gradient_that_is_read_outlives_being_cleared(kit, backend):
    model = kit.linear(64, 64)
    output = model(backend.from_array(np.ones((2, 64), "float32")))
    backend.backward([output], [backend.from_array(np.ones((2, 64), "float32"))])
    read = backend.gradient(model.weight, copy=False)
    expected = read.copy()
    backend.clear_gradients(model)
    others = [backend.from_array(np.full((64, 64), 7, "float32")) for _ in range(64)]  # on freed memory
    assert len(others) == 64
    np.testing.assert_array_equal(read, expected)


def test_gradients_kept_by_row_come_out_dense(kit, backend):
    kit.need("sparse tensors")
    table = kit.nn.Embedding(5, 2, sparse=True)
    rows = backend.from_array(np.array([1, 1, 3]))
    backend.backward([table(rows).sum()], [None])
    expected = np.zeros((5, 2), "float32")
    expected[1], expected[3] = 2.0, 1.0
    assert backend.gradient(table.weight).tolist() == expected.tolist()
