"""The last step: the first updates phase by phase, then whole trainings of each side, to their metrics.

Trainings differ by chance. One of each side is enough where the plan's ``within`` allows what lies between
them; where it does not, more are made, from other seeds, to see what chance allows.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from parfocal.brief import some
from parfocal.errors import EmptyComparisonError
from parfocal.judge.chance import Parts
from parfocal.judge.verdict import SIDES
from parfocal.phrases import phrase
from parfocal.report.report import Curve
from parfocal.workflow.guide.metric_parts import SHARES
from parfocal.workflow.guide.reports import problem_of
from parfocal.workflow.guide.running_step import JudgedStep, RunningStep, Told
from parfocal.workflow.guide.settings import Project
from parfocal.workflow.guide.values import take
from parfocal.workflow.recorded_runs.comparing import compare
from parfocal.workflow.trained_results import (
    Decides,
    TrainedMetric,
    TrainedVerdict,
    judge_trained,
    report_of,
)

PERCENT = 100.0
WHOLE = "trainings"  # the folder of the report on whole trainings


@dataclass(frozen=True, slots=True)
class WholeTraining:
    """One whole training of one side, by epoch."""

    losses: tuple[float, ...]
    metrics: tuple[Mapping[str, float], ...]
    parts: Mapping[str, Any]

    @staticmethod
    def of(told: Mapping[str, Any]) -> WholeTraining:
        return WholeTraining(tuple(told["losses"]), tuple(told["metrics"]), take(told["parts"]))


Trainings = Sequence[tuple[WholeTraining, WholeTraining]]  # of the reference and the port, by run


def judge_training(bench: RunningStep) -> JudgedStep:
    _begin(bench, 0)
    told = _first_updates(bench)
    trainings = [_trained(bench, 0)]
    verdicts = _verdicts(trainings, bench.project)
    if not told["problems"] and any(each.decides is not Decides.WITHIN for each in verdicts):
        for run in range(1, bench.project.runs):
            _begin(bench, run)
            trainings.append(_trained(bench, run))
        verdicts = _verdicts(trainings, bench.project)
    report = report_of(verdicts, list(_curves(trainings)))
    report.save(bench.folder / WHOLE)
    told["findings"] += [{"code": "result", "message": each.message} for each in verdicts]
    if not told["problems"] and report.divergences:
        told["problems"] = [problem_of(each) for each in report.divergences]
        told["report"] = str(bench.folder / WHOLE / "report.txt")
    by_chance = {each.metric.name: each.allowed for each in verdicts if each.decides is Decides.CHANCE}
    return JudgedStep(
        told,
        (
            {each.metric.name: each.metric.wanted for each in verdicts},
            {each.metric.name: each.metric.reached for each in verdicts},
        ),
        by_chance,
    )


def _begin(bench: RunningStep, run: int) -> None:
    """Both sides' weights at the beginning of a whole training, the same on both."""
    bench.ask("begin_training", "reference", run=run)
    bench.ask("convert_beginning", "port", run=run)


def _first_updates(bench: RunningStep) -> Told:
    out = str(bench.folder / "batches.safetensors")
    batches = bench.ask("training_batches", "reference", out=out)["batches"]
    if bench.together:
        return bench.compare("compare_first_updates", batches=batches, run=0)
    runs = [str(bench.folder / f"run-{side}") for side in SIDES]
    for side, run in zip(SIDES, runs, strict=True):
        bench.ask("record_training", side, batches=batches, out=run, run=0)
    return bench.told(compare(*runs))


def _trained(bench: RunningStep, run: int) -> tuple[WholeTraining, WholeTraining]:
    def given(side: str) -> dict[str, Any]:
        return {"run": run, "out": str(bench.folder / WHOLE / f"{side}-{run}.safetensors")}

    ours, theirs = bench.ask_both("train", given)
    return WholeTraining.of(ours), WholeTraining.of(theirs)


def _verdicts(trainings: Trainings, project: Project) -> list[TrainedVerdict]:
    ours, theirs = (trainings[0][side].metrics[-1] for side in (0, 1))
    wanted = {**ours, **project.benchmark}
    common = [name for name in wanted if name in theirs]
    if not common:
        raise EmptyComparisonError(
            phrase(
                "no metric is on both sides: {wanted} wanted, {reached} in the port",
                wanted=some(list(wanted)),
                reached=some(list(theirs)),
            )
        )
    return judge_trained([_metric(name, trainings, project) for name in common])


def _metric(name: str, trainings: Trainings, project: Project) -> TrainedMetric:
    ours, theirs = (
        tuple(both[side].metrics[-1][name] for both in trainings if name in both[side].metrics[-1])
        for side in (0, 1)
    )
    published = project.benchmark.get(name)
    value = published if published is not None else float(np.mean(ours))
    # a share, or that many percent where the metric is in percent
    within = project.within * (PERCENT if math.isfinite(value) and abs(value) > 1 else 1.0)
    return TrainedMetric(name, ours, theirs, within, published, _parts(name, trainings))


def _parts(name: str, trainings: Trainings) -> Parts | None:
    """None where the metric is no mean over samples on every training, or over other samples."""
    sides = [[both[side].parts for both in trainings] for side in (0, 1)]
    if not all(name in each for side in sides for each in side):
        return None
    shares = sides[0][0][SHARES]
    if any(len(each[SHARES]) != len(shares) for side in sides for each in side):
        return None
    ours, theirs = (np.stack([each[name] for each in side]) for side in sides)
    return Parts(shares, ours, theirs)


def _curves(trainings: Trainings) -> Iterator[Curve]:
    """The loss and every metric by epoch, of each training."""
    names = [name for name in trainings[0][0].metrics[-1] if name in trainings[0][1].metrics[-1]]
    for run, (ours, theirs) in enumerate(trainings):
        yield Curve(phrase("loss, run {run}", run=run), ours.losses, theirs.losses, along="epoch")
        for name in names:
            values = (tuple(each[name] for each in side.metrics) for side in (ours, theirs))
            yield Curve(phrase("{name}, run {run}", name=name, run=run), *values, along="epoch")
