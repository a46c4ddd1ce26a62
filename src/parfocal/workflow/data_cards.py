"""``data_card``: a dataset in one table: how many samples, which classes, shapes, ranges, hashes."""

from __future__ import annotations

import hashlib
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from parfocal.backends.protocol import Array
from parfocal.brief import some
from parfocal.errors import EmptyComparisonError
from parfocal.judge import limits
from parfocal.judge.comparison import to_plain
from parfocal.phrases import phrase
from parfocal.workflow.sample_streams import Sample, SampleStream

SHAPES = 8  # distinct shapes that are listed
CLASSES = limits.causes.DATA_CLASSES.value


@dataclass(frozen=True, slots=True)
class FieldCard:
    """One array of every sample."""

    name: str
    dtypes: tuple[str, ...]
    shapes: tuple[tuple[int, ...], ...]  # the most frequent first
    more_shapes: int
    minimum: float | None  # None of words
    maximum: float | None
    mean: float | None
    std: float | None
    not_finite: int
    classes: dict[int, int]  # whole numbers, one a sample -> how often; empty where they are no labels


@dataclass(frozen=True, slots=True)
class DataCard:
    """A dataset in one table. The hashes are of all values: in order, and whatever the order."""

    name: str
    count: int
    fields: tuple[FieldCard, ...]
    hash: str
    unordered_hash: str

    def to_json(self) -> dict[str, Any]:
        """Everything, as plain JSON values."""
        return {
            "name": self.name,
            "count": self.count,
            "fields": [
                {
                    "name": each.name,
                    "dtypes": list(each.dtypes),
                    "shapes": [list(shape) for shape in each.shapes],
                    "more_shapes": each.more_shapes,
                    **{key: to_plain(getattr(each, key)) for key in ("minimum", "maximum", "mean", "std")},
                    "not_finite": each.not_finite,
                    "classes": {str(label): count for label, count in each.classes.items()},
                }
                for each in self.fields
            ],
            "hash": self.hash,
            "unordered_hash": self.unordered_hash,
        }

    def __str__(self) -> str:
        rows: list[tuple[str, ...]] = [
            ("field", "dtype", "shape", "minimum", "maximum", "mean", "std", "classes")
        ]
        rows += [_row(each) for each in self.fields]
        widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
        lines = [
            "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)) for row in rows
        ]
        samples = "1 sample" if self.count == 1 else f"{self.count} samples"
        hashes = f"sha256 {self.hash[:16]} in this order, {self.unordered_hash[:16]} in any"
        return "\n".join([f"{self.name}: {samples}", *(line.rstrip() for line in lines), hashes])


def _row(each: FieldCard) -> tuple[str, ...]:
    shapes = some([_shape(shape) for shape in each.shapes], 3) + (" ..." if each.more_shapes else "")
    numbers = [
        "" if value is None else f"{value:.4g}" for value in (each.minimum, each.maximum, each.mean, each.std)
    ]
    counts = sorted(set(each.classes.values()))
    balance = f" of {counts[0]}" if len(counts) == 1 else f" of {counts[0]} to {counts[-1]}" if counts else ""
    classes = f"{len(each.classes)}{balance}" if each.classes else ""
    return (each.name, some(list(each.dtypes), 2), shapes, *numbers, classes)


def _shape(shape: tuple[int, ...]) -> str:
    return "x".join(map(str, shape)) or "number"


@dataclass(slots=True)
class _Gathering:
    dtypes: Counter[str] = field(default_factory=Counter)
    shapes: Counter[tuple[int, ...]] = field(default_factory=Counter)
    classes: Counter[int] = field(default_factory=Counter)
    is_label: bool = True
    count: int = 0
    total: float = 0.0
    squares: float = 0.0
    minimum: float = np.inf
    maximum: float = -np.inf
    not_finite: int = 0

    def add(self, array: Array) -> None:
        self.dtypes[array.dtype.name] += 1
        self.shapes[array.shape] += 1
        self.is_label &= array.dtype.kind in "iub" and array.size == 1 and len(self.classes) < CLASSES
        if self.is_label:
            self.classes[int(array.reshape(-1)[0])] += 1
        if array.dtype.kind not in "fiub" or not array.size:
            return
        wide = array.astype(np.float64).reshape(-1)
        finite = wide[np.isfinite(wide)]
        self.not_finite += wide.size - finite.size
        if finite.size:
            self.count += finite.size
            self.total += float(finite.sum())
            self.squares += float(np.square(finite).sum())
            self.minimum, self.maximum = (
                min(self.minimum, float(finite.min())),
                max(self.maximum, float(finite.max())),
            )

    def card(self, name: str) -> FieldCard:
        mean = self.total / self.count if self.count else None
        std = float(np.sqrt(max(0.0, self.squares / self.count - mean**2))) if mean is not None else None
        known = self.count > 0
        return FieldCard(
            name,
            tuple(dtype for dtype, _ in self.dtypes.most_common()),
            tuple(shape for shape, _ in self.shapes.most_common(SHAPES)),
            max(0, len(self.shapes) - SHAPES),
            self.minimum if known else None,
            self.maximum if known else None,
            mean,
            std,
            self.not_finite,
            dict(sorted(self.classes.items())) if self.is_label else {},
        )


def data_card(dataset: Any) -> DataCard:
    """Read a dataset, or what a loader gives, once; one sample is in memory at a time."""
    stream = SampleStream(dataset, "dataset")
    fields: dict[str, _Gathering] = {}
    ordered, any_order, count = hashlib.sha256(), 0, 0
    for _, sample in stream.samples():
        count += 1
        for name, array in sample.items():
            fields.setdefault(name, _Gathering()).add(array)
        digest = _digest(sample)
        ordered.update(digest)
        any_order = (any_order + int.from_bytes(digest, "little")) % 2**256
    if not count:
        raise EmptyComparisonError(phrase("the dataset has no samples"))
    cards = tuple(gathered.card(name) for name, gathered in fields.items())
    return DataCard(stream.name, count, cards, ordered.hexdigest(), any_order.to_bytes(32, "big").hex())


def _digest(sample: Sample) -> bytes:
    found = hashlib.sha256()
    for name, array in sample.items():
        found.update(f"{name} {array.dtype.str} {array.shape} ".encode())
        found.update(np.ascontiguousarray(array).tobytes())
    return found.digest()
