"""What an update reads and writes: the same steps after the same state, in every framework."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from parfocal.explain.updates.rules import RULES, BeforeUpdate, updated
from tests.conformance.models import TRAINING, kit_for
from tests.conformance.test_training import PAIRS, make, scale_model

STEPS = 4


def gradient(step: int, like: np.ndarray) -> np.ndarray:
    return np.random.default_rng(step).standard_normal(like.shape).astype("float32")


def read(backend: Any, model: Any) -> dict[str, np.ndarray]:
    return {e.path: backend.to_array(e.value) for e in backend.state(model) if e.role == "parameter"}


def give_gradients(backend: Any, model: Any, step: int) -> dict[str, np.ndarray]:
    given = {}
    for entry in backend.state(model):
        if entry.role == "parameter":
            given[entry.path] = gradient(step, backend.to_array(entry.value))
            backend.write_gradient(entry.value, given[entry.path])
    return given


@pytest.fixture(params=TRAINING)
def kit(request: pytest.FixtureRequest) -> Any:
    return kit_for(request.param)


@pytest.mark.parametrize("kind", [kind for kind in PAIRS if kind in RULES])
def test_a_rule_computed_again_is_the_framework_s_own(kit: Any, kind: str) -> None:
    """The frameworks are the oracle of the rules in NumPy."""
    backend, model = kit.backend, scale_model(kit)
    optimizer = make(kit, kind, model)
    for step in range(STEPS):
        given = give_gradients(backend, model, step)
        before, slots = read(backend, model), backend.optimizer_state(optimizer, model)
        settings = backend.optimizer_settings(optimizer, model)
        backend.optimizer_step(optimizer)
        for path, after in read(backend, model).items():
            moment = BeforeUpdate(before[path], given[path], slots.get(path, {}))
            expected = updated(backend.optimizer_kind(optimizer), settings[path], moment)
            assert expected is not None
            assert after == pytest.approx(expected.weight, rel=2e-4, abs=2e-5), (kind, step, path)


@pytest.mark.parametrize("kind", ["Momentum", "Adam"])
def test_a_copied_state_outlives_an_update_and_one_without_a_copy_is_equal_until_then(
    kit: Any, kind: str
) -> None:
    backend, model = kit.backend, scale_model(kit)
    optimizer = make(kit, kind, model)
    kept: list[dict[str, np.ndarray]] = []
    for step in range(2):
        give_gradients(backend, model, step)
        backend.optimizer_step(optimizer)
        copied = backend.optimizer_state(optimizer, model)["scale"]
        seen = backend.optimizer_state(optimizer, model, copy=False)["scale"]
        assert copied.keys() == seen.keys()
        assert all(np.array_equal(copied[name], seen[name]) for name in copied)
        kept.append(copied)
    assert all(not np.array_equal(kept[0][name], kept[1][name]) for name in kept[0])


@pytest.mark.parametrize("kind", ["Momentum", "Adam", "Adamax", "NAdam"])
def test_a_written_state_goes_on_as_the_one_it_was_read_from(kit: Any, kind: str) -> None:
    backend = kit.backend
    first, second = scale_model(kit), scale_model(kit)
    optimizers = make(kit, kind, first), make(kit, kind, second)
    for step in range(STEPS):
        give_gradients(backend, first, step)
        backend.optimizer_step(optimizers[0])
    give_gradients(backend, second, 9)
    backend.optimizer_step(optimizers[1])
    for entry in backend.state(second):
        if entry.role == "parameter":
            backend.write(entry.value, read(backend, first)[entry.path])
    backend.write_optimizer_state(optimizers[1], second, backend.optimizer_state(optimizers[0], first))
    for model, optimizer in zip((first, second), optimizers, strict=True):
        give_gradients(backend, model, STEPS)
        backend.optimizer_step(optimizer)
    ours, theirs = read(backend, first), read(backend, second)
    for path in ours:
        assert theirs[path] == pytest.approx(ours[path], rel=1e-5, abs=1e-6), path


def test_states_are_exchanged_and_rates_set_for_a_while(kit: Any) -> None:
    backend, model = kit.backend, scale_model(kit)
    optimizer = make(kit, "Momentum", model)
    give_gradients(backend, model, 0)
    backend.optimizer_step(optimizer)
    kept = backend.copied_optimizer_state(optimizer)
    before = backend.optimizer_state(optimizer, model)
    give_gradients(backend, model, 1)
    backend.optimizer_step(optimizer)
    moved = backend.exchange_optimizer_state(optimizer, kept)
    again = backend.optimizer_state(optimizer, model)
    for path, slots in before.items():
        assert np.array_equal(again[path]["momentum"], slots["momentum"])
    backend.exchange_optimizer_state(optimizer, moved)

    paths, foreign = backend.optimizer_paths(optimizer, model)
    assert foreign == 0
    start = read(backend, model)
    rate = backend.learning_rate(optimizer)
    with backend.learning_rates_set(optimizer, model, dict.fromkeys(paths, 0.0)):
        give_gradients(backend, model, 2)
        backend.optimizer_step(optimizer)
    assert backend.learning_rate(optimizer) == pytest.approx(rate)
    for path, array in read(backend, model).items():
        assert np.array_equal(array, start[path])


def test_gradients_are_written_and_taken_away(kit: Any) -> None:
    backend, model = kit.backend, scale_model(kit)
    given = give_gradients(backend, model, 5)
    for entry in backend.state(model):
        if entry.role == "parameter":
            assert np.array_equal(backend.gradient(entry.value), given[entry.path])
            backend.write_gradient(entry.value, None)
            assert backend.gradient(entry.value) is None
    assert "..." in backend.written_settings("Adam", {"betas": (0.8, 0.9), "epsilon": 1e-6})
    assert "0.8" in backend.written_settings("Adam", {"betas": (0.8, 0.9)})
