"""Why two metrics of the same predictions differ: each hypothesis is computed on every probe.

A probe is a part of the predictions with its labels. What fits one number by chance does not fit all of them.
Only NumPy and the two metrics themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import partial
from itertools import permutations
from typing import Any

import numpy as np

from parfocal.backends.protocol import Array
from parfocal.explain.causes import number
from parfocal.explain.metric_formulas import FORMULAS, TOP_K, is_dense, without_label
from parfocal.explain.sample_values import bits_of
from parfocal.judge import limits
from parfocal.judge.floors import EPSILON
from parfocal.judge.verdict import SIDES, Cause, Claim, ProvenBy, side_name
from parfocal.phrases import phrase

ROUNDING = limits.causes.FEW_ROUNDINGS.value * EPSILON["float32"]
UNIT_NAMES = {1.0: phrase("a fraction"), 100.0: phrase("percent")}
UNITS = {100.0: (UNIT_NAMES[100.0], UNIT_NAMES[1.0]), 0.01: (UNIT_NAMES[1.0], UNIT_NAMES[100.0])}
IGNORABLE = limits.searches.IGNORED_LABELS.value
BATCHES = limits.searches.BATCH_SIZES.value


@dataclass(frozen=True, slots=True)
class MetricProbe:
    """Part of the predictions and labels, and what both metrics make of it."""

    predictions: Any
    labels: Any
    reference: float
    port: float


Metric = Callable[[Any, Any], float | None]  # None: it cannot be had of these predictions


@dataclass(frozen=True, slots=True)
class MetricPair:
    """The two sides on the same probes."""

    probes: Sequence[MetricProbe]
    reference: Metric  # computes again
    port: Metric


def apart(a: float, b: float) -> float:
    """The difference of two metrics in units of rounding."""
    if a == b or (np.isnan(a) and np.isnan(b)):
        return 0.0
    scale = max(abs(a), abs(b))
    return abs(a - b) / (ROUNDING * scale) if np.isfinite(scale) else np.inf


@dataclass(frozen=True, slots=True)
class MetricClaim:
    """A hypothesis, and how far on any probe what it computes is from what it should be."""

    claim: Claim
    after: float


def cause_of(metrics: MetricPair, limit: float) -> Cause | None:
    """The first hypothesis that holds on every probe."""
    found = next((each for make in HYPOTHESES for each in make(metrics, limit)), None)
    if found is None:
        return None
    before = max(apart(probe.reference, probe.port) for probe in metrics.probes)
    return found.claim.proven(ProvenBy.RECOMPUTED, before, found.after)


def _off(metrics: MetricPair, of_probe: Callable[[MetricProbe], float | None], side: str = "port") -> float:
    """How far a number computed from each probe is from that of a side, at most."""
    return _farthest([(of_probe(probe), getattr(probe, side)) for probe in metrics.probes])


def _farthest(values: Sequence[tuple[float | None, float]]) -> float:
    return max((np.inf if made is None else apart(made, wanted) for made, wanted in values), default=np.inf)


def _unit(metrics: MetricPair, limit: float) -> Iterator[MetricClaim]:
    for factor, (port, reference) in UNITS.items():
        if (after := _off(metrics, partial(_times, factor))) <= limit:
            message = phrase(
                "the port gives {port}, the reference {reference}: {factor} times the value",
                port=port,
                reference=reference,
                factor=number(factor),
            )
            verb = phrase("divide by 100") if factor == 100.0 else phrase("multiply by 100")
            fix = phrase("{verb} in the port's metric", verb=verb)
            yield MetricClaim(Claim("metric.unit", message, fix), after)


def _complement(metrics: MetricPair, limit: float) -> Iterator[MetricClaim]:
    for whole in (1.0, 100.0):
        if (after := _off(metrics, partial(_rest, whole))) <= limit:
            message = phrase(
                "the port gives {whole} minus the reference's value: errors for hits", whole=number(whole)
            )
            fix = phrase("return {whole} - value in the port's metric", whole=number(whole))
            yield MetricClaim(Claim("metric.value", message, fix), after)


def _times(factor: float, probe: MetricProbe) -> float:
    return probe.reference * factor


def _rest(whole: float, probe: MetricProbe) -> float:
    return whole - probe.reference


def _factor(metrics: MetricPair, limit: float) -> Iterator[MetricClaim]:
    probe = max(metrics.probes, key=lambda each: abs(each.reference))
    if probe.reference == 0 or len(metrics.probes) < 3:
        return
    factor = probe.port / probe.reference
    if factor and (after := _off(metrics, partial(_times, factor))) <= limit:
        message = phrase(
            "the port gives {factor} times the reference's value, whatever it is given", factor=number(factor)
        )
        fix = phrase("divide by {factor} in the port's metric", factor=number(factor))
        yield MetricClaim(Claim("metric.unit", message, fix), after)


def _formula(metrics: MetricPair, limit: float) -> Iterator[MetricClaim]:
    """Both sides are well-known metrics, and not the same one."""
    ours, theirs = (_known_metric(metrics, side, limit) for side in SIDES)
    if ours is None or theirs is None or ours.name == theirs.name:
        return
    code = "metric.topk" if TOP_K.keys() & {ours.name, theirs.name} else "metric.value"
    right, wrong = (
        each.name
        if ours.unit == theirs.unit
        else phrase("{name} as {unit}", name=each.name, unit=UNIT_NAMES[each.unit])
        for each in (ours, theirs)
    )
    message = phrase("the reference behaves as {right}, the port as {wrong}", right=right, wrong=wrong)
    claim = Claim(code, message, phrase("compute {right} in the port's metric", right=right))
    yield MetricClaim(claim, max(ours.off, theirs.off))


@dataclass(frozen=True, slots=True)
class KnownMetric:
    """The well-known metric that one side is, what it is multiplied by, and how far that is off."""

    name: str
    unit: float
    off: float


def _known_metric(metrics: MetricPair, side: str, limit: float) -> KnownMetric | None:
    for name, formula in FORMULAS.items():
        values = [formula(*_arrays(probe)) for probe in metrics.probes]
        for unit in UNIT_NAMES:
            off = _farthest(
                [
                    (None if value is None else value * unit, getattr(probe, side))
                    for value, probe in zip(values, metrics.probes, strict=True)
                ]
            )
            if off <= limit:
                return KnownMetric(name, unit, off)
    return None


def _arrays(probe: MetricProbe) -> tuple[Array, Array]:
    predictions, labels = np.asarray(probe.predictions), np.asarray(probe.labels)
    column = labels.ndim == 2 and labels.shape[1] == 1 and predictions.shape != labels.shape
    return predictions, labels[:, 0] if column else labels


def _ignoring(metrics: MetricPair, limit: float) -> Iterator[MetricClaim]:
    """A label that one side leaves out."""
    everything = max(metrics.probes, key=lambda each: np.asarray(each.labels).size)
    labels = np.asarray(everything.labels)
    if labels.dtype.kind not in "iu":
        return
    counts = {int(value): int((labels == value).sum()) for value in np.unique(labels)}
    unusual = sorted(counts, key=lambda value: (0 <= value < 255, value))
    for value in unusual[:IGNORABLE]:
        if (after := _off(metrics, partial(_without, metrics.reference, value))) <= limit:
            message = phrase("the port leaves out the label {value}, the reference counts it", value=value)
            fix = phrase("count the label {value} in the port's metric", value=value)
            yield MetricClaim(Claim("metric.value", message, fix), after)
            return
        if (after := _off(metrics, partial(_without, metrics.port, value), "reference")) <= limit:
            message = phrase("the reference leaves out the label {value}, the port counts it", value=value)
            fix = phrase("leave out the label {value} in the port's metric", value=value)
            yield MetricClaim(Claim("metric.value", message, fix), after)
            return


def _without(metric: Metric, label: int, probe: MetricProbe) -> float | None:
    kept = without_label(np.asarray(probe.predictions), np.asarray(probe.labels), label)
    return None if kept is None else metric(*kept)


class Absent(Enum):
    """What a mean over classes makes of a class that is neither predicted nor a label."""

    LEFT_OUT = phrase("left out of the mean")
    ZERO = phrase("counted as 0")
    ONE = phrase("counted as 1")

    def of(self, total: float, present: int, classes: int) -> float:
        """The mean, where the values of the classes that are there have this total."""
        if self is Absent.LEFT_OUT:
            return total / present
        return (total + (classes - present if self is Absent.ONE else 0)) / classes


def _absent(metrics: MetricPair, limit: float) -> Iterator[MetricClaim]:
    """A mean over classes, of which some are neither predicted nor a label: in the mean on one side only."""
    counts = [_classes_there(probe) for probe in metrics.probes]
    if None in counts or all(each is None or each[0] == each[1] for each in counts):
        return
    for right, wrong in permutations(Absent, 2):
        values = [
            (wrong.of(_total(right, probe.reference, *count), *count), probe.port)
            for probe, count in zip(metrics.probes, counts, strict=True)
            if count is not None
        ]
        if (after := _farthest(values)) <= limit:
            message = phrase(
                "a class that is neither predicted nor a label is {right} in the reference, {wrong} in the "
                "port",
                right=right.value,
                wrong=wrong.value,
            )
            fix = phrase(
                "in the port's metric a class that is neither predicted nor a label has to be {right}",
                right=right.value,
            )
            yield MetricClaim(Claim("metric.value", message, fix), after)
            return


def _total(rule: Absent, mean: float, present: int, classes: int) -> float:
    """The values of all classes that are there, from their mean by a rule."""
    if rule is Absent.LEFT_OUT:
        return mean * present
    return mean * classes - (classes - present if rule is Absent.ONE else 0)


def _classes_there(probe: MetricProbe) -> tuple[int, int] | None:
    """How many classes are predicted or a label, of how many; None: nobody knows."""
    predictions, labels = _arrays(probe)
    if predictions.ndim < 2 or predictions.dtype.kind != "f" or labels.dtype.kind not in "iu":
        return None
    if not (is_dense(predictions, labels) or (labels.ndim == 1 and predictions.ndim == 2)):
        return None
    classes = predictions.shape[1]
    counted = (labels >= 0) & (labels < classes)
    present = len(np.union1d(predictions.argmax(1)[counted], labels[counted]))
    return (present, classes) if present else None


def _bits(metrics: MetricPair, limit: float) -> Iterator[MetricClaim]:
    """The port's metric is that of bit patterns."""
    if not _of_scores(metrics):
        return
    named = _known_metric(metrics, "reference", limit)
    known = [] if named is None else [lambda *given: FORMULAS[named.name](*given)]
    for metric in (metrics.reference, *known):
        for unit in (1.0,) if metric is metrics.reference else (1.0, 100.0):
            if (after := _off(metrics, partial(_of_changed, metric, _as_bits, unit))) <= limit:
                message = phrase(
                    "the port's metric is that of the predictions' bit patterns as bfloat16, taken for "
                    "numbers"
                )
                fix = phrase("cast to float32 before .numpy() in the {side}", side=side_name("port"))
                yield MetricClaim(Claim("dtype.bits", message, fix), after)
                return


def _of_scores(metrics: MetricPair) -> bool:
    return all(np.asarray(probe.predictions).dtype.kind == "f" for probe in metrics.probes)


def _as_bits(predictions: Array) -> Array:
    return bits_of(predictions).astype(np.float32)


def _of_changed(
    metric: Metric, change: Callable[[Array], Array], unit: float, probe: MetricProbe
) -> float | None:
    predictions, labels = _arrays(probe)
    value = metric(change(predictions), labels)
    return None if value is None else unit * value


def _tied(metrics: MetricPair, limit: float) -> Iterator[MetricClaim]:
    """Equal scores of one sample in another order: told apart, whichever is higher, they give one value."""
    if not _of_scores(metrics) or not any(_has_ties(np.asarray(each.predictions)) for each in metrics.probes):
        return
    after = 0.0
    for last_wins in (False, True):
        apart_now = partial(_told_apart, last_wins)
        for probe in metrics.probes:
            ours, theirs = (
                _of_changed(side, apart_now, 1.0, probe) for side in (metrics.reference, metrics.port)
            )
            if ours is None or theirs is None or apart(ours, theirs) > limit:
                return
            after = max(after, apart(ours, theirs))
    message = phrase(
        "the two put classes with equal scores in another order; with equal scores told apart they agree"
    )
    fix = phrase("put equal scores in the reference's order in the port's metric")
    yield MetricClaim(Claim("metric.tie", message, fix), after)


def _has_ties(scores: Array) -> bool:
    return scores.ndim == 2 and bool((np.diff(np.sort(scores, axis=1), axis=1) == 0).any())


def _told_apart(last_wins: bool, scores: Array) -> Array:
    """Scores of which none are equal: the last, or the first, are a unit in the last place higher."""
    if not last_wins:
        return np.ascontiguousarray(_told_apart(True, scores[..., ::-1])[..., ::-1])
    order = np.argsort(scores, axis=-1, kind="stable")
    ranked = np.take_along_axis(scores, order, axis=-1)
    for place in range(1, ranked.shape[-1]):
        above = np.nextafter(ranked[..., place - 1], np.asarray(np.inf, scores.dtype))
        ranked[..., place] = np.maximum(ranked[..., place], above)
    found = np.empty_like(scores)
    np.put_along_axis(found, order, ranked, axis=-1)
    return found


def _batched(metrics: MetricPair, limit: float) -> Iterator[MetricClaim]:
    """The mean over batches, each with the same weight; or the last batch left out."""
    for size in BATCHES:
        long = [probe for probe in metrics.probes if len(probe.labels) % size and len(probe.labels) > size]
        if len(long) < 2:
            continue
        uneven = MetricPair(long, metrics.reference, metrics.port)
        if (after := _off(uneven, partial(_mean_of_batches, metrics.reference, size))) <= limit:
            message = phrase(
                "the port averages over batches of {size} and weighs a last, smaller one like the others",
                size=size,
            )
            fix = phrase("weigh each batch by its number of samples in the port's metric")
            yield MetricClaim(Claim("metric.value", message, fix), after)
            return
        if (after := _off(uneven, partial(_full_batches, metrics.reference, size))) <= limit:
            message = phrase(
                "the port leaves out the last samples, which do not fill a batch of {size}", size=size
            )
            fix = phrase("count the last, smaller batch in the port's metric")
            yield MetricClaim(Claim("metric.value", message, fix), after)
            return


def _mean_of_batches(metric: Metric, size: int, probe: MetricProbe) -> float | None:
    starts = range(0, len(probe.labels), size)
    values = [metric(probe.predictions[at : at + size], probe.labels[at : at + size]) for at in starts]
    known = [value for value in values if value is not None]
    return float(np.mean(known)) if len(known) == len(values) else None


def _full_batches(metric: Metric, size: int, probe: MetricProbe) -> float | None:
    count = len(probe.labels) // size * size
    return metric(probe.predictions[:count], probe.labels[:count])


Hypothesis = Callable[[MetricPair, float], Iterator[MetricClaim]]
HYPOTHESES: tuple[Hypothesis, ...] = (
    *(_unit, _complement, _formula, _bits, _tied),
    *(_ignoring, _absent, _batched, _factor),
)
