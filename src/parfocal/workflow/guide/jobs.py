"""What one side is asked to do in its own process: each job writes files and gives plain values.

A job's name is what the parent process asks for; JOBS is the table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import asdict
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save_file

from parfocal.capture.determinism import no_dropout
from parfocal.capture.nested_values import flatten, replace
from parfocal.capture.recording import record
from parfocal.errors import EmptyComparisonError
from parfocal.inputs import convert
from parfocal.judge import limits
from parfocal.judge.verdict import side_name
from parfocal.phrases import phrase
from parfocal.replay.user_errors import INPUTS_HINT, telling
from parfocal.weights.convert import convert as convert_checkpoint
from parfocal.weights.plan import Plan
from parfocal.workflow.batches import save_batches
from parfocal.workflow.guide.data_facts import read_facts
from parfocal.workflow.guide.metric_parts import metric_parts
from parfocal.workflow.guide.side import GuideSide, shared_inputs, shared_label
from parfocal.workflow.guide.values import joined, keep, take
from parfocal.workflow.initialisation import initial_values
from parfocal.workflow.losses import LocalLoss
from parfocal.workflow.metrics import named_numbers
from parfocal.workflow.random_samples import look_again
from parfocal.workflow.sample_streams import SampleStream, named_arrays, taken_apart
from parfocal.workflow.schedules import follow_schedule
from parfocal.workflow.training.batches import Batch
from parfocal.workflow.training.sides import TrainingSide

Given = Mapping[str, Any]
FILE_OF_OWN_FORMAT = "checkpoint.bin"  # read by its content


def save_weights(side: GuideSide, given: Given) -> dict[str, Any]:
    """The reference's weights, for both sides to begin with."""
    model = side.fresh_model()
    load_checkpoint(side, model, side.settings.published)
    return _save(side, model)


def convert_weights(side: GuideSide, given: Given) -> dict[str, Any]:
    """The reference's weights in the names and layouts of this side."""
    model = side.fresh_model()
    plan = side.project.folder / side.settings.plan if side.settings.plan else None
    _convert(side, model, side.weights.with_name(FILE_OF_OWN_FORMAT), plan).save(side.plan)
    save_file(side.state(model), side.weights)
    return {}


def begin_training(side: GuideSide, given: Given) -> dict[str, Any]:
    """What one whole training of both sides begins with.

    From scratch each begins otherwise. From a file each but the first begins a rounding error away from it,
    so that trainings differ by what rounding alone can make of them.
    """
    side = side.of_run(given["run"])
    model = side.fresh_model()
    load_checkpoint(side, model, side.settings.initial)
    if side.run and side.settings.initial:
        _nudge(side, model)
    return _save(side, model)


def convert_beginning(side: GuideSide, given: Given) -> dict[str, Any]:
    """The same in the names and layouts of this side, copied as the first step did."""
    side = side.of_run(given["run"])
    model = side.fresh_model()
    _convert(side, model, side.weights.with_name(FILE_OF_OWN_FORMAT), side.plan)
    save_file(side.state(model), side.weights)
    return {}


def load_checkpoint(side: GuideSide, model: Any, checkpoint: str) -> None:
    """A checkpoint that the user gave for this side, if any."""
    if checkpoint:
        _convert(side, model, side.project.folder / checkpoint, None)


def _save(side: GuideSide, model: Any) -> dict[str, Any]:
    state = side.state(model)
    side.weights.parent.mkdir(parents=True, exist_ok=True)
    save_file(state, side.weights)
    side.backend.save_checkpoint(str(side.weights.with_name(FILE_OF_OWN_FORMAT)), state.items())
    return {"tensors": len(state)}


def _nudge(side: GuideSide, model: Any, seed: int = 0, units: float = 1.0) -> None:
    """Every weight so many rounding errors up or down; what is zero stays zero."""
    generator = np.random.default_rng(side.project.seed + seed)
    for entry in side.backend.state(model):
        array = side.backend.to_array(entry.value)
        if array.dtype.kind == "f" and entry.tied_to is None:
            signs = generator.choice((-1.0, 1.0), array.shape).astype(array.dtype)
            side.backend.write(entry.value, array * (1 + units * np.finfo(array.dtype).eps * signs))


def _convert(side: GuideSide, model: Any, checkpoint: Path, plan: Path | None) -> Plan:
    side.weights.parent.mkdir(parents=True, exist_ok=True)
    own = side.weights.with_name(f"{side.settings.name}-converted.safetensors")
    done = convert_checkpoint(checkpoint, model, own, plan=plan, progress=False)
    side.load(model, own)
    return done


def record_forward(side: GuideSide, given: Given) -> dict[str, Any]:
    """One forward pass in evaluation, recorded; with ``follow`` along another run."""
    model, inputs = side.model(), shared_inputs(side.project)
    modules = partial(side.backend.modules, model)
    with (
        side.backend.mode(model, "eval"),
        record(model, given["run"], level="ops", grads=False, follow=given.get("follow")) as recorder,
        telling(side.settings.name, "the forward pass", modules, INPUTS_HINT),
    ):
        side.call(model, inputs)
    return {"run": str(recorder.path)}


def forward(side: GuideSide, given: Given) -> dict[str, Any]:
    """The outputs of the model in evaluation."""
    model, inputs = side.model(), shared_inputs(side.project)
    modules = partial(side.backend.modules, model)
    hint = INPUTS_HINT
    with (
        side.backend.mode(model, "eval"),
        side.backend.no_grad(),
        telling(side.settings.name, "the forward pass", modules, hint),
    ):
        output = side.call(model, inputs)
    return {"output": keep(side.arrays(output), Path(given["out"]))}


def read_data(side: GuideSide, given: Given) -> dict[str, Any]:
    """The first samples or batches of a dataset, and how many it says it has."""
    source = side.data(given["data"])
    stream = SampleStream(source, side.settings.name)
    wanted = side.project.samples
    if stream.by_index:
        items = list(islice(side.items(stream, given["data"]), wanted))
    else:
        items, count = [], 0
        for item in side.items(stream, given["data"]):
            items.append(item)
            count += sum(1 for _ in taken_apart(named_arrays(item)))
            if count >= wanted:
                break
    if not items:
        raise EmptyComparisonError(
            phrase(
                "{data} of the {side} gives nothing",
                data=given["data"],
                side=side_name(side.settings.name),
            )
        )
    out = Path(given["out"])
    save_batches(items, out, len(items))
    again = look_again(stream, wanted, side.project.seed)
    return {
        "by_index": stream.by_index,
        "length": stream.length,
        "name": stream.name,
        "file": str(out),
        "again": keep(again.to_plain(), out.with_name(f"{out.stem}-again.safetensors")),
    }


def state_facts(side: GuideSide, given: Given) -> dict[str, Any]:
    """The facts of a data set that a plan may state."""
    return read_facts(side.data(given["data"]), side.settings.name)


def predict(side: GuideSide, given: Given) -> dict[str, Any]:
    """What the model makes of all evaluation data, and the metric of that."""
    model = side.model()
    predictions, labels = predictions_of(side, model)
    out = Path(given["out"])
    return {
        "predictions": keep(predictions, out / "predictions.safetensors"),
        "labels": keep(labels, out / "labels.safetensors"),
        "values": named_numbers(side.metric(predictions, labels)),
    }


def predictions_of(side: GuideSide, model: Any, *, seeded: bool = True) -> tuple[Any, Any]:
    outputs, labels = [], []
    with side.backend.mode(model, "eval"), side.backend.no_grad():
        for batch in side.batches("evaluation_data", seeded=seeded):
            outputs.append(side.arrays(side.call(model, batch.inputs)))
            labels.append(side.arrays(batch.label))
    return joined(outputs), joined(labels)


def measure(side: GuideSide, given: Given) -> dict[str, Any]:
    """The metric of predictions in files."""
    return {"values": named_numbers(side.metric(take(given["predictions"]), take(given["labels"])))}


def loss_function(side: GuideSide) -> LocalLoss:
    """The loss as a function of the leaves of the model's own output, then of those of the label."""
    output = _output(side)
    label = convert(shared_label(side.project), side.backend)
    slots = [list(flatten(value).leaves) for value in (output, label)]

    def loss(*given: Any) -> Any:
        first, second = given[: len(slots[0])], given[len(slots[0]) :]
        return side.loss(
            replace(output, dict(zip(slots[0], first, strict=True))),
            replace(label, dict(zip(slots[1], second, strict=True))),
        )

    return LocalLoss(side.settings.name, loss, side.backend)


def _output(side: GuideSide) -> Any:
    model = side.model()
    with side.backend.mode(model, "eval"), side.backend.no_grad():
        return side.call(model, shared_inputs(side.project))


def loss_inputs(side: GuideSide, given: Given) -> dict[str, Any]:
    """The leaves that ``loss_function`` is called with, as the model's own output has them."""
    values = side.arrays(_output(side)), shared_label(side.project)
    leaves = [np.asarray(leaf) for value in values for leaf in flatten(value).leaves.values()]
    return {"leaves": keep(leaves, Path(given["out"]))}


def evaluate_loss(side: GuideSide, given: Given) -> dict[str, Any]:
    """The loss of leaves in a file, and its gradients by the leaf's number."""
    found = loss_function(side).evaluate(tuple(take(given["leaves"])), gradients=given["gradients"])
    gradients = {str(number): array for number, array in found.gradients.items()}
    return {"found": keep({"value": found.value, "gradients": gradients}, Path(given["out"]))}


def follow_rates(side: GuideSide, given: Given) -> dict[str, Any]:
    """The learning rate of every update."""
    model = side.fresh_model()
    optimizer = side.optimizer(model)
    scheduler = side.scheduler(optimizer)
    count = max(side.project.rates, side.project.epochs_of_schedule)
    followed = follow_schedule((optimizer, scheduler), side.settings.name, count)
    return {"name": followed.name, "rates": followed.rates.tolist(), "given_number": followed.given_number}


def training_side(side: GuideSide) -> TrainingSide:
    """Model, loss, optimizer and scheduler, from the weights that both sides have in common."""
    model = side.model()
    made = TrainingSide(side.settings.name, side.backend, model, side.loss)
    made.optimizer = side.optimizer(model)
    made.scheduler = side.scheduler(made.optimizer)
    made.clip = side.factory("clip") if "clip" in side.settings.factories else None
    made.refresh()
    return made


def update(side: GuideSide, given: Given) -> dict[str, Any]:
    """Losses and rates of several updates on the same data, in evaluation; recorded on demand.

    ``moved`` is the seed by which every weight is first moved, by more than its rounding: what updates make
    of rounding is chance, and few trials see little of it.
    """
    trained = training_side(side)
    if given.get("moved"):
        _nudge(side, trained.model, given["moved"], limits.verdicts.SHAKE.value)
    batch = Batch(shared_inputs(side.project), shared_label(side.project))
    losses, rates = [], []
    with ExitStack() as stack:
        stack.enter_context(side.backend.mode(trained.model, "eval"))
        stack.enter_context(side.backend.recurrence_in_training(trained.model))
        if given.get("run"):
            state = ("parameter", "gradient", "optimizer")
            recording = record(
                trained.model, given["run"], level="ops", optimizer=trained.optimizer, state=state
            )
            stack.enter_context(recording)
        for _ in range(side.project.updates):
            rates.append(side.backend.learning_rate(trained.optimizer))
            losses.append(train_on(trained, batch))
            trained.step_schedule(losses[-1])
    return {"losses": losses, "rates": rates}


def train_on(trained: TrainingSide, batch: Batch) -> float:
    loss = trained.loss_of(trained.forward(batch), batch.label)
    trained.backward(loss)
    trained.clip_gradients()
    with trained.telling("the optimizer's step"):
        trained.backend.optimizer_step(trained.optimizer)
    trained.clear()
    return float(trained.backend.to_array(loss).reshape(-1)[0])


def initialise(side: GuideSide, given: Given) -> dict[str, Any]:
    """The parameters of the model from several seeds, and what is known of how each begins."""
    models = []
    for number in range(side.project.seeds):
        side.seed("model", number)
        models.append(side.make("model"))
    found = initial_values(models)
    out = Path(given["out"])
    return {
        "name": found.name,
        "framework": found.framework,
        "files": [
            keep(dict(state), out / f"{number}.safetensors") for number, state in enumerate(found.states)
        ],
        "fans": {path: None if fans is None else asdict(fans) for path, fans in found.fans.items()},
        "kinds": dict(found.kinds),
        "defaults": dict(found.defaults),
        "written": dict(found.written),
    }


def record_training(side: GuideSide, given: Given) -> dict[str, Any]:
    """The first updates of the training on batches from a file, recorded."""
    trained = training_side(side.of_run(given["run"]))
    state = ("parameter", "buffer", "gradient", "optimizer")
    with (
        side.backend.mode(trained.model, "train"),
        no_dropout(trained.model),
        record(trained.model, given["out"], level="ops", optimizer=trained.optimizer, state=state),
    ):
        for inputs, label in take(given["batches"]):
            loss = train_on(trained, Batch(inputs, label))
            if side.project.schedule == "update":
                trained.step_schedule(loss)
    return {}


def training_batches(side: GuideSide, given: Given) -> dict[str, Any]:
    """The first batches of the training data, for both sides."""
    batches = [
        [side.arrays(batch.inputs), side.arrays(batch.label)]
        for batch in islice(side.batches("training_data"), side.project.lockstep)
    ]
    return {"batches": keep(batches, Path(given["out"]))}


def train(side: GuideSide, given: Given) -> dict[str, Any]:
    """One whole training on the side's own data: the mean loss and the metric of every epoch."""
    side = side.of_run(given["run"])
    trained, project = training_side(side), side.project
    losses: list[float] = []
    metrics: list[dict[str, float]] = []
    for epoch in range(project.epochs):
        updates: list[float] = []
        with side.backend.mode(trained.model, "train"):
            for batch in side.batches("training_data", seeded=epoch == 0):
                updates.append(train_on(trained, batch))
                if project.schedule == "update":
                    trained.step_schedule(updates[-1])
        if project.schedule == "epoch":
            trained.step_schedule(updates[-1])
        losses.append(float(np.mean(updates)))
        predictions, labels = predictions_of(side, trained.model, seeded=False)
        metrics.append(named_numbers(side.metric(predictions, labels)))
    parts = metric_parts(side.metric, metrics[-1], predictions, labels)
    return {"losses": losses, "metrics": metrics, "parts": keep(parts, Path(given["out"]))}


JOBS: Mapping[str, Callable[[GuideSide, Given], dict[str, Any]]] = {
    each.__name__: each
    for each in (
        *(save_weights, convert_weights, begin_training, convert_beginning),
        *(record_forward, forward, read_data, state_facts, predict, measure),
        *(
            loss_inputs,
            evaluate_loss,
            follow_rates,
            update,
            initialise,
            record_training,
            training_batches,
            train,
        ),
    )
}
