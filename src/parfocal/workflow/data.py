"""``compare_data``: do two datasets or loaders give the same samples in the same order.

Both are read side by side, a few samples at a time in memory. What differs is explained from those kept.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import islice, zip_longest
from typing import Any

import numpy as np

from parfocal.backends.protocol import Array
from parfocal.brief import some
from parfocal.errors import EmptyComparisonError, InputError
from parfocal.explain.sample_values import ROUNDING, apart
from parfocal.explain.samples import cause_of
from parfocal.judge import limits
from parfocal.judge.floors import NOTHING, Size
from parfocal.judge.metrics import compare_arrays
from parfocal.judge.verdict import Cause, Claim, Divergence, Finding, Grounds, ProvenBy, Site, side_name
from parfocal.phrases import phrase
from parfocal.report.coverage import Compared, Coverage, LeftOut, Reason
from parfocal.report.report import Report
from parfocal.workflow.pictures import with_few_pictures
from parfocal.workflow.sample_order import find_order, in_words, signature
from parfocal.workflow.sample_streams import Sample, SampleStream

LIMIT = limits.verdicts.COMPUTED_ONCE.value
KEPT = limits.searches.DATA_KEPT.value
SIGNED = limits.searches.DATA_SIGNED.value


@dataclass(slots=True)
class _Field:
    """One array of every sample: where and how far the two sides were apart."""

    count: int = 0
    differing: int = 0
    first: int = -1
    worst: float = 0.0
    dtypes: tuple[set[str], set[str]] = field(default_factory=lambda: (set(), set()))

    def add(self, index: int, ours: Array, theirs: Array) -> bool:
        score = apart(ours, theirs)
        self.count += 1
        self.worst = max(self.worst, score)
        for seen, array in zip(self.dtypes, (ours, theirs), strict=True):
            seen.add(array.dtype.name)
        if score <= LIMIT:
            return False
        self.differing += 1
        self.first = index if self.first < 0 else self.first
        return True


@dataclass(slots=True)
class _Reading:
    """What reading both sides to the end showed."""

    kept: tuple[list[Sample], list[Sample]] = field(default_factory=lambda: ([], []))
    wrong: list[tuple[int, Sample, Sample]] = field(default_factory=list)
    signatures: tuple[list[Array], list[Array]] = field(default_factory=lambda: ([], []))
    counts: list[int] = field(default_factory=lambda: [0, 0])
    batches: tuple[dict[int, int], dict[int, int]] = field(default_factory=lambda: ({}, {}))
    fields: dict[str, _Field] = field(default_factory=dict)
    names: tuple[dict[str, None], dict[str, None]] = field(default_factory=lambda: ({}, {}))

    def batch(self, side: int) -> int | None:
        return max(self.batches[side].values(), default=None)


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
    reading = _read(sides, samples)
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
    order = _order(sides, reading)
    values = [] if order else _values(sides, reading)
    first = min(reading.counts)
    return Report(
        reference_name=sides[0].name,
        port_name=sides[1].name,
        divergences=with_few_pictures((*lengths, *order, *values)),
        findings=tuple(_findings(sides, reading)),
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


def _left(reading: _Reading, samples: int | None, sides: tuple[SampleStream, SampleStream]) -> list[LeftOut]:
    if samples is None or min(reading.counts) < samples:
        return []
    return [
        LeftOut(
            phrase("samples after the first {samples}", samples=samples),
            Reason.NOT_ASKED,
            f"samples={samples}",
        )
    ]


def _read(sides: tuple[SampleStream, SampleStream], samples: int | None) -> _Reading:
    reading = _Reading()
    streams = [islice(side.samples(), samples) for side in sides]
    for index, pair in enumerate(zip_longest(*streams)):
        found: list[Sample | None] = []
        for number, item in enumerate(pair):
            if item is None:
                found.append(None)
                continue
            batch, sample = item
            reading.counts[number] += 1
            reading.names[number].update(dict.fromkeys(sample))
            if not sides[number].by_index:
                reading.batches[number][batch] = reading.batches[number].get(batch, 0) + 1
            if index < SIGNED:
                reading.signatures[number].append(signature(sample))
            if index < KEPT:
                reading.kept[number].append(sample)
            found.append(sample)
        if found[0] is not None and found[1] is not None:
            _compare_sample(reading, index, found[0], found[1])
    return reading


def _compare_sample(reading: _Reading, index: int, ours: Sample, theirs: Sample) -> None:
    wrong = False
    for name, array in ours.items():
        if name in theirs:
            wrong |= reading.fields.setdefault(name, _Field()).add(index, array, theirs[name])
    if wrong and len(reading.wrong) < KEPT:
        reading.wrong.append((index, ours, theirs))


def _divergence(
    sides: tuple[SampleStream, SampleStream], what: str, cause: Cause | None, score: float, **more: Any
) -> Divergence:
    sites = Site("", sides[0].name), Site("", sides[1].name)
    return Divergence("data", *sites, what, more.get("error"), more.get("noise", NOTHING), score, cause=cause)


def _length(
    sides: tuple[SampleStream, SampleStream], reading: _Reading, samples: int | None
) -> list[Divergence]:
    counts, found = reading.counts, []
    if counts[0] != counts[1]:
        what = phrase(
            "{reference} samples in the reference, {port} in the port", reference=counts[0], port=counts[1]
        )
        fewer = 0 if counts[0] < counts[1] else 1
        batch = reading.batch(1 - fewer)
        side = ("reference", "port")[fewer]
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
        found.append(_divergence(sides, phrase("length: {what}", what=what), cause, np.inf))
    batches = [reading.batch(side) for side in (0, 1)]
    if None not in batches and batches[0] != batches[1]:
        message = phrase(
            "batches of {reference} in the reference, of {port} in the port",
            reference=batches[0],
            port=batches[1],
        )
        fix = phrase("write batch_size={size} in the port's loader", size=batches[0])
        cause = Claim("data.length", message, fix).likely(Grounds.SETTINGS)
        found.append(_divergence(sides, message, cause, np.inf))
    return found


def _order(sides: tuple[SampleStream, SampleStream], reading: _Reading) -> list[Divergence]:
    if not reading.wrong:
        return []
    order = find_order(*reading.signatures)
    if order is None or order.is_same:
        return []
    how = in_words(order, reading.batch(1))
    shuffled = [_shuffles(side) for side in sides]
    message = phrase("the port gives the reference's samples {how}", how=how)
    if shuffled[0] != shuffled[1]:
        moving, still = ("reference", "port") if shuffled[0] else ("port", "reference")
        message += phrase(
            ": the {moving} shuffles, the {still} does not", moving=side_name(moving), still=side_name(still)
        )
    elif shuffled[0]:
        message += phrase(": both shuffle, each in its own way")
    fix = phrase("feed both sides one list of indices, or switch shuffling off on both")
    wrong = sum(at != index for index, at in enumerate(order.order))
    what = phrase(
        "order: {wrong} of {count} samples are at another place", wrong=wrong, count=len(order.order)
    )
    ours, theirs = (np.stack(each) for each in reading.signatures)
    found = np.asarray(order.order) >= 0
    common = slice(0, min(len(ours), len(theirs)))
    before = apart(ours[common], theirs[common])
    after = apart(ours[np.asarray(order.order)[found]], theirs[found])
    cause = Claim("data.order", message, fix).proven(ProvenBy.RELATED, before, after)
    return [_divergence(sides, what, cause, np.inf)]


def _shuffles(side: SampleStream) -> bool:
    """Whether the first samples are others when it is read again."""
    if side.by_index or iter(side.source) is side.source:
        return False
    passes = [[signature(sample) for _, sample in islice(side.samples(), 16)] for _ in range(2)]
    return any(a.shape != b.shape or not np.array_equal(a, b) for a, b in zip(*passes, strict=False))


def _values(sides: tuple[SampleStream, SampleStream], reading: _Reading) -> list[Divergence]:
    found = []
    for name, seen in reading.fields.items():
        if not seen.differing:
            continue
        pairs = [
            (ours[name], theirs[name]) for _, ours, theirs in reading.wrong if name in ours and name in theirs
        ]
        pairs = [(a, b) for a, b in pairs if apart(a, b) > LIMIT]
        both = ((a[name], b[name]) for a, b in zip(*reading.kept, strict=False) if name in a and name in b)
        equal = [(a, b) for a, b in both if apart(a, b) <= LIMIT]
        cause = cause_of(pairs, LIMIT, equal) if pairs else None
        ours, theirs = pairs[0]
        numeric = ours.dtype.kind in "fiub" and theirs.dtype.kind in "fiub" and ours.shape == theirs.shape
        floor = ROUNDING * float(np.abs(ours.astype(np.float64)).max(initial=0.0)) if numeric else 0.0
        shapes = (
            ""
            if ours.shape == theirs.shape
            else phrase(", {reference} against {port}", reference=list(ours.shape), port=list(theirs.shape))
        )
        what = phrase(
            "{name} of sample {first}{shapes}; {differing} of {count} samples differ",
            name=name,
            first=seen.first,
            shapes=shapes,
            differing=seen.differing,
            count=seen.count,
        )
        error = compare_arrays(theirs, ours, picture=True) if numeric else None
        found.append(_divergence(sides, what, cause, seen.worst, error=error, noise=Size(floor, floor)))
    return found


def _findings(sides: tuple[SampleStream, SampleStream], reading: _Reading) -> list[Finding]:
    found = []
    for name, seen in reading.fields.items():
        if seen.dtypes[0] != seen.dtypes[1]:
            ours, theirs = (some(sorted(each)) for each in seen.dtypes)
            found.append(
                Finding(
                    "data.dtype",
                    phrase(
                        "{name} is {reference} in the reference, {port} in the port",
                        name=name,
                        reference=ours,
                        port=theirs,
                    ),
                )
            )
    return found
