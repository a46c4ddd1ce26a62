"""Following a run of the other framework: each call's own error, and nothing else, shows."""

from __future__ import annotations

import numpy as np
import pytest

from parfocal.capture.calls import FOLLOWED
from parfocal.capture.recording import record
from parfocal.errors import InputError
from tests.conformance.models import kit_for
from tests.conformance.recorded import total
from tests.pairs.capture.models import PAIRS, Pair, copy_weights, normal

pytestmark = pytest.mark.filterwarnings("ignore:When training, we now always track:UserWarning")  # paddle

CLEAN = 2e-5  # of a layer's own relative error: some rounding of float32
SIDES = [("torch", "paddle"), ("paddle", "torch")]


def run_of(pair, name, follow=None, **options):
    kit = kit_for(name)
    model = pair.model(name)
    kit.backend.clear_gradients(model)
    with kit.backend.mode(model, "train"), record(model, follow=follow, **options) as recorder:
        total(kit, model(kit.tensor(pair.inputs, grad=True))).backward()
    return recorder.run


def relative(array, other):
    return float(np.abs(array - other).max() / np.abs(other).max())


def counterparts(base, run):
    by_order = {call.order: call for call in base.calls()}
    pairs = {
        int(item.name.removeprefix(FOLLOWED)): item.value
        for item in run.values()
        if item.name.startswith(FOLLOWED)
    }
    return {call.order: by_order[pairs[call.order]] for call in run.calls() if call.order in pairs}


def own_errors(base, run):
    """Path -> the largest own relative error of its calls and parameters; only calls without calls inside."""
    pairs = counterparts(base, run)
    parents = {call.parent for call in run.calls()}
    calls = {call.order: call for call in run.calls() if call.order not in parents}
    errors = {}

    def note(path, error):
        errors[path] = max(errors.get(path, 0.0), error)

    for order, call in calls.items():
        if order in pairs:
            for slot, leaf in call.outputs.leaves.items():
                if leaf is None:  # attention weights that nobody asked for
                    continue
                note(call.path, relative(run.read(leaf), base.read(pairs[order].outputs.leaves[slot])))
    recorded = {(found.call, found.side, found.slot): found.value for found in base.gradients()}
    for found in run.gradients():
        if found.call in calls and found.call in pairs and found.side == "input" and found.value:
            value = recorded[pairs[found.call].order, "input", found.slot]
            note(calls[found.call].path, relative(run.read(found.value), base.read(value)))
    states = {(item.path, item.step): item.value for item in base.state() if item.role == "gradient"}
    kind = kinds(run)
    for item in (each for each in run.state() if each.role == "gradient"):
        path, _, name = item.path.rpartition(".")
        value = states.get((item.path, item.step))
        if value is not None and item.value is not None:
            turned = (
                name == "weight" and kind[path] == "Linear" and run.header.framework != base.header.framework
            )
            theirs = base.read(value)
            note(path, relative(run.read(item.value), theirs.T if turned else theirs))
    return errors


def kinds(run):
    """Path -> kind; torch's attention uses its output layer's weights without calling it."""
    found = {call.path: call.kind for call in run.calls()}
    return found | {f"{path}.out_proj": "Linear" for path in found if path.endswith("self_attn")}


@pytest.mark.parametrize(("base_name", "name"), SIDES)
@pytest.mark.parametrize("model", PAIRS)
def test_a_correct_port_has_no_own_error(model, base_name, name):
    pair = PAIRS[model]()
    base = run_of(pair, base_name)
    run = run_of(pair, name, follow=base)
    errors = own_errors(base, run)
    assert {path: error for path, error in errors.items() if error > CLEAN} == {}
    pairs = counterparts(base, run)
    assert {call.kind for call in run.calls() if call.order in pairs} >= FOLLOWED_KINDS[model]
    # What comes back is the other run's, bit for bit.
    recorded = {(f.call, f.slot): f.value for f in base.gradients() if f.side == "output"}
    fed = [f for f in run.gradients() if f.side == "output" and f.call in pairs and f.value]
    assert fed
    for found in fed:
        expected = recorded[pairs[found.call].order, found.slot]
        assert np.array_equal(run.read(found.value), base.read(expected))


FOLLOWED_KINDS = {
    "residual_net": {"Conv2d", "BatchNorm2d", "ReLU", "MaxPool2d", "AdaptiveAvgPool2d", "Linear", "Block"},
    "encoder": {"LayerNorm", "Linear", "MultiheadAttention", "TransformerEncoderLayer"},
    "recurrent": {"Linear", "LSTM"},
    "forked": {"Linear"},
}


def scale_weight(path):
    def plant(kit, model):
        module = kit.backend.modules(model)[path]
        entry = kit.backend.state(module)[0]
        kit.backend.write(entry.value, kit.array(entry.value) * np.float32(1.01))

    return path, plant


def change_epsilon(path):
    def plant(kit, model):
        setattr(kit.backend.modules(model)[path], "eps" if kit.name == "torch" else "_epsilon", 1e-3)

    return path, plant


FAULTS = {
    "residual_net": [change_epsilon("first.norm2"), scale_weight("second.conv1"), scale_weight("head")],
    "encoder": [change_epsilon("layers.0.norm1"), scale_weight("layers.1.linear1")],
    "recurrent": [scale_weight("embed"), scale_weight("lstm")],
    "forked": [scale_weight("left"), scale_weight("shared")],
}


@pytest.mark.parametrize(("base_name", "name"), SIDES)
@pytest.mark.parametrize(
    ("model", "path", "plant"),
    [(model, *fault) for model, faults in FAULTS.items() for fault in faults],
    ids=[f"{model}-{path}" for model, faults in FAULTS.items() for path, _ in faults],
)
def test_a_fault_shows_at_its_layer_alone(model, path, plant, base_name, name):
    pair = PAIRS[model]()
    base = run_of(pair, base_name)
    plant(kit_for(name), pair.model(name))
    errors = own_errors(base, run_of(pair, name, follow=base))
    assert {found for found, error in errors.items() if error > CLEAN} == {path}
    assert errors[path] > 1e-4


def test_without_following_the_same_fault_is_everywhere():
    """The test above could not tell a fault from its consequences if this did not hold."""
    pair = PAIRS["residual_net"]()
    base = run_of(pair, "torch")
    FAULTS["residual_net"][0][1](kit_for("paddle"), pair.paddle)
    run = run_of(pair, "paddle")
    theirs = {(call.path, call.occurrence): call for call in base.calls()}
    far = set()
    for call in run.calls():
        mine = run.read(call.outputs.leaves["0"])
        if relative(mine, base.read(theirs[call.path, call.occurrence].outputs.leaves["0"])) > CLEAN:
            far.add(call.path)
    assert {"first.norm2", "second.conv1", "second.norm2", "head"} <= far


@pytest.mark.parametrize(("base_name", "name"), SIDES)
def test_an_extra_layer_on_one_side_is_passed_over(base_name, name):
    """A ReLU that changes nothing (its input is positive) stands between others on one side."""

    def model(kit, extra):
        def forward(self, x):
            x = self.act(self.first(x))
            if extra:
                x = self.extra(x)
            return self.last(self.norm(x))

        parts = {"extra": kit.nn.ReLU()} if extra else {}
        return kit.module(
            forward,
            first=kit.linear(4, 4),
            act=kit.nn.ReLU(),
            norm=kit.nn.LayerNorm(4),
            last=kit.linear(4, 2),
            **parts,
        )

    for with_extra in (base_name, name):
        pair = Pair(
            model(kit_for("torch"), with_extra == "torch"),
            model(kit_for("paddle"), with_extra == "paddle"),
            normal(6, 4),
        )
        copy_weights(pair.torch, pair.paddle)
        base = run_of(pair, base_name)
        run = run_of(pair, name, follow=base)
        pairs = counterparts(base, run)
        matched = {call.path: pairs[call.order].path for call in run.calls() if call.order in pairs}
        assert matched == {path: path for path in ("", "first", "act", "norm", "last")}
        assert max(own_errors(base, run).values()) < CLEAN


def test_channels_last_against_channels_first():
    torch, paddle = kit_for("torch"), kit_for("paddle")
    one = torch.sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.ReLU(), torch.nn.Conv2d(8, 3, 3))
    other = paddle.sequential(
        paddle.nn.Conv2D(3, 8, 3, data_format="NHWC"),
        paddle.nn.ReLU(),
        paddle.nn.Conv2D(8, 3, 3, data_format="NHWC"),
    )
    copy_weights(one, other)
    images = normal(2, 3, 7, 7)
    base = run_of(Pair(one, other, images), "torch")
    run = run_of(Pair(one, other, images.transpose(0, 2, 3, 1)), "paddle", follow=base)
    pairs = counterparts(base, run)
    assert [pairs[call.order].path for call in run.calls() if call.depth] == ["0", "1", "2"]
    for call in run.calls():
        if call.depth:
            mine = run.read(call.outputs.leaves["0"]).transpose(0, 3, 1, 2)
            theirs = base.read(pairs[call.order].outputs.leaves["0"])
            assert relative(mine, theirs) < CLEAN


def test_token_ids_stay_and_wrong_ones_are_exchanged():
    torch = kit_for("torch")

    def forward(self, ids):
        return self.embed(ids % 3 if self.wrong else ids)

    model = torch.module(forward, embed=torch.nn.Embedding(10, 4))
    ids = np.arange(10)[None]

    def run(wrong, follow=None):
        model.wrong = wrong
        with record(model, follow=follow, grads=False) as recorder:
            model(torch.tensor(ids, dtype="int64"))
        return recorder.run

    base = run(False)
    assert own_errors(base, run(False, follow=base)) == {"embed": 0.0}
    assert own_errors(base, run(True, follow=base)) == {"embed": 0.0}


def test_following_several_steps():
    torch, paddle = kit_for("torch"), kit_for("paddle")
    pair = PAIRS["forked"]()

    def run(kit, model, follow=None):
        with record(model, follow=follow) as recorder:
            for step in range(2):
                total(kit, model(kit.tensor(normal(4, 5, seed=step)))).backward()
                kit.backend.clear_gradients(model)
                recorder.step()
        return recorder.run

    base = run(torch, pair.torch)
    other = run(paddle, pair.paddle, follow=base)
    pairs = counterparts(base, other)
    assert all(pairs[call.order].step == call.step for call in other.calls())
    assert len(pairs) == len(other.calls())
    assert max(own_errors(base, other).values()) < CLEAN


def test_only_full_runs_can_be_followed(tmp_path):
    torch = kit_for("torch")
    model = torch.linear(2, 2)
    with record(model, tensors="stats") as recorder:
        model(torch.tensor(normal(1, 2)))
    with (
        pytest.raises(InputError, match="it has no values to follow"),
        record(model, tmp_path / "next", follow=recorder.run),
    ):
        pass
    with record(model) as empty:
        pass
    with pytest.raises(InputError, match="has no calls to follow"), record(model, follow=empty.run.path):
        pass
