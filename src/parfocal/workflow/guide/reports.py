"""A report as plain values that go from process to process and are kept: its problems, findings and texts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from parfocal.errors import TransferError
from parfocal.judge.comparison import to_plain
from parfocal.judge.verdict import Divergence, Site
from parfocal.phrases import phrase
from parfocal.report.report import Report


def told_report(report: Report, folder: Path) -> dict[str, Any]:
    """What a step needs of a report; the whole of it is saved into a folder."""
    report.save(folder)
    return {
        "problems": [problem_of(each) for each in report.divergences],
        "findings": [{"code": each.code, "message": each.message} for each in report.findings],
        "score": to_plain(max((each.forward or 0.0 for each in report.pairs), default=0.0)),
        "limit": report.limit,
        "compared": [[each.what, each.count] for each in report.coverage.compared],
        "report": str(folder / "report.txt"),
    }


def problem_of(found: Divergence) -> dict[str, Any]:
    cause = found.cause
    return {
        "phase": found.phase,
        "code": "" if cause is None else cause.code,
        "proven": cause is not None and cause.proof is not None,
        "what": found.what,
        "where": _place(found.port or found.reference),
        "message": cause.message if cause is not None else found.message,
        "fix": "" if cause is None else cause.fix,
        "score": to_plain(float(found.score)),
        "step": found.step,
        "inherited": found.inherited,
    }


def _place(site: Site | None) -> str:
    if site is None:
        return ""
    line = f"{Path(site.file).name}:{site.line}" if site.file else ""
    return " ".join(part for part in (site.path, site.kind, line) if part)


def problem_of_transfer(error: TransferError) -> dict[str, Any]:
    """Weights that do not correspond are a difference of the two models, not a wrong call."""
    plan: Any = error.plan
    code = "weight.mismatched"
    if plan is not None and not plan.ambiguous:
        if plan.unmatched_port and not plan.unmatched_reference:
            code = "weight.extra"
        elif plan.unmatched_reference and not plan.unmatched_port:
            code = "weight.missing"
    return {
        "phase": "weights",
        "code": code,
        "proven": False,
        "what": phrase("the weights of the two models do not correspond"),
        "where": "",
        "message": error.message,
        "fix": error.hint,
        "score": None,
        "step": 0,
        "inherited": False,
    }
