"""What is asked of both sides in one process: the comparisons that run both models and prove causes.

Each gives the report as plain values; files go to the folder that is asked for.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from safetensors.numpy import save_file

from parfocal.judge.verdict import SIDES
from parfocal.report.report import Report
from parfocal.workflow.align import align
from parfocal.workflow.guide.jobs import Given, load_checkpoint, loss_function
from parfocal.workflow.guide.reports import told_report
from parfocal.workflow.guide.side import GuideSide, shared_inputs, shared_label
from parfocal.workflow.guide.values import take
from parfocal.workflow.initialisation import compare_init
from parfocal.workflow.losses import judge_losses
from parfocal.workflow.training.batches import read_batches
from parfocal.workflow.training.comparing import TrainingOptions, run_training

Both = tuple[GuideSide, GuideSide]


def align_models(both: Both, given: Given) -> Report:
    """Copy the weights, compare every call forward, and keep the weights of both sides."""
    models = both[0].fresh_model(), both[1].fresh_model()
    load_checkpoint(both[0], models[0], both[0].settings.published)
    project = both[0].project
    plan: Any = project.folder / both[1].settings.plan if both[1].settings.plan else True
    report = align(*models, shared_inputs(project), backward=False, transfer=plan, progress=False)
    for side, model in zip(both, models, strict=True):
        side.weights.parent.mkdir(parents=True, exist_ok=True)
        save_file(side.state(model), side.weights)
    assert report.transfer is not None
    report.transfer.save(both[0].plan)
    return report


def compare_losses(both: Both, given: Given) -> Report:
    """The losses of the same output and label, where both have it in the same parts."""
    ours, theirs = (tuple(take(given[name])) for name in SIDES)
    alike = [each.shape for each in ours] == [each.shape for each in theirs]
    functions = [loss_function(side) for side in both]
    return judge_losses(functions[0], functions[1], ours, ours if alike else theirs, alike)


def compare_updates(both: Both, given: Given) -> Report:
    """Several updates on the same data, in evaluation, phase by phase."""
    inputs, label = shared_inputs(both[0].project), shared_label(both[0].project)
    batch = (inputs, label)
    return _trained(both, [batch] * both[0].project.updates, "eval")


def compare_first_updates(both: Both, given: Given) -> Report:
    """The first updates of the training, phase by phase, on the reference's batches."""
    begun = both[0].of_run(given["run"]), both[1].of_run(given["run"])
    return _trained(begun, [tuple(each) for each in take(given["batches"])], "train")


def _trained(both: Both, batches: list[Any], mode: Any) -> Report:
    project = both[0].project
    clips = [side.factory("clip") if "clip" in side.settings.factories else None for side in both]
    steps_schedule = mode == "eval" or project.schedule == "update"
    options = TrainingOptions(
        loss=(both[0].loss, both[1].loss),
        optimizers=(both[0].optimizer, both[1].optimizer),
        schedulers=(both[0].scheduler, both[1].scheduler) if steps_schedule else None,
        clip=tuple(clips) if any(clips) else None,
        mode=mode,
        transfer=both[0].plan,
        progress=False,
        batches=len(batches),
        variance_told=math.inf,  # no port can help it: the metrics of the whole trainings decide
    )
    given = partial(read_batches, list(_parts(batches)))
    return run_training(both[0].model(), both[1].model(), given, options)


def _parts(batches: list[Any]) -> Iterator[Any]:
    """As ``compare_training`` takes them: inputs by position or keyword, the label beside them."""
    for inputs, label in batches:
        if isinstance(inputs, Mapping):
            yield {**inputs, "label": label}
        else:
            yield (*(inputs if isinstance(inputs, (tuple, list)) else (inputs,)), label)


def compare_initialisation(both: Both, given: Given) -> Report:
    for side in both:  # the first model of a process would be made before there is anything to seed
        side.seed("model", 0)
    return compare_init(*(partial(side.make, "model") for side in both), seeds=both[0].project.seeds)


JOINT_JOBS: Mapping[str, Callable[[Both, Given], Report]] = {
    each.__name__: each
    for each in (align_models, compare_losses, compare_updates, compare_first_updates, compare_initialisation)
}


def run_joint(name: str, both: Both, given: Given) -> dict[str, Any]:
    return told_report(JOINT_JOBS[name](both, given), Path(given["report"]))
