"""How exact an update can be: the same rule in float32 and float64, and with its settings moved a little."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from parfocal.backends.protocol import Array
from parfocal.explain.updates.rules import AfterUpdate, BeforeUpdate, Settings, updated
from parfocal.judge import limits
from parfocal.judge.floors import EPSILON, Size, difference, score, size_of

MOVED = ("lr", "weight_decay", "momentum", "rho", "betas", "momentum_decay")  # kept in float32 somewhere
LIMIT = limits.verdicts.UPDATE.value
# Frameworks add the epsilon of these in different places, and no argument says where.
ADDED_ANYWHERE = ("Adamax", "RMSProp")
TINY = limits.causes.TINY_EPSILON.value


@dataclass(frozen=True, slots=True)
class UpdateFloor:
    """What rounding does to a weight and to every slot in one update."""

    weight: Size
    slots: Mapping[str, Size] = field(default_factory=dict)

    def __or__(self, other: UpdateFloor) -> UpdateFloor:
        names = {**self.slots, **other.slots}
        nothing = Size(0.0, 0.0)
        slots = {n: self.slots.get(n, nothing) | other.slots.get(n, nothing) for n in names}
        return UpdateFloor(self.weight | other.weight, slots)


def scale_floor(before: Array, outcome: AfterUpdate) -> UpdateFloor:
    """The floor by sizes alone: a unit in the last place of the weight, and a few of the step."""
    epsilon = EPSILON["float32"]
    step = difference(outcome.weight, before) * (4 * epsilon)
    return UpdateFloor(
        (size_of(outcome.weight) | size_of(before)) * epsilon | step,
        {name: size_of(np.asarray(values)) * epsilon for name, values in outcome.slots.items()},
    )


def rule_floor(kind: str, settings: Settings, moment: BeforeUpdate) -> UpdateFloor | None:
    """The floor by the rule: computed in float32, with settings moved by one unit, with other epsilons."""
    exact = updated(kind, settings, moment)
    if exact is None:
        return None
    floor: UpdateFloor | None = None
    for other in _others(kind, settings, moment):
        apart = UpdateFloor(
            _apart(other.weight, exact.weight),
            {
                name: _apart(np.asarray(other.slots[name]), np.asarray(values))
                for name, values in exact.slots.items()
                if name in other.slots
            },
        )
        floor = apart if floor is None else floor | apart
    return floor


def _apart(other: Array, exact: Array) -> Size:
    """The difference where both are finite: without an epsilon some elements are 0 / 0."""
    wide = other.astype(np.float64)
    return difference(np.where(np.isfinite(wide), wide, exact), exact.astype(np.float64))


def _others(kind: str, settings: Settings, moment: BeforeUpdate) -> Iterator[AfterUpdate]:
    ways: list[tuple[dict[str, Any], Any]] = [({**settings}, np.float32)]
    for name in MOVED:
        value = settings.get(name)
        if isinstance(value, (tuple, list)):
            ways += [({**settings, name: _raised(value, at)}, np.float64) for at in range(len(value))]
        elif isinstance(value, float) and value:
            ways.append(({**settings, name: value * (1 + EPSILON["float32"])}, np.float64))
    if kind in ADDED_ANYWHERE and float(settings.get("epsilon", 1.0)) <= TINY:
        ways.append(({**settings, "epsilon": 0.0}, np.float64))
    for changed, dtype in ways:
        outcome = updated(kind, changed, moment, dtype)
        if outcome is not None:
            yield outcome


def _raised(values: Any, at: int) -> tuple[float, ...]:
    return tuple(
        value * (1 + EPSILON["float32"]) if number == at else value for number, value in enumerate(values)
    )


def distance(observed: AfterUpdate, expected: AfterUpdate, floor: UpdateFloor) -> float:
    """The largest error of the weight and of the slots both have, in units of the floor."""
    found = [score(difference(observed.weight, expected.weight), floor.weight)]
    found += [
        score(
            difference(
                np.asarray(observed.slots[name]), np.asarray(values).astype(observed.slots[name].dtype)
            ),
            floor.slots.get(name, Size(0.0, 0.0)),
        )
        for name, values in expected.slots.items()
        if name in observed.slots and name != "step" and observed.slots[name].shape == np.shape(values)
    ]
    return max(found)
