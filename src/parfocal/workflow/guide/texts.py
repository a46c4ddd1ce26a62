"""How the steps stand, in plain lines: for the report that is handed in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from parfocal.columns import padded, width_of
from parfocal.phrases import phrase, said
from parfocal.report.wording import PHASES
from parfocal.workflow.guide.checking import CheckedProject
from parfocal.workflow.guide.state import STATUS_WORDS, StepResult, StepStatus
from parfocal.workflow.guide.steps import STEPS

LINE = "\n"
CHECKPOINT_WORDS = {"green": phrase("green"), "red": phrase("red"), "open": phrase("open")}


def text_of(checked: CheckedProject) -> str:
    """Steps, their problems and findings, and the checkpoints, in the language of the terminal."""
    labels = {step.name: said(step.label) for step in STEPS}
    table = [
        (labels[result.name], said(STATUS_WORDS[result.status]), said(result.message or result.compared))
        for result in checked.results
    ]
    first, second = (max(width_of(row[column]) for row in table) for column in (0, 1))
    lines = [
        f"{padded(label, first)}  {padded(status, second)}  {what.partition(LINE)[0]}".rstrip()
        for label, status, what in table
    ]
    for result in checked.results:
        for problem in result.problems:
            lines += ["", f"{labels[result.name]}", *(f"  {said(each)}" for each in problem_lines(problem))]
        lines += [
            said(phrase("{name}, worth knowing: {message}", name=result.name, message=each["message"]))
            for each in result.findings
        ]
    lines.append("")
    lines += [
        said(phrase("checkpoint {name}: {state}", name=each.name, state=CHECKPOINT_WORDS[each.state]))
        for each in checked.checkpoints
    ]
    return "\n".join(lines)


def next_line(checked: CheckedProject) -> str:
    """What comes next, in one sentence."""
    by_status: dict[StepStatus, list[StepResult]] = {}
    for result in checked.results:
        by_status.setdefault(result.status, []).append(result)
    for status in (StepStatus.ERROR, StepStatus.FAILED):
        if status in by_status:
            first = by_status[status][0]
            if status is StepStatus.ERROR or any(each["fix"] for each in first.problems):
                return phrase("next: mend {step} as told above, then parfocal check", step=first.name)
            return phrase(
                "next: find out why {step} differs ({report}), then parfocal check",
                step=first.name,
                report=first.report or first.name,
            )
    if StepStatus.WAITING in by_status:
        return phrase("next: parfocal check runs {step}", step=by_status[StepStatus.WAITING][0].name)
    if all(each.green for each in checked.checkpoints):
        return phrase("next: parfocal accept writes the acceptance folder")
    missing = by_status[StepStatus.LEFT_OUT][0]
    return phrase("next: {step}: {why}", step=missing.name, why=missing.message)


def problem_lines(problem: Mapping[str, Any]) -> list[str]:
    """One problem as it is told: where, what, the cause and the fix. Each line is a phrase."""
    what, score = problem["what"], problem["score"]
    if problem["where"]:
        what = phrase("{where}: {what}", where=problem["where"], what=what)
    phase = PHASES.get(problem["phase"], problem["phase"])
    line = phrase("{phase}, step {step}: {what}", phase=phase, step=problem["step"], what=what)
    if isinstance(score, (int, float)):
        line = phrase("{line}, {score}x what is unavoidable", line=line, score=f"{score:.4g}")
    lines = [line]
    if problem["code"]:
        told = (
            phrase("  cause {code}: {message}", code=problem["code"], message=problem["message"])
            if problem.get("proven")
            else phrase("  likely {code}: {message}", code=problem["code"], message=problem["message"])
        )
        lines.append(told)
    elif problem["message"]:
        lines.append(phrase("  {message}", message=problem["message"]))
    if problem["fix"]:
        lines.append(phrase("  fix   {fix}", fix=problem["fix"]))
    return lines
