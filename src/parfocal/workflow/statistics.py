"""Running statistics after one step on the same values: do they agree, and if not, why.

A known difference of convention, a variance divided by n or by n - 1, is only a finding.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from parfocal.backends.protocol import Array, Backend
from parfocal.explain.layers.buffers import momentum_cause
from parfocal.judge.floors import NOTHING, Size, coarser, error_of, score, size_of
from parfocal.judge.metrics import compare_arrays
from parfocal.judge.verdict import Divergence, Finding
from parfocal.phrases import joined, phrase
from parfocal.replay.trace import Node


@dataclass(frozen=True, slots=True)
class Statistic:
    """One running statistic on both sides, before and after one step."""

    name: str  # its path in the port
    before: Array
    expected: Array
    observed: Array
    node: Node
    port_node: Node
    calls: int = 1  # that moved it on
    given: float = 0.0  # the relative error that its layer was given
    channels: int = 0  # of the reference's layer, where the port's has only some of them
    ranks: int = 1  # whose batches it may be taken over, all together


class JudgedStatistics(NamedTuple):
    """What was found of buffers; ``names``: the buffers of each divergence, by their paths in the port."""

    divergences: list[Divergence]
    findings: list[Finding]
    names: list[tuple[str, ...]]


def judged(statistics: Iterable[Statistic], backend: Backend | None, limit: float) -> JudgedStatistics:
    """``backend``: the port's, for the words of a fix; None where there is none at hand."""
    divergences: list[tuple[Divergence, str]] = []
    biased: list[Statistic] = []
    for each in statistics:
        floor = _floor(each)
        comparison = compare_arrays(each.observed, each.expected)
        measured = score(error_of(comparison), floor)
        if measured <= limit:
            continue
        for over in {1, each.ranks}:
            if _is_biased_variance(each, floor, limit, _count(each) * over):
                biased.append(replace(each, ranks=over))
                break
        else:
            divergences.append((_parted(each, floor, limit, backend), each.name))
    findings = [_variance_finding(biased)] if biased else []
    groups = _by_mistake(divergences)
    return JudgedStatistics(
        [_in_one(group) for group in groups],
        findings,
        [tuple(name for _, name in group) for group in groups],
    )


def _parted(each: Statistic, floor: Size, limit: float, backend: Backend | None) -> Divergence:
    comparison = compare_arrays(each.observed, each.expected, picture=True)
    cause = momentum_cause(
        each.before,
        each.expected,
        each.observed,
        (each.node, each.port_node),
        backend,
        (floor, limit),
        _count(each),
    )
    sites = each.node.site, each.port_node.site
    measured = score(error_of(comparison), floor)
    return Divergence("buffer", *sites, each.name, comparison, floor, measured, cause=cause)


def _by_mistake(divergences: list[tuple[Divergence, str]]) -> list[list[tuple[Divergence, str]]]:
    """A wrong momentum shows in the mean and in the variance of a layer, and is one mistake."""
    groups: dict[object, list[tuple[Divergence, str]]] = {}
    for number, (each, name) in enumerate(divergences):
        path = each.port.path if each.port is not None else ""
        groups.setdefault((path, each.cause.mistake) if each.cause is not None else number, []).append(
            (each, name)
        )
    return list(groups.values())


def _in_one(group: list[tuple[Divergence, str]]) -> Divergence:
    """The largest of them, told of all."""
    names = joined(" and ", (name for _, name in group))
    buffers = (
        phrase("buffer {names}", names=names) if len(group) == 1 else phrase("buffers {names}", names=names)
    )
    largest = max((each for each, _ in group), key=lambda each: each.score)
    return replace(largest, what=phrase("{names} after one step", names=buffers))


def _floor(statistic: Statistic) -> Size:
    """A statistic is a mean over a batch; the input's own size is the scale of its rounding errors."""
    epsilon = coarser(statistic.expected.dtype.name, statistic.observed.dtype.name)
    if not epsilon:
        return NOTHING
    given = next(iter(statistic.node.inputs.values())).data.size
    own = size_of(statistic.expected)
    return Size(max(own.rms, given.rms), max(own.peak, given.peak)) * max(epsilon, statistic.given)


def _is_biased_variance(statistic: Statistic, floor: Size, limit: float, count: int) -> bool:
    """Whether the one side divides by n and the other by n - 1: the update's ratio is n / (n - 1)."""
    momentum = statistic.node.settings.get("momentum")
    if count < 2 or not isinstance(momentum, float):
        return False
    kept = (1.0 - momentum) ** statistic.calls * statistic.before.astype(np.float64)
    updates = [side.astype(np.float64) - kept for side in (statistic.expected, statistic.observed)]
    for unbiased, biased in (updates, updates[::-1]):
        if score(error_of(compare_arrays(biased * (count / (count - 1)), unbiased)), floor) <= limit:
            return True
    return False


def _count(statistic: Statistic) -> int:
    """Values per channel."""
    elements = next(iter(statistic.node.inputs.values())).data.fingerprint.size
    return elements // max(1, statistic.channels or statistic.expected.size)


def _variance_finding(items: list[Statistic]) -> Finding:
    first = items[0]
    count = _count(first) * first.ranks
    layers = (
        first.name
        if len(items) == 1
        else phrase("{count} BatchNorm layers ({name}, ...)", count=len(items), name=first.name)
    )
    message = phrase(
        "running variance of {layers}: one side divides by n, the other by n - 1, a factor of "
        "{factor} at n = {count}; equal in training, different in evaluation afterwards",
        layers=layers,
        factor=f"{count / (count - 1):.6g}",
        count=count,
    )
    return Finding("buffer.running_variance", message, first.node.site, first.port_node.site)
