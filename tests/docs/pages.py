"""The documents of the project, taken apart: code blocks, links and headings."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from markdown.extensions.toc import slugify

ROOT = Path(__file__).parents[2]
TRANSLATED = ".zh.md"
_BLOCK = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```", re.MULTILINE | re.DOTALL)
_SPAN = re.compile(r"`[^`\n]*`")
_LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#{1,6} +(.+?) *$", re.MULTILINE)
_ANCHOR = re.compile(r"<a (?:name|id)=\"([^\"]+)\"")


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block of a page."""

    language: str
    code: str


def pages() -> list[Path]:
    """The documentation, in all languages."""
    return sorted((ROOT / "docs").glob("*.md"))


def documents() -> list[Path]:
    """Everything that is written for people: the documentation and what lies beside the code."""
    beside = [path for path in ROOT.glob("*.md") if path.is_file()]
    return [*pages(), *sorted(beside), *sorted((ROOT / "examples").rglob("*.md"))]


def originals() -> list[Path]:
    """Pages that are not translations, and the README."""
    return [page for page in (*pages(), ROOT / "README.md") if not page.name.endswith(TRANSLATED)]


def translations() -> list[Path]:
    return [page for page in (*pages(), *ROOT.glob("*.md")) if page.name.endswith(TRANSLATED)]


def original_of(translation: Path) -> Path:
    return translation.with_name(translation.name.removesuffix(TRANSLATED) + ".md")


def blocks(text: str) -> list[Block]:
    return [Block(language, code) for language, code in _BLOCK.findall(text)]


def links(text: str) -> list[str]:
    """Targets of links, without those that only look like one in code."""
    return _LINK.findall(_SPAN.sub("``", _BLOCK.sub("", text)))


def anchors(text: str) -> set[str]:
    """What can be linked to on a page, spelled as the site (and, for plain words, GitHub) spells it."""
    prose = _BLOCK.sub("", text)
    found = set(_ANCHOR.findall(prose))
    for heading in _HEADING.findall(prose):
        plain = re.sub(r"[`*]|\[([^\]]*)\]\([^)]*\)", r"\1", heading)
        slug = slugify(plain, "-")
        number, unique = 0, slug
        while unique in found:
            number += 1
            unique = f"{slug}_{number}"
        found.add(unique)
        found.add(re.sub(r"[^\w -]", "", plain.lower()).replace(" ", "-"))  # as GitHub does
    return found
