"""One side of a reproduction inside of its own process: its factories, called and checked."""

from __future__ import annotations

import faulthandler
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any

from parfocal.backends import registry
from parfocal.backends.protocol import Array, Backend
from parfocal.brief import brief
from parfocal.capture.nested_values import flatten, rebuild
from parfocal.capture.shared_draws import DrawSource, Keyed, drawing_from
from parfocal.errors import EmptyComparisonError, InputError, ParfocalError
from parfocal.inputs import arguments, convert
from parfocal.phrases import phrase
from parfocal.run.files import load_arrays
from parfocal.workflow.batches import stacked
from parfocal.workflow.guide.settings import Project, SideSettings
from parfocal.workflow.guide.values import take
from parfocal.workflow.loading import load_attribute, where_raised
from parfocal.workflow.sample_streams import SampleStream, as_array
from parfocal.workflow.seeding import LARGEST, seed
from parfocal.workflow.side_code import SideCode
from parfocal.workflow.training.batches import Batch, read_batches


class FactoryError(InputError):
    """A factory that ``parfocal.toml`` names is not there, raises, or gives something else."""

    code = "guide.factory"


def inside(folder: str) -> str:
    """A hint for who did not find a file."""
    return phrase("functions run in the project's folder: relative paths begin at {folder}", folder=folder)


@dataclass(slots=True)
class GuideSide:
    """The factories of one side."""

    project: Project
    settings: SideSettings
    loaded: dict[str, Callable[..., Any]] = field(default_factory=dict)
    code: SideCode = field(default_factory=SideCode)
    drawn: int = 0  # samples or batches of training data that were given shared random numbers
    run: int | None = None  # of the whole trainings, each with a seed and a beginning of its own

    @property
    def backend(self) -> Backend:
        return registry.get(self.settings.framework)

    def factory(self, name: str) -> Callable[..., Any]:
        """What the file names, loaded once."""
        if name not in self.loaded:
            place = self.settings.places[name]
            try:
                with self.code.active():
                    _, found = load_attribute(self.settings.factories[name], f"{place} =")
            except InputError as error:
                raise FactoryError(error.message, hint=error.hint) from error
            if not callable(found):
                raise FactoryError(
                    phrase(
                        "{factory} is {value}, not a function", factory=self._words(name), value=brief(found)
                    )
                )
            self.loaded[name] = found
            faulthandler.disable()  # a framework that was loaded now has put its own handlers in place:
            faulthandler.enable()  # Python's lines come first
        return self.loaded[name]

    def make(self, name: str, *given: Any) -> Any:
        """What a factory gives; whatever it raises is told with its lines."""
        factory = self.factory(name)
        try:
            with self.code.active():
                made = factory(*given)
        except ParfocalError:
            raise
        except (Exception, SystemExit) as error:
            where = where_raised(error, __file__)
            raise FactoryError(
                phrase(
                    "{factory} raised {kind}: {error}{where}",
                    factory=self._words(name),
                    kind=type(error).__name__,
                    error=error,
                    where=where,
                )
            ) from error
        if made is None:
            raise FactoryError(
                phrase("{factory} gives None", factory=self._words(name)), hint=phrase("return what it makes")
            )
        return made

    def _words(self, name: str) -> str:
        return f"{self.settings.places[name]} = {self.settings.factories[name]}"

    def seed(self, name: str, number: int) -> None:
        """Seed all that a factory draws from: its file is read first, as it may load the framework."""
        self.factory(name)
        assert self.backend.name == self.settings.framework  # which is loaded now
        seed(number)

    def fresh_model(self) -> Any:
        """A model from the project's seed, with weights as its code makes them."""
        self.seed("model", self.project.seed)
        model = self.make("model")
        try:
            is_model = registry.of(model) is self.backend and self.backend.is_model(model)
        except InputError:
            is_model = False
        if not is_model:
            kind = f"{type(model).__module__}.{type(model).__name__}"
            raise FactoryError(
                phrase(
                    "{factory} gives an object of {kind}, not a model of {framework}",
                    factory=self._words("model"),
                    kind=kind,
                    framework=self.settings.framework,
                ),
                hint=phrase("return the model, or correct {place}", place=self.settings.places["framework"]),
            )
        return model

    def model(self) -> Any:
        """A model with the weights that both sides have in common."""
        model = self.fresh_model()
        self.load(model, self.weights)
        return model

    def of_run(self, run: int) -> GuideSide:
        """The same side for one whole training."""
        project = replace(self.project, seed=(self.project.seed + run) % (LARGEST + 1))
        return replace(self, project=project, run=run)

    @property
    def weights(self) -> Path:
        """What this side begins with: every step as published, a whole training as it is to begin."""
        folder = self.plan.parent if self.run is None else self.plan.with_name(f"training-{self.run}")
        return folder / f"{self.settings.name}.safetensors"

    @property
    def plan(self) -> Path:
        """How the reference's weights are copied into the port: written by the first step."""
        return self.project.store / "weights" / "plan.json"

    def load(self, model: Any, path: Path) -> None:
        arrays = load_arrays(path)
        for entry in self.backend.state(model):
            if entry.path in arrays:
                self.backend.write(entry.value, arrays[entry.path])

    def state(self, model: Any) -> dict[str, Array]:
        return {
            entry.path: self.backend.to_array(entry.value)
            for entry in self.backend.state(model)
            if entry.tied_to is None
        }

    def optimizer(self, model: Any) -> Any:
        made = self.make("optimizer", model)
        if not _is(made, self.backend, self.backend.is_optimizer):
            raise FactoryError(
                phrase(
                    "{factory} gives {value}, not an optimizer",
                    factory=self._words("optimizer"),
                    value=brief(made),
                )
            )
        return made

    def scheduler(self, optimizer: Any) -> Any:
        """That of the factory; without one, what the optimizer reads its rate from, or None."""
        if "scheduler" not in self.settings.factories:
            return self.backend.scheduler_of(optimizer)
        made = self.make("scheduler", optimizer)
        if not _is(made, self.backend, self.backend.is_scheduler):
            raise FactoryError(
                phrase(
                    "{factory} gives {value}, not a scheduler",
                    factory=self._words("scheduler"),
                    value=brief(made),
                )
            )
        return made

    def loss(self, output: Any, label: Any) -> Any:
        return self.make("loss", output, label)

    def metric(self, predictions: Any, labels: Any) -> Any:
        """Of arrays: the metric itself is given its own framework's tensors."""
        return self.make("metric", convert(predictions, self.backend), convert(labels, self.backend))

    def data(self, name: str) -> Any:
        """A dataset or loader, read from the project's seed on."""
        self.seed(name, self.project.seed)
        return self.make(name)

    def items(self, stream: SampleStream, name: str, *, seeded: bool = True) -> Iterator[Any]:
        """Samples or batches as they come; the training data's with shared numbers if the plan says so."""
        if name != "training_data" or self.project.draws == "own":
            yield from stream.items()
            return
        self.drawn = 0 if seeded else self.drawn
        source, items = DrawSource(self.project.seed, Keyed.ALIKE), stream.items()
        while True:
            with drawing_from(source, self.drawn):
                item = list(islice(items, 1))
            if not item:
                return
            self.drawn += 1
            yield item[0]

    def batches(self, name: str, *, seeded: bool = True, share: tuple[int, int] = (0, 1)) -> Iterator[Batch]:
        """Batches of a loader, or of the samples of a dataset put together.

        Not ``seeded``, the random numbers go on where they are: a second epoch drops other values. ``share``
        is a rank and the number of ranks: samples are dealt out to them in turn. A loader deals by itself.
        """
        source = self.data(name) if seeded else self.make(name)
        stream = SampleStream(source, self.settings.name)
        items = self.items(stream, name, seeded=seeded)
        if stream.by_index:
            items = _stacked(_dealt(items, *share), self.project.batch_size)
        count = 0
        for item in items:
            (batch, _), *_ = read_batches([item], 1)
            yield _by_keyword(batch)
            count += 1
        if not count:
            raise EmptyComparisonError(phrase("{factory} gives no batch", factory=self._words(name)))

    def call(self, model: Any, inputs: Any) -> Any:
        args, kwargs = arguments(inputs, self.backend)
        return model(*args, **kwargs)

    def arrays(self, value: Any) -> Any:
        """The same structure in plain containers, with arrays for tensors."""
        flat = flatten(value)
        return rebuild(
            flat.shape,
            {slot: as_array(leaf) if hasattr(leaf, "shape") else leaf for slot, leaf in flat.leaves.items()},
        )


def shared_inputs(project: Project) -> Any:
    """What both models are run on: generated once."""
    return take(project.store / "inputs" / "model.safetensors")


def shared_label(project: Project) -> Any:
    return take(project.store / "inputs" / "label.safetensors")


def _is(made: Any, backend: Backend, question: Callable[[object], bool]) -> bool:
    try:
        return registry.of(made) is backend and question(made)
    except InputError:
        return False


def _by_keyword(batch: Batch) -> Batch:
    """A dict beside the label is given by keyword, as the inputs of parfocal.toml are."""
    if isinstance(batch.inputs, tuple) and len(batch.inputs) == 1 and isinstance(batch.inputs[0], dict):
        return Batch(batch.inputs[0], batch.label)
    return batch


def _dealt(samples: Iterator[Any], rank: int, ranks: int) -> Iterator[Any]:
    """Every rank gets equally many: what is left over at the end is dropped."""
    while len(group := list(islice(samples, ranks))) == ranks:
        yield group[rank]


def _stacked(samples: Iterator[Any], size: int) -> Iterator[Any]:
    while group := list(islice(samples, size)):
        yield stacked(group)
