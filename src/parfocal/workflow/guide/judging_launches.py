"""Many cards: a launch of each side on this machine, judged rank by rank and with one process."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from parfocal.judge.verdict import SIDES, Divergence
from parfocal.phrases import phrase
from parfocal.report.report import Report
from parfocal.workflow.guide.reports import problem_of, told_report
from parfocal.workflow.guide.running_step import JudgedStep, RunningStep, Told
from parfocal.workflow.recorded_runs.comparing import compare


def judge_many_cards(bench: RunningStep) -> JudgedStep:
    """The launches rank by rank; then each with one process that has the samples of all ranks.

    What both launches do otherwise than one process is the reference's own way, and worth knowing: a rate
    that grows with the number of ranks, say.
    """
    reference, port = (bench.folder / side for side in SIDES)
    for side, folder in zip(SIDES, (reference, port), strict=True):
        own_data = side == SIDES[0] or bench.project.order == "same"
        given = {"out": str(folder), "leading": str(reference), "own_data": own_data}
        bench.ask("launch_training", side, **given, log=str(bench.log(side)))
    alone = bench.folder / "alone"
    bench.ask("train_alone", SIDES[0], leading=str(reference), run=str(alone))
    told = bench.told(compare(reference / "own", port / "own"))
    ours, theirs = (_with_one_process(bench, alone, folder) for folder in (reference, port))
    _add_differences(told, ours, theirs)
    return JudgedStep(told)


def _with_one_process(bench: RunningStep, alone: Path, folder: Path) -> Report:
    report = compare(alone, folder / "led")
    told_report(report, bench.folder / f"report-one-process-{folder.name}")
    return report


def _add_differences(told: Told, ours: Report, theirs: Report) -> None:
    """What a launch does otherwise than one process: of the port alone a problem, of both worth knowing."""
    shared = {_kind(each) for each in ours.divergences if not each.inherited}
    named = {each["code"] for each in told["problems"]}
    for each in theirs.divergences:
        problem = problem_of(each)
        if each.inherited or problem["code"] in named:
            continue
        named.add(problem["code"])
        if _kind(each) in shared:
            message = phrase(
                "both launches differ from one process: {message}", message=problem["message"] or each.what
            )
            told["findings"].append({"code": problem["code"], "message": message})
        else:
            told["problems"].append(problem)


def _kind(found: Divergence) -> tuple[Any, ...]:
    return found.phase, found.cause.code if found.cause is not None else ""
