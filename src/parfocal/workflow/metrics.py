"""``compare_metric``: do two metrics say the same of the same predictions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from parfocal.backends.protocol import Array
from parfocal.brief import brief, some, told
from parfocal.errors import EmptyComparisonError, InputError
from parfocal.explain.causes import number
from parfocal.explain.metric_causes import ROUNDING, MetricPair, MetricProbe, apart, cause_of
from parfocal.explain.metric_formulas import is_dense
from parfocal.inputs import leaves, owner_of
from parfocal.judge import limits
from parfocal.judge.floors import Size
from parfocal.judge.metrics import compare_arrays
from parfocal.judge.verdict import SIDES, Cause, Claim, Divergence, Grounds, Site, side_name
from parfocal.phrases import phrase
from parfocal.report.coverage import Compared, Coverage, LeftOut, Reason
from parfocal.report.report import Report

LIMIT = limits.verdicts.COMPUTED_ONCE.value

Function = Callable[[Any, Any], Any]
Named = dict[str, float]


def compare_metric(reference: Function, port: Function, predictions: Any, labels: Any) -> Report:
    """Compare two metrics ``(predictions, labels) -> number``, or a dict or sequence of numbers.

    They are called with what is given, and where those are arrays also with parts of them, so that a
    difference that only shows in a smaller batch is seen, and a cause fits more than one number. A metric
    that is the same whatever it is given says nothing, and is an error.
    """
    if reference is port:
        raise InputError(
            phrase("a metric compared with itself is always the same"), hint=phrase("pass two metrics")
        )
    names = [getattr(each, "__name__", type(each).__name__) for each in (reference, port)]
    for side, function, name in zip(SIDES, (reference, port), names, strict=True):
        if not callable(function):
            raise InputError(
                phrase("the {side}'s metric, a {name}, cannot be called", side=side_name(side), name=name),
                hint=phrase("pass a function (predictions, labels) -> number that makes and updates it"),
            )
    sides = _Metric(reference, "reference", names[0]), _Metric(port, "port", names[1])
    values = [side.of(predictions, labels) for side in sides]
    common = [name for name in values[0] if name in values[1]]
    if not common:
        raise EmptyComparisonError(
            phrase(
                "the metrics have no number in common: {reference} in the reference, {port} in the port",
                reference=some(list(values[0])),
                port=some(list(values[1])),
            )
        )
    parts = [(predictions, labels), *_parts(predictions, labels)]
    table = [(part, sides[0].tried(*part), sides[1].tried(*part)) for part in parts]
    unsteady = next(
        (
            _unsteady_cause(side, name, before[name], again[name])
            for side, before in zip(sides, values, strict=True)
            for again in [side.tried(predictions, labels)]
            for name in common
            if again is not None and apart(before[name], again[name]) > LIMIT
        ),
        None,
    )
    divergences = [
        found
        for name in common
        if (found := _difference(name, _probes(name, table), sides, unsteady)) is not None
    ]
    if not divergences:
        _check_alive(common, table)
    left = [
        LeftOut(name, reason)
        for own, other, reason in (
            (values[0], values[1], Reason.ONLY_REFERENCE),
            (values[1], values[0], Reason.ONLY_PORT),
        )
        for name in own
        if name not in other
    ]
    tried = sum(ours is not None and theirs is not None for _, ours, theirs in table)
    return Report(
        reference_name=names[0],
        port_name=names[1],
        divergences=tuple(divergences),
        coverage=Coverage(
            (
                Compared("metrics", len(common), len(common) + len(left)),
                Compared("batches", tried, len(table)),
            ),
            tuple(left),
        ),
        limit=LIMIT,
    )


@dataclass(frozen=True, slots=True)
class _Metric:
    """One side's metric, its numbers by name."""

    function: Function
    side: str
    name: str

    def of(self, predictions: Any, labels: Any) -> Named:
        try:
            return named_numbers(self.function(predictions, labels))
        except (ArithmeticError, LookupError, TypeError, ValueError, RuntimeError, AttributeError) as error:
            raise InputError(
                phrase(
                    "the {side}'s metric raised {name}: {error}",
                    side=side_name(self.side),
                    name=type(error).__name__,
                    error=told(error),
                )
            ) from error

    def tried(self, predictions: Any, labels: Any) -> Named | None:
        """None where it cannot be had of this part: a metric may need a whole batch."""
        try:
            return self.of(predictions, labels)
        except InputError:
            return None


def named_numbers(value: Any) -> Named:
    """Numbers by name; the only one has the name ``value``."""
    if isinstance(value, Mapping):
        return {str(name): number_of(item) for name, item in value.items()}
    items = list(leaves(value)) if isinstance(value, (tuple, list)) else [value]
    if len(items) == 1:
        array = np.asarray(plain_values(items[0]), dtype=np.float64)
        if array.ndim and array.size > 1:
            return {f"value {index}": float(each) for index, each in enumerate(array.reshape(-1))}
        return {"value": number_of(items[0])}
    return {f"value {index}": number_of(item) for index, item in enumerate(items)}


def plain_values(value: Any) -> Any:
    """A tensor's values without naming its framework; of what knows how to make an array, that."""
    owner = owner_of(value)
    if owner is not None:  # which keeps bfloat16 what it is
        return owner.to_array(value)
    return value.numpy() if hasattr(value, "numpy") else value


def number_of(value: Any) -> float:
    array = np.asarray(plain_values(value), dtype=np.float64)
    if array.size != 1:
        raise ValueError(f"a metric is a number, not {brief(value)}")
    return float(array.reshape(-1)[0])


def _parts(predictions: Any, labels: Any) -> Iterator[tuple[Any, Any]]:
    """Parts of arrays: uneven beginnings, the rest, every other sample; and labels in another order.

    Of labels of every place, as masks are, also a sample with classes that neither it nor its prediction has.
    """
    if not (isinstance(predictions, np.ndarray) and isinstance(labels, np.ndarray)):
        return
    count = len(labels) if labels.ndim else 0
    if predictions.shape[:1] != labels.shape[:1] or count < 4:
        return
    for stop in sorted({count // 2, count // 3, count - 1, max(2, count * 2 // 3)}):
        yield predictions[:stop], labels[:stop]
    yield predictions[count // 2 :], labels[count // 2 :]
    yield predictions[::2], labels[::2]
    yield predictions, np.roll(labels, 1, axis=0)
    if is_dense(predictions, labels) and labels.size:
        yield _of_few_classes(predictions, labels)


def _of_few_classes(predictions: Array, labels: Array) -> tuple[Array, Array]:
    """The sample with the fewest labels, and a prediction of two classes that is partly right."""
    fewest = min(range(len(labels)), key=lambda index: len(np.unique(labels[index])))
    values, counts = np.unique(labels[fewest], return_counts=True)
    scores = predictions[fewest].reshape(predictions.shape[1], -1)
    right = scores.argmax(0) == values[counts.argmax()]
    # one place's scores and another's in turn, over all places
    taken = np.where(np.arange(right.size) % 2, right.argmin(), right.argmax())
    return scores[:, taken].reshape(predictions[:1].shape), labels[fewest : fewest + 1]


def _probes(
    name: str, table: Sequence[tuple[tuple[Any, Any], Named | None, Named | None]]
) -> list[MetricProbe]:
    return [
        MetricProbe(*part, ours[name], theirs[name])
        for part, ours, theirs in table
        if ours is not None and theirs is not None and name in ours and name in theirs
    ]


def _unsteady_cause(side: _Metric, name: str, before: float, again: float) -> Cause:
    label = phrase("the metric") if name == "value" else name
    message = phrase(
        "{label} of the {side} is {before} at the first call and {again} at a later one, with the same "
        "predictions and labels: it keeps what it was given, or draws numbers",
        label=label,
        side=side_name(side.side),
        before=f"{before:.7g}",
        again=f"{again:.7g}",
    )
    fix = phrase("reset the metric of the {side} at every call", side=side_name(side.side))
    return Claim("metric.value", message, fix).likely(Grounds.VALUES)


def _difference(
    name: str, probes: list[MetricProbe], sides: tuple[_Metric, _Metric], unsteady: Cause | None
) -> Divergence | None:
    scores = [apart(probe.reference, probe.port) for probe in probes]
    worst = max(scores)
    if worst <= LIMIT:
        return None
    shown = probes[0] if scores[0] > LIMIT else probes[int(np.argmax(scores))]
    count = len(shown.labels)
    where = phrase(" of {count} samples", count=count) if count > 1 else phrase(" of a single sample")
    where = "" if shown is probes[0] else where

    def again(side: _Metric) -> Callable[[Any, Any], float | None]:
        return lambda predictions, labels: (side.tried(predictions, labels) or {}).get(name)

    found = unsteady or cause_of(MetricPair(probes, again(sides[0]), again(sides[1])), LIMIT)
    floor = ROUNDING * abs(shown.reference)
    label = phrase("the metric") if name == "value" else name
    return Divergence(
        "metric",
        Site("", sides[0].name),
        Site("", sides[1].name),
        phrase(
            "{label}{where}: {reference} in the reference, {port} in the port",
            label=label,
            where=where,
            reference=f"{shown.reference:.7g}",
            port=f"{shown.port:.7g}",
        ),
        compare_arrays(np.asarray([p.port for p in probes]), np.asarray([p.reference for p in probes])),
        Size(floor, floor),
        worst,
        cause=found,
    )


def _check_alive(names: Sequence[str], table: Sequence[tuple[Any, Named | None, Named | None]]) -> None:
    """Equal constants compare nothing: 0.0 against 0.0 whatever the predictions are."""
    for name in names:
        seen = {ours[name] for _, ours, _ in table if ours is not None and name in ours}
        if len(seen) > 1 or (len(table) == 1 and seen - {0.0, 1.0, 100.0}):
            return
    value = next(ours for _, ours, _ in table if ours is not None)[names[0]]
    raise EmptyComparisonError(
        phrase(
            "both metrics give {value} whatever part of the predictions they are given", value=number(value)
        ),
        hint=phrase("give predictions of which some are right and some are wrong"),
    )
