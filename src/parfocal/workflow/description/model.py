"""The tree of one model: what its modules are, hold, take and give."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from parfocal.attribution.sides import ModelSide, left_as_it_was
from parfocal.backends import registry
from parfocal.backends.building import LayerBuilder
from parfocal.backends.checks import check_mode
from parfocal.backends.protocol import Backend, Mode, StateTensor
from parfocal.errors import UnsupportedError
from parfocal.inputs import arguments, check_names
from parfocal.judge.verdict import side_name
from parfocal.replay.observe import Observer
from parfocal.replay.trace import Trace, Value
from parfocal.replay.user_errors import INPUTS_HINT

Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class HeldTensor:
    """A parameter or buffer that a module owns. ``tied_to``: the path it was met under before."""

    name: str
    role: str
    shape: Shape
    dtype: str
    trainable: bool
    tied_to: str | None


@dataclass(frozen=True, slots=True)
class CallShapes:
    """What one call took and gave, by slot."""

    inputs: Mapping[str, Shape]
    outputs: Mapping[str, Shape]
    input_dtypes: Mapping[str, str]
    output_dtypes: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class ModuleDescription:
    """``written``: the arguments that are not the default, as the framework writes them; None if not known.

    ``parameters`` counts the numbers of all parameters in it and below, shared ones once.
    """

    path: str
    depth: int
    kind: str
    class_name: str
    settings: Mapping[str, Any]
    written: str | None
    tensors: tuple[HeldTensor, ...]
    parameters: int
    calls: tuple[CallShapes, ...]


@dataclass(frozen=True, slots=True)
class ModelTotals:
    modules: int
    parameters: int
    trainable: int
    buffers: int  # numbers in them
    calls: int


@dataclass(frozen=True, slots=True)
class ModelDescription:
    """``ran``: there were inputs, so that calls are known."""

    framework: str
    version: str
    class_name: str
    modules: tuple[ModuleDescription, ...]  # in the order of definition, the model itself first
    totals: ModelTotals
    ran: bool


def make_player(side: str, model: Any, inputs: Any) -> ModelSide:
    """``inputs``: None where the model will not be run."""
    backend = registry.of_model(model, side_name(side))
    check_names(inputs, model, side_name(side))
    return ModelSide(side, backend, model, lambda: arguments(inputs, backend), None)


def run_watched(player: ModelSide, mode: Mode) -> Trace:
    """One forward pass; the model is left as it was."""
    check_mode(mode)
    observer = Observer(player.backend, player.model, None, gradients=False)
    with left_as_it_was(player, mode):
        try:
            with player.telling("the forward pass", INPUTS_HINT):
                return observer.run(*player.inputs(), lambda output: None)
        finally:
            observer.kept.put_back()


def describe_model(model: Any, inputs: Any = None, *, mode: Mode = "eval") -> ModelDescription:
    """The tree of a model; with inputs also what every call takes and gives."""
    player = make_player("model", model, inputs)
    return description_of(player, None if inputs is None else run_watched(player, mode))


def description_of(player: ModelSide, trace: Trace | None) -> ModelDescription:
    backend, model = player.backend, player.model
    modules, state = backend.modules(model), backend.state(model)
    calls: dict[str, list[CallShapes]] = {}
    for node in trace.nodes if trace else ():
        calls.setdefault(node.path, []).append(
            CallShapes(
                _shapes(node.inputs), _shapes(node.outputs), _dtypes(node.inputs), _dtypes(node.outputs)
            )
        )
    return ModelDescription(
        backend.name,
        backend.framework_version,
        type(model).__name__,
        tuple(
            _module(backend, path, module, state, tuple(calls.get(path, ())))
            for path, module in modules.items()
        ),
        _totals(backend, len(modules), state, trace),
        trace is not None,
    )


def _module(
    backend: Backend, path: str, module: Any, state: list[StateTensor], calls: tuple[CallShapes, ...]
) -> ModuleDescription:
    kind, settings = backend.kind(module), backend.settings(module)
    below = [each for each in state if each.role == "parameter" and _is_inside(each.path, path)]
    return ModuleDescription(
        path,
        path.count(".") + 1 if path else 0,
        kind,
        type(module).__name__,
        settings,
        _written(backend, module, kind, settings),
        tuple(_held(backend, each) for each in state if each.module == path),
        sum({id(each.value): _count(backend, each) for each in below}.values()),
        calls,
    )


def _written(backend: Backend, module: Any, kind: str, settings: Mapping[str, Any]) -> str | None:
    """``64, epsilon=1e-06`` of ``nn.LayerNorm(64, epsilon=1e-06)``."""
    if not isinstance(backend, LayerBuilder) or not backend.can_build(module):
        return None
    try:
        return backend.spell(kind, settings).partition("(")[2].removesuffix(")")
    except UnsupportedError:
        return None


def _held(backend: Backend, each: StateTensor) -> HeldTensor:
    shape, dtype = backend.shape(each.value), backend.dtype(each.value)
    return HeldTensor(each.name, each.role, tuple(shape), dtype, each.trainable, each.tied_to)


def _totals(backend: Backend, modules: int, state: list[StateTensor], trace: Trace | None) -> ModelTotals:
    def count(chosen: Callable[[StateTensor], bool]) -> int:
        return sum(_count(backend, each) for each in state if each.tied_to is None and chosen(each))

    return ModelTotals(
        modules,
        count(lambda each: each.role == "parameter"),
        count(lambda each: each.role == "parameter" and each.trainable),
        count(lambda each: each.role == "buffer"),
        len(trace.nodes) if trace else 0,
    )


def _count(backend: Backend, each: StateTensor) -> int:
    return math.prod(backend.shape(each.value))


def _is_inside(path: str, module: str) -> bool:
    return not module or path.startswith(f"{module}.")


def _shapes(values: Mapping[str, Value]) -> dict[str, Shape]:
    return {slot: value.data.shape for slot, value in values.items()}


def _dtypes(values: Mapping[str, Value]) -> dict[str, str]:
    return {slot: value.data.dtype for slot, value in values.items()}
