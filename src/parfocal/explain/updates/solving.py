"""What an optimizer really does: settings solved for from weights, gradients and slots before and after.

A hypothesis is a rule with something about it changed, and at most one number that is solved for. It holds
only if it reproduces the update of every parameter it is tried on, up to rounding.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from parfocal.backends.protocol import Array
from parfocal.explain.causes import rounded
from parfocal.explain.updates.floors import LIMIT, UpdateFloor, distance, rule_floor, scale_floor
from parfocal.explain.updates.rules import NUMBERS, AfterUpdate, BeforeUpdate, updated
from parfocal.judge import limits

ELEMENTS = limits.searches.SOLVED_ELEMENTS.value
ROUNDS = limits.searches.SOLVED_ROUNDS.value
SMALLEST = limits.causes.NO_NUMBER.value
STARTS: dict[str, tuple[float, ...]] = {
    "weight_decay": (0.0, 0.01),
    "added_decay": (0.0,),
    "momentum": (0.0, 0.9, 0.5),
    "dampening": (0.0, 0.5, 0.9),
    "beta1": (0.9, 0.5, 0.99),
    "beta2": (0.999, 0.9, 0.99),
    "rho": (0.9, 0.99, 0.5),
    "epsilon": (1e-8, 1e-3, 1e-6, 1e-10, 1e-1),
    "lr": (1.0,),
}


@dataclass(frozen=True, slots=True)
class SideUpdate:
    """One side's update of one parameter: what it is said to be, and what went in and came out."""

    kind: str
    settings: Mapping[str, Any]
    moment: BeforeUpdate
    outcome: AfterUpdate

    def floor(self) -> UpdateFloor:
        floor = scale_floor(self.moment.weight, self.outcome)
        found = rule_floor(self.kind, self.settings, self.moment)
        return floor if found is None else floor | found

    def score(self, settings: Mapping[str, Any] | None = None, kind: str | None = None) -> float | None:
        """How far the update is from the rule with these settings; None where the rule is not known."""
        said = self.settings if settings is None else settings
        expected = updated(kind or self.kind, said, self.moment)
        return None if expected is None else distance(self.outcome, expected, self.floor())

    def sample(self) -> SideUpdate:
        """Some of the elements, the same of every tensor."""
        size = self.moment.weight.size
        if size <= ELEMENTS:
            return self
        chosen = np.linspace(0, size - 1, ELEMENTS).astype(np.int64)

        def some(array: Array) -> Array:
            return array.reshape(-1)[chosen] if array.size == size else array

        return SideUpdate(
            self.kind,
            self.settings,
            BeforeUpdate(
                some(self.moment.weight),
                some(self.moment.gradient),
                {name: some(np.asarray(values)) for name, values in self.moment.slots.items()},
            ),
            AfterUpdate(
                some(self.outcome.weight),
                {name: some(np.asarray(values)) for name, values in self.outcome.slots.items()},
            ),
        )


@dataclass(frozen=True, slots=True)
class UpdateEvidence:
    """One parameter's update on both sides, made from the same numbers and in the port's layout."""

    path: str  # in the port
    name: str  # in the reference
    reference: SideUpdate
    port: SideUpdate


@dataclass(frozen=True, slots=True)
class Solution:
    """Settings that reproduce an update: ``changed`` from what is said, and how well."""

    changed: Mapping[str, Any] = field(default_factory=dict)
    score: float = 0.0


def solve(updates: Sequence[SideUpdate]) -> Solution | None:
    """The simplest change of the stated settings that reproduces all of these updates."""
    some = [each.sample() for each in updates]
    if not some or any(each.score() is None for each in some):
        return None
    floors = [each.floor() for each in some]
    for changed, name in _hypotheses(some[0]):
        for value in [None] if name is None else _values(some, floors, changed, name):
            settings = changed if name is None or value is None else {**changed, name: value}
            measured = _worst(some, floors, settings)
            if measured <= LIMIT:
                return Solution(settings, measured)
    return None


def _hypotheses(update: SideUpdate) -> Iterator[tuple[dict[str, Any], str | None]]:
    """What is changed, and the name of the number that is solved for; the plainest first."""
    settings = update.settings
    yield {}, None
    forms = ("l2", "decoupled", "l1")
    now = settings.get("decay", "l2")
    for form in (now, *(each for each in forms if each != now)):
        yield {"decay": form}, "weight_decay"
    if now == "decoupled":
        yield {}, "added_decay"
    for name in NUMBERS.get(update.kind, ()):
        yield {}, name
    if update.kind in ("SGD", "Momentum"):
        yield {"nesterov": not settings.get("nesterov", False)}, "momentum"
        yield {}, "momentum"
    if update.kind in ("Adam", "AdamW", "NAdam", "RAdam", "Adamax"):
        yield {"bias_correction": False}, None
    if update.kind in ("Adam", "AdamW"):
        yield {"amsgrad": not settings.get("amsgrad", False)}, None
    if "epsilon" in settings:
        other = "outside" if settings.get("epsilon_place", "outside") == "inside" else "inside"
        yield {"epsilon_place": other}, None
        yield {"epsilon_place": other}, "epsilon"
    yield {}, "lr"


def _values(
    updates: Sequence[SideUpdate], floors: Sequence[UpdateFloor], changed: Mapping[str, Any], name: str
) -> Iterator[float]:
    said = get(updates[0].settings, name)
    starts = (() if said is None else (float(said),)) + STARTS.get(name, (0.0,))
    tried: list[float] = []
    for start in starts:
        value = _secant(updates, floors, changed, name, start)
        if value is None or any(abs(value - other) <= 1e-9 * abs(other) for other in tried):
            continue
        tried.append(value)
        yield rounded(value)
        yield value


def _secant(
    updates: Sequence[SideUpdate],
    floors: Sequence[UpdateFloor],
    changed: Mapping[str, Any],
    name: str,
    start: float,
) -> float | None:
    """The number with the smallest residual: secant steps on the least squares of all updates."""
    value, step = start, max(abs(start) * 1e-4, 1e-7)
    left = _left(updates, floors, changed, name, value)
    for _ in range(ROUNDS):
        ahead = _left(updates, floors, changed, name, value + step)
        if left is None or ahead is None:
            return None
        slope = (ahead - left) / step
        power = float(slope @ slope)
        if not np.isfinite(power) or power < SMALLEST:
            return None
        move = -float(slope @ left) / power
        if name == "epsilon" and value + move <= 0:
            move = -value / 2
        value += move
        left = _left(updates, floors, changed, name, value)
        if abs(move) <= 1e-10 * max(abs(value), 1e-12):
            break
        step = max(abs(move) * 1e-2, abs(value) * 1e-7, 1e-12)
    return value if np.isfinite(value) else None


def _left(
    updates: Sequence[SideUpdate],
    floors: Sequence[UpdateFloor],
    changed: Mapping[str, Any],
    name: str,
    value: float,
) -> Array | None:
    """What is left of every update and slot, in units of rounding."""
    parts = []
    for update, floor in zip(updates, floors, strict=True):
        settings = with_settings(update.settings, {**changed, name: value})
        expected = updated(update.kind, settings, update.moment)
        if expected is None:
            return None
        apart = update.outcome.weight.astype(np.float64) - expected.weight
        parts.append(apart.reshape(-1) / max(floor.weight.rms, SMALLEST))
        for slot, values in expected.slots.items():
            seen = update.outcome.slots.get(slot)
            if seen is not None and seen.shape == np.shape(values) and np.size(values) > 1:
                unit = max(floor.slots[slot].rms if slot in floor.slots else 0.0, SMALLEST)
                parts.append((seen.astype(np.float64) - values).reshape(-1) / unit)
    return np.concatenate(parts)


def _worst(updates: Sequence[SideUpdate], floors: Sequence[UpdateFloor], changed: Mapping[str, Any]) -> float:
    found = []
    for update, floor in zip(updates, floors, strict=True):
        expected = updated(update.kind, with_settings(update.settings, changed), update.moment)
        found.append(np.inf if expected is None else distance(update.outcome, expected, floor))
    return max(found, default=np.inf)


def get(settings: Mapping[str, Any], name: str) -> Any:
    """A setting by name; one of a pair of betas by its own, None where there is none."""
    if name in ("beta1", "beta2"):
        pair = settings.get("betas")
        return None if pair is None else pair[name == "beta2"]
    return settings.get(name)


def with_settings(settings: Mapping[str, Any], changed: Mapping[str, Any]) -> dict[str, Any]:
    """Settings with some exchanged; ``lr`` is a factor here, because rates are told apart from rules."""
    made = dict(settings)
    for name, value in changed.items():
        if name in ("beta1", "beta2"):
            pair = tuple(made["betas"])
            made["betas"] = (value, pair[1]) if name == "beta1" else (pair[0], value)
        elif name == "lr":
            made["lr"] = float(settings.get("lr", 0.0)) * value
        else:
            made[name] = value
    return made
