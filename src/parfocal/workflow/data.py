"""``compare_data``: do two datasets or loaders give the same samples in the same order.

Both are read side by side, a few samples at a time in memory. What differs is explained from those kept.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from parfocal.brief import some
from parfocal.errors import EmptyComparisonError, InputError
from parfocal.explain.sample_labels import is_label
from parfocal.explain.sample_values import ROUNDING, apart
from parfocal.explain.samples import cause_of
from parfocal.judge import limits
from parfocal.judge.floors import Size
from parfocal.judge.metrics import compare_arrays
from parfocal.judge.verdict import SIDES, Claim, Divergence, Finding, Grounds, ProvenBy, side_name
from parfocal.phrases import joined, phrase
from parfocal.report.coverage import Compared, Coverage, LeftOut, Reason
from parfocal.report.report import Report
from parfocal.workflow.data_order import divergence_of, judge_order, judge_shuffling, strangers
from parfocal.workflow.data_reading import DataReading, Streams, compare_sample, read_both
from parfocal.workflow.pictures import with_few_pictures
from parfocal.workflow.random_samples import RandomSide, look_again
from parfocal.workflow.random_verdicts import RandomVerdict, judge_random
from parfocal.workflow.sample_streams import SampleStream
from parfocal.workflow.step_settings import leaves_open, setting_causes

LIMIT = limits.verdicts.COMPUTED_ONCE.value
FEWEST_OF_A_CLASS = limits.causes.SORTED_FEWEST.value


def compare_data(reference: Any, port: Any, *, samples: int | None = None) -> Report:
    """Compare two datasets (by index) or loaders (by iterating): length, order, fields, values, labels.

    ``samples`` bounds how many are read of each side; without it all are, a few at a time.
    """
    if reference is port:
        raise InputError(
            phrase("a dataset compared with itself is always the same"), hint=phrase("pass two datasets")
        )
    if samples is not None and (isinstance(samples, bool) or not isinstance(samples, int) or samples < 1):
        raise InputError(phrase("samples={samples} is not a number of samples", samples=repr(samples)))
    sides = SampleStream(reference, "reference"), SampleStream(port, "port")
    return compare_streams(sides, (look_again(sides[0], samples), look_again(sides[1], samples)), samples)


def compare_streams(
    sides: Streams, again: tuple[RandomSide, RandomSide], samples: int | None = None
) -> Report:
    """The same of streams whose samples were read again before."""
    changing = tuple(dict.fromkeys((*again[0].changing, *again[1].changing)))
    reading = read_both(sides, samples, changing)
    if not min(reading.counts):
        empty = "reference" if not reading.counts[0] else "port"
        raise EmptyComparisonError(
            phrase("the {empty} has no samples, so nothing was compared", empty=side_name(empty))
        )
    if not reading.fields:
        raise EmptyComparisonError(
            phrase(
                "the samples have no field in common: {reference} in the reference, {port} in the port",
                reference=some(list(reading.names[0])),
                port=some(list(reading.names[1])),
            )
        )
    lengths = _length(sides, reading, samples)
    if any(side.shuffles for side in again):  # by which no sample of the loaders can be found again
        order = judge_shuffling(sides, (again[0].shuffles, again[1].shuffles))
        values = _values(sides, again, _steady_reading(again, changing))
    else:
        order = judge_order(sides, reading)
        values = [] if order else _values(sides, again, reading)
    random = [judge_random(again, name) for name in changing if name in reading.fields]
    first = min(reading.counts)
    return Report(
        reference_name=sides[0].name,
        port_name=sides[1].name,
        divergences=with_few_pictures((*lengths, *order, *values, *_random(sides, random))),
        findings=(
            *(Finding("data.random", each.said, diverged=bool(each.causes)) for each in random),
            *_findings(sides, reading),
            *strangers(reading, values),
        ),
        coverage=Coverage(
            (
                Compared("samples", first, max(reading.counts)),
                Compared("fields", len(reading.fields), len({**reading.names[0], **reading.names[1]})),
            ),
            (
                *_left(reading, samples, sides),
                *(
                    LeftOut(
                        phrase("field {name}", name=name),
                        Reason.ONLY_REFERENCE if side == 0 else Reason.ONLY_PORT,
                    )
                    for side in (0, 1)
                    for name in reading.names[side]
                    if name not in reading.names[1 - side]
                ),
            ),
        ),
        limit=LIMIT,
    )


def _steady_reading(again: tuple[RandomSide, RandomSide], changing: Sequence[str]) -> DataReading:
    """Of the datasets behind loaders, one of which at least shuffles."""
    reading = DataReading(changing)
    for index, (ours, theirs) in enumerate(zip(again[0].steady, again[1].steady, strict=False)):
        compare_sample(reading, index, ours, theirs)
    return reading


def _left(reading: DataReading, samples: int | None, sides: Streams) -> list[LeftOut]:
    if samples is None or min(reading.counts) < samples:
        return []
    return [
        LeftOut(
            phrase("samples after the first {samples}", samples=samples),
            Reason.NOT_ASKED,
            f"samples={samples}",
        )
    ]


def _random(sides: Streams, verdicts: Sequence[RandomVerdict]) -> list[Divergence]:
    return [divergence_of(sides, each.what, cause, each.score) for each in verdicts for cause in each.causes]


def _length(sides: Streams, reading: DataReading, samples: int | None) -> list[Divergence]:
    counts, found = reading.counts, []
    if counts[0] != counts[1]:
        what = phrase(
            "{reference} samples in the reference, {port} in the port", reference=counts[0], port=counts[1]
        )
        fewer = 0 if counts[0] < counts[1] else 1
        batch = reading.batch(1 - fewer)
        side = SIDES[fewer]
        fix, message, left = phrase("give both sides the same files and splits"), what, np.inf
        if batch and counts[1 - fewer] - counts[fewer] == counts[1 - fewer] % batch:
            message = phrase(
                "the {side} drops the last, incomplete batch: {what}", side=side_name(side), what=what
            )
            fix = phrase("write drop_last={value} in the port's loader", value=fewer == 0)
            left = abs(counts[1 - fewer] // batch * batch - counts[fewer])
        elif batch and abs(counts[0] - counts[1]) < batch:
            message = phrase(
                "{what}: less than a batch of {batch}, as when the last one is filled up or cut",
                what=what,
                batch=batch,
            )
        cause = Claim("data.length", message, fix).judged(
            ProvenBy.RELATED, float(abs(counts[0] - counts[1])), left, 0.0, Grounds.VALUES
        )
        found.append(divergence_of(sides, phrase("length: {what}", what=what), cause, np.inf))
    batches = [reading.batch(side) for side in (0, 1)]
    if None not in batches and batches[0] != batches[1]:
        message = phrase(
            "batches of {reference} in the reference, of {port} in the port",
            reference=batches[0],
            port=batches[1],
        )
        fix = phrase("write batch_size={size} in the port's loader", size=batches[0])
        cause = Claim("data.length", message, fix).likely(Grounds.SETTINGS)
        found.append(divergence_of(sides, message, cause, np.inf))
    return found


def _values(sides: Streams, again: tuple[RandomSide, RandomSide], reading: DataReading) -> list[Divergence]:
    found = []
    for name, seen in reading.fields.items():
        if not seen.differing or name in reading.changing:
            continue
        pairs = [
            (ours[name], theirs[name]) for _, ours, theirs in reading.wrong if name in ours and name in theirs
        ]
        pairs = [(a, b) for a, b in pairs if apart(a, b) > LIMIT]
        both = ((a[name], b[name]) for a, b in zip(*reading.kept, strict=False) if name in a and name in b)
        equal = [(a, b) for a, b in both if apart(a, b) <= LIMIT]
        cause = cause_of(pairs, LIMIT, equal) if pairs else None
        if leaves_open(cause) and not all(is_label(each) for pair in pairs for each in pair):
            cause = next(setting_causes(again[0].settings, again[1].settings), cause)
        ours, theirs = pairs[0]
        numeric = ours.dtype.kind in "fiub" and theirs.dtype.kind in "fiub" and ours.shape == theirs.shape
        floor = ROUNDING * float(np.abs(ours.astype(np.float64)).max(initial=0.0)) if numeric else 0.0
        shapes = (
            ""
            if ours.shape == theirs.shape
            else phrase(", {reference} against {port}", reference=list(ours.shape), port=list(theirs.shape))
        )
        what = phrase(
            "field {name} of sample {first}{shapes}; {differing} of {count} samples differ",
            name=name,
            first=seen.first,
            shapes=shapes,
            differing=seen.differing,
            count=seen.count,
        )
        error = compare_arrays(theirs, ours, picture=True) if numeric else None
        found.append(divergence_of(sides, what, cause, seen.worst, error=error, noise=Size(floor, floor)))
    return found


def _findings(sides: Streams, reading: DataReading) -> list[Finding]:
    found = []
    for name, seen in reading.fields.items():
        if seen.dtypes[0] != seen.dtypes[1]:
            ours, theirs = (some(sorted(each)) for each in seen.dtypes)
            message = phrase(
                "field {name} is {reference} in the reference, {port} in the port",
                name=name,
                reference=ours,
                port=theirs,
            )
            if any(seen.labels) and not all(seen.labels):  # whole numbers on one side, floats on the other
                message += phrase(
                    ": give the port's as {reference} (losses take whole numbers for classes and floats for "
                    "shares or targets)",
                    reference=ours,
                )
            found.append(Finding("data.dtype", message))
    found += _sorted_by_class(reading)
    return found


def _sorted_by_class(reading: DataReading) -> Iterator[Finding]:
    """A training that reads samples in this order sees one class after the other."""
    for name, seen in reading.fields.items():
        sides = [
            side_name(side) for side, labels in zip(SIDES, seen.labels, strict=True) if _is_sorted(labels)
        ]
        if sides and name not in reading.changing:
            message = phrase(
                "the samples come sorted by field {name} ({classes} classes in {count} samples, {sides}): "
                "shuffle them where a training reads them in this order",
                name=name,
                classes=len(set(seen.labels[0])),
                count=len(seen.labels[0]),
                sides=joined(", ", sides),
            )
            yield Finding("data.sorted", message)


def _is_sorted(labels: Sequence[int]) -> bool:
    """Whether each class comes in one piece, and classes are few enough to be classes."""
    pieces = 1 + sum(a != b for a, b in pairwise(labels))
    return len(labels) >= FEWEST_OF_A_CLASS * len(set(labels)) > 0 and pieces == len(set(labels))
