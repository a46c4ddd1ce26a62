"""Which calls a recording has: order, nesting, sharing, values, settings, sites."""

from __future__ import annotations

import inspect
import sys

import numpy as np
import pytest

from parfocal.capture.nested_values import rebuild
from parfocal.capture.recording import record
from parfocal.errors import InputError
from tests.conformance.recorded import EXAMPLES, values

HERE = __file__
pytestmark = pytest.mark.filterwarnings("ignore:When training, we now always track:UserWarning")  # paddle


def ordered(run):
    return sorted(run.calls(), key=lambda call: call.order)


def recorded(kit, model, *inputs, **options):
    with record(model, **options) as recorder:
        model(*[kit.tensor(value) for value in inputs])
    return recorder.run


def test_order_nesting_and_occurrence_of_shared_modules(kit):
    model, inputs = EXAMPLES["multi_output"](kit)
    calls = ordered(recorded(kit, model, *inputs))
    assert [(call.order, call.parent, call.depth, call.path, call.occurrence) for call in calls] == [
        (0, None, 0, "", 0),
        (1, 0, 1, "fork", 0),
        (2, 1, 2, "fork.shared", 0),
        (3, 1, 2, "fork.shared", 1),
        (4, 1, 2, "fork.shared", 2),
    ]
    assert [call.kind for call in calls] == ["Forked", "Fork", "Linear", "Linear", "Linear"]
    assert {call.class_name for call in calls[2:]} == {type(kit.linear(1, 1)).__name__}


def test_modules_in_lists_and_a_loop_around_the_model(kit):
    layers = kit.nn.ModuleList if kit.name == "torch" else kit.nn.LayerList

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x

    model = kit.module(forward, layers=layers([kit.linear(2, 2), kit.linear(2, 2)]))
    with record(model) as recorder:
        for _ in range(2):
            model(kit.tensor(values(1, 2)))
    calls = ordered(recorder.run)
    assert [(call.path, call.occurrence) for call in calls] == [
        ("", 0),
        ("layers.0", 0),
        ("layers.1", 0),
        ("", 1),
        ("layers.0", 1),
        ("layers.1", 1),
    ]


def test_nested_values_and_keywords(kit):
    model, inputs = EXAMPLES["multi_output"](kit)
    run = recorded(kit, model, *inputs)
    fork = ordered(run)[1]
    assert fork.inputs.shape == [
        "tuple",
        [
            ["tuple", ["0"]],
            ["dict", {"scale": "scale", "extra": ["dict", {"more": "extra.more", "none": "extra.none"}]}],
        ],
    ]
    assert fork.inputs.leaves["scale"] == 2.0
    assert fork.inputs.leaves["extra.none"] is None
    assert np.array_equal(run.read(fork.inputs.leaves["extra.more"]), inputs[0] + 1)
    args, kwargs = rebuild(fork.inputs.shape, fork.inputs.leaves)
    assert (len(args), list(kwargs)) == (1, ["scale", "extra"])
    assert fork.outputs.shape[:2] == ["object", "Output"]
    assert list(fork.outputs.leaves) == ["wide", "pair.0", "pair.1", "nothing"]


def test_values_are_those_the_call_got_and_gave(kit):
    model = kit.sequential(kit.linear(3, 2), kit.nn.ReLU())
    kit.fill(model)
    x = values(4, 3)
    run = recorded(kit, model, x)
    root, linear, relu = ordered(run)
    weight, bias = (kit.array(entry.value) for entry in kit.backend.state(model))
    weight = weight.T if kit.name == "torch" else weight
    expected = x @ weight + bias
    assert np.array_equal(run.read(linear.inputs.leaves["0"]), x)
    assert np.allclose(run.read(linear.outputs.leaves["0"]), expected, atol=1e-6)
    assert np.array_equal(
        run.read(relu.outputs.leaves["0"]), np.maximum(run.read(linear.outputs.leaves["0"]), 0)
    )
    # The same tensor is written once: between two layers, and out of the container.
    assert linear.outputs.leaves["0"].ref == relu.inputs.leaves["0"].ref
    assert relu.outputs.leaves["0"].ref == root.outputs.leaves["0"].ref
    assert linear.outputs.leaves["0"].ref != relu.outputs.leaves["0"].ref


def test_a_change_in_place_is_a_new_value(kit):
    model = kit.module(lambda self, x: kit.relu_(self.linear(x)), linear=kit.linear(3, 3))
    kit.fill(model)
    outer = kit.module(lambda self, x: kit.add_(self.inner(x), kit.tensor([1.0, 1.0, 1.0])), inner=model)
    run = recorded(kit, outer, values(2, 3))
    outer_call, inner_call, linear = ordered(run)
    before = run.read(linear.outputs.leaves["0"])
    assert (before < 0).any()
    assert np.array_equal(run.read(inner_call.outputs.leaves["0"]), np.maximum(before, 0))
    assert np.array_equal(run.read(outer_call.outputs.leaves["0"]), np.maximum(before, 0) + 1)


def test_a_change_behind_the_version_counter_is_seen(kit):
    def forward(self, x):
        x = self.first(x)
        kit.backend.write(x, np.full((2, 3), 7, "float32"))  # as x.data or x.numpy() can
        return self.second(x)

    model = kit.module(forward, first=kit.linear(3, 3), second=kit.linear(3, 3))
    run = recorded(kit, model, values(2, 3), grads=False)
    _, first, second = ordered(run)
    assert not (run.read(first.outputs.leaves["0"]) == 7).any()
    assert (run.read(second.inputs.leaves["0"]) == 7).all()


def test_settings_training_and_kind(kit):
    model = kit.sequential(kit.conv(3, 4, 3), kit.batch_norm(4))
    with kit.backend.mode(model, "eval"):
        _, conv, norm = ordered(recorded(kit, model, values(1, 3, 5, 5)))
    assert (conv.kind, conv.settings["kernel_size"]) == ("Conv2d", (3, 3))
    assert norm.settings["epsilon"] == pytest.approx(1e-5)
    assert [conv.training, norm.training] == [False, False]


def test_inputs_that_are_no_tensors(kit):
    class Opaque:
        pass

    def forward(self, x, *rest):
        return x

    model = kit.module(forward)
    options = (np.arange(3), np.float32(0.5), "text", Opaque(), Opaque, len, slice(1, 2), 2**70, 1 + 2j)
    with record(model) as recorder:
        model(kit.tensor([1.0]), *options)
    run = recorder.run
    (call,) = run.calls()
    leaves = call.inputs.leaves
    assert np.array_equal(run.read(leaves["1"]), np.arange(3))
    assert (leaves["2"], leaves["3"], leaves["8"]) == (0.5, "text", 2**70)
    name = "test_inputs_that_are_no_tensors.<locals>.Opaque"
    assert leaves["4"] == {"repr": f"<{Opaque.__module__}.{name}>"}
    assert leaves["5"] == {"repr": f"<{name}>"}
    assert (leaves["6"], leaves["7"]) == ({"repr": "<len>"}, {"repr": "slice(1, 2, None)"})
    assert leaves["9"] == {"repr": "(1+2j)"}


def test_every_call_site_is_the_users_line(kit):
    def forward(self, x):
        x = self.first(x)
        return self.block(x)

    block = kit.sequential(kit.linear(2, 2), kit.nn.ReLU())
    model = kit.module(forward, first=kit.linear(2, 2), block=block)
    with record(model) as recorder:
        here = sys._getframe().f_lineno + 1
        model(kit.tensor([[1.0, 2.0]]))
    start = inspect.getsourcelines(forward)[1]
    sites = [(call.path, call.file, call.line) for call in ordered(recorder.run)]
    assert sites == [
        ("", HERE, here),
        ("first", HERE, start + 1),
        ("block", HERE, start + 2),
        ("block.0", HERE, start + 2),  # called by the framework's own container
        ("block.1", HERE, start + 2),
    ]


def test_ops_are_calls_of_the_module_whose_code_makes_them(kit):
    def forward(self, x):
        x = self.linear(x)
        y = x * 2.0
        return y + x

    model = kit.module(forward, linear=kit.linear(2, 2))
    run = recorded(kit, model, values(1, 2), level="ops")
    start = inspect.getsourcelines(forward)[1]
    seen = [(call.order, call.parent, call.depth, call.path, call.op, call.line) for call in ordered(run)[1:]]
    assert seen == [
        (1, 0, 1, "linear", None, start + 1),
        (2, 0, 1, "", "mul", start + 2),
        (3, 0, 1, "", "add", start + 3),
    ]
    _, linear, mul, add = ordered(run)
    assert add.inputs.leaves["0"].ref == mul.outputs.leaves["0"].ref
    assert np.array_equal(run.read(mul.outputs.leaves["0"]), 2 * run.read(linear.outputs.leaves["0"]))


def test_ops_have_gradients_too(kit):
    model = kit.module(lambda self, x: (self.linear(x) * 2.0) + 1.0, linear=kit.linear(2, 2))
    with record(model, level="ops") as recorder:
        model(kit.tensor(values(1, 2))).sum().backward()
    run = recorder.run
    ops = {call.op: call.order for call in run.calls() if call.op}
    found = {(g.call, g.side): run.read(g.value).tolist() for g in run.gradients() if g.value}
    assert found[ops["mul"], "output"] == [[1.0, 1.0]]
    assert found[ops["add"], "output"] == [[1.0, 1.0]]
    linear = next(call.order for call in run.calls() if call.path == "linear")
    assert found[linear, "output"] == [[2.0, 2.0]]


def test_filters(kit):
    model, inputs = EXAMPLES["residual_cnn"](kit)
    run = recorded(kit, model, *inputs, include=("first", "head"), exclude=("*.norm?",))
    assert {call.path for call in run.calls()} == {
        *("first", "first.conv1", "first.conv2", "first.relu", "head")
    }
    calls = {call.path: call for call in run.calls()}
    assert calls["head"].parent is None  # what is around it is not recorded
    assert calls["first.conv1"].parent == calls["first"].order
    kinds = recorded(kit, model, *inputs, kinds={"Conv2d"})
    assert {call.kind for call in kinds.calls()} == {"Conv2d"}
    assert {call.parent for call in kinds.calls()} == {None}


def test_tensors_past_the_size_limit_keep_no_bytes(kit):
    model = kit.sequential(kit.linear(4, 100), kit.linear(100, 2))
    run = recorded(kit, model, values(1, 4), max_bytes=100)
    leaves = [leaf for call in run.calls() for leaf in (call.inputs.leaves["0"], call.outputs.leaves["0"])]
    assert {leaf.shape: leaf.ref is not None for leaf in leaves} == {
        (1, 4): True,
        (1, 100): False,
        (1, 2): True,
    }


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"level": "layers"}, "level is 'layers'; allowed are 'modules', 'ops'"),
        ({"tensors": "some"}, "tensors is 'some'; allowed are"),
        ({"max_bytes": -1}, "max_bytes is -1, must not be negative"),
        ({"every": 0}, "every is 0"),
        ({"every": "two"}, "every is 'two'"),
        ({"max_bytes": "1GB"}, "max_bytes is '1GB'"),
        ({"kinds": 3}, "kinds is 3, not a list of names"),
        ({"include": [None]}, r"include is \[None\], not a list of names"),
        ({"optimizer": 3}, "optimizer is 3, not an optimizer of"),
        ({"state": ("weights",)}, "state has 'weights'; allowed are parameter, buffer"),
        ({"state": "optimizer"}, "needs to know the optimizer"),
    ],
)
def test_wrong_arguments(kit, options, message, tmp_path):
    with pytest.raises(InputError, match=message), record(kit.linear(1, 1), tmp_path / "run", **options):
        pass
    assert not (tmp_path / "run").exists()


def test_only_models_can_be_recorded(kit):
    with pytest.raises(InputError, match="not a model"), record(kit.tensor([1.0])):
        pass


def test_the_run_is_there_when_the_recording_is_over(kit, tmp_path):
    model = kit.linear(1, 1)
    with record(model, tmp_path / "run") as recorder, pytest.raises(InputError, match="is not over"):
        _ = recorder.run
    assert recorder.run.complete
    assert recorder.run.path == recorder.path == tmp_path / "run"
    assert recorder.run.header.framework == kit.name
    assert recorder.run.header.versions[kit.name]


def test_a_temporary_run_lives_as_long_as_the_object(kit):
    with record(kit.linear(1, 1)) as recorder:
        pass
    run = recorder.run
    folder = run.path.parent
    assert run.path.exists()
    del recorder, run
    assert not folder.exists()


def test_logged_values(kit):
    model = kit.linear(1, 1)
    with record(model) as recorder:
        recorder.log("scale", 1024.0)
        recorder.step()
        recorder.log("weights", kit.tensor([1.0, 2.0]))
    scale, weights = recorder.run.values()
    assert (scale.name, scale.value, scale.step) == ("scale", 1024.0, 0)
    assert (recorder.run.read(weights.value).tolist(), weights.step) == ([1.0, 2.0], 1)
