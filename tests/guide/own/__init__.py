"""Projects as their owners would write them: a folder each, with its data made by ``make_data.py``.

``mistakes.toml`` has what the port may have instead of what is right, and what must be told of it.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from parfocal.workflow.guide.settings import tomllib

HERE = Path(__file__).parent
PROJECTS = tuple(sorted(each.parent.name for each in HERE.glob("*/parfocal.toml")))


@dataclass(frozen=True)
class Mistake:
    """``told`` is in the place or the fix that is told; ``line``: so is the line of what is wrong."""

    project: str
    step: str
    code: str
    file: str
    right: str
    wrong: str
    told: str = ""
    line: bool = False

    @property
    def name(self) -> str:
        return f"{self.project}-{self.step}-{self.code}"

    def place(self, text: str) -> str:
        """``network.py:12``."""
        return f"{Path(self.file).name}:{text[: text.index(self.right)].count(chr(10)) + 1}"


def mistakes() -> tuple[Mistake, ...]:
    return tuple(
        Mistake(project, **entry)
        for project in PROJECTS
        for entry in tomllib.loads((HERE / project / "mistakes.toml").read_text("utf-8"))["mistake"]
    )


def make(project: str, folder: Path, *, together: bool = True, seed: int = 0) -> Path:
    """A copy of a project, with its data."""
    left_out = shutil.ignore_patterns("__pycache__", ".parfocal", "mistakes.toml")
    shutil.copytree(HERE / project, folder, ignore=left_out)
    subprocess.run([sys.executable, "make_data.py"], cwd=folder, check=True)
    plan = folder / "parfocal.toml"
    text = plan.read_text("utf-8")
    assert text.startswith("seed = 0\n")
    plan.write_text(text.replace("seed = 0\n", f"seed = {seed}\ntogether = {str(together).lower()}\n", 1))
    return folder
