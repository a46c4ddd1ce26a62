"""Why running statistics differ after one step on the same values: another momentum."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from parfocal.backends import registry
from parfocal.backends.building import LayerBuilder
from parfocal.backends.protocol import Array, Backend
from parfocal.errors import UnsupportedError
from parfocal.explain.causes import PortLine, number, rounded, spelled_path
from parfocal.explain.fixes.recorded_constructors import with_line
from parfocal.judge.floors import Size, error_of, score
from parfocal.judge.metrics import compare_arrays
from parfocal.judge.verdict import Cause, Claim, Fix, ProvenBy
from parfocal.phrases import phrase
from parfocal.replay.trace import Node


def momentum_cause(
    before: Array,
    expected: Array,
    observed: Array,
    sides: tuple[Node, Node],
    backend: Backend | None,
    noise: tuple[Size, float],
    count: int,
) -> Cause | None:
    """``sides``: the reference's call and the port's; ``count``: values behind one statistic."""
    ours, theirs = (node.settings.get("momentum") for node in sides)
    floor, limit = noise
    start, right, wrong = (array.astype(np.float64) for array in (before, expected, observed))
    if ours is None and "momentum" in sides[0].settings and isinstance(theirs, float) and theirs > 0.0:
        return _plain_mean(start, right, wrong, sides[1], theirs, noise, count)
    if not isinstance(ours, float) or ours <= 0.0:
        return None
    apart = _score(wrong, right, floor)
    for momentum in dict.fromkeys((theirs, _solved(start, right, wrong, ours))):
        if not isinstance(momentum, float) or momentum == ours or not 0.0 < momentum <= 1.0:
            continue
        measured = min(_with(start, right, wrong, ours, momentum, ratio, floor) for ratio in _ratios(count))
        if measured <= limit:
            claim = _claim(sides[1], backend, ours, momentum, said=momentum == theirs)
            return claim.proven(ProvenBy.RECOMPUTED, apart, measured)
    return None


def _plain_mean(
    start: Array,
    right: Array,
    wrong: Array,
    node: Node,
    momentum: float,
    noise: tuple[Size, float],
    count: int,
) -> Cause | None:
    """The reference keeps the plain mean of all batches: the new value counts as much as any before."""
    floor, limit = noise
    seen = _solved(start, wrong, right, momentum)  # the share that the new value has in the reference
    if seen is None:
        return None
    share = 1.0 / round(1.0 / seen) if 0.0 < seen <= 1.5 else seen
    measured = min(_with(start, right, wrong, share, momentum, ratio, floor) for ratio in _ratios(count))
    if measured > limit:
        return None
    message = phrase(
        "running statistics are the plain mean of all batches in the reference (momentum is "
        "None); the new value's weight (momentum) is {port} in the port ({kind} {path})",
        port=number(momentum),
        kind=node.kind,
        path=node.path,
    )
    fix = phrase(
        "let the n-th batch count 1 / n in the running statistics of {spelled_path}",
        spelled_path=spelled_path(node.path),
    )
    claim = Claim("config.momentum", message, fix, (node.kind, "None", number(momentum)))
    return claim.proven(ProvenBy.RECOMPUTED, _score(wrong, right, floor), measured)


def _solved(start: Array, right: Array, wrong: Array, momentum: float) -> float | None:
    """The momentum that fits best when both move towards the same value."""
    moved, should = (wrong - start).ravel(), (right - start).ravel()
    power = float(should @ should)
    return rounded(momentum * float(moved @ should) / power) if power else None


def _ratios(count: int) -> tuple[float, ...]:
    """Variances may be divided by n on one side and by n - 1 on the other."""
    return (1.0, count / (count - 1), (count - 1) / count) if count > 1 else (1.0,)


def _with(
    start: Array, right: Array, wrong: Array, ours: float, momentum: float, ratio: float, floor: Size
) -> float:
    """The score with the port's statistic as it would be with the reference's momentum."""
    seen = (wrong - (1.0 - momentum) * start) / momentum
    mended = (1.0 - ours) * start + ours * seen * ratio
    # what is left of rounding grows with the factor that undoes the port's momentum
    allowed = floor * max(1.0, ours / momentum)
    return _score(mended, right, allowed) if allowed.rms else math.inf


def _score(observed: Array, expected: Array, floor: Size) -> float:
    return score(error_of(compare_arrays(observed, expected)), floor)


def _claim(node: Node, backend: Backend | None, ours: float, momentum: float, *, said: bool) -> Claim:
    code = "config.momentum" if said else "buffer.momentum"
    how = phrase("is") if said else phrase("behaves as")
    otherwise = backend is not None and registry.dialect(backend.name).momentum_of_old
    message = phrase(
        "the new value's weight in running statistics (momentum) is {reference} in the "
        "reference; it {how} {port} in the port ({kind} {path}){which}",
        reference=number(ours),
        how=how,
        port=number(momentum),
        kind=node.kind,
        path=node.path,
        which=phrase(", whose own momentum is the weight of the old value") if otherwise else "",
    )
    fix = _fix(node, backend, {**node.settings, "momentum": ours}, ours)
    return Claim(code, message, fix, (node.kind, number(ours), number(momentum)))


def _fix(node: Node, backend: Backend | None, settings: Mapping[str, Any], ours: float) -> Fix:
    try:
        if isinstance(backend, LayerBuilder) and node.framework_layer:
            return PortLine.layer(node.path, backend.spell(node.kind, settings, ["momentum"]))
    except UnsupportedError:
        pass  # a layer without a recipe: said in words
    words = phrase(
        "let the new value count {ours} in the running statistics of {path}",
        ours=number(ours),
        path=spelled_path(node.path),
    )
    return with_line(words, node)
