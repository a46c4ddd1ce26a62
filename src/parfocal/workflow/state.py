"""Weights and buffers of the two models: do corresponding ones agree."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from parfocal.backends.protocol import Array
from parfocal.explain.layers.weights import tied_cause, weight_cause
from parfocal.judge.floors import coarser, error_of, score, size_of
from parfocal.judge.metrics import compare_arrays
from parfocal.judge.verdict import Cause, Divergence, Finding, Site
from parfocal.weights import views
from parfocal.weights.plan import Entry, Plan
from parfocal.workflow.alignment import Alignment, Observation
from parfocal.workflow.players import Arrays, Player
from parfocal.workflow.statistics import Statistic, judged

BUFFER_LIMIT = 8.0  # in units of rounding


@contextmanager
def weights_kept(player: Player) -> Iterator[None]:
    """Whatever is written to the model's state meanwhile is taken back on leaving."""
    backend = player.backend
    before = [(entry.value, backend.to_array(entry.value)) for entry in backend.state(player.model)]
    try:
        yield
    finally:
        for tensor, array in before:
            backend.write(tensor, array)


def weight_differences(plan: Plan, reference: Player, port: Player) -> Iterator[Divergence]:
    """Corresponding weights that are not equal, before anything runs."""
    ours, theirs = _state(reference), _state(port)
    for entry in plan.entries:
        if entry.source not in ours or entry.target not in theirs:
            continue
        expected = views.apply(entry.source_view, ours[entry.source])
        observed = views.apply(entry.target_view, theirs[entry.target])
        comparison = compare_arrays(observed, expected)
        if comparison.equal:
            continue
        floor = size_of(expected) * coarser(observed.dtype.name, expected.dtype.name)
        measured = score(error_of(comparison), floor)
        if measured > 1.0:
            yield Divergence(
                "weights",
                Site(entry.source, "parameter"),
                Site(entry.target, "parameter"),
                f"{comparison.mismatched} of {comparison.size} values",
                comparison,
                floor,
                measured,
                "the weights differ before anything runs",
                cause=_untied(entry, plan, ours, theirs)
                or weight_cause(
                    *(entry.target, port.backend.name, observed, expected, floor, 1.0),
                    _others(entry, plan, ours),
                ),
            )


def _others(entry: Entry, plan: Plan, ours: Arrays) -> Iterator[tuple[str, Array]]:
    """The reference's tensors that belong elsewhere, by where in the port."""
    for other in plan.entries:
        elsewhere = (other.source, other.source_view) != (entry.source, entry.source_view)
        if elsewhere and other.source in ours:
            yield other.target, views.apply(other.source_view, ours[other.source])


def _untied(entry: Entry, plan: Plan, ours: Arrays, theirs: Arrays) -> Cause | None:
    """One tensor of the reference is several in the port, of which another has the right values."""
    right = [
        other.target
        for other in plan.entries
        if (other.source, other.source_view) == (entry.source, entry.source_view)  # not another part of it
        and other.target != entry.target
        and other.target in theirs
        and views.apply(other.source_view, ours[entry.source]).shape
        == views.apply(other.target_view, theirs[other.target]).shape
        and np.array_equal(
            views.apply(other.source_view, ours[entry.source]),
            views.apply(other.target_view, theirs[other.target]),
        )
    ]
    return tied_cause(entry.target, right[0], entry.source) if right else None


def _state(player: Player) -> dict[str, Array]:
    backend = player.backend
    return {entry.path: backend.to_array(entry.value, copy=False) for entry in backend.state(player.model)}


def buffer_results(alignment: Alignment, observation: Observation) -> tuple[list[Divergence], list[Finding]]:
    """Buffers after a run on exact inputs."""
    statistics = statistics_of(alignment, observation.buffers)
    return judged(statistics, alignment.port.backend, BUFFER_LIMIT)


def statistics_of(alignment: Alignment, followed: Arrays) -> Iterator[Statistic]:
    reference, port = alignment.reference, alignment.port
    for entry in alignment.plan.entries:
        if entry.source not in reference.natural.buffers or entry.target not in followed:
            continue
        ours = [node for node in reference.trace.nodes if node.path == entry.source.rpartition(".")[0]]
        theirs = [node for node in port.trace.nodes if node.path == entry.target.rpartition(".")[0]]
        if not ours or not theirs or not ours[0].inputs:
            continue
        yield Statistic(
            entry.target,
            views.apply(entry.source_view, reference.buffers_before[entry.source]),
            views.apply(entry.source_view, reference.natural.buffers[entry.source]),
            views.apply(entry.target_view, followed[entry.target]),
            ours[0],
            theirs[0],
            len(ours),
            channels=reference.buffers_before[entry.source].size,
        )
