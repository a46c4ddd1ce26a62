"""Both sides' samples, read side by side to the end, a few in memory at a time."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from itertools import islice, zip_longest

from parfocal.backends.protocol import Array
from parfocal.explain.sample_labels import is_label
from parfocal.explain.sample_values import apart
from parfocal.judge import limits
from parfocal.workflow.sample_order import signature
from parfocal.workflow.sample_streams import Sample, SampleStream

LIMIT = limits.verdicts.COMPUTED_ONCE.value
KEPT = limits.searches.DATA_KEPT.value
SIGNED = limits.searches.DATA_SIGNED.value
Streams = tuple[SampleStream, SampleStream]


@dataclass(slots=True)
class FieldReading:
    """One array of every sample: where and how far the two sides were apart."""

    count: int = 0
    differing: int = 0
    first: int = -1
    worst: float = 0.0
    dtypes: tuple[set[str], set[str]] = field(default_factory=lambda: (set(), set()))
    labels: tuple[list[int], list[int]] = field(default_factory=lambda: ([], []))  # single whole numbers

    def add(self, index: int, ours: Array, theirs: Array) -> bool:
        score = apart(ours, theirs)
        self.count += 1
        self.worst = max(self.worst, score)
        for seen, labels, array in zip(self.dtypes, self.labels, (ours, theirs), strict=True):
            seen.add(array.dtype.name)
            if is_label(array):
                labels.append(int(array.reshape(-1)[0]))
        if score <= LIMIT:
            return False
        self.differing += 1
        self.first = index if self.first < 0 else self.first
        return True


@dataclass(slots=True)
class DataReading:
    """What reading both sides to the end showed; ``changing``: fields that are others when read again."""

    changing: Collection[str] = ()
    kept: tuple[list[Sample], list[Sample]] = field(default_factory=lambda: ([], []))
    wrong: list[tuple[int, Sample, Sample]] = field(default_factory=list)
    signatures: tuple[list[Array], list[Array]] = field(default_factory=lambda: ([], []))
    counts: list[int] = field(default_factory=lambda: [0, 0])
    batches: tuple[dict[int, int], dict[int, int]] = field(default_factory=lambda: ({}, {}))
    fields: dict[str, FieldReading] = field(default_factory=dict)
    names: tuple[dict[str, None], dict[str, None]] = field(default_factory=lambda: ({}, {}))

    def batch(self, side: int) -> int | None:
        return max(self.batches[side].values(), default=None)


def read_both(sides: Streams, samples: int | None, changing: Collection[str]) -> DataReading:
    reading = DataReading(changing)
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
                steady = {name: array for name, array in sample.items() if name not in changing}
                reading.signatures[number].append(signature(steady))
            if index < KEPT:
                reading.kept[number].append(sample)
            found.append(sample)
        if found[0] is not None and found[1] is not None:
            compare_sample(reading, index, found[0], found[1])
    return reading


def compare_sample(reading: DataReading, index: int, ours: Sample, theirs: Sample) -> None:
    wrong = False
    for name, array in ours.items():
        if name in theirs:
            differs = reading.fields.setdefault(name, FieldReading()).add(index, array, theirs[name])
            wrong |= differs and name not in reading.changing
    if wrong and len(reading.wrong) < KEPT:
        reading.wrong.append((index, ours, theirs))
