"""How the steps stand, in plain lines: for the report that is handed in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from parfocal.workflow.guide.checking import CheckedProject
from parfocal.workflow.guide.state import StepResult


def text_of(checked: CheckedProject) -> str:
    """Steps, their problems and findings, and the checkpoints."""
    width = max(len(result.name) for result in checked.results)
    lines = [_line(result, width) for result in checked.results]
    for result in checked.results:
        for problem in result.problems:
            lines += ["", f"{result.name}:", *(f"  {each}" for each in problem_lines(problem))]
        lines += [f"{result.name}, worth knowing: {each['message']}" for each in result.findings]
    lines.append("")
    for each in checked.checkpoints:
        lines.append(f"checkpoint {each.name}: {'green' if each.green else 'red' if each.red else 'open'}")
    return "\n".join(lines)


def _line(result: StepResult, width: int) -> str:
    told = result.message.partition("\n")[0] or result.compared
    return f"{result.name.ljust(width)}  {result.status.value.ljust(8)}  {told}".rstrip()


def problem_lines(problem: Mapping[str, Any]) -> list[str]:
    """One problem as it is told: where, what, the cause and the fix."""
    score = problem["score"]
    told = f", {score:.4g}x what is unavoidable" if isinstance(score, (int, float)) else ""
    where = f"{problem['where']}: " if problem["where"] else ""
    lines = [f"{problem['phase']}, step {problem['step']}: {where}{problem['what']}{told}"]
    if problem["code"]:
        lines.append(f"  cause {problem['code']}: {problem['message']}")
    elif problem["message"]:
        lines.append(f"  {problem['message']}")
    if problem["fix"]:
        lines.append(f"  fix   {problem['fix']}")
    return lines
