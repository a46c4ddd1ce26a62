"""What can be wrong with a submitted checkpoint: questions, each asked of the values of both sides.

A question gets what was read (``CheckpointEvidence``) and gives the problems it sees. A problem is its kind
and the values that go into the kind's sentence, so that it can be told in any language.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any

import numpy as np

from parfocal.attribution.measures import LIMIT
from parfocal.judge import limits
from parfocal.judge.floors import rounding_score
from parfocal.judge.named import Name, compare_named, flatten, reshaped_alike
from parfocal.phrases import phrase
from parfocal.workflow.acceptance.layout import TRAINED, Checkpoint
from parfocal.workflow.acceptance.logs import DifferenceLog


class Kind(Enum):
    """Every problem by name, as programs know it."""

    MISSING = "missing"
    TWICE = "twice"
    UNREADABLE = "unreadable"
    EMPTY = "empty"
    ONE_SIDED = "one-sided"
    SHAPE = "shape"
    NOT_FINITE = "not-finite"
    ZEROS = "zeros"
    CONSTANT = "constant"
    FEW_LOSSES = "few-losses"
    LOSS_STANDS_STILL = "loss-stands-still"
    RATE_STANDS_STILL = "rate-stands-still"
    UNITS = "units"
    DIFFERENT = "different"
    COPY = "copy"
    LOG_FAILED = "log-failed"
    LOG_UNFINISHED = "log-unfinished"
    LOG_OF_OTHER_FILES = "log-of-other-files"
    LOG_LACKS = "log-lacks"
    MANIFEST = "manifest"
    MANIFEST_LACKS = "manifest-lacks"
    PARTIAL = "partial"


_SENTENCES: Mapping[Kind, Callable[..., str]] = {
    Kind.MISSING: lambda **told: phrase("{file} is missing", **told),
    Kind.TWICE: lambda **told: phrase("{file} is there {count} times: {places}", **told),
    Kind.UNREADABLE: lambda **told: phrase("{file} cannot be read: {why}", **told),
    Kind.EMPTY: lambda **told: phrase("{file} holds no value", **told),
    Kind.ONE_SIDED: lambda **told: phrase("{key} is in {file} only", **told),
    Kind.SHAPE: lambda **told: phrase(
        "{key} has the shape {reference} in the reference and {port} in the port", **told
    ),
    Kind.NOT_FINITE: lambda **told: phrase(
        "{key}: {count} of {size} values in {file} are NaN or infinite", **told
    ),
    Kind.ZEROS: lambda **told: phrase("{key} is zero on both sides: nothing is compared", **told),
    Kind.CONSTANT: lambda **told: phrase(
        "{key}: all {size} values are {value} on both sides: nothing is compared", **told
    ),
    Kind.FEW_LOSSES: lambda **told: phrase(
        "{count} loss, at least {wanted} are needed to see the backward pass and the update", **told
    ),
    Kind.LOSS_STANDS_STILL: lambda **told: phrase(
        "the loss is {value} at every one of {count} steps: no update took place", **told
    ),
    Kind.RATE_STANDS_STILL: lambda **told: phrase(
        "{key}: the learning rate is {value} at every one of {count} steps", **told
    ),
    Kind.UNITS: lambda **told: phrase(
        "{key} is {reference} in the reference and {port} in the port: percent against fraction", **told
    ),
    Kind.DIFFERENT: lambda **told: phrase(
        "{key}: the mean difference is {difference}, {threshold} is allowed", **told
    ),
    Kind.COPY: lambda **told: phrase("{file} and {other} are copies of each other", **told),
    Kind.LOG_FAILED: lambda **told: phrase("{file} says that the check failed", **told),
    Kind.LOG_UNFINISHED: lambda **told: phrase("{file} has no verdict (diff check passed or failed)", **told),
    Kind.LOG_OF_OTHER_FILES: lambda **told: phrase(
        "{file} says {told} for {key}, the files give {found}", **told
    ),
    Kind.LOG_LACKS: lambda **told: phrase("{file} has no line for {key}", **told),
    Kind.MANIFEST: lambda **told: phrase(
        "{file} is not the file that the manifest lists: {told} against {found}", **told
    ),
    Kind.MANIFEST_LACKS: lambda **told: phrase("{file} is in the manifest and not in the folder", **told),
    Kind.PARTIAL: lambda **told: phrase(
        "the manifest says that this is part of a submission: without {missing}", **told
    ),
}


@dataclass(frozen=True, slots=True)
class FolderProblem:
    """A problem of one checkpoint, or of the folder if that is empty."""

    kind: Kind
    values: Mapping[str, Any]
    checkpoint: str = ""

    @property
    def name(self) -> str:
        """For programs: "missing", "few-losses"."""
        return self.kind.value

    @property
    def message(self) -> str:
        return _SENTENCES[self.kind](**self.values)

    def __str__(self) -> str:
        return str.__str__(self.message)


@dataclass(frozen=True, slots=True)
class CheckpointEvidence:
    """What both files of a checkpoint hold, and the log of their difference if there is one."""

    checkpoint: Checkpoint
    files: tuple[Path, Path]  # reference, port
    values: tuple[Mapping[Name, Any], Mapping[Name, Any]]
    log: DifferenceLog | None
    agreed_exactly: bool = False  # parfocal computed both sides itself, and says so in the manifest

    @property
    def pairs(self) -> dict[str, tuple[Any, Any]]:
        """The values both sides have in shapes that can be compared, under a readable name."""
        reference, port = self.values
        pairs = {}
        for name in reference:
            if name in port:
                first, second = np.asarray(reference[name]), np.asarray(port[name])
                alike = second if first.shape == second.shape else reshaped_alike(first, second)
                if alike is not None:
                    pairs[readable(name)] = (first, alike)
        return pairs


Found = Iterator[tuple[Kind, dict[str, Any]]]

FEWEST_LOSSES = limits.recorded.FEWEST_LOSSES.value
MANY_VALUES = limits.recorded.EQUAL_FLOATS.value
_LOSS = re.compile(r"loss", re.IGNORECASE)
_RATE = re.compile(r"(^|[^a-z])lr([^a-z]|$)|learning_?rate", re.IGNORECASE)
_PERCENT = limits.recorded.PERCENT_OF_FRACTION.value


def readable(name: Name) -> str:
    return "/".join(name) or "(array)"


def short(value: Any) -> str:
    return f"{float(value):.6g}"


def _one_sided(given: CheckpointEvidence) -> Found:
    for side, other in ((0, 1), (1, 0)):
        for name in given.values[side]:
            if name not in given.values[other]:
                yield Kind.ONE_SIDED, {"key": readable(name), "file": given.files[side].name}


def _shapes(given: CheckpointEvidence) -> Found:
    pairs = given.pairs
    for name in given.values[0]:
        if name in given.values[1] and readable(name) not in pairs:
            shapes = [np.shape(values[name]) for values in given.values]
            yield Kind.SHAPE, {"key": readable(name), "reference": shapes[0], "port": shapes[1]}


def _not_finite(given: CheckpointEvidence) -> Found:
    for values, file in zip(given.values, given.files, strict=True):
        for name, value in values.items():
            array = np.asarray(value)
            bad = int(array.size - np.isfinite(array).sum()) if array.dtype.kind in "fc" else 0
            if bad:
                yield (
                    Kind.NOT_FINITE,
                    {"key": readable(name), "count": bad, "size": array.size, "file": file.name},
                )


def _constants(given: CheckpointEvidence) -> Found:
    """Zeros everywhere; equal values only in what a network computes: a metric may well be one number."""
    for key, (first, second) in given.pairs.items():
        if _RATE.search(key) or not first.size:
            continue
        if not first.any() and not second.any():
            yield Kind.ZEROS, {"key": key}
        elif first.size > 1 and np.ptp(first) == 0 and np.ptp(second) == 0:
            yield Kind.CONSTANT, {"key": key, "size": first.size, "value": short(first.flat[0])}


def _units(given: CheckpointEvidence) -> Found:
    for key, (first, second) in given.pairs.items():
        sizes = [
            float(np.abs(side.astype(np.float64)).mean()) if side.size else 0.0 for side in (first, second)
        ]
        low, high = sorted(sizes)
        if 0 < low <= 1 < high and _PERCENT[0] <= high / low <= _PERCENT[1]:
            yield Kind.UNITS, {"key": key, "reference": short(sizes[0]), "port": short(sizes[1])}


def _differences(given: CheckpointEvidence) -> Found:
    """Larger than the guide allows and than rounding explains; another unit is told by itself."""
    other_unit = {values["key"] for _, values in _units(given)}
    for key, (first, second) in given.pairs.items():
        if key in other_unit or not first.size or not _finite(first, second):
            continue
        allowed = allowed_difference(given.checkpoint, key, first)
        (row,) = compare_named({key: first}, {key: second}, method=["mean"], threshold=allowed)
        if not row.passed and not within_rounding(first, second):
            found = {"key": key, "difference": short(row.values["mean"]), "threshold": f"{allowed:g}"}
            yield Kind.DIFFERENT, found


def allowed_difference(checkpoint: Checkpoint, name: str, reference: Any) -> float:
    """What the guide, the project or chance allows; of metrics in percent 100 times as much."""
    percent = checkpoint.name == TRAINED and np.size(reference) and np.abs(reference).max() > 1
    return max(checkpoint.threshold * (100 if percent else 1), checkpoint.by_chance.get(name, 0.0))


def _finite(first: Any, second: Any) -> bool:
    return bool(np.isfinite(first).all() and np.isfinite(second).all())


def within_rounding(first: Any, second: Any) -> bool:
    """The guide's 1e-6 is too strict for large values: they cannot agree better than they are rounded."""
    found = rounding_score(first, second)
    return found is not None and found <= LIMIT


def _losses(given: CheckpointEvidence) -> Found:
    steps = _series(given, _LOSS) or _series(given, re.compile(""))
    count = len(steps)
    if count < FEWEST_LOSSES:
        yield Kind.FEW_LOSSES, {"count": count, "wanted": FEWEST_LOSSES}
    elif len(set(steps)) == 1:
        yield Kind.LOSS_STANDS_STILL, {"value": short(steps[0]), "count": count}


def _series(given: CheckpointEvidence, named: re.Pattern[str]) -> list[float]:
    """The port's numbers under keys of such a name, in order: one a key, or several in an array."""
    return [
        float(value)
        for key, (_, port) in given.pairs.items()
        if named.search(key) and not (_RATE.search(key) and named is not _RATE)
        for value in np.ravel(port)
    ]


def _rates(given: CheckpointEvidence) -> Found:
    steps = _series(given, _RATE)
    if len(steps) > 1 and len(set(steps)) == 1:
        key = next(key for key in given.pairs if _RATE.search(key))
        yield Kind.RATE_STANDS_STILL, {"key": key, "value": short(steps[0]), "count": len(steps)}


def _copies(given: CheckpointEvidence) -> Found:
    """Of a forward pass: two frameworks do not agree to the last bit in many values, a metric may."""
    if given.agreed_exactly or digest(given.files[0]) != digest(given.files[1]):
        return
    if sum(_rounded_values(first) for first, _ in given.pairs.values()) >= MANY_VALUES:
        yield Kind.COPY, {"file": given.files[0].name, "other": given.files[1].name}


def _rounded_values(array: Any) -> int:
    """How many different numbers with a fraction there are: whole numbers are equal without rounding."""
    if array.dtype.kind != "f":
        return 0
    finite = array[np.isfinite(array)]
    return int(np.unique(finite[finite != np.round(finite)]).size)


def _log(given: CheckpointEvidence) -> Found:
    log = given.log
    if log is None:
        return
    if log.passed is None:
        yield Kind.LOG_UNFINISHED, {"file": log.file}
    elif not log.passed:
        yield Kind.LOG_FAILED, {"file": log.file}
    for key, (first, second) in given.pairs.items():
        line = (
            key if key in log.keys else key.rsplit("/", 1)[-1]
        )  # the log shows nested keys one below the other
        if line not in log.keys:
            yield Kind.LOG_LACKS, {"file": log.file, "key": key}
        if line not in log.means or not _finite(first, second):
            continue
        told, found = (
            log.means[line],
            float(np.abs(first.astype(np.float64) - second.astype(np.float64)).mean()),
        )
        # computed in float32 or in float64, the mean of a difference has these digits in common
        if not np.isclose(told, found, rtol=1e-2, atol=1e-12):
            yield (
                Kind.LOG_OF_OTHER_FILES,
                {"file": log.file, "told": short(told), "key": key, "found": short(found)},
            )


_EVERYWHERE: tuple[Callable[[CheckpointEvidence], Found], ...] = (
    _one_sided,
    _shapes,
    _not_finite,
    _units,
    _differences,
    _rates,
    _log,
)
QUESTIONS: Mapping[str, tuple[Callable[[CheckpointEvidence], Found], ...]] = {
    "forward": (*_EVERYWHERE, _constants, _copies),
    "metric": (*_EVERYWHERE, _constants),
    "loss": (*_EVERYWHERE, _constants),
    "bp_align": (*_EVERYWHERE, _constants, _losses),
    TRAINED: (*_EVERYWHERE, _constants),
}


def problems_of(given: CheckpointEvidence) -> Iterator[FolderProblem]:
    """Every question of a checkpoint, in order."""
    for question in QUESTIONS[given.checkpoint.name]:
        for kind, values in question(given):
            yield FolderProblem(kind, values, given.checkpoint.name)


# Both hold the metrics of one evaluation, a number or two that training may leave as they were.
SAME_METRICS = frozenset({"metric", TRAINED})


def copies_across(files: Iterable[tuple[str, Path]]) -> Iterator[FolderProblem]:
    """Files of different checkpoints that are byte for byte the same, where that cannot be by chance."""
    seen: dict[str, tuple[str, Path]] = {}
    for checkpoint, path in files:
        first, other = seen.setdefault(digest(path), (checkpoint, path))
        if first != checkpoint and not {first, checkpoint} <= SAME_METRICS:
            yield FolderProblem(Kind.COPY, {"file": path.name, "other": other.name}, checkpoint)


def digest(path: Path) -> str:
    found = hashlib.sha256()
    with open(path, "rb") as file:
        while piece := file.read(1 << 20):
            found.update(piece)
    return found.hexdigest()


def flattened(values: Mapping[str, Any]) -> dict[Name, Any]:
    return dict(flatten(values))
