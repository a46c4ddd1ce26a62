"""``record(..., check=True)``: proof, with the user's own model and loop, that recording changes nothing."""

from __future__ import annotations

import random

import numpy as np
import pytest

from parfocal.capture.recording import record
from parfocal.errors import DivergedError, EmptyComparisonError, InputError, UnsupportedError
from tests.conformance.models import kit_for
from tests.conformance.recorded import EXAMPLES, in_place_relu, total, values

pytestmark = pytest.mark.filterwarnings("ignore:When training, we now always track:UserWarning")  # paddle


def is_hooked(kit, module):
    return any(kit.hooks(module))


def watched_model(kit, forward):
    """A model whose code knows whether somebody watches it: ``forward(x, is hooked)``."""

    def run(self, x):
        return forward(self, self.linear(x), is_hooked(kit, self.linear))

    model = kit.module(run, "Watched", linear=kit.linear(3, 2))
    return kit.fill(model)


def one_step(kit, model, **options):
    with record(model, check=True, **options) as recorder:
        total(kit, model(kit.tensor(values(4, 3)))).backward()
    return recorder


@pytest.mark.parametrize("level", ["modules", "ops"])
@pytest.mark.parametrize("name", EXAMPLES)
def test_models_of_every_sort_pass(kit, name, level):
    model, inputs = EXAMPLES[name](kit)
    kit.fill(model)
    model.train()
    state = kit.backend.state(model)
    parameters = sum(entry.trainable and entry.tied_to is None for entry in state)
    with record(model, level=level, check=True) as recorder:
        for _ in range(2):  # the second pass adds to the gradients of the first
            total(kit, model(*[kit.tensor(value) for value in inputs])).backward()
    assert recorder.inertness.ok
    assert recorder.inertness.compared > 4 * parameters
    (logged,) = [item.value for item in recorder.run.values() if item.name == "inertness"]
    assert logged["compared"] == str(recorder.inertness.compared)
    assert logged["differences"] == logged["unsteady"] == ""


@pytest.mark.parametrize("name", EXAMPLES)
def test_checking_changes_nothing_itself(kit, name):
    def outcome(check):
        kit.backend.seed(5)
        model, inputs = EXAMPLES[name](kit)
        kit.fill(model)
        model.train()
        tensors = [kit.tensor(value, grad=True) for value in inputs]
        with record(model, check=check) as recorder:
            loss = total(kit, model(*tensors))
            loss.backward()
        state = [kit.array(entry.value) for entry in kit.backend.state(model)]
        gradients = [kit.backend.gradient(entry.value) for entry in kit.backend.state(model)]
        found = [kit.array(loss), *state, *gradients, *[kit.backend.gradient(each) for each in tensors]]
        calls = [(call.path, call.order, call.kind) for call in recorder.run.calls()]
        return [np.asarray(each).tobytes() for each in [*found, kit.array(kit.random())]], calls

    assert outcome(False) == outcome(True)


def test_the_generators_of_python_and_numpy_are_repeated_and_left_alone(kit):
    def forward(self, x, hooked):
        return x * random.random() + float(np.random.rand())

    model = watched_model(kit, forward)
    random.seed(3), np.random.seed(3)
    assert one_step(kit, model).inertness.ok
    after = random.random(), np.random.rand()
    random.seed(3), np.random.seed(3)
    random.random(), np.random.rand()
    assert after == (random.random(), np.random.rand())


CHEATS = {
    "output 0": lambda kit, self, x, hooked: x * 1.0000001 if hooked else x,
    # Twice as large a gradient under the same value.
    "gradient linear.weight": lambda kit, self, x, hooked: x * 2.0 - x.detach() if hooked else x,
    "random generator": lambda kit, self, x, hooked: (kit.random() if hooked else None, x)[1],
}


@pytest.mark.parametrize("name", CHEATS)
def test_a_model_that_acts_on_being_watched_is_caught(kit, name):
    model = watched_model(kit, lambda self, x, hooked: CHEATS[name](kit, self, x, hooked))
    with pytest.raises(DivergedError, match="recording changes what the model computes") as caught:
        one_step(kit, model)
    assert f"step 0, model: {name}" in caught.value.message
    assert "is complete" in caught.value.message


def test_a_buffer_changed_only_under_watch_is_caught(kit):
    def forward(self, x, hooked):
        if hooked:
            kit.backend.write(self.seen, np.ones(1, dtype="float32"))
        return x

    model = watched_model(kit, forward)
    kit.add_buffer(model, "seen", np.zeros(1))
    with pytest.raises(DivergedError, match="step 0, model: buffer seen"):
        one_step(kit, model)


def test_the_run_is_complete_and_says_what_differed(kit, tmp_path):
    model = watched_model(kit, lambda self, x, hooked: x + 1.0 if hooked else x)
    with (
        pytest.raises(DivergedError, match=r"1 of \d+ values .*run in .*here is complete"),
        record(model, tmp_path / "here", check=True) as recorder,
    ):
        model(kit.tensor(values(4, 3)))
    assert recorder.run.complete
    assert recorder.inertness.differences == ("step 0, model: output 0",)
    assert not recorder.inertness.ok
    (logged,) = [item.value for item in recorder.run.values() if item.name == "inertness"]
    assert logged["differences"] == "step 0, model: output 0"


def test_code_that_differs_from_itself_is_told_apart(kit):
    calls = []

    def forward(self, x, hooked):
        calls.append(1)
        return x * float(len(calls))

    with pytest.raises(DivergedError, match=r"not deterministic: .* differs from itself in step 0") as caught:
        one_step(kit, watched_model(kit, forward))
    assert "recording changes" not in caught.value.message


def test_a_call_that_fails_when_made_again_is_named(kit):
    def forward(self, x, hooked):
        if not hooked:
            raise KeyError("nobody watches")
        return x

    with pytest.raises(DivergedError, match="made again it raised KeyError: 'nobody watches'"):
        one_step(kit, watched_model(kit, forward))


def test_an_exception_of_the_users_own_passes(kit, tmp_path):
    def forward(self, x, hooked):
        raise ZeroDivisionError

    model = watched_model(kit, forward)
    kit.backend.seed(1)
    with pytest.raises(ZeroDivisionError), record(model, tmp_path / "run", check=True) as recorder:
        model(kit.tensor(values(4, 3)))
    assert not recorder.run.complete
    assert not is_hooked(kit, model.linear)


def test_weights_used_outside_of_the_model_raise_no_alarm(kit):
    model = watched_model(kit, lambda self, x, hooked: x)
    with record(model, check=True) as recorder:
        penalty = (model.linear.weight**2).sum()
        (total(kit, model(kit.tensor(values(4, 3)))) + penalty).backward()
    assert recorder.inertness.ok, recorder.inertness


def test_weights_used_outside_hide_no_change(kit):
    model = watched_model(kit, lambda self, x, hooked: x * 2.0 - x.detach() if hooked else x)
    penalty = (model.linear.weight**2).sum()
    with pytest.raises(DivergedError, match=r"gradient linear\.weight"), record(model, check=True):
        (total(kit, model(kit.tensor(values(4, 3)))) + penalty).backward()


def test_code_around_the_call_need_not_be_around_the_backward_pass(kit):
    """As with mixed precision: the model computes otherwise once the user's own context is left."""
    factor = [3.0]
    model = watched_model(kit, lambda self, x, hooked: x * factor[0])
    with record(model, check=True) as recorder:
        loss = total(kit, model(kit.tensor(values(4, 3)))) + (model.linear.weight**2).sum()
        factor[0] = 1.0
        loss.backward()
    assert recorder.inertness.ok, recorder.inertness


def test_gradients_that_differ_from_themselves_are_told_apart(kit):
    calls = []

    def forward(self, x, hooked):
        calls.append(1)
        size = float(len(calls))
        return x * size - x.detach() * (size - 1.0)  # the same value, ever larger gradients

    with pytest.raises(DivergedError, match="not deterministic") as caught:
        one_step(kit, watched_model(kit, forward))
    assert "gradient linear.weight" in caught.value.message


def test_several_calls_in_one_pass(kit):
    model = watched_model(kit, lambda self, x, hooked: x)
    with record(model, check=True) as recorder:
        outputs = [model(kit.tensor(values(4, 3, seed=seed))) for seed in range(5)]
        total(kit, outputs).backward()
    assert recorder.inertness.ok, recorder.inertness


def test_parts_called_on_their_own(kit):
    """As the two sides of a GAN: the one's output is the other's input."""
    model = kit.sequential(kit.linear(3, 3), kit.linear(3, 1))
    kit.fill(model)
    with record(model, check=True) as recorder:
        model[1](model[0](kit.tensor(values(4, 3), grad=True))).sum().backward()
    assert recorder.inertness.ok, recorder.inertness


def test_outputs_that_depend_on_each_other(kit):
    def forward(self, x):
        hidden = self.first(x)
        return {"hidden": hidden, "same": hidden, "logits": self.second(hidden)}

    model = kit.fill(kit.module(forward, "Both", first=kit.linear(3, 3), second=kit.linear(3, 2)))
    with record(model, check=True) as recorder:
        outputs = model(kit.tensor(values(4, 3)))
        (outputs["logits"].sum() + (outputs["hidden"] ** 2).sum()).backward()
    assert recorder.inertness.ok, recorder.inertness


def test_inputs_changed_in_place(kit):
    model = kit.sequential(in_place_relu(kit), kit.linear(3, 2))
    kit.fill(model)
    with record(model, check=True) as recorder:
        model(kit.tensor(values(4, 3), grad=True) * 2.0).sum().backward()
        model(kit.tensor(values(4, 3)))
    assert recorder.inertness.ok, recorder.inertness


def test_a_cache_that_the_call_fills(kit):
    def forward(self, x, cache):
        cache.append(self.linear(x))
        return sum(cache[1:], cache[0])

    model = kit.fill(kit.module(forward, "Cached", linear=kit.linear(3, 2)))
    with record(model, check=True) as recorder:
        cache = []
        for _ in range(3):
            output = model(kit.tensor(values(4, 3)), cache)
        output.sum().backward()
    assert recorder.inertness.ok, recorder.inertness
    assert len(cache) == 3


def test_passes_without_gradients_and_graphs_that_are_kept(kit):
    model = watched_model(kit, lambda self, x, hooked: x)
    with record(model, check=True) as recorder:
        with kit.backend.no_grad():
            model(kit.tensor(values(4, 3)))
        compared = recorder.inertness.compared
        output = model(kit.tensor(values(4, 3))).sum()
        output.backward(retain_graph=True)
        output.backward()
    assert recorder.inertness.ok, recorder.inertness
    assert recorder.inertness.compared > 2 * compared


def test_a_backward_pass_that_raises_is_not_compared(kit):
    model = watched_model(kit, lambda self, x, hooked: x)

    def fail(gradient):
        raise ZeroDivisionError

    with record(model, check=True) as recorder:
        output = model(kit.tensor(values(4, 3)))
        output.register_hook(fail)
        with pytest.raises((ZeroDivisionError, SystemError, OSError)):
            output.sum().backward()
    assert recorder.inertness.ok, recorder.inertness


def test_steps_that_are_not_recorded_are_not_checked(kit):
    model = watched_model(kit, lambda self, x, hooked: x)
    with record(model, check=True, every=2) as recorder:
        model(kit.tensor(values(4, 3))).sum().backward()
        recorder.step()
        compared = recorder.inertness.compared
        model(kit.tensor(values(4, 3))).sum().backward()
    assert recorder.inertness.compared == compared > 0


def test_nothing_compared_is_an_error(kit):
    model = watched_model(kit, lambda self, x, hooked: x)
    with pytest.raises(EmptyComparisonError, match="the model was not called"), record(model, check=True):
        pass


def test_without_check_there_is_no_outcome(kit):
    model = watched_model(kit, lambda self, x, hooked: x)
    with record(model) as recorder, pytest.raises(InputError, match="nothing was checked"):
        recorder.inertness  # noqa: B018


def test_check_and_follow_exclude_each_other(kit):
    model = watched_model(kit, lambda self, x, hooked: x)
    with record(model) as recorder:
        model(kit.tensor(values(4, 3)))
    with pytest.raises(InputError, match="follow= changes"), record(model, follow=recorder.run, check=True):
        pass


def test_a_model_that_cannot_be_copied_is_refused(kit):
    model = watched_model(kit, lambda self, x, hooked: x)
    model.open = (each for each in ())
    with pytest.raises(UnsupportedError, match="check=True makes every call again on a copy of the model"):
        one_step(kit, model)


def test_the_fused_path_of_torchs_transformers_is_a_change():
    """It calls no submodule, so a recording does without it: other kernels, other last bits."""
    kit = kit_for("torch")
    kit.backend.seed(0)
    layer = kit.nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True)
    layer.eval()
    inputs = kit.tensor(values(2, 5, 16))
    with kit.backend.no_grad():
        fused = kit.array(layer(inputs))
        with record(layer):
            plain = kit.array(layer(inputs))
        assert fused.tobytes() != plain.tobytes()
        with pytest.raises(DivergedError, match="step 0, model: output 0"), record(layer, check=True):
            layer(inputs)
    with record(layer, check=True):  # with gradients there is no such path
        layer(inputs).sum().backward()
