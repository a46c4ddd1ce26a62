"""A recorded call of a layer computed again in NumPy, as it is set and as the other side's is.

It proves a setting to be a cause, and a call to be right: what it was given is amplified by its formula, not
by a mistake. Only layers that are one formula: linear layers, norms and activations. What a run kept as a
sketch, or a layer that is not in the table, cannot be computed again: a setting that differs is only likely
there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy  # loads its parts when they are first used

from parfocal.backends import registry
from parfocal.backends.protocol import Array
from parfocal.judge import limits
from parfocal.judge.verdict import Proof, ProvenBy
from parfocal.replay.trace import Node
from parfocal.workflow.recorded_runs.pair import StepPair
from parfocal.workflow.recorded_runs.steps import RecordedStep

STEP = 1e-6  # of a central difference in float64: right to 1e-10 of values near one
FITTED = limits.causes.FITTED.value
Settings = Mapping[str, Any]
Weights = Mapping[str, Array]
# The frameworks' own names of what a norm keeps.
STATISTICS = {"_mean": "running_mean", "_variance": "running_var", "scale": "weight"}


def setting_proof(pair: StepPair, ours: Node, theirs: Node, right: Settings, wrong: Settings) -> Proof | None:
    """The port's call as it is set and as the reference's is: None where the one is not the port's output,
    or the other not the reference's.
    """
    formula = FORMULAS.get(theirs.kind)
    given, observed = _array(pair.port, theirs.inputs), _array(pair.port, theirs.outputs)
    expected = _array(pair.reference, ours.outputs)
    if formula is None or given is None or observed is None or expected is None:
        return None
    if not (formula.setting and formula.is_set(right) and formula.is_set(wrong)):
        return None
    if observed.shape != expected.shape:
        return None
    weights = _weights(pair.port, theirs)
    as_it_is, mended = (
        formula.compute({**settings, "training": theirs.training}, given, weights)
        for settings in (wrong, right)
    )
    if _unlike(as_it_is, observed) > 1.0:
        return None  # the formula is not what this layer computes
    after = _unlike(mended, expected)
    return Proof(ProvenBy.RECOMPUTED, _unlike(observed, expected), after) if after <= 1.0 else None


def computes_the_same(side: RecordedStep, node: Node, right: Settings) -> bool:
    """Whether an output is what a layer set like this makes of the call's own input and weights.

    ``right``: the settings and whether it trains.
    """
    formula = FORMULAS.get(node.kind)
    given, observed = _array(side, node.inputs), _array(side, node.outputs)
    if formula is None or given is None or observed is None or not formula.is_set(right):
        return False
    return _unlike(formula.compute(right, given, _weights(side, node)), observed) <= 1.0


def sends_back_the_same(side: RecordedStep, node: Node, right: Settings) -> bool:
    """Whether a gradient is what an activation set like this sends back."""
    formula = FORMULAS.get(node.kind)
    sent, came = _gradient(side, node.inputs), _gradient(side, node.outputs)
    given = _array(side, node.inputs)
    if formula is None or sent is None or came is None or given is None or not formula.is_set(right):
        return False
    if not formula.elementwise:
        return False
    beside = [formula.compute(right, given + step, {}) for step in (STEP, -STEP)]
    return _unlike(came * (beside[0] - beside[1]) / (2 * STEP), sent) <= 1.0


def _gradient(side: RecordedStep, values: Mapping[str, Any]) -> Array | None:
    """That of the only tensor of a call, in float64."""
    if len(values) != 1:
        return None
    (value,) = values.values()
    array = None if value.gradient is None or value.hidden else side.tensors.array(value.gradient)
    return None if array is None or array.dtype.kind != "f" else array.astype(np.float64)


def _unlike(made: Array, wanted: Array) -> float:
    """The norm of the difference as a share, in units of what computing another way may leave."""
    if made.shape != wanted.shape or not np.isfinite(made).all():
        return np.inf
    size = float(np.linalg.norm(wanted)) or 1.0
    return float(np.linalg.norm(made - wanted)) / (FITTED * size)


def _array(side: RecordedStep, values: Mapping[str, Any]) -> Array | None:
    """The only tensor of a call, in float64."""
    if len(values) != 1:
        return None
    (value,) = values.values()
    array = side.tensors.array(value.data)
    return None if array is None or array.dtype.kind != "f" else array.astype(np.float64)


def _weights(side: RecordedStep, node: Node) -> Weights:
    found: dict[str, Array] = {}
    for path, moments in (*side.parameters.items(), *side.buffers.items()):
        owner, _, name = path.rpartition(".")
        array = None if owner != node.path or moments.before is None else side.tensors.array(moments.before)
        if array is not None:
            found[STATISTICS.get(name, name)] = array.astype(np.float64)
    layout = registry.dialect(side.run.header.framework).linear_layout
    if node.kind == "Linear" and layout != "out,in" and "weight" in found:
        found["weight"] = found["weight"].T
    return found


def _scaled(values: Array, weights: Weights, axis: int | None) -> Array:
    """With the weight and the bias of a norm; ``axis``: of the channels, None: of the last axes."""
    for name, combine in (("weight", np.multiply), ("bias", np.add)):
        if name in weights:
            kept = weights[name]
            if axis is not None:
                kept = kept.reshape([-1 if at == axis else 1 for at in range(values.ndim)])
            values = combine(values, kept)
    return values


def _over(values: Array, axes: tuple[int, ...], epsilon: float) -> Array:
    mean, variance = values.mean(axis=axes, keepdims=True), values.var(axis=axes, keepdims=True)
    return np.asarray((values - mean) / np.sqrt(variance + epsilon))


def _linear(settings: Settings, given: Array, weights: Weights) -> Array:
    if "weight" not in weights:
        return given  # kept elsewhere, by a layer that makes it
    return np.asarray(given @ weights["weight"].T + weights.get("bias", 0.0))


def _layer_norm(settings: Settings, given: Array, weights: Weights) -> Array:
    count = weights["weight"].ndim if "weight" in weights else 1
    axes = tuple(range(given.ndim - count, given.ndim))
    return _scaled(_over(given, axes, settings["epsilon"]), weights, None)


def _rms_norm(settings: Settings, given: Array, weights: Weights) -> Array:
    epsilon = settings["epsilon"] or float(np.finfo(np.float32).eps)
    mean = np.square(given).mean(axis=-1, keepdims=True)
    return _scaled(given / np.sqrt(mean + epsilon), weights, None)


def _group_norm(settings: Settings, given: Array, weights: Weights) -> Array:
    grouped = given.reshape(given.shape[0], int(settings["num_groups"]), -1)
    return _scaled(_over(grouped, (2,), settings["epsilon"]).reshape(given.shape), weights, 1)


def _batch_norm(settings: Settings, given: Array, weights: Weights) -> Array:
    axes = tuple(axis for axis in range(given.ndim) if axis != 1)
    if settings["training"] or not {"running_mean", "running_var"} <= weights.keys():
        return _scaled(_over(given, axes, settings["epsilon"]), weights, 1)
    mean, variance = (
        weights[name].reshape([-1 if axis == 1 else 1 for axis in range(given.ndim)])
        for name in ("running_mean", "running_var")
    )
    return _scaled((given - mean) / np.sqrt(variance + settings["epsilon"]), weights, 1)


def _gelu(settings: Settings, given: Array, weights: Weights) -> Array:
    if settings["approximate"] in ("tanh", True):
        inner = np.sqrt(2 / np.pi) * (given + 0.044715 * given**3)
        return np.asarray(given * (1 + np.tanh(inner)) / 2)
    return np.asarray(given * scipy.special.ndtr(given))


def _elementwise(compute: Callable[[Array], Array]) -> Formula:
    return Formula("", lambda _, given, __: compute(given), elementwise=True)


@dataclass(frozen=True, slots=True)
class Formula:
    """How a kind of layer is computed, and the setting that it takes, if any."""

    setting: str
    compute: Callable[[Settings, Array, Weights], Array]
    elementwise: bool = False

    def is_set(self, settings: Settings) -> bool:
        return not self.setting or self.setting in settings


FORMULAS: dict[str, Formula] = {
    "Linear": Formula("", _linear),
    "LayerNorm": Formula("epsilon", _layer_norm),
    "RMSNorm": Formula("epsilon", _rms_norm),
    "GroupNorm": Formula("epsilon", _group_norm),
    **dict.fromkeys(("BatchNorm1d", "BatchNorm2d", "BatchNorm3d"), Formula("epsilon", _batch_norm)),
    "GELU": Formula("approximate", _gelu, elementwise=True),
    "LeakyReLU": Formula("negative_slope", lambda s, x, _: np.where(x > 0, x, s["negative_slope"] * x), True),
    "ELU": Formula("alpha", lambda s, x, _: np.where(x > 0, x, s["alpha"] * np.expm1(x)), True),
    "Softmax": Formula("axis", lambda s, x, _: scipy.special.softmax(x, axis=s["axis"])),
    "LogSoftmax": Formula("axis", lambda s, x, _: scipy.special.log_softmax(x, axis=s["axis"])),
    "ReLU": _elementwise(lambda x: np.maximum(x, 0.0)),
    "ReLU6": _elementwise(lambda x: np.clip(x, 0.0, 6.0)),
    "Sigmoid": _elementwise(scipy.special.expit),
    "Tanh": _elementwise(np.tanh),
    "SiLU": _elementwise(lambda x: x * scipy.special.expit(x)),
    "Mish": _elementwise(lambda x: x * np.tanh(np.logaddexp(0.0, x))),
    "Softsign": _elementwise(lambda x: x / (1 + np.abs(x))),
}
