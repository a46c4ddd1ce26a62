"""Whether recording works with an installed framework: one small step, against what NumPy computes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from parfocal.backends import registry
from parfocal.backends.building import LayerBuilder
from parfocal.capture.recording import record
from parfocal.errors import ParfocalError
from parfocal.run.records import TensorValue

_CLOSE = 1e-5  # of a product of eight numbers around one


@dataclass(frozen=True, slots=True)
class SelfTest:
    """``problem`` is empty where all is well."""

    calls: int
    tensors: int
    problem: str = ""


def recorder_works(framework: str) -> SelfTest:
    """Record a linear layer forward and backward, with the proof that this changes nothing."""
    try:
        return _recorded(framework)
    except ParfocalError as error:
        return SelfTest(0, 0, error.message)
    except Exception as error:  # noqa: BLE001  whatever a broken installation raises
        return SelfTest(0, 0, f"{type(error).__name__}: {error}")


def _recorded(framework: str) -> SelfTest:
    backend = registry.get(framework)
    if not isinstance(backend, LayerBuilder):
        return SelfTest(0, 0, f"the backend of {framework} builds no layers")
    layer = backend.layer("Linear", {"in_features": 8, "out_features": 3, "bias": True})
    weight, bias = (backend.to_array(entry.value) for entry in backend.state(layer))
    if backend.settings(layer).get("weight_layout") == "in,out":
        weight = weight.T
    given = np.random.default_rng(0).normal(size=(4, 8)).astype(np.float32)
    back = np.ones((4, 3), np.float32)
    with record(layer, check=True) as recorder:
        output = layer(backend.from_array(given, requires_grad=True))
        backend.backward([output], [backend.from_array(back)])
    run = recorder.run
    (call,) = run.calls()
    values = [
        *(("output", value) for value in call.outputs.leaves.values()),
        *(("gradient", each.value) for each in run.gradients() if each.side == "input"),
    ]
    seen = {name: run.read(value) for name, value in values if isinstance(value, TensorValue)}
    expected = {"output": given @ weight.T + bias, "gradient": back @ weight}
    for name, array in expected.items():
        if name not in seen:
            return SelfTest(1, len(seen), f"the {name} of a linear layer was not recorded")
        if not np.allclose(seen[name], array, rtol=_CLOSE, atol=_CLOSE):
            return SelfTest(1, len(seen), f"the {name} of a linear layer is not what NumPy computes")
    return SelfTest(1, len(seen))
