"""A recorded call of a layer computed again in NumPy, as it is set and as the other side's is.

Only layers that are one formula: norms, and activations with a number. What a run kept as a sketch, or a
layer that is not in the table, cannot be computed again: a setting that differs is only likely there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy  # loads its parts when they are first used

from parfocal.backends.protocol import Array
from parfocal.judge import limits
from parfocal.judge.verdict import Proof, ProvenBy
from parfocal.replay.trace import Node
from parfocal.workflow.recorded_runs.pair import StepPair
from parfocal.workflow.recorded_runs.steps import RecordedStep

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
    if formula.setting not in right or formula.setting not in wrong or observed.shape != expected.shape:
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


@dataclass(frozen=True, slots=True)
class Formula:
    """How a kind of layer is computed, and the setting that it takes."""

    setting: str
    compute: Callable[[Settings, Array, Weights], Array]


FORMULAS: dict[str, Formula] = {
    "LayerNorm": Formula("epsilon", _layer_norm),
    "RMSNorm": Formula("epsilon", _rms_norm),
    "GroupNorm": Formula("epsilon", _group_norm),
    **dict.fromkeys(("BatchNorm1d", "BatchNorm2d", "BatchNorm3d"), Formula("epsilon", _batch_norm)),
    "GELU": Formula("approximate", _gelu),
    "LeakyReLU": Formula("negative_slope", lambda s, x, _: np.where(x > 0, x, s["negative_slope"] * x)),
    "ELU": Formula("alpha", lambda s, x, _: np.where(x > 0, x, s["alpha"] * np.expm1(x))),
    "Softmax": Formula("axis", lambda s, x, _: scipy.special.softmax(x, axis=s["axis"])),
    "LogSoftmax": Formula("axis", lambda s, x, _: scipy.special.log_softmax(x, axis=s["axis"])),
}
