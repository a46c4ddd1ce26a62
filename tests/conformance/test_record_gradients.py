"""Recorded gradients against independent oracles: worked out by hand, or the plain model's own."""

from __future__ import annotations

import contextlib

import numpy as np
import pytest

from parfocal.capture.recording import record
from tests.conformance.recorded import EXAMPLES, total, values

pytestmark = pytest.mark.filterwarnings("ignore:When training, we now always track:UserWarning")  # paddle

X = np.array([[1.0, -2.0, 3.0]], "float32")


def scale(kit, factor):
    """A module that multiplies: its gradients are easily worked out."""
    return kit.module(lambda self, x: x * factor, "Scale")


def gradients(run, path, side, slot="0", backward=0, occurrence=0, step=0):
    """The gradients recorded at one tensor, as lists; None where it is absent."""
    (order,) = {
        call.order
        for call in run.calls()
        if (call.path, call.occurrence, call.step) == (path, occurrence, step)
    }
    return [
        None if found.value is None else run.read(found.value).tolist()
        for found in run.gradients()
        if (found.call, found.side, found.slot, found.backward) == (order, side, slot, backward)
    ]


def test_a_chain(kit):
    model = kit.sequential(scale(kit, 2.0), scale(kit, 5.0))
    with record(model) as recorder:
        (model(kit.tensor(X, grad=True)) * 3.0).sum().backward()
    run = recorder.run
    assert gradients(run, "1", "output") == gradients(run, "", "output") == [[[3.0, 3.0, 3.0]]]
    assert gradients(run, "1", "input") == gradients(run, "0", "output") == [[[15.0, 15.0, 15.0]]]
    assert gradients(run, "0", "input") == gradients(run, "", "input") == [[[30.0, 30.0, 30.0]]]


def test_a_layer_that_works_in_place(kit):
    relu = kit.module(lambda self, x: kit.relu_(x), "InPlace")
    model = kit.sequential(scale(kit, 2.0), relu, scale(kit, 5.0))
    with record(model) as recorder:
        model(kit.tensor(X, grad=True)).sum().backward()
    run = recorder.run
    assert gradients(run, "1", "output") == gradients(run, "2", "input") == [[[5.0, 5.0, 5.0]]]
    assert gradients(run, "0", "output") == gradients(run, "1", "input") == [[[5.0, 0.0, 5.0]]]
    assert gradients(run, "0", "input") == [[[10.0, 0.0, 10.0]]]


def test_a_view_and_its_base(kit):
    view = kit.module(lambda self, x: x.reshape([3]), "View")
    model = kit.sequential(scale(kit, 2.0), view, scale(kit, 5.0))
    with record(model) as recorder:
        out = model(kit.tensor(X, grad=True))
        (out * kit.tensor([1.0, 2.0, 3.0])).sum().backward()
    run = recorder.run
    assert gradients(run, "1", "output") == [[5.0, 10.0, 15.0]]
    assert gradients(run, "1", "input") == gradients(run, "0", "output") == [[[5.0, 10.0, 15.0]]]


def test_a_tensor_that_is_used_twice_has_the_sum(kit):
    def forward(self, x):
        y = self.stem(x)
        return self.left(y) + self.right(y) + y

    model = kit.module(forward, stem=scale(kit, 1.0), left=scale(kit, 2.0), right=scale(kit, 3.0))
    with record(model) as recorder:
        model(kit.tensor(X, grad=True)).sum().backward()
    run = recorder.run
    whole = [[[6.0, 6.0, 6.0]]]
    assert gradients(run, "stem", "output") == whole
    assert gradients(run, "left", "input") == gradients(run, "right", "input") == whole
    assert gradients(run, "left", "output") == [[[1.0, 1.0, 1.0]]]


def test_a_detached_branch_is_recorded_as_absent(kit):
    def forward(self, x):
        return self.kept(x), self.cut(x)

    model = kit.module(forward, kept=kit.linear(3, 1), cut=kit.linear(3, 1))
    with record(model) as recorder:
        kept, _ = model(kit.tensor(X))
        kept.sum().backward()
    run = recorder.run
    assert gradients(run, "kept", "output") == [[[1.0]]]
    assert gradients(run, "cut", "output") == [None]
    assert gradients(run, "", "output", "1") == [None]
    parameters = {state.path: state.value for state in run.state() if state.role == "gradient"}
    assert [path for path, value in parameters.items() if value is None] == ["cut.weight", "cut.bias"]


def test_without_a_backward_pass_nothing_is_absent(kit):
    model = kit.linear(3, 1)
    with record(model) as recorder:
        model(kit.tensor(X))
        recorder.step()
    assert recorder.run.gradients() == []


def test_several_backward_passes(kit):
    model = kit.sequential(scale(kit, 2.0), scale(kit, 5.0))
    with record(model) as recorder:
        out = model(kit.tensor(X, grad=True))
        kit.backend.backward([out.sum()], [None], retain=True)
        kit.backend.backward([(out * 3.0).sum()], [None])
    run = recorder.run
    assert gradients(run, "1", "output", backward=0) == [[[1.0, 1.0, 1.0]]]
    assert gradients(run, "1", "output", backward=1) == [[[3.0, 3.0, 3.0]]]
    assert gradients(run, "0", "input", backward=1) == [[[30.0, 30.0, 30.0]]]
    assert run.steps()[0].loss == pytest.approx(20.0 + 60.0)


def test_accumulation_over_micro_batches(kit):
    model = kit.linear(3, 1)
    with record(model) as recorder:
        for factor in (1.0, 2.0):
            (model(kit.tensor(X)) * factor).sum().backward()
        recorder.step()
    run = recorder.run
    assert gradients(run, "", "output", backward=0) == [[[1.0]]]
    assert gradients(run, "", "output", backward=1, occurrence=1) == [[[2.0]]]
    state = [each for each in run.state() if each.role == "gradient"]
    bias = [run.read(each.value).tolist() for each in state if each.path == "bias"]
    assert bias == [[1.0], [3.0]]  # after each backward pass, as accumulated
    weight = [run.read(each.value).reshape(-1) for each in state if each.path == "weight"]
    assert np.allclose(weight, [X[0], 3 * X[0]])
    (step,) = run.steps()
    assert step.gradient_norm == pytest.approx(np.sqrt(9 * (X**2).sum() + 9), rel=1e-6)


def test_a_leaf_that_is_used_in_every_step(kit):
    model = scale(kit, 2.0)
    x = kit.tensor(X, grad=True)
    with record(model) as recorder:
        for factor in (1.0, 10.0):
            (model(x) * factor).sum().backward()
    run = recorder.run
    first, second = [[[2.0, 2.0, 2.0]]], [[[20.0, 20.0, 20.0]]]
    assert gradients(run, "", "input", backward=0, occurrence=0) == first
    assert gradients(run, "", "input", backward=1, occurrence=1) == second
    assert gradients(run, "", "input", backward=1, occurrence=0) == []


def test_no_hook_stays_on_the_users_tensors(kit):
    model = scale(kit, 2.0)
    x = kit.tensor(X, grad=True)
    with record(model) as recorder:
        out = model(x)
    before = list(recorder.run.records())
    out.sum().backward()  # after the recording: its hooks are on this graph, and do nothing
    assert list(recorder.run.records()) == before
    assert kit.backend.gradient(x).tolist() == [[2.0, 2.0, 2.0]]


def test_no_gradients_inside_no_grad(kit):
    model = kit.sequential(kit.linear(3, 3), kit.nn.ReLU())
    x = kit.tensor(X, grad=True)
    with record(model) as recorder:
        with kit.backend.no_grad():
            model(x)
        model(x).sum().backward()
    orders = {call.order: call.occurrence for call in recorder.run.calls()}
    assert {orders[found.call] for found in recorder.run.gradients()} == {1}


def test_gradients_of_gradients(kit):
    model = scale(kit, 3.0)
    x = kit.tensor(X, grad=True)
    with record(model) as recorder:
        y = (model(x) ** 2).sum()
        kit.need("gradients of gradients")
        if kit.name == "torch":
            (first,) = kit.torch.autograd.grad(y, [x], create_graph=True)
        else:
            (first,) = kit.paddle.grad([y], [x], create_graph=True)
        (first**2).sum().backward()
    run = recorder.run
    assert gradients(run, "", "output", backward=0) == [(2 * 3 * X).tolist()]
    # d/dx sum((18 x)^2) = 648 x, of which the model's output saw a third
    assert kit.backend.gradient(x) == pytest.approx(648 * X)


def test_gradients_can_be_left_out(kit):
    model = kit.linear(3, 1)
    with record(model, grads=False) as recorder:
        model(kit.tensor(X)).sum().backward()
    run = recorder.run
    assert run.gradients() == []
    assert {each.role for each in run.state()} == {"parameter"}
    assert run.steps()[0].loss is not None


@pytest.mark.parametrize("name", EXAMPLES)
def test_every_example_against_its_own_retained_gradients(kit, name):
    """The oracle keeps the tensors themselves and asks the framework for their gradients."""
    backend = kit.backend
    model, inputs = EXAMPLES[name](kit)
    kit.fill(model)
    model.train()
    backend.seed(3)
    with record(model) as recorder:
        total(kit, model(*[kit.tensor(value, grad=True) for value in inputs])).backward()
    run = recorder.run
    recorded = {
        (call.path, call.occurrence, found.side, found.slot): run.read(found.value)
        for call in run.calls()
        for found in run.gradients()
        if found.call == call.order and found.value is not None
    }
    backend.seed(3)
    expected, kept = {}, []
    backend.clear_gradients(model)
    counts = {}

    def on_exit(call, output):
        occurrence = counts[call.path] = counts.get(call.path, -1) + 1
        if backend.is_tensor(output) and not in_place(model, call):
            fresh = output * 1.0  # a tensor of its own, which nothing changes in place
            expected[call.path, occurrence, "output", "0"] = fresh
            kept.append(fresh)
            keep_gradient(kit, fresh)
            return fresh
        return None

    with backend.watch(model, on_exit=on_exit):
        total(kit, model(*[kit.tensor(value, grad=True) for value in inputs])).backward()
    checked = 0
    for key, tensor in expected.items():
        gradient = backend.gradient(tensor)
        if gradient is not None and not changed_in_place(name, key):
            assert recorded[key] == pytest.approx(gradient, rel=1e-5, abs=1e-6), key
            checked += 1
    assert checked >= {"residual_cnn": 8, "transformer": 8, "lstm": 1, "multi_output": 3, "dropouts": 5}[name]


def in_place(model, call):
    return call.path.endswith("relu")


def changed_in_place(name, key):
    """The copy that the oracle hands on is changed in place there: its gradient is another's."""
    return name == "residual_cnn" and key[0].rpartition(".")[2] in ("norm1", "norm2")


def keep_gradient(kit, tensor):
    kit.need("retained gradients")
    tensor.retain_grad() if kit.name == "torch" else tensor.retain_grads()


@contextlib.contextmanager
def autocast(kit):
    kit.need("autocast")
    if kit.name == "torch":
        with kit.torch.autocast("cpu", dtype=kit.torch.bfloat16):
            yield
    else:  # on the CPU paddle only says that it does nothing
        with pytest.warns(UserWarning, match="makes no effect"), kit.paddle.amp.auto_cast(dtype="bfloat16"):
            yield


def test_autocast_is_recorded_as_it_is(kit):
    model = kit.sequential(kit.linear(4, 8), kit.nn.ReLU(), kit.linear(8, 2))
    kit.fill(model)
    with record(model) as recorder:
        with autocast(kit):
            out = model(kit.tensor(values(3, 4)))
        out.astype("float32").sum().backward() if kit.name == "paddle" else out.float().sum().backward()
    run = recorder.run
    first = next(call for call in run.calls() if call.path == "0")
    assert first.inputs.leaves["0"].dtype == "float32"
    low = first.outputs.leaves["0"].dtype
    assert low == kit.backend.dtype(out) == {"torch": "bfloat16", "paddle": "float32"}[kit.name]
    dtypes = {found.value.dtype for found in run.gradients() if found.value is not None}
    assert low in dtypes
    parameters = [state for state in run.state() if state.role == "gradient"]
    assert {state.value.dtype for state in parameters} == {"float32"}
    for state, entry in zip(parameters, kit.backend.state(model), strict=True):
        assert run.read(state.value) == pytest.approx(kit.backend.gradient(entry.value))


def test_mixed_precision_written_by_hand(kit):
    def forward(self, x):
        return kit.backend.cast(self.second(kit.backend.cast(self.first(x), "float64")), "float32")

    model = kit.module(forward, first=scale(kit, 2.0), second=scale(kit, 5.0))
    with record(model) as recorder:
        model(kit.tensor(X, grad=True)).sum().backward()
    run = recorder.run
    orders = {call.order: call.path for call in run.calls()}
    dtypes = {(orders[found.call], found.side): found.value.dtype for found in run.gradients()}
    assert dtypes["first", "output"] == dtypes["", "output"] == "float32"
    assert dtypes["second", "input"] == dtypes["second", "output"] == "float64"


def checkpointed(kit, layer, x, reentrant):
    kit.need("recomputation")
    if kit.name == "torch":
        return kit.torch.utils.checkpoint.checkpoint(layer, x, use_reentrant=reentrant)
    return kit.paddle.distributed.fleet.utils.recompute(layer, x, use_reentrant=reentrant)


@pytest.mark.parametrize("reentrant", [True, False])
def test_recomputation_is_no_new_call_and_its_gradients_are_there(kit, reentrant):
    """Against the same model without recomputation."""

    def forward(self, x):
        x = self.stem(x)
        return checkpointed(kit, self.block, x, reentrant) if self.saves else self.block(x)

    block = kit.sequential(kit.linear(4, 4), kit.nn.ReLU(), kit.linear(4, 4))
    model = kit.fill(kit.module(forward, stem=kit.linear(4, 4), block=block))

    def outcome(saves):
        model.saves = saves
        kit.backend.clear_gradients(model)
        with record(model) as recorder:
            model(kit.tensor(values(3, 4))).sum().backward()
        run = recorder.run
        paths = {call.order: call.path for call in run.calls()}
        found = {
            (paths[item.call], item.side, item.slot): run.read(item.value).tolist()
            for item in run.gradients()
            if item.value is not None
        }
        return sorted(paths.values()), found

    assert outcome(True) == outcome(False)


def test_a_backward_pass_that_raises_does_not_stop_the_recording(kit):
    model = kit.linear(3, 1)
    with record(model) as recorder:
        out = model(kit.tensor(X)).sum()
        out.backward()
        with pytest.raises((RuntimeError, SystemError)):  # the graph is gone
            out.backward()
        model(kit.tensor(X)).sum().backward()
    assert [call.occurrence for call in recorder.run.calls()] == [0, 1]


def test_what_is_overwritten_out_of_sight_is_hidden_and_not_absent(kit):
    """PyTorch takes the gradient past a view that is changed in place; paddle does not."""
    view = kit.module(lambda self, x: x.reshape([3]), "View")
    relu = kit.module(lambda self, x: kit.relu_(x), "InPlace")
    model = kit.sequential(scale(kit, 2.0), view, relu, scale(kit, 5.0))
    with record(model) as recorder:
        model(kit.tensor(X, grad=True)).sum().backward()
    run = recorder.run
    hidden = {(each.call, each.side) for each in run.gradients() if each.hidden}
    orders = {call.path: call.order for call in run.calls()}
    expected = {(orders["1"], "output"), (orders["2"], "input")} if kit.name == "torch" else set()
    assert hidden == expected
    assert gradients(run, "2", "input") == ([None] if kit.name == "torch" else [[5.0, 0.0, 5.0]])
    assert gradients(run, "0", "output") == [[[5.0, 0.0, 5.0]]]
    assert gradients(run, "3", "input") == [[5.0, 5.0, 5.0]]


def test_what_has_no_gradient_is_absent_and_not_hidden(kit):
    relu = kit.module(lambda self, x: kit.relu_(x), "InPlace")
    model = kit.module(
        lambda self, x: self.last(x) + self.relu(self.first(x)).detach(),
        *("Cut",),
        first=scale(kit, 2.0),
        relu=relu,
        last=scale(kit, 5.0),
    )
    with record(model) as recorder:
        model(kit.tensor(X, grad=True)).sum().backward()
    run = recorder.run
    assert gradients(run, "first", "output") == gradients(run, "relu", "input") == [None]
    assert not any(each.hidden for each in run.gradients())
