"""A report in a notebook: what fits between two cells. The whole page is ``report.save(folder)``."""

from __future__ import annotations

from functools import cache

from jinja2 import Environment, StrictUndefined, Template

from parfocal.phrases import current_language, translate
from parfocal.report.mistakes import own_mistakes
from parfocal.report.page.labels import say
from parfocal.report.page.page import score_of, source
from parfocal.report.report import Report
from parfocal.report.wording import amount, cause_label, headline, place_of, proof_words

SHOWN = 8  # mistakes


def to_cell(report: Report) -> str:
    """HTML for the output of a cell, in the current language."""
    language = current_language()
    mistakes = own_mistakes(report.divergences)
    return _template().render(
        report=report,
        language=language,
        headline=headline(report),
        compared=[amount(each) for each in report.coverage.compared],
        mistakes=[(group[0], place_of(group[0]), len(group) - 1) for group in mistakes[:SHOWN]],
        more=max(0, len(mistakes) - SHOWN),
        inherited=sum(each.inherited for each in report.divergences),
        text=report.text(language=language),
        score=lambda value: score_of(value) if report.tolerance is None else "",
        label=cause_label,
        proof=proof_words,
        say=lambda text: say(text).zh if language == "zh" else say(text).en,
        translate=lambda text: translate(text, language),
    )


@cache
def _template() -> Template:
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    return environment.from_string(source("cell.html"))
