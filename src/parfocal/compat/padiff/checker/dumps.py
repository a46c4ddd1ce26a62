"""Reading dumps: which folders belong together, the JSON trees, and the arrays next to them.

A folder is a dump itself, or holds ``step_*`` folders, or ``rank_*`` folders, or ranks inside of
steps. Every step and every rank of one side must have its counterpart on the other.
"""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from parfocal.backends.protocol import Array
from parfocal.compat.padiff.dump_tools import MAX_JSON
from parfocal.errors import EmptyComparisonError, FileFormatError, InputError
from parfocal.phrases import phrase
from parfocal.run.storage import read_limited, storage_errors

_NUMBERED = re.compile(r"(step|rank)_(\d+)")


@dataclass(frozen=True)
class Dump:
    """One JSON file of a dump."""

    folder: Path
    file_name: str
    document: dict[str, Any] = field(repr=False)

    @property
    def framework(self) -> str:
        return str(self.document["framework"])

    @property
    def model_name(self) -> str:
        return str(self.document["model_name"])

    @property
    def foreign(self) -> bool:
        """Whether PaDiff itself wrote it; its trees have no kinds."""
        tree = self.document["tree"]
        return any("kind" not in root for root in (tree if isinstance(tree, list) else [tree]))

    @cached_property
    def step(self) -> str:
        """``step_3`` for a dump inside such a folder, else nothing."""
        parts = [part for part in self.folder.absolute().parts if part.startswith("step_")]
        return parts[-1] if parts else ""

    @property
    def layer_map(self) -> list[tuple[str, str]]:
        """Route and class of every mapped layer."""
        mapped = self.document.get("layer_map") or {"route": [], "fullname": []}
        return list(zip(mapped["route"], mapped["fullname"], strict=True))

    def array(self, path: str | None) -> Array | None:
        """A tensor of this dump; the file next to the JSON wins, so a moved dump is read where it is."""
        if path is None:
            return None
        near = self.folder.joinpath(*Path(path).parts[-2:])
        file = near if near.exists() else Path(path)
        with storage_errors("read", file):
            try:
                loaded: Array = np.load(file, allow_pickle=False)
            except ValueError as error:
                raise FileFormatError(
                    phrase("{file} is not a .npy file of numbers: {error}", file=file, error=error)
                ) from error
        return loaded

    def named(self, name: str) -> str:
        """PaDiff's name of a log file about this dump."""
        return f"{name}_{self.step}.log" if self.step else name


def load_dump(folder: Path, file_name: str) -> Dump:
    """Read one JSON file of a dump folder."""
    path = folder / file_name
    if not path.exists():
        raise InputError(
            phrase("{folder} has no {file_name}", folder=folder, file_name=file_name),
            hint=phrase("pass the folder that was given to the dump function, or one of steps or ranks"),
        )
    try:
        document = json.loads(read_limited(path, MAX_JSON))
    except ValueError as error:
        raise FileFormatError(phrase("{path} is not JSON: {error}", path=path, error=error)) from error
    if not isinstance(document, dict) or not {"model_name", "framework", "tree"} <= set(document):
        raise FileFormatError(
            phrase("{path} is not a dump of PaDiff: model_name, framework and tree are expected", path=path)
        )
    return Dump(folder, file_name, document)


def paired_dumps(
    first: str | os.PathLike[str], second: str | os.PathLike[str], file_name: str
) -> list[tuple[Dump, Dump]]:
    """Every dump below the one folder with its counterpart below the other, steps and ranks in order."""
    sides = [_dump_folders(Path(path), file_name) for path in (first, second)]
    for side, path in zip(sides, (first, second), strict=True):
        if not side:
            raise EmptyComparisonError(
                phrase(
                    "nothing to compare: no {file_name} in {path}, nor in steps or ranks below it",
                    file_name=file_name,
                    path=os.fspath(path),
                ),
                hint=phrase("dump the model first, and pass the folder that was given to the dump function"),
            )
    if list(sides[0]) != list(sides[1]):
        only = [sorted(set(sides[i]) - set(sides[1 - i])) for i in range(2)]
        raise InputError(
            phrase(
                "the steps and ranks differ: {left} only in {first}, {right} only in {second}",
                left=_listed(only[0]),
                first=os.fspath(first),
                right=_listed(only[1]),
                second=os.fspath(second),
            ),
            hint=phrase("dump the same steps on both sides, or pass the folders of one step"),
        )
    return [(load_dump(sides[0][key], file_name), load_dump(sides[1][key], file_name)) for key in sides[0]]


def _dump_folders(folder: Path, file_name: str) -> dict[tuple[int, ...], Path]:
    """(step, rank) as far as they are folders -> folder, in order."""
    if (folder / file_name).exists():
        return {(): folder}
    found: dict[tuple[int, ...], Path] = {}
    for _, number, path in sorted(_numbered(folder)):
        found.update({(number, *key): dump for key, dump in _dump_folders(path, file_name).items()})
    return found


def _numbered(folder: Path) -> list[tuple[str, int, Path]]:
    if not folder.is_dir():
        return []
    matches = [(_NUMBERED.fullmatch(path.name), path) for path in folder.iterdir() if path.is_dir()]
    return [(match.group(1), int(match.group(2)), path) for match, path in matches if match]


def _listed(keys: list[tuple[int, ...]]) -> str:
    return ", ".join("/".join(map(str, key)) or "the folder itself" for key in keys) or "none"
