"""The forms in which a report is written, by name."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

from parfocal.report.junit import to_junit
from parfocal.report.markdown import to_markdown
from parfocal.report.report import Report

Reports = Mapping[str, Report]  # by name; a folder may hold several


def _each(render: Callable[[Report], str]) -> Callable[[Reports], str]:
    def all_of_them(reports: Reports) -> str:
        if len(reports) == 1:
            return "".join(map(render, reports.values()))
        return "\n".join(f"== {name}\n\n{render(report)}" for name, report in reports.items())

    return all_of_them


def _json(reports: Reports) -> str:
    data = [report.to_json() for report in reports.values()]
    return json.dumps(data[0] if len(data) == 1 else data, indent=2) + "\n"


def _markdown(reports: Reports) -> str:
    return "\n".join(map(to_markdown, reports.values()))


# What prints several reports one after another, or as one document. HTML is one file each.
TEXTS: dict[str, Callable[[Reports], str]] = {
    "txt": _each(lambda report: f"{report}\n"),
    "json": _json,
    "md": _markdown,
    "junit": to_junit,
}
