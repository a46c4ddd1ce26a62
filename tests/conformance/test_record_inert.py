"""A recorded model computes, bit for bit, what it computes alone."""

from __future__ import annotations

import numpy as np
import pytest

from parfocal.capture.nested_values import flatten
from parfocal.capture.recording import record
from tests.conformance.recorded import EXAMPLES, total

pytestmark = pytest.mark.filterwarnings("ignore:When training, we now always track:UserWarning")  # paddle

RECORDINGS = {
    "full": {},
    "ops": {"level": "ops"},
    "no gradients": {"grads": False},
    "state": {"state": ("parameter", "buffer", "gradient")},
    "one kind only": {"kinds": {"Linear"}},
}


def outcome(kit, name, mode, options=None):
    """Everything a training step leaves behind, with or without a recording around it."""
    backend = kit.backend
    backend.seed(7)
    model, inputs = EXAMPLES[name](kit)
    kit.fill(model)
    tensors = [kit.tensor(values, grad=True) for values in inputs]
    with backend.mode(model, mode):
        backend.seed(11)
        if options is None:
            seen = step(kit, model, tensors)
        else:
            with record(model, **options):
                seen = step(kit, model, tensors)
    for index, tensor in enumerate(tensors):
        seen[f"input {index}"] = backend.gradient(tensor)
    for entry in backend.state(model):
        seen[entry.path] = backend.to_array(entry.value)
        seen[f"{entry.path} gradient"] = backend.gradient(entry.value)
    seen["random"] = backend.to_array(kit.random())
    return seen


def step(kit, model, tensors):
    output = model(*tensors)
    loss = total(kit, output)
    loss.backward()
    leaves = flatten(output).leaves
    seen = {slot: kit.array(leaf) for slot, leaf in leaves.items() if kit.backend.is_tensor(leaf)}
    return {**seen, "loss": kit.array(loss)}


def same_bits(one, other):
    if one is None or other is None:
        return one is other
    return one.dtype == other.dtype and one.shape == other.shape and one.tobytes() == other.tobytes()


@pytest.mark.parametrize("options", RECORDINGS.values(), ids=RECORDINGS)
@pytest.mark.parametrize("name", EXAMPLES)
def test_bit_for_bit(kit, name, options):
    check_inert(kit, name, "train", options)


# paddle has no backward for recurrent layers in eval mode.
@pytest.mark.parametrize("name", sorted(EXAMPLES.keys() - {"lstm"}))
def test_bit_for_bit_in_eval_mode(kit, name):
    check_inert(kit, name, "eval", {})


def check_inert(kit, name, mode, options):
    alone, recorded = outcome(kit, name, mode), outcome(kit, name, mode, options)
    assert alone.keys() == recorded.keys()
    assert [key for key in alone if not same_bits(alone[key], recorded[key])] == []


def test_the_comparison_can_fail(kit):
    model, inputs = EXAMPLES["dropouts"](kit)
    kit.fill(model)
    first = step(kit, model, [kit.tensor(inputs[0])])
    second = step(kit, model, [kit.tensor(np.nextafter(inputs[0], 9, dtype="float32"))])
    assert not same_bits(first["loss"], second["loss"])
