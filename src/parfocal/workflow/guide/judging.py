"""How each step is carried out and judged: jobs of the two sides, and a comparison of what they give.

Where both sides can share a process, models, losses, updates and initial weights are compared there, which
proves causes by computing again. Apart, the sides write files, and those are compared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from parfocal.attribution.measures import LIMIT
from parfocal.backends.protocol import Array
from parfocal.explain.initialisers import Fans
from parfocal.explain.loss_causes import Arrays
from parfocal.judge import limits
from parfocal.judge.floors import rounding_score
from parfocal.judge.verdict import SIDES, side_name
from parfocal.phrases import phrase
from parfocal.weights.plan import Plan
from parfocal.workflow.acceptance.problems import within_rounding
from parfocal.workflow.batches import load_batches
from parfocal.workflow.data import compare_streams
from parfocal.workflow.guide.data_facts import DataFacts, FactMismatch, judge_facts, stated_words
from parfocal.workflow.guide.processes import JobError
from parfocal.workflow.guide.running_step import JudgedStep, RunningStep, Told
from parfocal.workflow.guide.settings import Project
from parfocal.workflow.guide.side import shared_inputs
from parfocal.workflow.guide.values import keep, named_arrays, named_outputs, take
from parfocal.workflow.initialisation import InitialValues, compare_initial_values
from parfocal.workflow.losses import LossResult, judge_losses
from parfocal.workflow.metrics import compare_metric
from parfocal.workflow.random_samples import RandomSide
from parfocal.workflow.recorded_runs.comparing import compare
from parfocal.workflow.sample_streams import SampleStream
from parfocal.workflow.schedules import FollowedRates, compare_rates

MOVED = int(limits.searches.UPDATES_MOVED.value)
EXPLAINED_BY_RATE = ("", "optim.update", "optim.lr_group")  # causes of an update that another rate has too
Problem = Mapping[str, Any]


def judge_model(bench: RunningStep) -> JudgedStep:
    """Structure and weights: every call of the forward pass."""
    told = bench.compare("align_models") if bench.together else _models_apart(bench)
    inputs = named_arrays(shared_inputs(bench.project), "input")
    outputs = bench.ask_both("forward", lambda side: {"out": str(bench.folder / f"{side}.safetensors")})
    values = [{**inputs, **named_outputs(take(each["output"]), inputs)} for each in outputs]
    return JudgedStep(told, (values[0], values[1]))


def _models_apart(bench: RunningStep) -> Told:
    """As both run by themselves; where nothing is seen, the port once more along the reference."""
    bench.ask("save_weights", "reference")
    bench.ask("convert_weights", "port")
    runs = bench.ask_both("record_forward", lambda side: {"run": str(bench.folder / f"run-{side}")})
    report = compare(runs[0]["run"], runs[1]["run"])
    if report.ok:
        followed = bench.ask(
            "record_forward", "port", run=str(bench.folder / "run-followed"), follow=runs[0]["run"]
        )
        report = compare(runs[0]["run"], followed["run"])
    return bench.told(report)


def judge_evaluation_data(bench: RunningStep) -> JudgedStep:
    told = _data(bench, "evaluation_data")
    # no training reads these, and sorted is as good as any order
    told["findings"] = [each for each in told["findings"] if each["code"] != "data.sorted"]
    return JudgedStep(told)


def judge_training_data(bench: RunningStep) -> JudgedStep:
    told = _data(bench, "training_data")
    if bench.project.order == "any":  # another order is then worth knowing and nothing more
        other = [each for each in told["problems"] if each["code"] == "data.order"]
        told["problems"] = [each for each in told["problems"] if each not in other]
        told["findings"] += [{"code": each["code"], "message": each["message"]} for each in other]
    return JudgedStep(told)


def _data(bench: RunningStep, name: str) -> Told:
    read = bench.ask_both(
        "read_data", lambda side: {"data": name, "out": str(bench.folder / f"{side}.safetensors")}
    )
    sides = [StoredSamples.read(each) if each["by_index"] else StoredBatches.read(each) for each in read]
    lengths = [each["length"] for each in read]
    streams = tuple(
        SampleStream(side, name, each["name"]) for side, name, each in zip(sides, SIDES, read, strict=True)
    )
    again = tuple(RandomSide.from_plain(take(each["again"])) for each in read)
    told = bench.told(compare_streams((streams[0], streams[1]), (again[0], again[1])))
    if lengths[0] != lengths[1] and None not in lengths and not told["problems"]:
        message = phrase(
            "{reference} in the reference, {port} in the port", reference=lengths[0], port=lengths[1]
        )
        told["problems"].append(
            _problem(
                "data",
                "data.length",
                phrase("length: {message}", message=message),
                message,
                phrase("give both sides the same files"),
            )
        )
    return _held_against_facts(bench, name, told)


def _held_against_facts(bench: RunningStep, name: str, told: Told) -> Told:
    """With what the plan states of the data set: two sides that agree may both read the wrong one."""
    stated: DataFacts = getattr(bench.project, name)
    if not stated.stated:
        return told
    wrong, undecided = judge_facts(stated, bench.ask_both("state_facts", lambda side: {"data": name}))
    mismatches = [_not_as_stated(bench.project, name, each) for each in wrong]
    # why the sides part says more than that one of them is not as stated
    explained = [each for each in told["problems"] if each["code"]]
    rest = [each for each in told["problems"] if not each["code"]]
    told["problems"] = explained + mismatches + rest
    told["findings"] += [{"code": "facts", "message": each} for each in undecided]
    return told


def _not_as_stated(project: Project, name: str, found: FactMismatch) -> Problem:
    place = project.place(f"{name}.{found.key}")
    return _problem(
        "data",
        "",
        phrase(
            "{key} of the data: {stated} stated ({place}), {reference} in the reference, {port} in the port",
            key=found.key,
            stated=stated_words(getattr(project, name), found.key),
            place=place,
            reference=found.sides[0],
            port=found.sides[1],
        ),
        phrase("what is read is not the data set that the paper has, or it is only a part of it"),
        phrase("read the data that the paper names, or correct {place}", place=place),
    )


@dataclass(frozen=True)
class StoredSamples:
    """Samples that were read in another process."""

    items: list[Any]

    @staticmethod
    def read(told: Mapping[str, Any]) -> StoredSamples:
        return StoredSamples(load_batches(told["file"], "numpy"))

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, index: int) -> Any:
        return self.items[index]


@dataclass(frozen=True)
class StoredBatches:
    """Batches that were read in another process."""

    items: list[Any]

    @staticmethod
    def read(told: Mapping[str, Any]) -> StoredBatches:
        return StoredBatches(load_batches(told["file"], "numpy"))

    def __iter__(self) -> Iterator[Any]:
        return iter(self.items)


def judge_metric(bench: RunningStep) -> JudgedStep:
    """Both metrics of the reference's predictions; and what each side has by itself, of its own data."""
    found = bench.ask_both("predict", lambda side: {"out": str(bench.folder / side)})
    values = [each["values"] for each in found]
    predictions, labels = take(found[0]["predictions"]), take(found[0]["labels"])
    ours, theirs = (_remote_metric(bench, side) for side in SIDES)
    told = bench.told(compare_metric(ours, theirs, predictions, labels))
    if not told["problems"]:
        told["problems"] = list(_own_metrics(*values))
    return JudgedStep(told, (values[0], values[1]))


def _remote_metric(bench: RunningStep, side: str) -> Callable[[Any, Any], Any]:
    """The metric of the other process, as a function."""

    def metric(predictions: Any, labels: Any) -> Any:
        files = {
            "predictions": keep(predictions, bench.folder / "part" / "predictions.safetensors"),
            "labels": keep(labels, bench.folder / "part" / "labels.safetensors"),
        }
        try:
            return bench.ask("measure", side, **files)["values"]
        except JobError as error:
            raise ValueError(error.message) from error

    metric.__name__ = side
    return metric


def _own_metrics(ours: Mapping[str, float], theirs: Mapping[str, float]) -> Iterator[Problem]:
    """The metrics agree on the same predictions: what differs now comes from data or model."""
    for name in ours:
        if name not in theirs:
            continue
        score = rounding_score(np.asarray(ours[name], np.float32), np.asarray(theirs[name], np.float32))
        if score is None or score > LIMIT:
            yield _problem(
                "metric",
                "metric.value",
                phrase(
                    "{name}: {reference} in the reference, {port} in the port",
                    name=name,
                    reference=f"{ours[name]:.7g}",
                    port=f"{theirs[name]:.7g}",
                ),
                phrase(
                    "both metrics agree on the same predictions: "
                    "the two evaluations see other data or outputs"
                ),
                phrase("compare the number of samples and batches that both evaluations read"),
                score,
            )


def judge_loss(bench: RunningStep) -> JudgedStep:
    """The loss of the same output and label, and its gradient."""
    files = {
        side: bench.ask("loss_inputs", side, out=str(bench.folder / f"{side}.safetensors"))["leaves"]
        for side in SIDES
    }
    losses = [RemoteLoss(bench, side) for side in SIDES]
    given = [tuple(take(files[side])) for side in SIDES]
    if bench.together:
        told = bench.compare("compare_losses", **files)
    else:
        alike = [each.shape for each in given[0]] == [each.shape for each in given[1]]
        told = bench.told(
            judge_losses(losses[0], losses[1], given[0], given[0] if alike else given[1], alike)
        )
    values = [
        {"loss": each.evaluate(own, gradients=False).value} for each, own in zip(losses, given, strict=True)
    ]
    return JudgedStep(told, (values[0], values[1]))


@dataclass(frozen=True, slots=True)
class RemoteLoss:
    """A loss that is computed in the other process."""

    bench: RunningStep
    side: str

    @property
    def name(self) -> str:
        return phrase("{side}'s loss", side=side_name(self.side))

    @property
    def framework(self) -> str:
        return next(each.framework for each in self.bench.project.sides if each.name == self.side)

    def evaluate(self, inputs: Arrays, *, gradients: bool = True) -> LossResult:
        folder = self.bench.folder / "part"
        leaves = keep(list(inputs), folder / "leaves.safetensors")
        out = str(folder / "found.safetensors")
        found = take(
            self.bench.ask("evaluate_loss", self.side, leaves=leaves, gradients=gradients, out=out)["found"]
        )
        return LossResult(
            found["value"], {int(number): array for number, array in found["gradients"].items()}
        )

    def tried(self, inputs: Arrays) -> Array | None:
        try:
            return self.evaluate(inputs, gradients=False).value
        except JobError:
            return None


def judge_learning_rate(bench: RunningStep) -> JudgedStep:
    ours, theirs = (
        FollowedRates(told["name"], np.asarray(told["rates"]), told["given_number"])
        for told in bench.ask_both("follow_rates", lambda side: {})
    )
    project = bench.project
    # after every update: how many that are only the data knows
    taken = project.epochs_of_schedule if project.has("scheduler") else 0
    return JudgedStep(bench.told(compare_rates(ours, theirs, taken or None)))


def make_updates(bench: RunningStep) -> dict[str, Any]:
    """Several updates on the same data, by each side alone and compared phase by phase."""
    runs = {} if bench.together else {side: str(bench.folder / f"run-{side}") for side in SIDES}
    alone = bench.ask_both("update", lambda side: {"run": runs.get(side, "")})
    if bench.together:
        told = bench.compare("compare_updates")
    else:
        told = bench.told(compare(runs["reference"], runs["port"]))
    losses = [each["losses"] for each in alone]
    return {"told": told, "losses": losses, "by_rounding": _made_by_rounding(bench, *losses)}


def _made_by_rounding(bench: RunningStep, ours: list[float], theirs: list[float]) -> dict[str, float]:
    """How far losses of the reference are apart after updates that began a few rounding errors away.

    Updates may make much of it, such as Adam's where a gradient is near zero. Asked for only where the two
    sides are farther apart than their losses are rounded.
    """
    if all(within_rounding(np.float32(a), np.float32(b)) for a, b in zip(ours, theirs, strict=True)):
        return {}
    moved = [bench.ask("update", "reference", run="", moved=seed)["losses"] for seed in range(1, MOVED + 1)]
    apart = np.abs(np.asarray(moved) - np.asarray(ours)).max(axis=0)
    return {f"loss_{step}": LIMIT * float(each) for step, each in enumerate(apart) if each}


def _is_regularisation(problem: Problem) -> bool:
    return bool(problem["code"] == "optim.weight_decay")


def _is_optimizer(problem: Problem) -> bool:
    return problem["phase"] == "optimizer" and not _is_regularisation(problem)


def _part_of_updates(bench: RunningStep, belongs: Callable[[Problem], bool]) -> tuple[Told, dict[str, Any]]:
    made = bench.once("updates", make_updates)
    told = dict(made["told"])
    told["problems"] = [each for each in told["problems"] if belongs(each)]
    return told, made


def _before_other_rates(bench: RunningStep, told: Told, made: Mapping[str, Any]) -> Told:
    """Of recorded runs: an update at another rate differs for that alone, and step 6 tells the rate.

    What has another cause, a momentum say, is a problem at any rate.
    """
    rates = [each["step"] for each in made["told"]["problems"] if each["phase"] == "lr"]
    if bench.together or not rates:
        return told
    kept = [
        each
        for each in told["problems"]
        if each["step"] < min(rates) or each["code"] not in EXPLAINED_BY_RATE
    ]
    return {**told, "problems": kept}


def judge_optimizer(bench: RunningStep) -> JudgedStep:
    told, made = _part_of_updates(bench, lambda each: _is_optimizer(each) and not each["inherited"])
    return JudgedStep(_before_other_rates(bench, told, made))


def judge_regularisation(bench: RunningStep) -> JudgedStep:
    told, made = _part_of_updates(bench, _is_regularisation)
    return JudgedStep(_before_other_rates(bench, told, made))


def judge_backward(bench: RunningStep) -> JudgedStep:
    """What neither the optimizer nor its regularisation explains; and the losses of both sides."""
    told, made = _part_of_updates(bench, lambda each: not (_is_optimizer(each) or _is_regularisation(each)))
    ours, theirs = ({f"loss_{step}": loss for step, loss in enumerate(side)} for side in made["losses"])
    return JudgedStep(told, (ours, theirs), made["by_rounding"])


def judge_initialisation(bench: RunningStep) -> JudgedStep:
    if bench.together:
        return JudgedStep(bench.compare("compare_initialisation"))
    ours, theirs = (
        _initial_values(told)
        for told in bench.ask_both("initialise", lambda side: {"out": str(bench.folder / side)})
    )
    plan = Plan.load(bench.store.folder / "weights" / "plan.json")
    return JudgedStep(bench.told(compare_initial_values(ours, theirs, plan)))


def _initial_values(told: Mapping[str, Any]) -> InitialValues:
    return InitialValues(
        told["name"],
        told["framework"],
        [take(file) for file in told["files"]],
        {path: None if fans is None else Fans(**fans) for path, fans in told["fans"].items()},
        told["kinds"],
        told["defaults"],
        told["written"],
    )


def _problem(
    phase: str, code: str, what: str, message: str, fix: str, score: float | None = None
) -> dict[str, Any]:
    return {
        "phase": phase,
        "code": code,
        "what": what,
        "where": "",
        "message": message,
        "fix": fix,
        "score": score,
        "step": 0,
        "inherited": False,
    }


def generate_inputs(project: Project, key: str) -> None:
    """The models' inputs and the label, once for both sides."""
    from parfocal.workflow.input_descriptions import make_inputs, read_inputs

    stamp = project.store / "inputs" / "key.txt"
    if stamp.is_file() and stamp.read_text(encoding="utf-8") == key:
        return
    for number, (name, given) in enumerate((("model", project.inputs), ("label", project.label))):
        if not given:
            continue
        place = project.place(f"input.{name}")
        if isinstance(given, str):
            value = read_inputs(project.folder / given)
        else:
            value = make_inputs(list(given), project.seed + number, f"{place}:")
        if name == "label" and isinstance(value, tuple) and len(value) == 1:
            value = value[0]
        keep(value, project.store / "inputs" / f"{name}.safetensors")
    Path(stamp).write_text(key, encoding="utf-8")
