"""parfocal with nothing but defaults; faults of weights with ``transfer=False``."""

from __future__ import annotations

import parfocal
from benchmarks.faults.cases import build
from benchmarks.faults.scoring import DIFFERS, SAME, Answer, Blame, Case
from parfocal.judge.verdict import Divergence, Site


def ask(case: Case) -> Answer:
    models = build(case, load=False)
    report = parfocal.align(
        models.reference, models.port, models.inputs, mode=models.mode, transfer=not models.loaded
    )
    own = [each for each in report.divergences if not each.inherited]
    findings = tuple(dict.fromkeys(finding.code for finding in report.findings))
    return Answer(SAME if report.ok else DIFFERS, tuple(_blame(each) for each in own), findings)


def _layer(site: Site) -> str:
    return site.path.rpartition(".")[0] if site.kind == "parameter" else site.path


def _blame(divergence: Divergence) -> Blame:
    site, cause = divergence.port or divergence.reference, divergence.cause
    return Blame(
        _layer(site) if site else "?",
        (site.file or "") if site else "",
        (site.line or 0) if site else 0,
        cause.code if cause else "",
        f"{divergence.phase} {divergence.what} {divergence.score:.3g}",
        tuple(each.code for each in cause.alternatives) if cause else (),
    )
