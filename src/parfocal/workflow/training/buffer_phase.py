"""Buffers after the passes of a step that began with the reference's.

A variance divided by n on one side and by n - 1 on the other changes nothing in training and everything in
evaluation afterwards: it is told apart from mistakes, and its effect is measured at the end.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from parfocal.backends.protocol import Array
from parfocal.judge import limits
from parfocal.judge.floors import EPSILON
from parfocal.judge.metrics import compare_arrays
from parfocal.judge.verdict import Divergence, Site
from parfocal.phrases import phrase
from parfocal.workflow.training.carrying import Carrier
from parfocal.workflow.training.found import FoundDivergences
from parfocal.workflow.training.judging import NEAR, Noise, Verdict, nearly
from parfocal.workflow.training.sides import Arrays, TrainingSide

RATIO = limits.causes.EQUAL_RATIO.value
MOST = limits.searches.VARIANCE_VALUES.value


@dataclass(slots=True)
class Variances:
    """Running variances of the port that part by convention alone, as they would be by now."""

    counts: dict[str, int] = field(default_factory=dict)  # values that a variance is taken over, by path
    own: Arrays = field(default_factory=dict)  # the port's, had they never been set to the reference's
    apart: float = 0.0  # at most, in units of what may be left once both are divided by the same
    left: float = 0.0  # as the same number divides both, in the same units


@dataclass(slots=True)
class BufferPhase:
    """Judges buffers and keeps book of variances."""

    reference: TrainingSide
    port: TrainingSide
    carrier: Carrier
    noise: Noise
    found: FoundDivergences
    variances: Variances = field(default_factory=Variances)
    compared: int = 0
    modules: dict[str, Any] = field(default_factory=dict)  # of the reference, by path

    def judge(self, step: int, before: Arrays, *, inherited: bool) -> bool:
        """Whether something is wrong that was not before. ``before``: the port's, as the step began."""
        after = self.reference.arrays("buffer")
        wrong = False
        for path, observed in self.port.arrays("buffer").items():
            if path not in self.carrier.pieces or observed.dtype.name not in EPSILON:
                continue
            expected = self.carrier.carry(path, after.get)
            if expected is None:
                continue
            self.compared += 1
            key = ("buffer", path)
            momentum = self.momentum(path)
            if path in self.variances.own and momentum is not None:
                drift = self.variances.own[path] - before[path].astype(np.float64)
                self.variances.own[path] = observed + (1 - momentum) * drift
            if path in self.variances.counts:
                continue
            expected = np.ascontiguousarray(expected)
            if nearly(observed, expected, NEAR) or self._by_convention(
                path, before[path], expected, observed
            ):
                continue
            verdict = self._verdict(path, observed, expected)
            if verdict.wrong and self._by_convention(path, before[path], expected, observed, noisy=True):
                continue
            if verdict.wrong and not self.found.seen(key):
                wrong = True
                self.found.add(
                    key,
                    Divergence(
                        "buffer",
                        Site(self.carrier.name(path), "buffer"),
                        Site(path, "buffer"),
                        phrase("buffer {path}", path=path),
                        compare_arrays(observed, expected, picture=True),
                        verdict.floor,
                        verdict.score,
                        inherited=inherited,
                        step=step,
                    ),
                )
        return wrong

    def _verdict(self, path: str, observed: Array, expected: Array) -> Verdict:
        return self.noise.judge(
            ("buffer", path),
            observed,
            expected,
            lambda results: self.carrier.carry(path, results.buffers.get),
        )

    def _by_convention(
        self, path: str, before: Array, expected: Array, observed: Array, *, noisy: bool = False
    ) -> bool:
        """Whether a variance parts by nothing but what it is divided by; it is booked then.

        ``noisy``: up to the rounding of the step, which may be that of mixed precision.
        """
        momentum = self.momentum(path)
        if momentum is None or "var" not in self.carrier.name(path).rpartition(".")[2]:
            return False
        found = biased_count(before, expected, observed, momentum, noisy=noisy)
        if found is None:
            return False
        count, left = found.count, found.left
        if noisy:
            kept = (1.0 - momentum) * before.astype(np.float64)
            unbiased = kept + (observed - kept) * count / (count - 1)
            biased = kept + (observed - kept) * (count - 1) / count
            verdicts = [
                self._verdict(path, other.astype(expected.dtype), expected) for other in (unbiased, biased)
            ]
            if all(each.wrong for each in verdicts):
                return False
            left = min(each.score for each in verdicts)
        self.variances.apart = max(self.variances.apart, found.apart)
        self.variances.left = max(self.variances.left, left)
        self.variances.counts[path] = count
        self.variances.own[path] = observed.astype(np.float64)
        return True

    def momentum(self, path: str) -> float | None:
        """The weight of a new value in the running statistics of the reference's layer."""
        if not self.modules:
            self.modules = self.reference.backend.modules(self.reference.model)
        module = self.modules.get(self.carrier.name(path).rpartition(".")[0])
        if module is None:
            return None
        value = self.reference.backend.settings(module).get("momentum")
        return value if isinstance(value, float) else None


@dataclass(frozen=True, slots=True)
class BiasedCount:
    """How many values one side divides by, where the other divides by one less."""

    count: int
    apart: float  # in units of what may be left
    left: float  # as the same number divides both


def biased_count(
    before: Array, expected: Array, observed: Array, momentum: float, *, noisy: bool = False
) -> BiasedCount | None:
    """n, where what two variances were moved by differs by n / (n - 1) in every channel; or None.

    ``noisy``: in the median channel is enough.
    """
    kept = (1.0 - momentum) * before.astype(np.float64)
    moves = [side.astype(np.float64) - kept for side in (expected, observed)]
    large = np.minimum(np.abs(moves[0]), np.abs(moves[1])) > 1e-3 * np.abs(moves[0]).max(initial=0.0)
    if not large.any():
        return None
    ratios = (moves[0] / np.where(moves[1] == 0, 1, moves[1]))[large]
    ratio = float(np.median(ratios))
    if ratio < 1.0:
        ratios, ratio = 1 / ratios, 1 / ratio
    count = round(ratio / (ratio - 1)) if ratio > 1 else 0
    if not 2 <= count <= MOST:
        return None
    excess = count / (count - 1) - 1
    allowed = max(RATIO * excess, 1e-5)
    left = float(np.abs(ratios - 1 - excess).max()) / allowed
    return BiasedCount(count, excess / allowed, left) if noisy or left <= 1.0 else None
