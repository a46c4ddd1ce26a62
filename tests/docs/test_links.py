"""No link inside of the project is dead: the file is there, and so is the heading."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.pages import ROOT, anchors, documents, links

ELSEWHERE = ("http://", "https://", "mailto:")


def headings(page: Path) -> set[str]:
    return anchors(page.read_text(encoding="utf-8"))


def dead_links(document: Path) -> list[str]:
    text = document.read_text(encoding="utf-8")
    dead = []
    for link in links(text):
        if link.startswith(ELSEWHERE):
            continue
        file, _, anchor = link.partition("#")
        target = document.parent / file if file else document
        if not target.exists() or (anchor and target.suffix == ".md" and anchor not in headings(target)):
            dead.append(link)
    return dead


@pytest.mark.parametrize("document", documents(), ids=lambda each: str(each.relative_to(ROOT)))
def test_links_lead_somewhere(document: Path) -> None:
    assert dead_links(document) == []


def test_dead_links_are_found(tmp_path: Path) -> None:
    (tmp_path / "other.md").write_text("# One heading\n\n## `code` and *more*\n", encoding="utf-8")
    page = tmp_path / "page.md"
    page.write_text(
        "[good](other.md) [good](other.md#one-heading) [good](other.md#code-and-more)\n\n"
        "[good](#here)\n\n# Here\n\n"
        "`[code](nowhere.md)` [bad](nowhere.md) [bad](other.md#no-heading) [bad](#there)\n\n"
        "```text\n[block](nowhere.md)\n```\n",
        encoding="utf-8",
    )
    assert dead_links(page) == ["nowhere.md", "other.md#no-heading", "#there"]


def test_there_are_links_to_follow() -> None:
    assert sum(len(links(each.read_text(encoding="utf-8"))) for each in documents()) > 40
