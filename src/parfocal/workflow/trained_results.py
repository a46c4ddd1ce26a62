"""What came of whole trainings: the port's metrics against the reference's, or against published ones.

A metric may be as far off as the project allows (``within``). What is farther is held against chance: how far
the reference's own trainings lie apart, and how many samples answer otherwise from training to training.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np
import scipy  # loads its parts when they are first used

from parfocal.backends.protocol import Array
from parfocal.errors import InputError
from parfocal.explain.metric_causes import UNITS
from parfocal.judge import limits
from parfocal.judge.chance import MOST_RUNS, Chance, Parts, chance_of, runs_that_decide
from parfocal.judge.floors import Size
from parfocal.judge.metrics import compare_arrays
from parfocal.judge.verdict import Cause, Claim, Divergence, Finding, ProvenBy, Site
from parfocal.phrases import joined, phrase
from parfocal.report.coverage import Compared, Coverage
from parfocal.report.report import Curve, Report

ALARMS = limits.verdicts.TRAINED_ALARMS.value
CONFIDENCE = limits.verdicts.CONFIDENCE.value
TELLING_RUNS = limits.verdicts.TELLING_RUNS.value


class Decides(Enum):
    """What a verdict on a trained metric rests on."""

    WITHIN = "within"  # no farther than the project allows
    CHANCE = "chance"  # farther, and no farther than chance makes
    APART = "apart"  # farther than both: the port is another


@dataclass(frozen=True, slots=True)
class TrainedMetric:
    """One metric at the end of every training of both sides."""

    name: str
    reference: tuple[float, ...]  # one a training
    port: tuple[float, ...]
    within: float  # in the metric's unit
    published: float | None = None  # in place of the reference, which then shows the spread only
    parts: Parts | None = None

    @property
    def wanted(self) -> float:
        return float(np.mean(self.reference)) if self.published is None else self.published

    @property
    def reached(self) -> float:
        return float(np.mean(self.port))

    @property
    def apart(self) -> float:
        return abs(self.reached - self.wanted)


@dataclass(frozen=True, slots=True)
class TrainedVerdict:
    """What was found of one metric."""

    metric: TrainedMetric
    decides: Decides
    chance: Chance
    alarms: float

    @property
    def allowed(self) -> float:
        return max(self.metric.within, self.chance.allowed or 0.0)

    @property
    def message(self) -> str:
        return _WORDS[self.decides](self)


def judge_trained(metrics: Sequence[TrainedMetric]) -> list[TrainedVerdict]:
    """The rate of false alarms is that of all metrics together."""
    return [_judged(each, ALARMS / len(metrics)) for each in metrics]


def _judged(metric: TrainedMetric, alarms: float) -> TrainedVerdict:
    bad = [value for value in (*metric.reference, metric.wanted) if not math.isfinite(value)]
    if bad:
        raise InputError(
            phrase("a result is {bad}", bad=bad[0]), hint=phrase("leave out runs that failed, and say so")
        )
    if not math.isfinite(metric.reached):
        return TrainedVerdict(metric, Decides.APART, Chance(None, 0.0, False), alarms)
    published = metric.published is not None
    chance = chance_of(metric.reference, metric.port, metric.parts, published=published, alarms=alarms)
    if metric.apart <= metric.within:
        return TrainedVerdict(metric, Decides.WITHIN, chance, alarms)
    by_chance = chance.allowed is not None and metric.apart <= chance.allowed
    return TrainedVerdict(metric, Decides.CHANCE if by_chance else Decides.APART, chance, alarms)


def report_of(verdicts: Sequence[TrainedVerdict], curves: Sequence[Curve]) -> Report:
    """The whole report; ``curves`` are drawn in it."""
    runs = max(len(each.metric.port) for each in verdicts)
    published = any(each.metric.published is not None for each in verdicts)
    return Report(
        reference_name=phrase("published") if published else phrase("trainings of the reference"),
        port_name=phrase("1 run") if runs == 1 else phrase("{count} runs", count=runs),
        divergences=tuple(divergence_of(each) for each in verdicts if each.decides is Decides.APART),
        findings=tuple(
            Finding("result", each.message, diverged=each.decides is Decides.APART) for each in verdicts
        ),
        coverage=Coverage(
            (
                Compared("metrics", len(verdicts)),
                Compared("results", sum(len(each.metric.port) for each in verdicts)),
            )
        ),
        limit=1.0,
        curves=tuple(curves),
    )


def divergence_of(verdict: TrainedVerdict) -> Divergence:
    metric = verdict.metric
    ends = np.asarray(metric.port)
    score = metric.apart / verdict.allowed if math.isfinite(metric.apart) else math.inf
    return Divergence(
        "metric",
        Site("", "published" if metric.published is not None else "reference"),
        Site("", "runs"),
        verdict.message,
        compare_arrays(ends, np.full_like(ends, metric.wanted)),
        Size(verdict.allowed, verdict.allowed),
        score,
        cause=unit_of(metric.reached, metric.wanted, metric.within),
    )


def unit_of(mean: float, wanted: float, within: float) -> Cause | None:
    """Percent against a fraction."""
    for factor, (port, reference) in UNITS.items():
        if abs(mean / factor - wanted) <= within and abs(mean - wanted) > 10 * within:
            message = phrase(
                "the runs give {port}, what was published is {reference}", port=port, reference=reference
            )
            fix = (
                phrase("divide the results of the runs by 100")
                if factor == 100.0
                else phrase("multiply the results of the runs by 100")
            )
            before, after = (abs(value - wanted) / within for value in (mean, mean / factor))
            return Claim("metric.unit", message, fix).proven(ProvenBy.RELATED, before, after)
    return None


def interval(ends: Array) -> str:
    """Around the mean of several runs; of one nothing is known."""
    if len(ends) < 2:
        return ""
    half = float(
        scipy.stats.t.ppf((1 + CONFIDENCE) / 2, len(ends) - 1) * ends.std(ddof=1) / math.sqrt(len(ends))
    )
    return phrase(
        " ± {half} ({count} runs, {confidence})",
        half=f"{half:.3g}",
        count=len(ends),
        confidence=f"{CONFIDENCE:.0%}",
    )


def _told(metric: TrainedMetric) -> str:
    values = {
        "name": phrase("the result") if metric.name == "value" else metric.name,
        "reached": f"{metric.reached:.6g}",
        "spread": interval(np.asarray(metric.port)),
        "wanted": f"{metric.wanted:.6g}",
    }
    if metric.published is not None:
        return phrase("{name} is {reached}{spread} after training, {wanted} published", **values)
    around = interval(np.asarray(metric.reference))
    return phrase(
        "{name} is {reached}{spread} after training, {wanted}{around} in the reference",
        around=around,
        **values,
    )


def _basis(verdict: TrainedVerdict) -> str:
    metric, alarms = verdict.metric, f"{100 * verdict.alarms:.2g} %"
    if verdict.chance.from_runs:
        return phrase(
            "{reference} trainings of the reference and {port} of the port, {alarms} false alarms",
            reference=len(metric.reference),
            port=len(metric.port),
            alarms=alarms,
        )
    return phrase(
        "what the evaluation's samples make of one training a side, {alarms} false alarms", alarms=alarms
    )


def _within_words(verdict: TrainedVerdict) -> str:
    metric = verdict.metric
    return phrase(
        "{told}: {apart} apart, which within = {within} allows",
        told=_told(metric),
        apart=f"{metric.apart:.3g}",
        within=f"{metric.within:g}",
    )


def _chance_words(verdict: TrainedVerdict) -> str:
    metric, chance = verdict.metric, verdict.chance
    told = phrase(
        "{told}: {apart} apart, more than within = {within}; chance alone makes up to {allowed} ({basis}): "
        "no difference is shown",
        told=_told(metric),
        apart=f"{metric.apart:.3g}",
        within=f"{metric.within:g}",
        allowed=f"{chance.allowed:.3g}",
        basis=_basis(verdict),
    )
    runs = runs_that_decide(metric.apart, chance.spread, verdict.alarms, len(metric.port))
    if runs is None:
        more = phrase("more than {most} trainings a side would decide whether there is one", most=MOST_RUNS)
    else:
        more = phrase("{runs} trainings a side would decide whether there is one", runs=runs)
    return joined("; ", (told, more))


def _apart_words(verdict: TrainedVerdict) -> str:
    metric, chance = verdict.metric, verdict.chance
    values = {
        "told": _told(metric),
        "apart": f"{metric.apart:.3g}",
        "within": f"{metric.within:g}",
    }
    if not math.isfinite(metric.reached):
        return _told(metric)
    parts = [phrase("{told}: {apart} apart, more than within = {within}", **values)]
    if chance.allowed is not None:
        told = phrase(
            "chance alone makes up to {allowed} ({basis})",
            allowed=f"{chance.allowed:.3g}",
            basis=_basis(verdict),
        )
        parts.append(told)
    if not chance.from_runs:
        told = phrase(
            "how far trainings of the reference lie apart by chance is not known: {runs} a side tell",
            runs=TELLING_RUNS,
        )
        parts.append(told)
    return joined("; ", parts)


_WORDS = {
    Decides.WITHIN: _within_words,
    Decides.CHANCE: _chance_words,
    Decides.APART: _apart_words,
}
