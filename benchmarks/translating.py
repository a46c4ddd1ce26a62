"""A page that a benchmark wrote, in Chinese: the same figures and names, the words around them from a table.

The Chinese page is derived from the English one, block by block, so that no benchmark runs twice and no
figure can differ. ``python -m benchmarks.translating`` derives all of them anew.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from pathlib import Path

from benchmarks.chinese_texts import CELLS, PARALLEL, SENTENCES, VALUES
from benchmarks.matched_words import MatchedWords

DOCS = Path(__file__).parent.parent / "docs"
PAGES = ("faults", "noise", "recorded-runs", "training-faults")
_MARK = re.compile(r"#+ |- ")
_RULE = re.compile(r"[-: |]+")


def write_page(path: Path, text: str) -> None:
    """The page, and beside it the Chinese one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    path.with_suffix(".zh.md").write_text(chinese(text), encoding="utf-8")


def chinese(text: str) -> str:
    """The page in Chinese; ``UntranslatedError`` for a sentence or a column without Chinese words."""
    words = MatchedWords(_sentences(), MatchedWords(VALUES))
    cells = MatchedWords(CELLS, MatchedWords(CELLS))
    return "\n\n".join(_block(block, words, cells) for block in text.strip().split("\n\n")) + "\n"


def _block(block: str, words: MatchedWords, cells: MatchedWords) -> str:
    if block.startswith("|"):
        head, *rows = block.splitlines()
        named = _row([cells.translate(cell) for cell in _cells(head)])
        return "\n".join([named, *(_row([_cell(cell, cells) for cell in _cells(row)]) for row in rows)])
    return "\n".join(mark + words.translate(said) for mark, said in units(block))


def _cell(cell: str, cells: MatchedWords) -> str:
    """A figure, a rule, or a name, which stays as it is; some have words."""
    return cell if _RULE.fullmatch(cell) else cells.find(cell) or cell


def units(text: str) -> list[tuple[str, str]]:
    """Headings, items of lists and paragraphs, each with its mark and on one line; tables are left out."""
    found: list[tuple[str, str]] = []
    for block in text.strip().split("\n\n"):
        if block.startswith("|"):
            continue
        for number, line in enumerate(block.splitlines()):
            match = _MARK.match(line)
            mark = match[0] if match else ""
            if mark or number == 0:
                found.append((mark, line[len(mark) :].strip()))
            else:
                found[-1] = found[-1][0], f"{found[-1][1]} {line.strip()}"
    return found


def _sentences() -> Mapping[str, str]:
    """Every unit of the English texts with that of the Chinese text beside it, and the single sentences."""
    table = dict(SENTENCES)
    for english, translated in PARALLEL:
        for (mark, said), (own, told) in zip(units(english), units(translated), strict=True):
            assert mark == own, (said, told)
            table[said] = told
    return table


def _cells(row: str) -> list[str]:
    return [cell.strip() for cell in row.strip().strip("|").split("|")]


def _row(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def main() -> int:
    for name in PAGES:
        page = DOCS / f"{name}.md"
        write_page(page, page.read_text(encoding="utf-8"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
