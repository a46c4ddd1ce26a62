"""Write the files of an acceptance folder: the values of both sides of every checkpoint, logs, manifest, zip.

The folder takes its name when it is complete. The original ``reprod_log`` reads what is written.
"""

from __future__ import annotations

import json
import math
import os
import secrets
import shutil
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from parfocal.errors import InputError
from parfocal.phrases import phrase
from parfocal.run.files import save_reprod_log
from parfocal.run.storage import storage_errors
from parfocal.workflow.acceptance.layout import (
    AGREED_EXACTLY,
    BY_CHANCE,
    CHECKPOINTS,
    MANIFEST,
    WITHIN,
    Checkpoint,
    Spelling,
    allowing,
    log_file,
    reference_file,
)
from parfocal.workflow.acceptance.problems import allowed_difference, digest, within_rounding

VALUES_FOLDER = "log_reprod"
# Reference's file, port's file, the log to be written, and the difference that is allowed.
WriteLog = Callable[[Path, Path, Path, float], None]


@dataclass(frozen=True, slots=True)
class CheckpointValues:
    """What both sides of a checkpoint have, by key."""

    name: str
    reference: Mapping[str, Any]
    port: Mapping[str, Any]


def write_folder(
    folder: Path,
    given: Sequence[CheckpointValues],
    *,
    spelling: Spelling,
    write_log: WriteLog,
    texts: Mapping[str, str],
    facts: Mapping[str, Any],
    files: Mapping[str, Path] = MappingProxyType({}),
) -> tuple[Path, Path]:
    """The folder and its zip; ``texts`` and ``files`` are more of it, ``facts`` go into the manifest."""
    if folder.exists() and not (folder / MANIFEST).is_file():
        raise InputError(
            phrase(
                "{folder} is there already, and is no acceptance folder that parfocal wrote", folder=folder
            ),
            hint=phrase("give another folder with --out"),
        )
    building = folder.with_name(f".{folder.name}-{secrets.token_hex(8)}")
    with storage_errors("write", folder):
        (building / VALUES_FOLDER).mkdir(parents=True)
        try:
            checkpoints = {
                each.name: allowing(each, facts.get(WITHIN), facts.get(BY_CHANCE, {})) for each in CHECKPOINTS
            }
            thresholds = _write_values(building / VALUES_FOLDER, given, spelling, write_log, checkpoints)
            for name, text in texts.items():
                (building / name).parent.mkdir(parents=True, exist_ok=True)
                (building / name).write_text(text, encoding="utf-8")
            for name, source in files.items():
                (building / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(source, building / name)
            missing = [each.name for each in CHECKPOINTS if each.name not in {one.name for one in given}]
            exact = [one.name for one in given if _agree_exactly(one)]
            _write_manifest(
                building, {**facts, "missing": missing, "thresholds": thresholds, AGREED_EXACTLY: exact}
            )
            packed = _pack(building, folder)
            shutil.rmtree(folder, ignore_errors=True)
            os.replace(building, folder)
        finally:
            shutil.rmtree(building, ignore_errors=True)
    return folder, packed


def _write_values(
    folder: Path,
    given: Sequence[CheckpointValues],
    spelling: Spelling,
    write_log: WriteLog,
    checkpoints: Mapping[str, Checkpoint],
) -> dict[str, float]:
    """Both files of every checkpoint and their log; the difference that each log allows."""
    thresholds = {}
    for one in given:
        checkpoint = checkpoints[one.name]
        files = folder / reference_file(checkpoint, spelling), folder / checkpoint.port_file
        values = [_arrays(each) for each in (one.reference, one.port)]
        for file, arrays in zip(files, values, strict=True):
            save_reprod_log(file, arrays)
        thresholds[one.name] = threshold_of(checkpoint, *values)
        write_log(*files, folder / log_file(checkpoint, spelling), thresholds[one.name])
    return thresholds


def _agree_exactly(given: CheckpointValues) -> bool:
    ours, theirs = (_arrays(each) for each in (given.reference, given.port))
    return ours.keys() == theirs.keys() and all(
        ours[name].tobytes() == theirs[name].tobytes() for name in ours
    )


def _arrays(values: Mapping[str, Any]) -> dict[str, Any]:
    """Numbers have the precision that a framework computes them in: their rounding is judged by it."""
    return {
        name: np.asarray(value, np.float32) if isinstance(value, (bool, int, float)) else np.asarray(value)
        for name, value in values.items()
    }


def threshold_of(checkpoint: Checkpoint, reference: Mapping[str, Any], port: Mapping[str, Any]) -> float:
    """The guide's or the project's; where rounding alone is larger than that, the next power of ten."""
    allowed = [
        allowed_difference(checkpoint, name, first)
        for name, first in reference.items()
        if name in port and np.shape(first) == np.shape(port[name])
    ]
    found = max(allowed, default=checkpoint.threshold)
    for name, first in reference.items():
        second = np.asarray(port.get(name))
        if second.dtype.kind not in "fiub" or np.shape(first) != second.shape or not second.size:
            continue
        apart = float(np.abs(np.asarray(first, np.float64) - second.astype(np.float64)).mean())
        if apart > found and within_rounding(np.asarray(first), second):
            found = 10.0 ** math.ceil(math.log10(apart))
    return found


def _write_manifest(folder: Path, facts: Mapping[str, Any]) -> None:
    files = {
        path.relative_to(folder).as_posix(): digest(path)
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
    (folder / MANIFEST).write_text(json.dumps({"files": files, **facts}, indent=2), encoding="utf-8")


def _pack(building: Path, folder: Path) -> Path:
    packed = folder.with_name(f"{folder.name}.zip")
    partial = building.with_name(f"{building.name}.zip")
    with zipfile.ZipFile(partial, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(building.rglob("*")):
            if path.is_file():
                archive.write(path, f"{folder.name}/{path.relative_to(building).as_posix()}")
    os.replace(partial, packed)
    return packed
