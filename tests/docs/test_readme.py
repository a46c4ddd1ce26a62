"""The READMEs promise only what happens: the example's output and the tables are real."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from tests.docs.pages import ROOT, blocks
from tests.warm import warm_python

READMES = [path for path in (ROOT / "README.md", ROOT / "README.zh.md") if path.exists()]
FIGURE = re.compile(r"[-+]?\d[\d,]*(?:\.\d+)?(?:[-+]\w+)?(?:e[-+]?\d+)?|[▁▂▃▄▅▆▇█]+")
ROW = re.compile(r"^\| (parfocal|PaDiff[^|]*|reprod_log[^|]*) \|(.*)\|$", re.MULTILINE)


def without_figures(text: str) -> list[str]:
    """Words in their order: figures hang on random weights and on the processor, and so do line breaks.

    The lines that picture the drift are left out: their length and place are figures, too.
    """
    kept = [line for line in text.splitlines() if not line.startswith(("drift", "made here"))]
    return FIGURE.sub("#", " ".join(kept)).split()


@pytest.mark.parametrize("readme", READMES, ids=lambda path: path.name)
def test_the_output_of_the_example_is_real(readme: Path, tmp_path: Path) -> None:
    found = blocks(readme.read_text(encoding="utf-8"))
    at = next(number for number, block in enumerate(found) if block.language == "python")
    code, shown = found[at].code, found[at + 1].code
    assert len([line for line in code.splitlines() if line]) <= 15
    (tmp_path / "example.py").write_text(code, encoding="utf-8")
    done = subprocess.run(
        [*warm_python(), "example.py"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert without_figures(done.stdout) == without_figures(shown)


def table_of_faults(text: str) -> dict[str, list[str]]:
    return {
        tool: re.findall(r"\d+(?: of \d+)?", cells) for tool, cells in ROW.findall(text) if " of " in cells
    }


@pytest.mark.parametrize("readme", READMES, ids=lambda path: path.name)
def test_the_table_of_faults_is_that_of_the_benchmark(readme: Path) -> None:
    told = table_of_faults(readme.read_text(encoding="utf-8"))
    measured = table_of_faults((ROOT / "docs" / "faults.md").read_text(encoding="utf-8"))
    assert told.keys() == measured.keys()
    assert len(told) == 4
    for tool, (detected, _apart, located, named, _others, crashed, alarms, *_rest) in measured.items():
        said = [value for value in told[tool] if value != crashed or crashed == "0"]
        short = [detected, located.split()[0], named.split()[0], alarms]
        assert said == short, tool


@pytest.mark.parametrize("readme", READMES, ids=lambda path: path.name)
def test_the_table_of_costs_is_that_of_its_page(readme: Path) -> None:
    page = (ROOT / "docs" / "align.md").read_text(encoding="utf-8")
    rows = [
        line for line in readme.read_text(encoding="utf-8").splitlines() if re.search(r"\| \d\.\d+x \|", line)
    ]
    assert len(rows) == 2
    for row in rows:
        assert re.findall(r"[\d.]+x", row) in [re.findall(r"[\d.]+x", line) for line in page.splitlines()]


@pytest.mark.parametrize("readme", READMES, ids=lambda path: path.name)
def test_commands_it_names_exist(readme: Path) -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    text = readme.read_text(encoding="utf-8")
    targets = set(re.findall(r"(?:`|^    )make ([a-z][a-z-]+)", text, re.MULTILINE))
    assert targets
    for target in targets:
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target
    for module in re.findall(r"python -m (benchmarks\.\w+)", text):
        assert (ROOT / f"{module.replace('.', '/')}.py").exists(), module
