"""What parfocal says, in other languages: a table of templates for every room of the code.

A template is what ``parfocal.phrases.phrase`` is called with; an entry has the same places for values. Names
of APIs, codes and lines of code stay as they are.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

ENGLISH = "en"
CHINESE = "zh"
LANGUAGES = (ENGLISH, CHINESE)


@lru_cache
def catalogue(language: str) -> Mapping[str, str]:
    """Every template that is translated into a language."""
    if language != CHINESE:
        return {}
    from parfocal.locale.zh import TABLES

    return {template: text for table in TABLES.values() for template, text in table.items()}
