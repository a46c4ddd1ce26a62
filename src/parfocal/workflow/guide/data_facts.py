"""What a plan states of a data set, as the paper has it, and what the two sides really read.

Two sides that agree may both read the wrong data: another year of a data set, a part of it, or numbers that
were made up. Only what is stated can tell.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np

from parfocal.backends.protocol import Array
from parfocal.judge import limits
from parfocal.phrases import joined, phrase
from parfocal.workflow.sample_streams import Sample, SampleStream, named_arrays, taken_apart

ANY = -1  # of a shape: this length varies
MOST_READ = limits.searches.FACTS_READ.value
FEW = 4  # shapes and dtypes that are told
SMALL = 1 << 16  # labels that are counted without sorting


@dataclass(frozen=True, slots=True)
class DataFacts:
    """What is stated of one data set; None: nothing of this."""

    samples: int | None = None
    classes: int | None = None
    shape: tuple[int, ...] | None = None  # of the first input of one sample
    dtype: str | None = None  # of the same
    ignored: int | None = None  # a label that is no class

    @property
    def stated(self) -> dict[str, Any]:
        return {key: value for key, value in asdict(self).items() if value is not None}


KEYS = tuple(each.name for each in fields(DataFacts))


def read_facts(source: Any, side: str) -> dict[str, Any]:
    """The same facts of what a side reads: all of it, or of more than ``MOST_READ`` samples a part."""
    stream = SampleStream(source, side)
    seen = _Seen()
    complete = _read(stream, seen)
    return {
        "samples": _numbers(stream, seen, complete),
        "read": seen.samples,
        "complete": complete,
        "labels": sorted(seen.labels, key=str),
        "widths": sorted(seen.widths) if seen.rows == seen.samples else [],
        "no_class": seen.no_class,
        "shapes": [list(each) for each in seen.shapes],
        "dtypes": list(seen.dtypes),
    }


class _Seen:
    """What the samples that were read show."""

    def __init__(self) -> None:
        self.samples = 0
        self.batch = 0  # the largest
        self.labels: set[int | str] = set()
        self.rows = 0  # labels that have a number for every class
        self.widths: set[int] = set()  # of these
        self.no_class = ""  # a label that is none
        self.shapes: dict[tuple[int, ...], None] = {}
        self.dtypes: dict[str, None] = {}

    def add(self, sample: Sample) -> None:
        arrays = list(sample.values())
        first, last = arrays[0], arrays[-1]
        self.samples += 1
        self.shapes.setdefault(first.shape)
        self.dtypes.setdefault(first.dtype.name)
        if len(arrays) > 1:
            self._add_label(last)

    def _add_label(self, label: Array) -> None:
        row = label.ndim == 1 and label.size > 1 and _shares(label)
        if row:
            self.rows += 1
            self.widths.add(label.size)
        if label.dtype.kind in "US":
            self.labels.update(map(str, label.reshape(-1)))
        elif label.dtype.kind in "iub":  # a row of them may be labels as well
            self.labels.update(_values(label))
        elif row:
            return
        elif label.dtype.kind == "f" and not (label % 1).any():
            self.labels.update(_values(label))
        else:
            self.no_class = self.no_class or f"{label.dtype.name} {label.reshape(-1)[0]}"


def _shares(label: Array) -> bool:
    """Whether a row has a number from 0 to 1 for every class."""
    return label.dtype.kind in "iubf" and bool(((label >= 0) & (label <= 1)).all())


def _values(label: Array) -> Iterator[int]:
    whole = label.reshape(-1).astype(np.int64)
    if whole.size > 1 and whole.min() >= 0 and whole.max() < SMALL:
        yield from map(int, np.flatnonzero(np.bincount(whole)))
    else:
        yield from map(int, np.unique(whole))


def _read(stream: SampleStream, seen: _Seen) -> bool:
    """Whether that was all of it."""
    if stream.by_index:
        source, length = stream.source, len(stream.source)
        chosen = np.unique(np.linspace(0, length - 1, min(length, MOST_READ)).astype(int)) if length else ()
        for index in chosen:
            seen.add(named_arrays(source[int(index)]))
        return length <= MOST_READ
    for item in stream.items():
        if seen.samples >= MOST_READ:
            return False
        before = seen.samples
        for sample in taken_apart(named_arrays(item)):
            seen.add(sample)
        seen.batch = max(seen.batch, seen.samples - before)
    return True


def _numbers(stream: SampleStream, seen: _Seen, complete: bool) -> list[int | None]:
    """The fewest and the most samples that there may be; None: nobody knows.

    A loader that drops its last batch reads fewer than its dataset has, and says nothing of them.
    """
    if stream.by_index:
        return [len(stream.source)] * 2
    fewest: int = seen.samples
    most: int | None = seen.samples
    if not complete:
        length = stream.length
        fewest, most = (
            (seen.samples, None) if length is None else ((length - 1) * seen.batch, length * seen.batch)
        )
    try:
        whole = len(stream.source.dataset)
    except (AttributeError, TypeError):
        return [fewest, most]
    return (
        [fewest, max(most, whole)]
        if most is not None and fewest <= whole < most + seen.batch
        else [fewest, most]
    )


@dataclass(frozen=True, slots=True)
class FactMismatch:
    """One fact that a side does not fulfil, in words."""

    key: str
    sides: tuple[str, str]


def judge_facts(
    stated: DataFacts, found: Sequence[Mapping[str, Any]]
) -> tuple[list[FactMismatch], list[str]]:
    """What differs from what is stated, of the reference and the port; and what could not be decided."""
    wrong, open_questions = [], []
    for key in stated.stated.keys() & QUESTIONS.keys():
        answers = [QUESTIONS[key](stated, side) for side in found]
        if any(fits is False for fits, _ in answers):
            wrong.append(FactMismatch(key, (answers[0][1], answers[1][1])))
        elif any(fits is None for fits, _ in answers):
            open_questions.append(
                phrase(
                    "{key}: {stated} stated, {reference} in the reference and {port} in the port among the "
                    "samples that were read: not decided",
                    key=key,
                    stated=stated_words(stated, key),
                    reference=answers[0][1],
                    port=answers[1][1],
                )
            )
    order = list(KEYS)
    return sorted(wrong, key=lambda each: order.index(each.key)), sorted(open_questions)


Answer = tuple[bool | None, str]  # whether it fits, None where that is not known; and what was found


def _samples(stated: DataFacts, side: Mapping[str, Any]) -> Answer:
    assert stated.samples is not None
    fewest, most = side["samples"]
    if most is None:
        return (False if stated.samples < fewest else None), phrase("{count} or more", count=fewest)
    told = str(fewest) if fewest == most else phrase("{count} to {most}", count=fewest, most=most)
    return fewest <= stated.samples <= most, told


def _classes(stated: DataFacts, side: Mapping[str, Any]) -> Answer:
    if side["no_class"]:
        return False, phrase("labels that are no classes ({label})", label=side["no_class"])
    if side["widths"] == [stated.classes]:
        return True, str(stated.classes)
    labels = [each for each in side["labels"] if each != stated.ignored]
    if not labels and side["widths"]:
        return False, joined(", ", map(str, side["widths"]))
    count = len(labels)
    told = _labels_words(labels)
    if count == stated.classes or side["complete"] or count > (stated.classes or 0):
        return count == stated.classes, told
    return None, told


def _labels_words(labels: Sequence[Any]) -> str:
    if labels and all(isinstance(each, int) for each in labels):
        return phrase("{count} (from {low} to {high})", count=len(labels), low=min(labels), high=max(labels))
    return str(len(labels))


def _shape(stated: DataFacts, side: Mapping[str, Any]) -> Answer:
    wanted = stated.shape or ()
    fits = all(
        len(shape) == len(wanted) and all(b in (ANY, a) for a, b in zip(shape, wanted, strict=True))
        for shape in side["shapes"]
    )
    return fits, _few(side["shapes"])


def _dtype(stated: DataFacts, side: Mapping[str, Any]) -> Answer:
    return side["dtypes"] == [stated.dtype], _few(side["dtypes"])


def _few(values: Sequence[Any]) -> str:
    return ", ".join(map(str, values[:FEW])) + (", ..." if len(values) > FEW else "")


QUESTIONS = {"samples": _samples, "classes": _classes, "shape": _shape, "dtype": _dtype}


def stated_words(stated: DataFacts, key: str) -> str:
    value = getattr(stated, key)
    return str(list(value)) if isinstance(value, tuple) else str(value)
