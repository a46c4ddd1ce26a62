"""Judge an acceptance folder or its zip, whoever made it.

Nothing in the files is executed. Every checkpoint is judged, also after one that fails.
"""

from __future__ import annotations

import json
import os
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from parfocal.errors import EmptyComparisonError, FileFormatError, InputError, ParfocalError
from parfocal.phrases import joined, phrase, remade
from parfocal.run.files import load_arrays
from parfocal.run.npy import ZIP_ERRORS
from parfocal.run.storage import storage_errors
from parfocal.workflow.acceptance.layout import (
    AGREED_EXACTLY,
    BY_CHANCE,
    MANIFEST,
    STATED,
    WITHIN,
    SubmittedCheckpoint,
    allowing,
    find_files,
)
from parfocal.workflow.acceptance.logs import read_log
from parfocal.workflow.acceptance.problems import (
    CheckpointEvidence,
    FolderProblem,
    Kind,
    copies_across,
    digest,
    flattened,
    problems_of,
)

LARGEST = 8 * 2**30  # bytes of an unpacked zip: the files of a submission are a few megabytes


@dataclass(frozen=True, slots=True)
class CheckpointResult:
    """One checkpoint: whether it was handed in, how many values were compared, what is wrong."""

    name: str
    title: str
    submitted: bool
    compared: int
    problems: tuple[FolderProblem, ...]
    set_by_project: float | None = None  # the difference that is allowed, where it is not the guide's
    by_chance: Mapping[str, float] = field(default_factory=dict)  # what chance allows more, by metric

    @property
    def ok(self) -> bool:
        return self.submitted and not self.problems


@dataclass(frozen=True, slots=True)
class Verification:
    """All checkpoints, and the problems of the folder as a whole."""

    path: str
    checkpoints: tuple[CheckpointResult, ...]
    problems: tuple[FolderProblem, ...]
    partial: bool  # whether checkpoints that were not handed in are left out
    notes: tuple[str, ...] = ()  # worth knowing, and no problem

    @property
    def ok(self) -> bool:
        return not self.problems and all(
            one.ok for one in self.checkpoints if one.submitted or not self.partial
        )

    @property
    def all_problems(self) -> tuple[FolderProblem, ...]:
        return (*(problem for one in self.checkpoints for problem in one.problems), *self.problems)

    def to_json(self) -> dict[str, Any]:
        def told(problems: tuple[FolderProblem, ...]) -> list[dict[str, Any]]:
            return [
                {"name": problem.name, "message": str(problem), "values": _plain(problem.values)}
                for problem in problems
            ]

        return {
            "ok": self.ok,
            "path": self.path,
            "partial": self.partial,
            "checkpoints": [
                {
                    "name": one.name,
                    "ok": one.ok,
                    "submitted": one.submitted,
                    "compared": one.compared,
                    "set_by_project": one.set_by_project,
                    "by_chance": dict(one.by_chance),
                    "problems": told(one.problems),
                }
                for one in self.checkpoints
            ],
            "problems": told(self.problems),
            "notes": [str.__str__(note) for note in self.notes],
        }


def _plain(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}


def verify(path: str | os.PathLike[str], *, partial: bool = False) -> Verification:
    """Judge what was handed in; with ``partial``, leave out checkpoints of which there is no file."""
    path = Path(path)
    with _unpacked(path) as folder:
        submitted = find_files(folder)
        if all(one.nothing for one in submitted):
            raise EmptyComparisonError(
                phrase(
                    "{path} has none of the files of an acceptance folder (forward_paddle.npy, ...)",
                    path=path,
                ),
                hint=phrase("give the folder that holds log_reprod, or its zip"),
            )
        stated = _read_manifests(folder)
        checkpoints = tuple(_judge(one, partial, stated) for one in submitted)
        files = [(one.checkpoint.name, place) for one in submitted for place in (*one.reference, *one.port)]
        problems = (*copies_across(files), *_manifest_problems(folder, partial))
        return Verification(str(path), checkpoints, problems, partial, (_data_note(stated.data),))


def _judge(given: SubmittedCheckpoint, partial: bool, stated: StatedFacts) -> CheckpointResult:
    checkpoint = allowing(given.checkpoint, stated.within, stated.by_chance)
    if given.nothing:
        missing = () if partial else tuple(_missing(given))
        return CheckpointResult(checkpoint.name, checkpoint.title, False, 0, missing)
    problems = [*_missing(given), *_twice(given)]
    sides = []
    for places in (given.reference, given.port):
        values = _read(places[0], problems, checkpoint.name) if places else None
        if values is not None:
            sides.append(values)
    compared = 0
    if len(sides) == 2:
        log = read_log(given.log[0]) if given.log else None
        evidence = CheckpointEvidence(
            checkpoint,
            (given.reference[0], given.port[0]),
            (sides[0], sides[1]),
            log,
            checkpoint.name in stated.agreed_exactly,
        )
        problems.extend(problems_of(evidence))
        compared = len(evidence.pairs)
    return CheckpointResult(
        checkpoint.name,
        checkpoint.title,
        True,
        compared,
        tuple(problems),
        checkpoint.threshold if checkpoint.threshold != given.checkpoint.threshold else None,
        checkpoint.by_chance,
    )


def _missing(given: SubmittedCheckpoint) -> Iterator[FolderProblem]:
    checkpoint = given.checkpoint
    for places, file in (
        (given.reference, f"{checkpoint.name}_{checkpoint.reference}.npy"),
        (given.port, checkpoint.port_file),
        (given.log, f"{checkpoint.name}_diff.log"),
    ):
        if not places:
            yield FolderProblem(Kind.MISSING, {"file": file}, checkpoint.name)


def _twice(given: SubmittedCheckpoint) -> Iterator[FolderProblem]:
    for places in (given.reference, given.port, given.log):
        if len(places) > 1:
            told = ", ".join(f"{place.parent.name}/{place.name}" for place in places)
            values = {"file": places[0].name, "count": len(places), "places": told}
            yield FolderProblem(Kind.TWICE, values, given.checkpoint.name)


def _read(path: Path, problems: list[FolderProblem], checkpoint: str) -> dict[Any, Any] | None:
    try:
        values = flattened(load_arrays(path))
    except ParfocalError as error:
        why = remade(error.message, lambda part: path.name if part == str(path) else part)
        told = {"file": path.name, "why": why}
        problems.append(FolderProblem(Kind.UNREADABLE, told, checkpoint))
        return None
    if not values:
        problems.append(FolderProblem(Kind.EMPTY, {"file": path.name}, checkpoint))
        return None
    return values


@contextmanager
def _unpacked(path: Path) -> Iterator[Path]:
    """The folder itself, or a zip unpacked for as long as it is looked at."""
    if path.is_dir():
        yield path
        return
    if not path.exists():
        raise InputError(
            phrase("{path} does not exist", path=path), hint=phrase("give an acceptance folder or its zip")
        )
    if not zipfile.is_zipfile(path):
        raise FileFormatError(
            phrase("{path} is neither a folder nor a zip", path=path),
            hint=phrase("give an acceptance folder or its zip"),
        )
    with tempfile.TemporaryDirectory(prefix="parfocal-") as room:
        try:
            with zipfile.ZipFile(path) as packed, storage_errors("unpack", path):
                size = sum(entry.file_size for entry in packed.infolist())
                if size > LARGEST:
                    raise FileFormatError(
                        phrase("{path} unpacks to {size} GB", path=path, size=f"{size / 2**30:.1f}"),
                        hint=phrase("a submission has a few megabytes"),
                    )
                packed.extractall(room)
        except ZIP_ERRORS as error:
            raise FileFormatError(
                phrase("{path} cannot be unpacked: {error}", path=path, error=error),
                hint=phrase("zip the folder again"),
            ) from error
        yield Path(room)


@dataclass(frozen=True, slots=True)
class StatedFacts:
    """What the manifest says of how the values came about and how they are judged."""

    agreed_exactly: frozenset[str] = frozenset()  # checkpoints that were seen to agree to the last bit
    within: float | None = None  # how far a metric may be off after training, if the project says it
    by_chance: Mapping[str, float] = field(default_factory=dict)  # how far chance lets trained metrics be off
    data: Mapping[str, Any] = field(default_factory=dict)  # what is stated of the data, by data set


def _read_manifests(folder: Path) -> StatedFacts:
    exact: set[str] = set()
    within = []
    by_chance: dict[str, float] = {}
    data: dict[str, Any] = {}
    for path in folder.rglob(MANIFEST):
        try:
            manifest = json.loads(path.read_text(encoding="utf-8"))
            exact.update(map(str, manifest.get(AGREED_EXACTLY, ())))
            within.append(float(manifest.get(WITHIN) or 0))
            by_chance.update({name: float(off) for name, off in dict(manifest.get(BY_CHANCE) or {}).items()})
            data.update(
                {name: dict(facts) for name, facts in dict(manifest.get(STATED) or {}).items() if facts}
            )
        except (ValueError, TypeError, AttributeError):
            continue  # told by _manifest_problems
    return StatedFacts(frozenset(exact), max(within, default=0) or None, by_chance, data)


def _data_note(stated: Mapping[str, Any]) -> str:
    """What the data were held against; without anything, made-up data pass as well as real ones."""
    if not stated:
        return phrase(
            "nothing is stated of the data: that they are the paper's, and not made up, was not checked "
            "([evaluation_data] and [training_data] in parfocal.toml state it)"
        )
    told = (
        f"{name} ({', '.join(f'{key} {value}' for key, value in facts.items())})"
        for name, facts in stated.items()
    )
    return phrase(
        "both sides were held against what is stated of the data: {facts}", facts=joined("; ", told)
    )


def _manifest_problems(folder: Path, partial: bool) -> Iterator[FolderProblem]:
    """Where there is a manifest, the files must be those it lists."""
    for path in sorted(folder.rglob(MANIFEST)):
        try:
            manifest = json.loads(path.read_text(encoding="utf-8"))
            listed = dict(manifest["files"])
            lacking = list(manifest.get("missing", ()))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            told = {"file": path.name, "why": f"{type(error).__name__}: {error}"}
            yield FolderProblem(Kind.UNREADABLE, told)
            continue
        for name, told_digest in listed.items():
            file = path.parent / name
            if not file.is_file():
                yield FolderProblem(Kind.MANIFEST_LACKS, {"file": name})
                continue
            found = digest(file)
            if found != told_digest:
                yield FolderProblem(
                    Kind.MANIFEST, {"file": name, "told": str(told_digest)[:12], "found": found[:12]}
                )
        if lacking and not partial:
            yield FolderProblem(Kind.PARTIAL, {"missing": ", ".join(map(str, lacking))})
