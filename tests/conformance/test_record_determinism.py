"""Taking chance out of a run, and the proof that recording is inert for a user's model."""

from __future__ import annotations

import random

import numpy as np
import pytest

from parfocal.capture.determinism import deterministic, no_dropout, seeded
from parfocal.capture.inert import check_inert
from tests.conformance.recorded import EXAMPLES, total, values

pytestmark = pytest.mark.filterwarnings("ignore:When training, we now always track:UserWarning")  # paddle


def draw(kit):
    return [random.random(), float(np.random.random()), *kit.array(kit.random()).tolist()]


def test_seeded_gives_the_same_numbers_and_restores_every_generator(kit):
    kit.backend.seed(5)
    random.seed(5)
    np.random.seed(5)
    undisturbed = draw(kit)
    kit.backend.seed(5)
    random.seed(5)
    np.random.seed(5)
    with seeded(1):
        first = draw(kit)
    with pytest.raises(ZeroDivisionError), seeded(1):
        draw(kit).append(1 / 0)
    with seeded(1):
        second = draw(kit)
    with seeded(2):
        third = draw(kit)
    assert first == second
    assert not set(first) & set(third)
    assert draw(kit) == undisturbed


class DropPath:
    """Mixed into a framework's module class: stochastic depth as users write it."""

    drop_prob = 0.5

    def forward(self, x):
        return x * 0.0 if self.training and self.drop_prob == 0.5 else x


def dropping_model(kit):
    drop_path = type("DropPath", (DropPath, kit.base), {})()
    return kit.sequential(kit.linear(8, 8), kit.nn.Dropout(0.5), drop_path)


def test_no_dropout_in_train_mode(kit):
    model = dropping_model(kit)
    x = kit.tensor(values(4, 8))
    with kit.backend.mode(model, "eval"):
        expected = kit.array(model(x))
    with kit.backend.mode(model, "train"), no_dropout(model):
        model.train()  # also when the user's loop says so again
        assert np.array_equal(kit.array(model(x)), expected)
    with kit.backend.mode(model, "train"):
        assert not kit.array(model(x)).any()
    assert [model[1].p, model[2].drop_prob] == [0.5, 0.5]


def test_dropout_inside_recurrent_and_attention_layers(kit):
    if kit.name == "torch":
        attention = kit.nn.MultiheadAttention(8, 2, dropout=0.5, batch_first=True)
        lstm = kit.nn.LSTM(8, 8, num_layers=2, dropout=0.5, batch_first=True)
    else:
        attention = kit.nn.MultiHeadAttention(8, 2, dropout=0.5)
        lstm = kit.nn.LSTM(8, 8, num_layers=2, dropout=0.5)
    x = kit.tensor(values(2, 5, 8))
    for model, call in ((attention, lambda: attention(x, x, x)), (lstm, lambda: lstm(x))):

        def output(call=call):
            found = call()
            return kit.array(found[0] if isinstance(found, tuple) else found)

        model.train()
        assert not np.array_equal(output(), output())
        with no_dropout(model):
            assert np.array_equal(output(), output())
        assert model.dropout == 0.5


def test_no_dropout_leaves_other_layers_alone(kit):
    model = kit.sequential(kit.linear(2, 2), kit.batch_norm(2), kit.nn.ReLU())
    before = [dict(vars(module)) for module in kit.backend.modules(model).values()]
    with no_dropout(model):
        inside = [dict(vars(module)) for module in kit.backend.modules(model).values()]
    assert [list(each) for each in inside] == [list(each) for each in before]
    assert all(one[name] is other[name] for one, other in zip(before, inside, strict=True) for name in one)


def test_modes_are_restored_module_by_module(kit):
    model = kit.sequential(kit.linear(2, 2), kit.nn.Dropout(0.5))
    model[1].eval()
    before = kit.backend.training_flags(model)
    with kit.backend.mode(model, "eval"):
        assert not any(kit.backend.training_flags(model).values())
    with kit.backend.mode(model, "train"):
        assert all(kit.backend.training_flags(model).values())
    assert kit.backend.training_flags(model) == before


def test_deterministic_kernels_for_a_while(kit):
    """paddle's CPU build has no choice of kernels: there it only must not fail."""
    states = []

    def chosen():
        return kit.name == "torch" and kit.torch.are_deterministic_algorithms_enabled()

    states.append(chosen())
    with deterministic():
        states.append(chosen())
    states.append(chosen())
    assert states == [False, kit.name == "torch", False]


@pytest.mark.parametrize("name", EXAMPLES)
def test_recording_is_proved_inert_for_the_users_model(kit, name):
    model, inputs = EXAMPLES[name](kit)
    kit.fill(model)
    model.train()
    before = {entry.path: kit.array(entry.value) for entry in kit.backend.state(model)}

    def run_once():
        output = model(*[kit.tensor(value) for value in inputs])
        total(kit, output).backward()
        return output

    found = check_inert(model, run_once)
    assert found.ok, found.differences
    assert found.compared > len(before)
    for entry in kit.backend.state(model):
        assert np.array_equal(before[entry.path], kit.array(entry.value))


def test_the_proof_fails_for_code_that_differs_from_itself(kit):
    model = kit.linear(2, 1)
    calls = []

    def run_once():
        calls.append(1)
        output = model(kit.tensor([[1.0, 2.0]])) * float(len(calls))
        output.sum().backward()
        kit.random() if len(calls) > 1 else None
        return output

    assert check_inert(model, run_once).differences == (
        "gradient bias",
        "gradient weight",
        "random generator",
        "returned 0",
    )
