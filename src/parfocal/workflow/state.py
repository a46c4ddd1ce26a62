"""Weights and buffers of the two models: do corresponding ones agree."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

import numpy as np

from parfocal.attribution.observation import Observation
from parfocal.attribution.sides import Arrays, ModelSide
from parfocal.backends.protocol import Array
from parfocal.explain.layers.weights import tied_cause, weight_cause
from parfocal.judge import limits
from parfocal.judge.floors import coarser, error_of, score, size_of
from parfocal.judge.metrics import compare_arrays
from parfocal.judge.picture import picture_of
from parfocal.judge.verdict import Cause, Divergence, Site
from parfocal.phrases import phrase
from parfocal.weights import views
from parfocal.weights.plan import Entry, Plan
from parfocal.workflow.alignment import Alignment
from parfocal.workflow.statistics import JudgedStatistics, Statistic, judged

BUFFER_LIMIT = limits.verdicts.UPDATE.value


@contextmanager
def weights_kept(model_side: ModelSide) -> Iterator[None]:
    """Whatever is written to the model's state meanwhile is taken back on leaving."""
    backend = model_side.backend
    before = [(entry.value, backend.to_array(entry.value)) for entry in backend.state(model_side.model)]
    try:
        yield
    finally:
        for tensor, array in before:
            backend.write(tensor, array)


def weight_differences(plan: Plan, reference: ModelSide, port: ModelSide) -> Iterator[Divergence]:
    """Corresponding weights that are not equal, before anything runs."""
    if not plan.entries:
        return
    ours, theirs = _state(reference), _state(port)
    elsewhere = _Elsewhere(plan, ours)
    for entry in plan.entries:
        if entry.source not in ours or entry.target not in theirs:
            continue
        expected = views.apply(entry.source_view, ours[entry.source])
        observed = views.apply(entry.target_view, theirs[entry.target])
        if observed.dtype == expected.dtype and np.array_equal(observed, expected):
            continue
        comparison = compare_arrays(observed, expected)
        if comparison.equal:  # but for a NaN in the same place
            continue
        floor = size_of(expected) * coarser(observed.dtype.name, expected.dtype.name)
        measured = score(error_of(comparison), floor)
        if measured > 1.0:
            yield Divergence(
                "weights",
                Site(entry.source, "parameter"),
                Site(entry.target, "parameter"),
                phrase(
                    "{mismatched} of {size} values", mismatched=comparison.mismatched, size=comparison.size
                ),
                replace(comparison, picture=picture_of(observed, expected)),
                floor,
                measured,
                phrase("the weights differ before anything runs"),
                cause=_untied(entry, elsewhere.twins(entry), ours, theirs, measured)
                or weight_cause(
                    entry.target,
                    port.backend.name,
                    observed,
                    expected,
                    floor,
                    1.0,
                    elsewhere.like(entry, observed),
                ),
            )


class _Elsewhere:
    """Where else in the port tensors of the reference belong; worked out once there is a difference."""

    def __init__(self, plan: Plan, ours: Arrays) -> None:
        self._entries = [entry for entry in plan.entries if entry.source in ours]
        self._ours = ours
        self._twins: dict[object, list[Entry]] = {}
        self._by_values: dict[object, list[Entry]] = {}

    def twins(self, entry: Entry) -> list[Entry]:
        """Entries of the same tensor of the reference, not of another part of it."""
        if not self._twins:
            for each in self._entries:
                self._twins.setdefault((each.source, each.source_view), []).append(each)
        return self._twins[entry.source, entry.source_view]

    def like(self, entry: Entry, observed: Array) -> Iterator[tuple[str, Array]]:
        """The reference's other tensors that have these very values, by where in the port they belong."""
        if not self._by_values:
            for each in self._entries:
                array = views.apply(each.source_view, self._ours[each.source])
                self._by_values.setdefault(_values(array), []).append(each)
        for other in self._by_values.get(_values(observed), ()):
            if (other.source, other.source_view) != (entry.source, entry.source_view):
                yield other.target, views.apply(other.source_view, self._ours[other.source])


def _values(array: Array) -> object:
    return array.shape, array.dtype.name, hashlib.sha1(array.tobytes(), usedforsecurity=False).digest()


def _untied(
    entry: Entry, twins: Sequence[Entry], ours: Arrays, theirs: Arrays, measured: float
) -> Cause | None:
    """One tensor of the reference is several in the port, of which another has the right values."""
    for other in twins:
        if other.target == entry.target or other.target not in theirs:
            continue
        expected = views.apply(other.source_view, ours[entry.source])
        observed = views.apply(other.target_view, theirs[other.target])
        if observed.shape == expected.shape and np.array_equal(observed, expected):
            after = error_of(compare_arrays(observed, expected)).peak
            return tied_cause(entry.target, other.target, entry.source, measured, after)
    return None


def _state(model_side: ModelSide) -> dict[str, Array]:
    backend = model_side.backend
    return {
        entry.path: backend.to_array(entry.value, copy=False) for entry in backend.state(model_side.model)
    }


def buffer_results(alignment: Alignment, observation: Observation) -> JudgedStatistics:
    """Buffers after a run on exact inputs."""
    statistics = statistics_of(alignment, observation.buffers)
    return judged(statistics, alignment.port.backend, BUFFER_LIMIT)


def statistics_of(alignment: Alignment, followed: Arrays) -> Iterator[Statistic]:
    reference, port = alignment.reference, alignment.port
    calls = reference.trace.calls_by_path(), port.trace.calls_by_path()
    for entry in alignment.plan.entries:
        if entry.source not in reference.natural.buffers or entry.target not in followed:
            continue
        ours = calls[0].get(entry.source.rpartition(".")[0], [])
        theirs = calls[1].get(entry.target.rpartition(".")[0], [])
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
