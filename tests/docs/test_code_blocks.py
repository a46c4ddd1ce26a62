"""Every Python block of the documentation runs, and every linked page exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted((ROOT / "docs").glob("*.md"))
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\((?!https?:)([^)#]+)")


def blocks() -> list[pytest.param]:
    found = []
    for page in PAGES:
        for number, match in enumerate(BLOCK.finditer(page.read_text(encoding="utf-8"))):
            found.append(pytest.param(match[1], id=f"{page.stem}-{number}"))
    return found


@pytest.mark.parametrize("code", blocks())
def test_block_runs(code: str) -> None:
    exec(compile(code, "<documentation>", "exec"), {"__name__": "__documentation__"})


def test_there_are_blocks_to_run() -> None:
    assert len(blocks()) >= 7


@pytest.mark.parametrize("page", [*PAGES, ROOT / "README.md"], ids=lambda page: page.stem)
def test_links_lead_somewhere(page: Path) -> None:
    for target in LINK.findall(page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists(), target


def test_readme_shows_exactly_the_two_commands_first() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    first_screen = "\n".join(text.splitlines()[:20])
    assert re.findall(r"^    (make \w+)", first_screen, re.MULTILINE) == ["make demo", "make test"]
