"""Modules, state, modes and random numbers of a model that is standing still."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from parfocal.backends import registry
from parfocal.errors import InputError
from tests.conformance.models import kit_for


def rows(backend, model):
    return [(entry.path, entry.role, entry.trainable, entry.tied_to) for entry in backend.state(model)]


def test_modules_come_once_root_first(kit, backend):
    shared = kit.linear(2, 2)
    model = kit.module(lambda self, x: x, a=kit.sequential(shared, kit.linear(2, 2)), b=shared)
    assert list(backend.modules(model)) == ["", "a", "a.0", "a.1"]
    assert backend.modules(model)[""] is model
    assert backend.modules(model)["a.0"] is shared
    assert backend.is_model(model)
    assert not backend.is_model(kit.tensor([1.0]))


def test_a_child_that_knows_its_parent_is_no_endless_loop(kit, backend):
    child = kit.module(lambda self, x: x)
    model = kit.module(lambda self, x: x, child=child)
    child.parent = model
    assert list(backend.modules(model)) == ["", "child"]
    assert backend.state(model) == []


def test_batch_statistics_are_buffers(kit, backend):
    model = kit.sequential(kit.conv(1, 2, 1), kit.batch_norm(2))
    roles = {entry.path: entry.role for entry in backend.state(model)}
    parameters = [path for path, role in roles.items() if role == "parameter"]
    assert parameters == ["0.weight", "0.bias", "1.weight", "1.bias"]
    buffers = [path for path, role in roles.items() if role == "buffer"]
    expected = {
        "torch": ["1.running_mean", "1.running_var", "1.num_batches_tracked"],
        "paddle": ["1._mean", "1._variance"],
        "toybox": ["1.running_mean", "1.running_var"],
    }
    assert buffers == expected[kit.name]
    assert all(entry.persistent for entry in backend.state(model))


def test_tied_tensors_point_at_the_first(kit, backend):
    first, second = kit.linear(2, 2), kit.linear(2, 2)
    second.weight = first.weight
    model = kit.module(lambda self, x: x, first=first, second=second, again=second)
    ties = {entry.path: entry.tied_to for entry in backend.state(model) if entry.tied_to}
    assert ties == {
        "second.weight": "first.weight",
        "again.weight": "first.weight",
        "again.bias": "second.bias",
    }
    for entry in backend.state(model):
        assert entry.path == f"{entry.module}.{entry.name}"
        if entry.tied_to == "first.weight":
            assert entry.value is first.weight


def test_frozen_parameters_and_own_buffers(kit, backend):
    model = kit.linear(2, 2)
    kit.freeze(model.weight)
    kit.add_buffer(model, "kept", [1.0])
    kit.add_buffer(model, "passing", [2.0], persistent=False)
    found = {entry.name: entry for entry in backend.state(model)}
    assert (found["weight"].role, found["weight"].trainable) == ("parameter", False)
    assert (found["bias"].role, found["bias"].trainable) == ("parameter", True)
    assert (found["kept"].role, found["kept"].persistent, found["kept"].trainable) == ("buffer", True, False)
    assert (found["passing"].role, found["passing"].persistent) == ("buffer", False)


def test_buffers_are_those_of_the_state(kit, backend):
    model = kit.sequential(kit.conv(1, 2, 1), kit.batch_norm(2), kit.linear(2, 2))
    kit.add_buffer(model[2], "kept", [1.0])
    kit.add_buffer(model[2], "passing", [2.0], persistent=False)
    expected = {entry.path: entry.value for entry in backend.state(model) if entry.role == "buffer"}
    found = dict(backend.buffers(model))
    assert found.keys() == expected.keys()
    assert len(found) >= 4
    assert all(found[path] is value for path, value in expected.items())
    assert backend.buffers(kit.linear(2, 2)) == []


def test_state_is_live(kit, backend):
    model = kit.linear(2, 2)
    entry = backend.state(model)[0]
    backend.write(entry.value, np.full((2, 2), 7, "float32"))
    assert (backend.to_array(model.weight) == 7).all()


def test_recurrent_layers_list_each_weight_once_and_ties_beside(kit, backend):
    model = kit.nn.LSTM(3, 4)
    untied = [path for path, _, _, tied in rows(backend, model) if tied is None]
    assert untied == ["weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0"]
    tied = {path: tied for path, _, _, tied in rows(backend, model) if tied}
    if kit.name == "paddle":
        assert tied["0.cell.weight_ih"] == "weight_ih_l0"
        assert len(tied) == 4
    else:
        assert tied == {}


def test_writing_a_recurrent_weight_reaches_the_kernel(kit, backend):
    model = kit.nn.LSTM(2, 2)
    sequence = kit.tensor(np.ones((1, 1, 2)))
    for entry in backend.state(model):
        if entry.tied_to is None:
            backend.write(entry.value, np.zeros(backend.shape(entry.value), "float32"))
    output, _ = model(sequence)
    assert (kit.array(output) == 0).all()
    biases = next(entry for entry in backend.state(model) if entry.name == "bias_ih_l0")
    backend.write(biases.value, np.ones(8, "float32"))
    output, _ = model(sequence)
    assert (kit.array(output) > 0.1).all()


@pytest.mark.filterwarnings("ignore:.*weight_norm.*is deprecated")
def test_weight_norm_lists_what_is_learned(kit, backend):
    model = kit.nn.utils.weight_norm(kit.linear(3, 4))
    expected = {"bias", "weight_g", "weight_v"}
    for grad in (True, False):
        if grad:
            model(kit.tensor(np.ones((1, 3))))
        else:
            with backend.no_grad():
                model(kit.tensor(np.ones((1, 3))))
        assert {entry.path for entry in backend.state(model)} == expected
        assert all(entry.role == "parameter" for entry in backend.state(model))
    assert backend.kind(model) == "Linear"
    assert backend.settings(model)["out_features"] == 4


def test_spectral_norm_lists_what_is_learned(kit, backend):
    model = kit.nn.utils.spectral_norm(kit.linear(3, 4))
    roles = {entry.path: entry.role for entry in backend.state(model)}
    assert roles == {
        "bias": "parameter",
        "weight_orig": "parameter",
        "weight_u": "buffer",
        "weight_v": "buffer",
    }


def test_torchs_parametrizations():
    kit = kit_for("torch")
    backend = kit.backend
    model = kit.nn.utils.parametrizations.weight_norm(kit.linear(3, 4))
    paths = {entry.path for entry in backend.state(model)}
    assert paths == {"bias", "parametrizations.weight.original0", "parametrizations.weight.original1"}
    assert backend.kind(model) == "Linear"
    assert backend.is_framework_layer(model)
    spectral = kit.nn.utils.parametrizations.spectral_norm(kit.linear(3, 4))
    buffers = {entry.path for entry in backend.state(spectral) if entry.role == "buffer"}
    assert buffers == {"parametrizations.weight.0._u", "parametrizations.weight.0._v"}


def test_paddles_spectral_norm_layer_keeps_buffers():
    kit = kit_for("paddle")
    assert {entry.role for entry in kit.backend.state(kit.nn.SpectralNorm([3, 4]))} == {"buffer"}


def mixed(kit):
    model = kit.sequential(kit.linear(2, 2), kit.sequential(kit.batch_norm(2), kit.linear(2, 2)))
    model.train()
    model[1][0].eval()
    return model


@pytest.mark.parametrize("mode", ["eval", "train", "keep"])
def test_modes_are_restored_one_by_one(kit, backend, mode):
    model = mixed(kit)
    before = backend.training_flags(model)
    assert before == {"": True, "0": True, "1": True, "1.0": False, "1.1": True}
    with backend.mode(model, mode):
        inside = backend.training_flags(model)
    assert backend.training_flags(model) == before
    assert inside == (before if mode == "keep" else dict.fromkeys(before, mode == "train"))
    with pytest.raises(KeyError), backend.mode(model, mode):
        raise KeyError
    assert backend.training_flags(model) == before


def test_an_unknown_mode_is_refused(kit, backend):
    wrong = backend.mode(kit.linear(2, 2), "evaluation")
    with pytest.raises(InputError, match="no mode 'evaluation'; the modes are: eval, train, keep"):
        wrong.__enter__()


def test_seeds_and_states_of_random_numbers(kit, backend):
    before = backend.rng_state()
    try:
        backend.seed(3)
        state = backend.rng_state()
        first = kit.array(kit.random()).tolist()
        second = kit.array(kit.random()).tolist()
        assert first != second
        backend.set_rng_state(state)
        assert kit.array(kit.random()).tolist() == first
        backend.seed(3)
        assert kit.array(kit.random()).tolist() == first
        backend.seed(4)
        assert kit.array(kit.random()).tolist() != first
    finally:
        backend.set_rng_state(before)


def test_dropout_follows_the_state(kit, backend):
    before = backend.rng_state()
    layer = kit.nn.Dropout(0.5)
    ones = kit.tensor(np.ones(64))
    first = kit.array(layer(ones)).tolist()
    backend.set_rng_state(before)
    assert kit.array(layer(ones)).tolist() == first


def test_no_grad_ends(kit, backend):
    x = kit.tensor([1.0], grad=True)
    with backend.no_grad():
        assert not backend.requires_grad(x * 2.0)
    assert backend.requires_grad(x * 2.0)


def deterministic_flags(kit):
    kit.need("flags for determinism")
    if kit.name == "torch":
        torch = kit.torch
        return (
            torch.are_deterministic_algorithms_enabled(),
            torch.is_deterministic_algorithms_warn_only_enabled(),
            torch.backends.cudnn.deterministic,
            torch.backends.cudnn.benchmark,
        )
    from parfocal.backends.paddle.models import _present_flags

    return tuple(_present_flags().values())


def test_determinism_is_asked_for_and_restored(kit, backend):
    before = deterministic_flags(kit)
    with backend.deterministic():
        # a paddle for the CPU alone has no such flags
        assert deterministic_flags(kit) != before or (kit.name == "paddle" and before == ())
    assert deterministic_flags(kit) == before
    with pytest.raises(KeyError), backend.deterministic():
        raise KeyError
    assert deterministic_flags(kit) == before


def test_the_registry_finds_the_backend_of_every_kind_of_object(kit, backend):
    model = kit.linear(2, 2)
    own = kit.module(lambda self, x: x)
    for value in (kit.tensor([1.0]), model.weight, model, own):
        assert registry.of(value) is backend
    kit.need("optimizers")
    if kit.name == "torch":
        optimizer = kit.torch.optim.SGD(model.parameters(), lr=0.1)
        scheduler = kit.torch.optim.lr_scheduler.StepLR(optimizer, 1)
    else:
        scheduler = kit.paddle.optimizer.lr.StepDecay(0.1, 1)
        optimizer = kit.paddle.optimizer.SGD(scheduler, parameters=model.parameters())
    for value in (optimizer, scheduler):
        assert registry.of(value) is backend


def test_other_objects_of_a_framework_are_refused(kit):
    layer = kit.linear(2, 2)
    for value in (kit.tensor([1.0]).dtype, {"weight": layer.weight}, layer.parameters, kit.base):
        with pytest.raises(InputError, match="belongs to no known framework"):
            registry.of(value)


@pytest.mark.parametrize("name", ["torch", "paddle"])
def test_one_framework_does_not_load_the_other(name):
    code = (
        f"import {name}\n"
        "from parfocal.backends import registry\n"
        f"model = ({name}.nn.Linear)(2, 2)\n"
        f"assert registry.of(model).name == {name!r}\n"
        "try: registry.of({})\n"
        "except Exception: pass\n"
        "import sys\n"
        "print([other for other in ('torch', 'paddle') if other in sys.modules])\n"
    )
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip().splitlines()[-1] == str([name])
