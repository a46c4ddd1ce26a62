"""Whether the two models drop alike: nothing is dropped while they are compared, so it is read."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

from parfocal.backends.protocol import Mode
from parfocal.brief import brief
from parfocal.capture.determinism import dropping
from parfocal.judge import limits
from parfocal.judge.floors import NOTHING
from parfocal.judge.verdict import Claim, Divergence, Grounds, Site
from parfocal.phrases import phrase
from parfocal.report.report import Report
from parfocal.workflow.training.batches import Batch
from parfocal.workflow.training.sides import TrainingSide

DIGITS = limits.causes.DROPOUT_DIGITS.value


def dropout_differences(
    sides: tuple[TrainingSide, TrainingSide],
    pair: tuple[Batch, Batch],
    mode: Mode,
    look: Callable[[tuple[Batch, Batch]], Report | None],
) -> list[Divergence]:
    """As an alignment reads them call by call; else by rates, where both modules and calls differ."""
    rates = [_rounded(rate for _, rate in dropping(each.model).values()) for each in sides]
    if mode == "eval" or rates[0] == rates[1]:
        return []
    report = look(pair)
    found = () if report is None else report.divergences
    told = [each for each in found if each.cause is not None and each.cause.code == "random.dropout"]
    if told:
        return told
    asked = [asked_rates(side, batch, mode) for side, batch in zip(sides, pair, strict=True)]
    if asked[0] == asked[1]:
        return []
    message = phrase(
        "dropout at rates {reference} in the reference and {port} in the port",
        reference=brief(asked[0]),
        port=brief(asked[1]),
    )
    fix = phrase("drop at rates {port} in the port", port=brief(asked[0]))
    cause = Claim("random.dropout", message, fix).likely(Grounds.SETTINGS)
    ours, theirs = (Site("", type(side.model).__name__) for side in sides)
    return [
        Divergence("forward", ours, theirs, phrase("what is dropped"), None, NOTHING, math.inf, cause=cause)
    ]


def asked_rates(side: TrainingSide, batch: Batch, mode: Mode) -> list[float]:
    """The rates at which one forward pass drops; it leaves no trace."""
    backend = side.backend
    found: list[float] = []
    buffers, state = side.arrays("buffer", copy=True), backend.rng_state()
    try:
        with backend.mode(side.model, mode), backend.no_grad(), backend.watch_dropout(found.append):
            side.forward(batch)
    finally:
        backend.set_rng_state(state)
        for path, tensor in side.tensors("buffer").items():
            backend.write(tensor, buffers[path])
    return _rounded(found)


def _rounded(rates: Iterable[float]) -> list[float]:
    return sorted(round(rate, DIGITS) for rate in rates if rate)
