"""The worked examples of CONTRIBUTING: each diff applies to the tree as it is, and its test passes then."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.pages import ROOT, blocks

EXAMPLES = [
    each.code for each in blocks((ROOT / "CONTRIBUTING.md").read_text("utf-8")) if each.language == "diff"
]
NEW = "tests/unit/workflow/test_vocabularies.py"
SELECTED = "RReLU or transformers or vocabular"
_FILE = re.compile(r"^\+\+\+ b/(\S+)$", re.MULTILINE)


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the sources and of the tests that the examples touch."""
    copy = tmp_path_factory.mktemp("tree")
    passed_over = shutil.ignore_patterns("__pycache__")
    for folder in ("src", "tests/faults", "tests/pairs", "tests/unit/workflow", "tests/versions"):
        shutil.copytree(ROOT / folder, copy / folder, ignore=passed_over)
    for file in (
        "tests/__init__.py",
        "tests/thorough.py",
        "tests/conftest.py",
        "tests/unit/__init__.py",
        "pyproject.toml",
    ):
        shutil.copy(ROOT / file, copy / file)
    return copy


def patch(tree: Path, diff: str) -> None:
    done = subprocess.run(
        ["git", "apply", "-"], cwd=tree, input=diff, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def outcome(tree: Path) -> tuple[int, int]:
    """How many of the examples' tests fail and pass."""
    folders = ("tests/faults/test_sweep.py", "tests/pairs/weights/test_layers.py", NEW)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", SELECTED, *folders],
        cwd=tree,
        env={**os.environ, "PYTHONPATH": f"{tree / 'src'}{os.pathsep}{tree}"},
        capture_output=True,
        text=True,
        check=False,
    )
    counts = {word: int(number) for number, word in re.findall(r"(\d+) (failed|passed)", done.stdout)}
    assert counts, done.stdout + done.stderr
    return counts.get("failed", 0), counts.get("passed", 0)


def test_an_entry_or_a_file_and_its_test() -> None:
    assert len(EXAMPLES) == 3
    for diff in EXAMPLES:
        sources, tests = (
            [file for file in _FILE.findall(diff) if file.startswith(folder)] for folder in ("src/", "tests/")
        )
        assert (len(sources), len(tests)) == (1, 1)


def test_the_examples_apply_and_their_tests_pass(tree: Path) -> None:
    for diff in EXAMPLES:
        patch(tree, diff)
    assert outcome(tree) == (0, 7)
