"""``compare_init``: do the weights of two models begin alike.

Values cannot agree, distributions must. Both models are built from several seeds, corresponding tensors are
put side by side, and each is compared as a sample, with an error rate that is that of the whole model.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from parfocal.backends import registry
from parfocal.backends.protocol import Array, Backend
from parfocal.errors import EmptyComparisonError, InputError
from parfocal.explain.causes import number, spelled_path
from parfocal.explain.initialisers import (
    CLOSE,
    FAN_INITIALISERS,
    Fans,
    InitialDraws,
    InitialiserFamily,
    differ_in_scale,
    drawn,
)
from parfocal.judge import limits
from parfocal.judge.floors import NOTHING
from parfocal.judge.verdict import Claim, Divergence, Grounds, Site, side_name
from parfocal.phrases import phrase
from parfocal.report.coverage import Compared, Coverage, LeftOut, Reason
from parfocal.report.report import Report
from parfocal.weights import views
from parfocal.weights.plan import Entry, Plan
from parfocal.weights.transfer import transfer
from parfocal.workflow.seeding import seed as seed_all

ALARMS = limits.verdicts.INITIAL_ALARMS.value
MOST = limits.verdicts.INITIAL_NUMBERS.value
SAME_NUMBERS = limits.verdicts.INITIAL_SAME.value

# Names of initialisers that a backend may know how to write.
INITIALISERS = (*FAN_INITIALISERS, "constant", "uniform", "normal", "truncated normal")

Factory = Callable[[], Any]


@dataclass(frozen=True, slots=True)
class _Tensor:
    """Corresponding tensors: where they are, and what was drawn for them."""

    entry: Entry
    reference: InitialDraws
    port: InitialDraws


def compare_init(reference: Factory, port: Factory, *, seeds: int = 8) -> Report:
    """Compare how two models are initialised; both are functions without arguments that build one.

    Every corresponding parameter is a sample over ``seeds`` seeds: its family, its scale, its constant.
    """
    if isinstance(seeds, bool) or not isinstance(seeds, int) or seeds < 2:
        raise InputError(
            phrase(
                "seeds={seeds}: at least two are needed to tell random numbers from fixed ones",
                seeds=repr(seeds),
            )
        )
    if reference is port:
        raise InputError(
            phrase("a factory compared with itself is always the same"), hint=phrase("pass two factories")
        )
    builds = [_Build(reference, "reference"), _Build(port, "port")]
    pairs = [(builds[0](number), builds[1](number)) for number in range(seeds)]
    ours, theirs = (initial_values([pair[side] for pair in pairs]) for side in (0, 1))
    plan = transfer(*pairs[0], partial=True)  # by names, kinds and shapes: no values take part
    return compare_initial_values(ours, theirs, plan)


@dataclass(frozen=True, slots=True)
class InitialValues:
    """How one side's parameters begin, and what is needed to tell of them without its framework."""

    name: str
    framework: str
    states: Sequence[Mapping[str, Array]]  # one a seed: path -> values
    fans: Mapping[str, Fans | None]
    kinds: Mapping[str, str]  # path -> kind of the layer that has it
    defaults: Mapping[str, str | None]  # path -> what initialises it when nothing is said
    written: Mapping[str, str]  # initialiser's name -> how it is written


def initial_values(models: Sequence[Any]) -> InitialValues:
    """Of models built from as many seeds."""
    first = models[0]
    backend = registry.of(first)
    states = [_parameters(model) for model in models]
    modules = backend.modules(first)
    kinds = {path: backend.kind(modules.get(path.rpartition(".")[0], first)) for path in states[0]}
    return InitialValues(
        f"{type(first).__name__} ({backend.name} {backend.framework_version})",
        backend.name,
        states,
        {path: _fans(path, first, backend) for path in states[0]},
        kinds,
        {path: backend.default_initialiser(kind, path.rpartition(".")[2]) for path, kind in kinds.items()},
        {name: form for name in INITIALISERS if (form := backend.written_initialiser(name)) is not None},
    )


def compare_initial_values(ours: InitialValues, theirs: InitialValues, plan: Plan) -> Report:
    """Compare the samples of corresponding parameters; ``plan`` says which correspond."""
    tensors = [_tensor(entry, ours, theirs) for entry in _compared(plan, ours, theirs)]
    if not tensors:
        raise EmptyComparisonError(
            phrase("the two models have no parameter in common, so there is nothing to compare"),
            hint=phrase("check that both factories build the same architecture"),
        )
    limit = ALARMS / len(tensors)
    found = [each for tensor in tensors if (each := _difference(tensor, ours, theirs, limit)) is not None]
    left = [
        LeftOut(item.path, reason)
        for items, reason in (
            (plan.unmatched_reference, Reason.ONLY_REFERENCE),
            (plan.unmatched_port, Reason.ONLY_PORT),
        )
        for item in items
    ]
    seeds = len(ours.states)
    return Report(
        reference_name=ours.name,
        port_name=theirs.name,
        divergences=tuple(found),
        transfer=plan,
        coverage=Coverage(
            (Compared("parameters", len(tensors), len(tensors) + len(left)), Compared("seeds", seeds, seeds)),
            tuple(left),
        ),
        limit=1.0,
    )


@dataclass(frozen=True, slots=True)
class _Build:
    factory: Factory
    side: str

    def __call__(self, number: int) -> Any:
        seed_all(number)
        try:
            model = self.factory()
        except TypeError as error:
            raise InputError(
                phrase("the {side} cannot be built: {error}", side=side_name(self.side), error=error),
                hint=phrase("pass a function without arguments"),
            ) from error
        if not registry.of(model).is_model(model):
            raise InputError(
                phrase(
                    "the {side}'s factory gives a {name}, not a model",
                    side=side_name(self.side),
                    name=type(model).__name__,
                )
            )
        return model


def _parameters(model: Any) -> dict[str, Array]:
    backend = registry.of(model)
    return {
        entry.path: backend.to_array(entry.value)
        for entry in backend.state(model)
        if entry.role == "parameter" and entry.tied_to is None
    }


def _compared(plan: Plan, ours: InitialValues, theirs: InitialValues) -> list[Entry]:
    return [
        entry for entry in plan.entries if entry.source in ours.states[0] and entry.target in theirs.states[0]
    ]


def _tensor(entry: Entry, ours: InitialValues, theirs: InitialValues) -> _Tensor:
    return _Tensor(
        entry,
        drawn(
            [_thinned(views.apply(entry.source_view, state[entry.source])) for state in ours.states],
            ours.fans[entry.source],
        ),
        drawn(
            [_thinned(views.apply(entry.target_view, state[entry.target])) for state in theirs.states],
            theirs.fans[entry.target],
        ),
    )


def _thinned(array: Array) -> Array:
    """Numbers from all over a large tensor, always the same places."""
    flat = array.reshape(-1)
    return flat if flat.size <= MOST else flat[np.linspace(0, flat.size - 1, MOST).astype(np.int64)]


def _fans(path: str, model: Any, backend: Backend) -> Fans | None:
    """Of the layer's weight, as its kind says that it lies."""
    owner, _, _ = path.rpartition(".")
    module = backend.modules(model).get(owner)
    if module is None:
        return None
    weights = [e.value for e in backend.state(module) if e.module == "" and len(backend.shape(e.value)) > 1]
    if not weights:
        return None
    shape = backend.shape(weights[0])
    turned = backend.settings(module).get("weight_layout") == "in,out" or "Transpose" in backend.kind(module)
    out, into = (shape[1], shape[0]) if turned else (shape[0], shape[1])
    field = int(np.prod(shape[2:], dtype=np.int64)) if len(shape) > 2 else 1
    own = next(e.value for e in backend.state(model) if e.path == path)
    return Fans(into * field, out * field, bias=len(backend.shape(own)) == 1)


def _difference(
    tensor: _Tensor, reference: InitialValues, port: InitialValues, limit: float
) -> Divergence | None:
    ours, theirs = tensor.reference, tensor.port
    code, score = _judged(ours, theirs, limit)
    if not code:
        return None
    path = tensor.entry.target
    if code != "init.scale" and path.rpartition(".")[2] == "bias":
        code = "init.bias"
    places = ((reference, tensor.entry.source, ours), (port, path, theirs))
    kinds = [side.kinds[place] for side, place, _ in places]
    defaults = [
        phrase(", the default of {name}'s {kind}", name=side.framework, kind=side.kinds[place])
        if side.defaults[place] == each.name
        else ""
        for side, place, each in places
    ]
    message = phrase(
        "{path} begins as {reference}{reference_default} in the reference, "
        "as {port}{port_default} in the port",
        path=path,
        reference=ours.in_words(),
        reference_default=defaults[0],
        port=theirs.in_words(),
        port_default=defaults[1],
    )
    return Divergence(
        "init",
        Site(tensor.entry.source, kinds[0]),
        Site(path, kinds[1]),
        phrase(
            "{path}: {reference} in the reference, {port} in the port",
            path=path,
            reference=ours.in_words(),
            port=theirs.in_words(),
        ),
        None,
        NOTHING,
        score,
        cause=Claim(code, message, _fix(tensor, port.written)).likely(Grounds.VALUES),
    )


def _judged(ours: InitialDraws, theirs: InitialDraws, limit: float) -> tuple[str, float]:
    """The code of what differs, if anything does, and how much more it does than is allowed."""
    set_families = (InitialiserFamily.CONSTANT, InitialiserFamily.FIXED)
    if ours.family in set_families or theirs.family in set_families:
        alike = ours.family is theirs.family and np.allclose(
            ours.values, theirs.values, rtol=SAME_NUMBERS, atol=SAME_NUMBERS * max(abs(ours.mean), ours.std)
        )
        return ("", 0.0) if alike else ("init.distribution", float("inf"))
    as_drawn, shaped = differ_in_scale(ours, theirs)
    if as_drawn >= limit:
        return "", 0.0
    same_family = ours.family is theirs.family or shaped >= limit
    score = np.log(max(as_drawn, 1e-300)) / np.log(limit)
    return ("init.scale" if same_family else "init.distribution"), float(score)


def _fix(tensor: _Tensor, written: Mapping[str, str]) -> str:
    """The line that makes the port's tensor begin like the reference's."""
    ours = tensor.reference
    place = f"{spelled_path(tensor.entry.target)}"
    name = {
        InitialiserFamily.CONSTANT: "constant",
        InitialiserFamily.UNIFORM: "uniform",
        InitialiserFamily.NORMAL: "normal",
    }.get(ours.family, "")
    form = written.get(ours.name) or written.get(name)
    if ours.family is InitialiserFamily.TRUNCATED:
        form = written.get("truncated normal")
    if form is None:
        return phrase(
            "initialise {place} as the reference does: {in_words}", place=place, in_words=ours.in_words()
        )
    low, high, mean, std = ours.values.min(), ours.values.max(), ours.mean, ours.std
    count = ours.values.size
    # how far each may be off, drawn so often: a bound is passed by no draw, and reached by none
    edge, middle, width = (high - low) / count, std / math.sqrt(count), std / math.sqrt(2 * count)
    if ours.exact_std is not None:
        mean, std = 0.0, ours.exact_std
        low, high = -math.sqrt(3) * std, math.sqrt(3) * std
        edge = middle = width = 0.0
    return form.format(
        tensor=place,
        value=number(float(ours.values[0])),
        low=number(_shortest(low, edge)),
        high=number(_shortest(high, edge)),
        mean=number(_shortest(mean, middle)),
        std=number(_shortest(std, min(width, std / 8))),  # never zero
    )


def _shortest(value: float, error: float) -> float:
    """The number with the fewest digits that draws so far off allow: people write 0.02, not 0.01987."""
    written = (0.0, *(float(f"{value:.{digits}g}") for digits in range(1, 7)))  # a float32 has no more
    return next((each for each in written if abs(each - value) <= CLOSE * error), written[-1])
