"""Weights and buffers of the two models: do corresponding ones agree."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from parfocal.backends.protocol import Array
from parfocal.explain.layers.buffers import momentum_cause
from parfocal.explain.layers.weights import tied_cause, weight_cause
from parfocal.judge.floors import NOTHING, Size, coarser, error_of, score, size_of
from parfocal.judge.metrics import compare_arrays
from parfocal.judge.verdict import Cause, Divergence, Finding, Site
from parfocal.replay.trace import Node
from parfocal.weights import views
from parfocal.weights.plan import Entry, Plan
from parfocal.workflow.alignment import Alignment, Observation
from parfocal.workflow.players import Arrays, Player

# A statistic is a mean over a batch; the input's own size is the scale of its rounding errors.
BUFFER_LIMIT = 8.0


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


@dataclass(frozen=True, slots=True)
class _Statistic:
    """One running statistic on both sides, before and after one step on the same input."""

    entry: Entry
    before: Array
    expected: Array
    observed: Array
    node: Node
    port_node: Node


def buffer_results(alignment: Alignment, observation: Observation) -> tuple[list[Divergence], list[Finding]]:
    """Buffers after a run on exact inputs; a known difference of convention is only a finding."""
    divergences: list[Divergence] = []
    conventions: dict[str, list[_Statistic]] = {}
    for statistic in _statistics(alignment, observation.buffers):
        comparison = compare_arrays(statistic.observed, statistic.expected)
        error = error_of(comparison)
        floor = _floor(statistic)
        if score(error, floor) <= BUFFER_LIMIT:
            continue
        if _is_biased_variance(statistic, floor):
            conventions.setdefault("biased", []).append(statistic)
            continue
        divergences.append(
            Divergence(
                "buffer",
                _site(statistic.node),
                _site(statistic.port_node),
                f"buffer {statistic.entry.target} after one step",
                comparison,
                floor,
                score(error, floor),
                cause=momentum_cause(
                    *(statistic.before, statistic.expected, statistic.observed),
                    (statistic.node, statistic.port_node),
                    alignment.port.backend,
                    (floor, BUFFER_LIMIT),
                    _count(statistic),
                ),
            )
        )
    return divergences, [_variance_finding(items) for items in conventions.values()]


def _site(node: Node) -> Site:
    return Site(node.path, node.kind, None, node.file, node.line, node.settings)


def _statistics(alignment: Alignment, followed: Arrays) -> Iterator[_Statistic]:
    reference, port = alignment.reference, alignment.port
    for entry in alignment.plan.entries:
        if entry.source not in reference.natural.buffers or entry.target not in followed:
            continue
        ours = next((n for n in reference.trace.nodes if n.path == entry.source.rpartition(".")[0]), None)
        theirs = next((n for n in port.trace.nodes if n.path == entry.target.rpartition(".")[0]), None)
        if ours is None or theirs is None or not ours.inputs:
            continue
        yield _Statistic(
            entry,
            views.apply(entry.source_view, reference.buffers_before[entry.source]),
            views.apply(entry.source_view, reference.natural.buffers[entry.source]),
            views.apply(entry.target_view, followed[entry.target]),
            ours,
            theirs,
        )


def _floor(statistic: _Statistic) -> Size:
    epsilon = coarser(statistic.expected.dtype.name, statistic.observed.dtype.name)
    if not epsilon:
        return NOTHING
    given = next(iter(statistic.node.inputs.values())).data.size
    own = size_of(statistic.expected)
    return Size(max(own.rms, given.rms), max(own.peak, given.peak)) * epsilon


def _is_biased_variance(statistic: _Statistic, floor: Size) -> bool:
    """Whether the one side divides by n and the other by n - 1: the update's ratio is n / (n - 1)."""
    count, momentum = _count(statistic), statistic.node.settings.get("momentum")
    if count < 2 or not isinstance(momentum, float):
        return False
    kept = (1.0 - momentum) * statistic.before.astype(np.float64)
    updates = [side.astype(np.float64) - kept for side in (statistic.expected, statistic.observed)]
    for unbiased, biased in (updates, updates[::-1]):
        if score(error_of(compare_arrays(biased * (count / (count - 1)), unbiased)), floor) <= BUFFER_LIMIT:
            return True
    return False


def _count(statistic: _Statistic) -> int:
    """Values per channel."""
    elements = next(iter(statistic.node.inputs.values())).data.fingerprint.size
    return elements // max(1, statistic.expected.size)


def _variance_finding(items: list[_Statistic]) -> Finding:
    first = items[0]
    count = _count(first)
    message = (
        f"running variance of {len(items)} BatchNorm layers ({first.entry.target}, ...): one side divides "
        f"by n, the other by n - 1, a factor of {count / (count - 1):.6g} at n = {count}; equal in training, "
        "different in evaluation afterwards"
    )
    return Finding("buffer.running_variance", message, _site(first.node), _site(first.port_node))
