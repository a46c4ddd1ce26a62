"""Where a run that was cut short ends: in which step and in which call."""

from __future__ import annotations

from collections.abc import Iterator

from parfocal.judge.verdict import Finding, side_name
from parfocal.phrases import phrase
from parfocal.report.report import INCOMPLETE
from parfocal.workflow.recorded_runs.pair import StepPair
from parfocal.workflow.recorded_runs.steps import RecordedStep


def interruptions(pair: StepPair) -> Iterator[Finding]:
    """One finding for each side that ends within this step; its site is on the side that ends."""
    reference, port = pair.sites()
    if pair.reference.cut_short:
        yield Finding(INCOMPLETE, _told("reference", pair.reference, _next_call(pair, 0)), reference)
    if pair.port.cut_short:
        yield Finding(INCOMPLETE, _told("port", pair.port, _next_call(pair, 1)), None, port)


def _told(name: str, side: RecordedStep, following: str | None) -> str:
    rank = phrase(" of rank {rank}", rank=side.rank) if side.run.header.ranks > 1 else ""
    place = following
    error = ""
    if side.interruption is not None:
        error = f" ({side.interruption.error})"
        place = side.interruption.path
    where = (
        phrase(", in {place}", place=place or phrase("the model"))
        if place is not None
        else phrase(", outside of the model")
    )
    return phrase(
        "the {name}'s run{rank} ends at step {step}{where}{error}: compared as far as it goes",
        name=side_name(name),
        rank=rank,
        step=side.step,
        where=where,
        error=error,
    )


def _next_call(pair: StepPair, side: int) -> str | None:
    """What the other run calls after the last call that both have: there a killed process was."""
    sides = (pair.reference, pair.port)
    orders = [(each.pair.reference, each.pair.port) for each in pair.errors]
    nodes = sides[1 - side].trace.nodes
    # calls that never returned stand for those around the one that was under way
    finished = [order[1 - side] for order in orders if sides[side].trace.nodes[order[side]].outputs]
    last = max(finished, default=-1)
    return next((node.path for node in nodes[last + 1 :] if node.is_leaf), None)
