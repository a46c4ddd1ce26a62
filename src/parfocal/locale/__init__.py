"""What parfocal says, in other languages: a gettext catalogue for each, compiled when it is built.

A template is what ``parfocal.phrases.phrase`` is called with; its translation has the same places for values.
Names of APIs, codes and lines of code stay as they are. ``make messages`` keeps the catalogues up to date.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

ENGLISH = "en"
CHINESE = "zh"
LANGUAGES = (ENGLISH, CHINESE)
FOLDER = Path(__file__).parent


@lru_cache
def catalogue(language: str) -> Mapping[str, str]:
    """Every template that is translated into a language."""
    if language != CHINESE:
        return {}
    return compiled(FOLDER / language / "LC_MESSAGES" / "parfocal.mo")


def compiled(path: Path) -> dict[str, str]:
    """The sentences of a compiled catalogue; none, and a note, if it was never compiled."""
    from gettext import GNUTranslations  # not while parfocal is imported

    if not path.is_file():
        print(  # noqa: T201
            f"parfocal: {path} is missing, so most is said in English; install parfocal again to compile it",
            file=sys.stderr,
        )
        return {}
    with path.open("rb") as file:
        # gettext offers no other way to have all of them
        sentences: dict[str, str] = GNUTranslations(file)._catalog  # type: ignore[attr-defined]
    return {template: text for template, text in sentences.items() if template}  # all but the header
