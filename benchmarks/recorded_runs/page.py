"""The results as a page: tables of shares, and every miss by name."""

from __future__ import annotations

import platform
from collections.abc import Iterable, Sequence

from benchmarks.recorded_runs.scoring import Result, Score
from parfocal.backends import registry

INTRODUCTION = """# Recorded runs

`python -m benchmarks.recorded_runs` (`make bench-recorded`) wrote this page: {versions}, {machine}.

{mistakes} mistakes, one at a time, were made in trainings of four small models: a convolutional net with
BatchNorm, a perceptron with LayerNorm, a Llama with rotary tables, grouped keys and a batch above 1, and a
tagger with a GRU. Both sides were recorded over three steps with an optimizer, as full tensors and as
sketches, torch against paddle and each against itself. `pf.compare` got the two folders and no model.
Besides, {correct} pairs without a mistake were compared: the same models over several seeds, with other
names, nesting and layout, evaluated and trained, with and without optimizer, on one rank and on two.

- **detected**: the verdict is that they differ. A setting that is too small to show, and a run that was cut
  short, count where they are noted.
- **located**: phase, step, rank and layer of the first difference are right.
- **named**: the cause is right as well, where what was recorded can prove one.

Every mistake, with what is right to say about it, is an entry of `benchmarks/recorded_runs/mistakes.py`.
"""
HEAD = "| {} | pairs | detected | located | named |"
RULE = "|---|---:|---:|---:|---:|"


def page(result: Result) -> str:
    versions = ", ".join(f"{name} {registry.get(name).framework_version}" for name in ("torch", "paddle"))
    parts = [
        INTRODUCTION.format(
            versions=versions,
            machine=f"{platform.machine()}, CPU",
            mistakes=len({score.mistake.name for score in result.scores}),
            correct=result.correct,
        ),
        _table("recorded", {tensors: result.of(tensors) for tensors in ("full", "sketch")}),
        f"False alarms: {len(result.alarms)} of {result.correct} correct pairs.\n",
        "## By kind of mistake\n",
        _table("kind", {group: result.of(group=group) for group in _groups(result)}),
        "## By frameworks\n",
        _table("reference to port", _directions(result)),
        "## What is missed\n",
        _misses(result),
    ]
    return "\n".join(parts)


def _groups(result: Result) -> Sequence[str]:
    return list(dict.fromkeys(score.mistake.group for score in result.scores))


def _directions(result: Result) -> dict[str, list[Score]]:
    found: dict[str, list[Score]] = {}
    for score in result.scores:
        found.setdefault(" to ".join(score.case.kits), []).append(score)
    return found


def _table(first: str, rows: dict[str, list[Score]]) -> str:
    lines = [HEAD.format(first), RULE]
    for name, scores in rows.items():
        cells = [f"{_percent(scores, what)}" for what in ("detected", "located", "named")]
        lines.append(f"| {name} | {len(scores)} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _percent(scores: Iterable[Score], what: str) -> str:
    found = [getattr(score, what) for score in scores]
    return f"{sum(found)} ({sum(found) / max(1, len(found)):.1%})"


def _misses(result: Result) -> str:
    """The same answer to the same mistake is one line."""
    lines: dict[tuple[str, str, str], list[str]] = {}
    for score in result.scores:
        if score.missed:
            where = f"{score.case.kits[0]} to {score.case.kits[1]}, {score.case.tensors}"
            lines.setdefault((score.mistake.name, score.missed, score.answer.told), []).append(where)
    told = [
        f"- **{name}**: {missed} ({'; '.join(places)}). It says: {answer}"
        for (name, missed, answer), places in lines.items()
    ]
    told += [f"- **False alarm**: {case.title}: {answer.told}" for case, answer in result.alarms]
    return "\n".join(told or ["Nothing."]) + "\n"
