"""What one step of an optimizer does to one parameter, in NumPy and in the precision that is asked for.

Settings and slots have the common names of the vocabulary. Besides what frameworks offer, a rule takes
what ports get wrong: where epsilon stands, and whether moments are corrected for their start at zero.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from parfocal.backends.protocol import Array

Settings = Mapping[str, Any]
Slots = dict[str, Array]


@dataclass(frozen=True, slots=True)
class BeforeUpdate:
    """One parameter right before an update."""

    weight: Array
    gradient: Array
    slots: Mapping[str, Array]

    def cast(self, dtype: Any) -> BeforeUpdate:
        return BeforeUpdate(
            self.weight.astype(dtype),
            self.gradient.astype(dtype),
            {name: np.asarray(values).astype(dtype) for name, values in self.slots.items()},
        )


@dataclass(frozen=True, slots=True)
class AfterUpdate:
    """The same parameter right after it."""

    weight: Array
    slots: Mapping[str, Array]


class _Step:
    """The numbers of a rule in one precision."""

    def __init__(self, moment: BeforeUpdate, settings: Settings) -> None:
        self.weight, self.gradient, self.slots = moment.weight, moment.gradient, moment.slots
        self.number = moment.weight.dtype.type
        self.settings = settings
        self.count = self.number(float(moment.slots.get("step", 0.0)) + 1.0)

    def get(self, name: str, default: float = 0.0) -> Any:
        return self.number(self.settings.get(name, default))

    def pair(self, name: str) -> tuple[Any, Any]:
        first, second = self.settings[name]
        return self.number(first), self.number(second)

    def slot(self, name: str, start: float = 0.0) -> Array:
        found = self.slots.get(name)
        return np.full_like(self.weight, start) if found is None else found

    @property
    def decayed(self) -> Array:
        """The gradient with the decay that is added to it."""
        amount = self.get("weight_decay")
        form = self.settings.get("decay", "l2")
        gradient = self.gradient
        if self.settings.get("added_decay"):  # of a parameter, besides the optimizer's own
            gradient = np.asarray(gradient + self.get("added_decay") * self.weight)
        if not amount or form == "decoupled":
            return gradient
        return np.asarray(gradient + amount * (np.sign(self.weight) if form == "l1" else self.weight))

    @property
    def shrunk(self) -> Array:
        """The weight after the decay that is apart from the gradient."""
        if self.settings.get("decay") != "decoupled":
            return self.weight
        return np.asarray(self.weight * (self.number(1) - self.get("lr") * self.get("weight_decay")))

    def correction(self, beta: Any) -> Any:
        if not self.settings.get("bias_correction", True):
            return self.number(1)
        return self.number(1) - beta**self.count

    def below(self, square: Array, epsilon: Any) -> Array:
        """The root that an update is divided by."""
        if self.settings.get("epsilon_place", "outside") == "inside":
            return np.asarray(np.sqrt(square + epsilon))
        return np.asarray(np.sqrt(square) + epsilon)

    def counted(self, slots: Slots) -> Slots:
        return {**slots, "step": np.asarray(self.count)}


def _momentum(step: _Step) -> AfterUpdate:
    """SGD, with and without momentum."""
    gradient, momentum = step.decayed, step.get("momentum")
    if not momentum:
        return AfterUpdate(step.shrunk - step.get("lr") * gradient, {})
    if "momentum" in step.slots:
        running = momentum * step.slots["momentum"] + (1 - step.get("dampening")) * gradient
    else:
        running = gradient
    ahead = gradient + momentum * running if step.settings.get("nesterov") else running
    return AfterUpdate(step.shrunk - step.get("lr") * ahead, {"momentum": running})


def _moments(step: _Step, gradient: Array) -> tuple[Array, Array]:
    first, second = step.pair("betas")
    return (
        first * step.slot("moment1") + (1 - first) * gradient,
        second * step.slot("moment2") + (1 - second) * gradient * gradient,
    )


def _adam(step: _Step) -> AfterUpdate:
    (first, second), epsilon = step.pair("betas"), step.get("epsilon")
    moment1, moment2 = _moments(step, step.decayed)
    slots = {"moment1": moment1, "moment2": moment2}
    square = moment2
    if step.settings.get("amsgrad"):
        square = slots["moment2_max"] = np.maximum(step.slot("moment2_max"), moment2)
    root = step.below(square / step.correction(second), epsilon)
    rate = step.get("lr") / step.correction(first)
    return AfterUpdate(step.shrunk - rate * moment1 / root, step.counted(slots))


def _adamax(step: _Step) -> AfterUpdate:
    (first, second), epsilon = step.pair("betas"), step.get("epsilon")
    gradient = step.decayed
    moment = first * step.slot("moment1") + (1 - first) * gradient
    norm = np.maximum(second * step.slot("infinity_norm"), np.abs(gradient) + epsilon)
    weight = step.shrunk - step.get("lr") / step.correction(first) * moment / norm
    return AfterUpdate(weight, step.counted({"moment1": moment, "infinity_norm": norm}))


def _nadam(step: _Step) -> AfterUpdate:
    (first, second), count = step.pair("betas"), step.count
    decay = step.get("momentum_decay", 0.004)
    half, base = step.number(0.5), step.number(0.96)
    now = first * (1 - half * base ** (count * decay))
    after = first * (1 - half * base ** ((count + 1) * decay))
    product = np.asarray(step.slots.get("momentum_product", 1.0)).astype(step.number) * now
    moment1, moment2 = _moments(step, step.decayed)
    root = step.below(moment2 / step.correction(second), step.get("epsilon"))
    weight = step.shrunk - step.get("lr") * (1 - now) / (1 - product) * step.decayed / root
    weight = weight - step.get("lr") * after / (1 - product * after) * moment1 / root
    slots = {"moment1": moment1, "moment2": moment2, "momentum_product": product}
    return AfterUpdate(weight, step.counted(slots))


def _radam(step: _Step) -> AfterUpdate:
    (first, second), count = step.pair("betas"), step.count
    moment1, moment2 = _moments(step, step.decayed)
    whole = 2 / (1 - second) - 1
    reached = whole - 2 * count * second**count / (1 - second**count)
    moved = step.get("lr") * moment1 / step.correction(first)
    if reached > 5:
        ratio = (reached - 4) * (reached - 2) * whole / ((whole - 4) * (whole - 2) * reached)
        root = step.below(moment2, step.get("epsilon"))
        moved = moved * np.sqrt(ratio) * np.sqrt(1 - second**count) / root
    return AfterUpdate(step.shrunk - moved, step.counted({"moment1": moment1, "moment2": moment2}))


def _adagrad(step: _Step) -> AfterUpdate:
    gradient = step.decayed
    square = step.slot("square_sum", float(step.settings.get("initial_accumulator") or 0.0)) + gradient**2
    rate = step.get("lr") / (1 + (step.count - 1) * step.get("lr_decay"))
    return AfterUpdate(
        step.shrunk - rate * gradient / step.below(square, step.get("epsilon")), {"square_sum": square}
    )


def _adadelta(step: _Step) -> AfterUpdate:
    gradient, rho, epsilon = step.decayed, step.get("rho"), step.get("epsilon")
    square = rho * step.slot("average_squared_gradient") + (1 - rho) * gradient**2
    before = step.slot("average_squared_update")
    moved = np.sqrt(before + epsilon) / np.sqrt(square + epsilon) * gradient
    slots = {
        "average_squared_gradient": square,
        "average_squared_update": rho * before + (1 - rho) * moved**2,
    }
    return AfterUpdate(step.shrunk - step.get("lr") * moved, slots)


def _rmsprop(step: _Step) -> AfterUpdate:
    gradient, rho = step.decayed, step.get("rho")
    square = rho * step.slot("average_squared_gradient") + (1 - rho) * gradient**2
    slots = {"average_squared_gradient": square}
    if step.settings.get("centered"):
        mean = rho * step.slot("average_gradient") + (1 - rho) * gradient
        slots["average_gradient"] = mean
        square = square - mean**2
    moved = gradient / step.below(square, step.get("epsilon"))
    momentum, rate = step.get("momentum"), step.get("lr")
    if momentum and "momentum_with_lr" in step.slots:
        running = momentum * step.slots["momentum_with_lr"] + rate * moved
        return AfterUpdate(step.shrunk - running, {**slots, "momentum_with_lr": running})
    if momentum:
        moved = slots["momentum"] = momentum * step.slot("momentum") + moved
    return AfterUpdate(step.shrunk - rate * moved, slots)


def _rprop(step: _Step) -> AfterUpdate:
    less, more = step.pair("etas")
    least, most = step.pair("step_sizes")
    gradient, before = step.decayed, step.slot("previous_gradient")
    turned = np.sign(gradient * before)
    size = step.slot("step_size", float(step.settings.get("lr", 0.01)))
    factor = np.where(turned > 0, more, np.where(turned < 0, less, step.number(1)))
    size = np.clip(size * factor, least, most)
    gradient = np.where(turned < 0, step.number(0), gradient)
    slots = {"previous_gradient": gradient, "step_size": size}
    return AfterUpdate(step.weight - np.sign(gradient) * size, slots)


def _averaged(step: _Step) -> AfterUpdate:
    """ASGD: the mean of the last gradients. PyTorch's has one, and an average that no update reads."""
    newest, most = step.decayed, int(step.settings.get("batch_num") or 1)
    if most == 1:
        return AfterUpdate(step.weight - step.get("lr") * newest, {})
    recent = np.array(step.slots.get("recent_gradients", np.zeros((most, *newest.shape), newest.dtype)))
    if len(recent) != most:  # the other side's
        raise ValueError(f"{len(recent)} gradients are kept, not {most}")
    place = int(step.count - 1) % most
    total = step.slot("gradient_sum") - recent[place] + newest
    recent[place] = newest
    moved = step.get("lr") * total / min(step.count, step.number(most))
    return AfterUpdate(step.weight - moved, step.counted({"gradient_sum": total, "recent_gradients": recent}))


RULES: dict[str, Callable[[_Step], AfterUpdate]] = {
    "SGD": _momentum,
    "Momentum": _momentum,
    "Adam": _adam,
    "AdamW": _adam,
    "Adamax": _adamax,
    "NAdam": _nadam,
    "RAdam": _radam,
    "Adagrad": _adagrad,
    "Adadelta": _adadelta,
    "RMSProp": _rmsprop,
    "Rprop": _rprop,
    "ASGD": _averaged,
}
# Settings that are numbers, of every rule: what a hidden mistake may have changed.
NUMBERS: dict[str, tuple[str, ...]] = {
    "SGD": (),
    "Momentum": ("momentum", "dampening"),
    **dict.fromkeys(("Adam", "AdamW", "Adamax", "NAdam", "RAdam"), ("beta1", "beta2", "epsilon")),
    "Adagrad": ("epsilon",),
    "Adadelta": ("rho", "epsilon"),
    "RMSProp": ("rho", "epsilon", "momentum"),
    "Rprop": (),
    "ASGD": (),
}


def updated(
    kind: str, settings: Settings, moment: BeforeUpdate, dtype: Any = np.float64
) -> AfterUpdate | None:
    """The parameter after the update; None for a rule that is not known or lacks a setting."""
    rule = RULES.get(kind)
    if rule is None:
        return None
    try:
        with np.errstate(all="ignore"):
            return rule(_Step(moment.cast(dtype), settings))
    except (
        KeyError,
        TypeError,
        ValueError,
    ):  # a setting that the framework does not tell, or not as a number
        return None
