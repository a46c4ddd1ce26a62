"""Watching a run changes nothing of it, and shows each call's own tensors and gradients."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from parfocal.backends import registry
from parfocal.replay.ledger import Ledger
from parfocal.replay.observe import Observer
from parfocal.replay.witness import Outline
from tests.conformance.replayed import MODELS, ROWS, Run, bare, build, in_place_relu, observed

pytestmark = pytest.mark.filterwarnings("ignore:When training, we now always track:UserWarning")


@pytest.mark.parametrize("training", [False, True], ids=["eval", "train"])
@pytest.mark.parametrize("name", MODELS)
def test_outputs_gradients_and_buffers_are_bit_identical_to_an_unwatched_run(kit, name, training):
    unwatched = bare(kit, *build(kit, name, training=training))
    with Ledger() as ledger:
        _, watched = observed(kit, *build(kit, name, training=training), ledger)
    assert watched == unwatched
    assert unwatched.gradients


@pytest.mark.parametrize("name", MODELS)
def test_fingerprints_alone_change_nothing_either(kit, name):
    _, watched = observed(kit, *build(kit, name), None)
    assert watched == bare(kit, *build(kit, name))


@pytest.mark.parametrize("name", MODELS)
def test_an_outline_changes_nothing(kit, name):
    model, values = build(kit, name)
    run = Run(kit, model, values)
    with Ledger() as ledger:
        Outline(kit.backend, model, ledger, gradients=True).run((run.input,), {}, run.drive)
    assert run.outcome() == bare(kit, *build(kit, name))


def test_the_check_above_can_fail(kit):
    """A model that is not deterministic gives another outcome each time."""
    calls = []

    def forward(self, x):
        calls.append(1)
        return self.layer(x) * float(len(calls))

    model = kit.fill(kit.module(forward, layer=kit.linear(6, 6)))
    with Ledger() as ledger:
        assert observed(kit, model, ROWS, ledger)[1] != bare(kit, model, ROWS)


def test_hooks_gradients_and_generators_are_gone_afterwards_also_after_an_exception(kit, backend):
    def forward(self, x):
        self.layer(x)
        raise ZeroDivisionError

    model = kit.fill(kit.module(forward, layer=kit.linear(6, 6)))
    with Ledger() as ledger:
        run = Run(kit, model, ROWS)
        observer = Observer(backend, model, ledger, gradients=True)
        with pytest.raises(ZeroDivisionError):
            observer.run((run.input,), {}, run.drive)
        assert len(observer.trace.nodes) == 2
        model.layer(run.input)  # no hook notes this call any more
    assert len(observer.trace.nodes) == 2
    assert all(backend.gradient(entry.value) is None for entry in backend.state(model))


def stored(ledger, data):
    return ledger.get(data.stored)


def test_each_use_of_a_tensor_has_its_own_gradient(kit, backend):
    model, values = build(kit, "branching")
    with Ledger() as ledger:
        trace, _ = observed(kit, model, values, ledger)
        by_path = {node.path: node for node in trace.nodes}
        left, right, stem = by_path["left"], by_path["right"], by_path["stem"]
        seed = stored(ledger, by_path[""].outputs["0"].gradient)
        outputs = [stored(ledger, node.outputs["0"].data) for node in (left, right)]
        # d(l * r + y)/dl = r, /dr = l; each layer passes its own share on, the code adds the rest
        assert np.allclose(stored(ledger, left.outputs["0"].gradient), seed * outputs[1], rtol=1e-5)
        assert np.allclose(stored(ledger, right.outputs["0"].gradient), seed * outputs[0], rtol=1e-5)
        shares = [stored(ledger, node.inputs["0"].gradient) for node in (left, right)]
        total = stored(ledger, stem.outputs["0"].gradient)
        assert np.allclose(total, shares[0] + shares[1] + seed, rtol=1e-4, atol=1e-5)
        assert not np.allclose(shares[0], total, rtol=1e-2)


def test_each_call_of_a_shared_layer_has_its_own_gradient(kit):
    model, values = build(kit, "shared")
    with Ledger() as ledger:
        trace, _ = observed(kit, model, values, ledger)
        calls = [node for node in trace.nodes if node.path == "layer"]
        assert [node.occurrence for node in calls] == [0, 1, 2]
        weight = kit.array(model.layer.weight)
        matrix = weight if kit.name == "torch" else weight.T
        for node in calls:
            given = stored(ledger, node.outputs["0"].gradient)
            assert np.allclose(
                stored(ledger, node.inputs["0"].gradient), given @ matrix, rtol=1e-4, atol=1e-5
            )


def test_the_input_of_an_in_place_layer_is_kept_as_it_was_before(kit):
    model, values = build(kit, "pre_activation")
    with Ledger() as ledger:
        trace, _ = observed(kit, model, values, ledger)
        relu = next(node for node in trace.nodes if node.path == "relu")
        first = next(node for node in trace.nodes if node.path == "first")
        before, after = stored(ledger, relu.inputs["0"].data), stored(ledger, relu.outputs["0"].data)
        assert relu.in_place
        assert (before < 0).any()
        assert np.array_equal(after, np.maximum(before, 0))
        assert np.array_equal(stored(ledger, first.outputs["0"].data), before)
        # the gradient at the input is masked, that at the output is not
        gradient = stored(ledger, relu.inputs["0"].gradient)
        assert not gradient[before < 0].any()
        assert stored(ledger, relu.outputs["0"].gradient)[before < 0].any()


@pytest.mark.parametrize("name", MODELS)
def test_every_gradient_is_whole_or_hidden(kit, name):
    """What comes back to a tensor is what autograd says when the tensor is not changed at all."""
    model, values = build(kit, name)
    with Ledger() as ledger:
        trace, _ = observed(kit, model, values, ledger)
        for node in trace.nodes:
            for value in (*node.inputs.values(), *node.outputs.values()):
                assert not value.differentiable or value.gradient is not None or node.parent is None
                assert not (value.hidden and value.differentiable)
        for layer in (node for node in trace.nodes if node.kind == "Linear"):
            given, taken = layer.outputs["0"].gradient, layer.inputs["0"].gradient
            if given is not None and taken is not None:
                weight = kit.array(kit.backend.modules(model)[layer.path].weight)
                matrix = weight if kit.name == "torch" else weight.T
                expected = stored(ledger, given) @ matrix
                assert np.allclose(stored(ledger, taken), expected, rtol=1e-4, atol=1e-5)


HIDDEN = {"torch": {"nothing", "flat"}}  # elsewhere hooks stay with the value


def test_what_code_overwrites_in_torch_is_hidden_and_not_absent(kit):
    model, values = build(kit, "overwritten_by_code")
    with Ledger() as ledger:
        trace, _ = observed(kit, model, values, ledger)
    found = {node.path for node in trace.nodes if any(value.hidden for value in node.outputs.values())}
    assert found == HIDDEN.get(kit.name, set())


def derivative(name, x):
    sigmoid = 1 / (1 + np.exp(-x.astype("float64")))
    return x > 0 if name == "overwritten_alias" else sigmoid * (1 + x * (1 - sigmoid))


@pytest.mark.parametrize(
    ("name", "path"),
    [("overwritten_alias", "relu"), ("swish_in_place", "swish"), ("unannounced_swish", "swish")],
)
def test_the_gradient_at_what_a_layer_overwrites_is_that_of_what_it_was(kit, name, path):
    model, values = build(kit, name)
    with Ledger() as ledger:
        trace, _ = observed(kit, model, values, ledger)
        nodes = {node.path: node for node in trace.nodes}
        taken, before = nodes[path].inputs["0"], stored(ledger, nodes[path].inputs["0"].data)
        if (kit.name, name) == ("torch", "unannounced_swish"):
            assert taken.hidden
            assert nodes["nothing"].outputs["0"].hidden
            return
        expected = stored(ledger, nodes[path].outputs["0"].gradient) * derivative(name, before)
        for value in (taken, nodes["nothing"].inputs["0"], nodes["nothing"].outputs["0"]):
            assert np.allclose(stored(ledger, value.gradient), expected, rtol=1e-4, atol=1e-5)
        assert np.array_equal(stored(ledger, nodes["nothing"].outputs["0"].data), before)


def test_a_change_in_place_that_nobody_announced_is_noted(kit):
    model, values = build(kit, "unannounced")
    for ledger in (None, Ledger()):
        trace, _ = observed(kit, model, values, ledger)
        assert {node.path for node in trace.nodes if node.in_place} == {"inner"}


def test_a_gradient_that_code_really_cuts_is_absent(kit):
    """Beside an in-place layer: hidden is what cannot be seen, not what is not there."""

    def forward(self, x):
        y = self.relu(self.nothing(self.first(x)))
        return self.last(x) + self.second(y).detach()

    layers = {"first": kit.linear(6, 6), "second": kit.linear(6, 6), "last": kit.linear(6, 6)}
    nothing = kit.module(lambda self, x: x, "Nothing")
    model = kit.fill(kit.module(forward, nothing=nothing, relu=in_place_relu(kit), **layers))
    with Ledger() as ledger:
        trace, _ = observed(kit, model, ROWS, ledger)
    nodes = {node.path: node for node in trace.nodes}
    for value in (nodes["relu"].inputs["0"], nodes["second"].outputs["0"], nodes["first"].outputs["0"]):
        assert value.gradient is None
        assert value.differentiable
        assert not value.hidden


def test_equal_tensors_are_kept_once(kit):
    model, values = build(kit, "chain")
    with Ledger() as ledger:
        trace, _ = observed(kit, model, values, ledger)
        leaves = trace.nodes[1:]
        for producer, consumer in pairwise(leaves):
            if not producer.in_place:
                assert consumer.inputs["0"].data is producer.outputs["0"].data


def test_the_tree_of_calls(kit):
    model, values = build(kit, "several")
    trace, _ = observed(kit, model, values, None)
    assert [(n.path, n.parent, n.depth) for n in trace.nodes] == [
        ("", None, 0), ("gate", 0, 1), ("inner", 0, 1), ("inner.layer", 2, 2),
    ]  # fmt: skip
    assert [n.finished for n in trace.nodes] == [4, 2, 4, 4]
    assert [n.is_leaf for n in trace.nodes] == [False, True, False, True]
    assert [n.path for n in trace.subtree(2)] == ["inner", "inner.layer"]
    assert set(trace.nodes[2].inputs) == {"0", "scale"}
    assert set(trace.nodes[2].outputs) == {"scaled", "pair.0", "pair.1"}
    assert set(trace.outputs) == {"0", "1.0"}
    assert trace.nodes[1].kind == "Linear"
    assert trace.nodes[1].framework_layer
    assert not trace.nodes[2].framework_layer
    assert all(node.file.endswith("replayed.py") for node in trace.nodes[1:])


def test_without_gradients_none_is_kept(kit, backend):
    model, values = build(kit, "chain")
    with Ledger() as ledger:
        run = Run(kit, model, values)
        observer = Observer(backend, model, ledger, gradients=False)
        trace = observer.run((run.input,), {}, lambda output: None)
    assert observer.parameter_gradients == {}
    assert not any(value.differentiable for node in trace.nodes for value in node.inputs.values())


@pytest.mark.parametrize("in_place", [False, True])
def test_a_gradient_that_is_changed_after_it_was_seen_is_not_kept(in_place):
    torch = pytest.importorskip("torch")

    class Halved(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, gradient):
            return gradient.mul_(0.5) if in_place else gradient * 0.5

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.last = torch.nn.Linear(3, 3), torch.nn.Tanh()

        def forward(self, x):
            return self.last(Halved.apply(self.first(x)))

    backend = registry.get("torch")
    x = torch.ones(2, 3)

    def drive(output):
        backend.backward([output], [torch.ones(2, 3)])

    with Ledger() as ledger:
        trace = Observer(backend, Net(), ledger, gradients=True).run((x,), {}, drive)
        (given,) = trace.nodes[2].inputs.values()
        (made,) = trace.nodes[1].outputs.values()
        assert made.gradient is not None
        if in_place:
            assert (given.gradient, given.differentiable) == (None, False)
        else:
            ratio = ledger.get(made.gradient.stored) / ledger.get(given.gradient.stored)
            assert np.allclose(ratio, 0.5)
