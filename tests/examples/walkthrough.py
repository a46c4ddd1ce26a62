"""The commands of a README and the output that it shows, run in a copy of its folder."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.warm import search_path

EXAMPLES = Path(__file__).parents[2] / "examples"
MADE = (".parfocal", "pictures", "clips", "reference.pth", "acceptance*", "__pycache__")
BLOCK = re.compile(r"^```console\n(.*?)^```", re.MULTILINE | re.DOTALL)
NUMBER = re.compile(r"\d+(\.\d+)?(e[+-]?\d+)?")
PATH = re.compile(r"\S*/\.parfocal")
COLUMNS = re.compile(r"  +")
LEFT_OUT = "..."


@dataclass(frozen=True)
class Command:
    """A line of a README after a ``$``, and what the README says that it prints."""

    line: str
    shown: tuple[str, ...]


@dataclass(frozen=True)
class Finished:
    """A command that was run."""

    line: str
    status: int
    printed: tuple[str, ...]


def copy_example(name: str, target: Path) -> Path:
    """The example as a clone has it, without what earlier runs made."""
    shutil.copytree(EXAMPLES / name, target, ignore=shutil.ignore_patterns(*MADE))
    return target


def change_values(file: Path, **values: str) -> None:
    """Set keys of a plan; a key that is not there is a mistake of the test."""
    text = file.read_text(encoding="utf-8")
    for key, value in values.items():
        text, count = re.subn(rf"^(# )?{key} = [^#\n]*", f"{key} = {value} ", text, flags=re.MULTILINE)
        assert count == 1, f"{key} is {count} times in {file.name}"
    file.write_text(text, encoding="utf-8")


def commands(readme: Path) -> Iterator[Command]:
    for block in BLOCK.findall(readme.read_text(encoding="utf-8")):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            line, *shown = part.rstrip().splitlines()
            yield Command(line, tuple(shown))


def run(line: str, folder: Path) -> Finished:
    """A command as a shell would run it."""
    environment = {**os.environ, "PATH": search_path(), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        line, shell=True, cwd=folder, env=environment, capture_output=True, text=True, timeout=900
    )
    assert done.stdout or done.returncode == 0, done.stderr
    return Finished(line, done.returncode, tuple(done.stdout.splitlines()))


def assert_shown(command: Command, finished: Finished, steps: Sequence[str]) -> None:
    """Every line that the README shows was printed, in its order; numbers and counts may be others."""
    printed = iter([comparable(line, steps) for line in finished.printed])
    for line in command.shown:
        if line.strip() and line.strip() != LEFT_OUT:
            wanted = comparable(line, steps)
            assert any(each == wanted for each in printed), (
                f"{command.line} does not print {line!r} there, but:\n" + "\n".join(finished.printed)
            )


def comparable(line: str, steps: Sequence[str]) -> str:
    """A line without what depends on the size of the data or on rounding."""
    columns = COLUMNS.split(line.strip())
    if columns[0] in steps:  # of the table: the step, how it stands, its checkpoint
        return " ".join((*columns[:2], columns[-1]))
    if columns[0].startswith(("cause ", "fix")):
        return " ".join(columns)
    text = NUMBER.sub("N", PATH.sub("/.parfocal", " ".join(columns)))
    return re.sub(r"classifier\.N\.\w+|features\.N\.\w+", "PARAMETER", text)
