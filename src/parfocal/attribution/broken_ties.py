"""Gradients that hang on equal values: a maximum of two that are the same, a kink that is met exactly.

Frameworks send such gradients different ways. Two values that are equal by construction (padding,
a token that comes twice) are equal again the next time, and the difference is real; two that
only round to the same number are not, and nothing can be made of them. In float64 the ones stay
equal and the others do not.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from parfocal.attribution.measures import LIMIT, Measure
from parfocal.attribution.sides import ModelSide
from parfocal.backends.protocol import Array, Call
from parfocal.brief import told
from parfocal.capture.nested_values import flatten, flatten_call
from parfocal.judge import limits
from parfocal.judge.floors import difference, score
from parfocal.replay.noise_floors import NoiseFloors

EQUAL = limits.pairing.EQUAL_IN_FLOAT64.value


def acquitted_of_chance(
    measure: Measure, observed: Array | None, precise: NoiseFloors, reference: ModelSide
) -> Measure:
    """The measure, with a floor of its own size where the ties behind it are chance.

    ``observed``: what the port gives there on the reference's values.
    """
    try:
        exact = _in_float64(reference, measure)
    except Exception as error:  # noqa: BLE001  whatever a framework raises for a missing kernel
        reason = told(error)
        precise.problems.append(f"the reference as a whole: {reason}")
        exact = None
    if observed is None or exact is None:
        return replace(measure, floor=measure.floor | measure.error)
    place = measure.reference, measure.side, measure.reference_slot
    expected, recorded = precise.at((*place, measure.direction)), precise.at((*place, "forward"))
    lasting = _lasting(recorded, exact)
    layout = precise.port.script.layouts.get((measure.port, measure.side, measure.slot))
    if layout is not None:
        expected, lasting = layout.apply(expected), layout.apply(lasting)
    left = difference(np.where(lasting, observed, expected), expected)
    if score(left, measure.floor) > LIMIT:
        return measure
    return replace(measure, floor=measure.floor | measure.error)


def _lasting(recorded: Array, exact: Array) -> Array:
    """Which of the recorded values have an equal, or are zero, and have it in float64 too."""
    _, group, counts = np.unique(recorded, return_inverse=True, return_counts=True)
    group = group.reshape(-1)
    values = exact.reshape(-1)
    lowest = np.full(len(counts), np.inf)
    highest = np.full(len(counts), -np.inf)
    np.minimum.at(lowest, group, values)
    np.maximum.at(highest, group, values)
    close = highest - lowest <= EQUAL * np.maximum(np.abs(highest), np.abs(lowest))
    tied = close & (counts > 1) | ((lowest == 0) & (highest == 0))
    mask: Array = tied[group].reshape(recorded.shape)
    return mask


def _in_float64(model_side: ModelSide, measure: Measure) -> Array | None:
    """The tensor of the reference at the measure's place when the whole model computes in float64."""
    twin = model_side.twin("float64")
    found: list[Array] = []

    def enter(call: Call) -> None:
        if call.order == measure.reference and measure.side == "input":
            keep(flatten_call(call.args, call.kwargs).leaves)

    def leave(call: Call, output: Any) -> None:
        if call.order == measure.reference and measure.side == "output":
            keep(flatten(output).leaves)

    def keep(leaves: dict[str, Any]) -> None:
        found.append(twin.backend.to_array(leaves[measure.reference_slot]))

    args, kwargs = twin.inputs()
    with twin.backend.no_grad(), twin.backend.watch(twin.model, enter, leave):
        twin.model(*args, **kwargs)
    return found[0] if found else None
