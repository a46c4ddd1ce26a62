"""parfocal with nothing but defaults; faults of weights with ``transfer=False``."""

from __future__ import annotations

import gc
import time
from functools import cache

import parfocal
from benchmarks.faults.cases import build
from benchmarks.faults.scoring import DIFFERS, SAME, Answer, Blame, Case
from parfocal.judge.verdict import Divergence, Site

ROUNDS = 3  # of a correct twin, the best of which is its cost
DEAR = 3.0  # in times of the twin: what costs more is measured as often as the twin


def ask(case: Case) -> Answer:
    twin = _cost_of_twin(case.pair, "eval" if case.mode == "keep" else case.mode) if case.fault else 0.0
    report, cost = _aligned(case)
    if twin and cost > DEAR * twin:
        cost = min(cost, *(_aligned(case)[1] for _ in range(ROUNDS - 1)))
    own = [each for each in report.divergences if not each.inherited]
    findings = tuple(dict.fromkeys(finding.code for finding in report.findings))
    return Answer(
        SAME if report.ok else DIFFERS,
        tuple(_blame(each) for each in own),
        findings,
        cost=cost / twin if twin else 0.0,
    )


@cache
def _cost_of_twin(pair: str, mode: str) -> float:
    """Of the same pair without a mistake, in this very process; the first runs set things up."""
    return min(_aligned(Case(pair, mode, 0))[1] for _ in range(ROUNDS))


def _aligned(case: Case) -> tuple[parfocal.Report, float]:
    """The report, and the processor's time that it took, explanation included."""
    models = build(case, load=False)
    gc.collect()
    gc.freeze()  # what other cases left is not this one's to look through
    began = time.process_time()
    report = parfocal.align(
        models.reference, models.port, models.inputs, mode=models.mode, transfer=not models.loaded
    )
    return report, time.process_time() - began


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
