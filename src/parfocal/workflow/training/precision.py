"""Mixed precision: how either side is asked for it, and whether it has an effect on both.

Forward pass and loss are computed in lower precision, weights stay what they are. Floors need nothing of
their own: the reference in float64 is as far from the reference in mixed precision as that rounds.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from parfocal.backends.protocol import Mode
from parfocal.brief import brief
from parfocal.errors import InputError, UnsupportedError
from parfocal.judge.floors import NOTHING
from parfocal.judge.metrics import compare_arrays
from parfocal.judge.verdict import Claim, Divergence, Finding, Grounds, Site, side_name
from parfocal.phrases import phrase
from parfocal.workflow.training.batches import Batch
from parfocal.workflow.training.sides import Arrays, TrainingSide

DEFAULT = "bfloat16"
# What may be said -> level and dtype.
SPELLED = {
    "O1": ("O1", DEFAULT),
    "O2": ("O2", DEFAULT),
    DEFAULT: ("O1", DEFAULT),
}
OFF = ("O0", "float32")
SCALED = ("float16",)
WANTED = phrase('amp="O1", amp="O2", or a pair of functions that give a context each')


@dataclass(frozen=True, slots=True)
class MixedPrecision:
    """What one side is asked for: a level and a dtype, or a context of the user's own."""

    level: str = ""
    dtype: str = ""
    context: Callable[[], AbstractContextManager[Any]] | None = None


def parse_amp(amp: Any) -> tuple[MixedPrecision | None, MixedPrecision | None]:
    """What each side is asked for, None: nothing."""
    pair = amp if isinstance(amp, (tuple, list)) else (amp, amp)
    if len(pair) != 2 or (callable(amp) and not isinstance(amp, (tuple, list))):
        raise InputError(phrase("amp={amp} is not for two sides", amp=brief(amp)), hint=WANTED)
    ours, theirs = (_parsed(each) for each in pair)
    return ours, theirs


def _parsed(value: Any) -> MixedPrecision | None:
    if value is None or value in OFF:
        return None
    if callable(value):
        return MixedPrecision(context=value)
    if value in SCALED:
        raise UnsupportedError(
            phrase(
                "amp={amp}: a training in float16 needs its loss scaled, which is not compared yet",
                amp=brief(value),
            ),
            hint=phrase(
                'amp="O1" and amp="O2" compare in bfloat16; what differs there differs in float16 too'
            ),
        )
    if not isinstance(value, str) or value not in SPELLED:
        raise InputError(phrase("amp={amp} is no level of mixed precision", amp=brief(value)), hint=WANTED)
    return MixedPrecision(*SPELLED[value])


def give_precision(sides: tuple[TrainingSide, TrainingSide], amp: Any) -> None:
    """Every forward pass and loss of the sides is computed so from here on."""
    for side, asked in zip(sides, parse_amp(amp), strict=True):
        if asked is None:
            continue
        if asked.context is not None:
            side.lower = asked.context
        else:
            side.lower = partial(side.backend.mixed_precision, side.model, asked.level, asked.dtype)
            side.rounds = not side.backend.lowers(side.model, asked.dtype)


def rounding_notes(sides: tuple[TrainingSide, TrainingSide]) -> list[Finding]:
    """Where a framework has no mixed precision on this device, and what was done instead."""
    return [
        Finding(
            "training.precision",
            phrase(
                "{framework} has no mixed precision on this device: operands and results of the {side}'s "
                "products are rounded to lower precision instead, and computed in float32",
                framework=side.backend.name,
                side=side_name(side.words),
            ),
        )
        for side in sides
        if side.rounds
    ]


def precision_difference(
    sides: tuple[TrainingSide, TrainingSide], pair: tuple[Batch, Batch], mode: Mode
) -> Divergence | None:
    """One side computes as if nothing had been asked for, and the other does not."""
    if all(side.lower is None for side in sides):
        return None
    effects = [_effect(side, batch, mode) for side, batch in zip(sides, pair, strict=True)]
    if all(effects) or not any(effects):
        return None
    wide, narrow = (sides[1], sides[0]) if effects[0] else (sides[0], sides[1])
    message = phrase(
        "the {narrow} computes in mixed precision, the {wide} in float32: its outputs are the same to the "
        "last bit when nothing is asked of it",
        narrow=side_name(narrow.words),
        wide=side_name(wide.words),
    )
    fix = (
        phrase("run the port's forward pass and loss in mixed precision as the reference's")
        if wide is sides[1]
        else phrase("run the port's forward pass and loss in float32 as the reference's")
    )
    ours, theirs = (Site("", type(side.model).__name__) for side in sides)
    error = effects[0] or effects[1]
    return Divergence(
        "forward",
        ours,
        theirs,
        phrase("precision of the outputs"),
        error,
        NOTHING,
        math.inf,
        cause=Claim("dtype.precision", message, fix).likely(Grounds.VALUES),
    )


def _effect(side: TrainingSide, batch: Batch, mode: Mode) -> Any:
    """How far outputs are from those in full precision; None: not at all."""
    if side.lower is None:
        return None
    lowered = _outputs(side, batch, mode)
    asked, side.lower = side.lower, None
    try:
        whole = _outputs(side, batch, mode)
    finally:
        side.lower = asked
    for slot, array in whole.items():
        other = lowered[slot].astype(np.float32)
        if not np.array_equal(other, array.astype(np.float32)):
            return compare_arrays(other, array.astype(np.float32))
    return None


def _outputs(side: TrainingSide, batch: Batch, mode: Mode) -> Arrays:
    """It leaves no trace."""
    backend = side.backend
    buffers, state = side.arrays("buffer", copy=True), backend.rng_state()
    try:
        with backend.mode(side.model, mode), backend.no_grad(), backend.no_functional_dropout():
            output = side.forward(batch)
            return {slot: backend.to_array(leaf) for slot, leaf in side.outputs(output).items()}
    finally:
        backend.set_rng_state(state)
        for path, tensor in side.tensors("buffer").items():
            backend.write(tensor, buffers[path])
