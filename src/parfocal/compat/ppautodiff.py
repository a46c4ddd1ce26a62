"""PPAutoDiff's ``autodiff``: one forward and backward of both models, compared call by call.

What it prints is what PPAutoDiff's document shows, its spelling included. It also returns the
verdict.
"""

from __future__ import annotations

import linecache
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import Any

from parfocal.backends.protocol import Array, Backend, StateTensor
from parfocal.capture.nested_values import flatten
from parfocal.compat.opinion import HEAD, ModelState, opinion_on_models, tell
from parfocal.compat.padiff.abstracts import ProxyModel
from parfocal.compat.padiff.abstracts.tree import describe
from parfocal.compat.padiff.checker.statistics import CONVENTION, explained_by_convention
from parfocal.compat.padiff.comparing import CompareConfig, compare
from parfocal.compat.padiff.dump_tools import training_elements
from parfocal.compat.padiff.interfaces.diff_utils import default_loss
from parfocal.compat.padiff.pairing import pair_calls
from parfocal.compat.padiff.partners import Partners, pair_slots, pair_units
from parfocal.compat.padiff.report.report import Frame, KeptTensor, ReportNode
from parfocal.compat.padiff.weight_init.copying import copy_weights, units_of
from parfocal.errors import EmptyComparisonError, InputError
from parfocal.inputs import Sides, convert
from parfocal.judge.metrics import compare_arrays
from parfocal.phrases import joined, phrase
from parfocal.weights.units import Slot, Unit
from parfocal.weights.views import apply

Models = tuple[ProxyModel, ProxyModel]  # torch's first
OPTIONS = ("atol", "rtol")


@dataclass(frozen=True, slots=True)
class NodePair:
    """The same call in both models."""

    torch: ReportNode
    paddle: ReportNode


def _input_by_both_names(function: Callable[..., bool]) -> Callable[..., bool]:
    """The document's signature says ``example_inp``, its list of parameters ``inp``."""

    @wraps(function)
    def called(*given: Any, **named: Any) -> bool:
        if "inp" in named and "example_inp" not in named:
            named["example_inp"] = named.pop("inp")
        return function(*given, **named)

    return called


@_input_by_both_names
def autodiff(
    layer: Any,
    module: Any,
    example_inp: Any,
    auto_weights: bool = True,
    options: Mapping[str, Any] | None = None,
) -> bool:
    """Whether a paddle ``layer`` and a torch ``module`` agree on an input, forward and backward.

    ``example_inp``, which may be called ``inp`` too, is an array, or a tuple of arrays for several
    arguments. With ``auto_weights`` the layer first gets the module's weights. ``options`` may hold
    ``atol`` (0) and ``rtol`` (1e-7).
    """
    config = _config(options or {})
    models = _proxy(module, "torch"), _proxy(layer, "paddle")
    partners = Partners.of(copy_weights(module, layer)) if auto_weights else None
    before = [ModelState(model.model, parameters=False) for model in models]
    outputs = [_run(model, example_inp) for model in models]
    print(f"Max output diff is {_largest_difference(*outputs)}")
    same_state = _compare_state(models, config, partners)
    pairs = list(_paired(models[0].report.roots, models[1].report.roots, partners))
    for model in models:
        model.report.release()
    same_calls = _compare_calls(pairs, config)
    if same_calls:
        print("SUCCESS !!!" if same_state else "FAILED !!!")
    if not (same_state and same_calls):
        with before[0].put_back(), before[1].put_back():
            _print_opinion(models, example_inp, partners)
    return same_state and same_calls


def _print_opinion(models: Models, example: Any, partners: Partners | None) -> None:
    """parfocal's own line about the two models."""
    torch_model, paddle_model = models
    line = opinion_on_models(
        torch_model.model,
        paddle_model.model,
        Sides(_arguments(torch_model, example), _arguments(paddle_model, example)),
        mode="keep",
        layers=partners.renamed if partners is not None else {},
    )
    tell(line)


def _config(options: Mapping[str, Any]) -> CompareConfig:
    unknown = sorted(set(options) - set(OPTIONS))
    if unknown:
        raise InputError(
            phrase("autodiff has no option called {unknown}", unknown=", ".join(map(repr, unknown))),
            hint=phrase("there are: atol, rtol"),
        )
    return CompareConfig.of({**options, "compare_mode": "strict"})


def _proxy(model: Any, framework: str) -> ProxyModel:
    proxy = ProxyModel(model)
    if proxy.framework != framework:
        raise InputError(
            phrase(
                "{kind} is a model of {framework}, where one of {wanted} is expected",
                kind=type(model).__name__,
                framework=proxy.framework,
                wanted=framework,
            ),
            hint="autodiff(paddle_layer, torch_module, inputs)",
        )
    return proxy


def _run(model: ProxyModel, example: Any) -> list[Array]:
    """Forward and backward of one model; its output tensors as arrays."""
    backend = model.backend
    backend.clear_gradients(model.model)
    output = model(*_arguments(model, example))
    model.backward(default_loss(output, model.framework))
    return [backend.to_array(leaf) for leaf in flatten(output).leaves.values() if backend.is_tensor(leaf)]


def _arguments(model: ProxyModel, example: Any) -> tuple[Any, ...]:
    given = example if isinstance(example, tuple) else (example,)
    return tuple(_with_gradient(convert(value, model.backend), model.backend) for value in given)


def _with_gradient(value: Any, backend: Backend) -> Any:
    """Floating inputs take part in the backward too; some kernels of paddle demand it."""
    if backend.is_tensor(value) and "float" in backend.dtype(value):
        return backend.from_array(backend.to_array(value), requires_grad=True)
    return value


def _largest_difference(torch_outputs: Sequence[Array], paddle_outputs: Sequence[Array]) -> float:
    if len(torch_outputs) != len(paddle_outputs):
        return float("inf")
    differences = [compare_arrays(b, a).max_abs for a, b in zip(torch_outputs, paddle_outputs, strict=True)]
    return float(max(differences, default=0.0))


# Weights and gradients


@dataclass(frozen=True, slots=True)
class SlotPair:
    """The same tensor in both models, torch's first: its slot, what is stored, and in which layer."""

    units: tuple[Unit, Unit]
    slots: tuple[Slot, Slot]
    stored: tuple[StateTensor, StateTensor]


def _compare_state(models: Models, config: CompareConfig, partners: Partners | None) -> bool:
    """Weights, buffers and gradients after the run, layer by layer in the torch module's order."""
    units = [units_of(model.model) for model in models]
    paired = pair_units(units[0], units[1], partners)
    if paired is None:
        print(
            f"After training, {len(units[0])} torch layers with weights face {len(units[1])} paddle layers.\n"
        )
        return False
    agree = True
    tensors = [{tensor.path: tensor for tensor in m.backend.state(m.model)} for m in models]
    for both in paired:
        slots, only = pair_slots(*both)
        if only:
            agree = False
            print(
                f"After training, {', '.join(only)} of `{both[0].path}` is in one of the two models only.\n"
            )
        for ours, theirs in slots:
            stored = tensors[0][ours.stored.path], tensors[1][theirs.stored.path]
            agree &= _compare_slot(models, SlotPair(both, (ours, theirs), stored), config)
    return agree


def _compare_slot(models: Models, pair: SlotPair, config: CompareConfig) -> bool:
    agree = _compare_value("weight", models, pair, config)
    if pair.stored[0].role == "parameter":
        agree &= _compare_value("grad", models, pair, config)
    return agree


def _compare_value(what: str, models: Models, pair: SlotPair, config: CompareConfig) -> bool:
    read = _weight if what == "weight" else ProxyModel.gradient
    arrays = [read(model, tensor.value) for model, tensor in zip(models, pair.stored, strict=True)]
    if _same(arrays, pair.slots, config):
        return True
    if pair.slots[0].role == "running_var" and _is_convention(models, pair, arrays, config):
        tell(joined(": ", (HEAD + pair.slots[1].stored.path, CONVENTION)))
        return True
    _print_state(what, models, pair.units, pair.stored[1])
    return False


def _is_convention(
    models: Models, pair: SlotPair, variances: Sequence[Array | None], config: CompareConfig
) -> bool:
    """Whether a running variance differs as torch's and paddle's always do."""
    elements = training_elements(models[0].report.finished).get(pair.units[0].module, 0)
    known = [variance for variance in variances if variance is not None]
    return len(known) == 2 and explained_by_convention(known, ("torch", "paddle"), elements, config)


def _weight(model: ProxyModel, tensor: Any) -> Array:
    return model.backend.to_array(tensor)


def _same(arrays: Sequence[Array | None], slots: Sequence[Slot], config: CompareConfig) -> bool:
    if arrays[0] is None or arrays[1] is None:
        return arrays[0] is None and arrays[1] is None
    return compare(apply(slots[0].view, arrays[0]), apply(slots[1].view, arrays[1]), config).equal


def _print_state(what: str, models: Models, units: tuple[Unit, Unit], tensor: StateTensor) -> None:
    torch_module, paddle_module = (
        model.backend.modules(model.model)[unit.module] for model, unit in zip(models, units, strict=True)
    )
    print(
        f"After training, {what} value is different for param `{tensor.name}`.\n"
        f"paddle: at `{describe(paddle_module)}`.\n"
        f"torch: at `{describe(torch_module)}`.\n"
    )


# Calls


def _paired(
    torch_calls: Sequence[ReportNode], paddle_calls: Sequence[ReportNode], partners: Partners | None
) -> Iterator[NodePair]:
    """Every pair of calls, in the order in which the torch ones began."""
    for first, second in pair_calls(torch_calls, paddle_calls, {}, partners).of(torch_calls, paddle_calls):
        yield NodePair(first, second)
        yield from _paired(first.children, second.children, partners)


def _compare_calls(pairs: list[NodePair], config: CompareConfig) -> bool:
    if not pairs:
        raise EmptyComparisonError(
            phrase("no call of the torch module has a counterpart in the paddle layer")
        )
    forward = sorted(pairs, key=lambda pair: pair.torch.step)
    # A container's own input gradient is complete last, so backward is the reverse of how calls began.
    stages: tuple[tuple[str, str, list[NodePair], Callable[[ReportNode], list[KeptTensor | None]]], ...] = (
        ("Forward  Stagy", "forward", forward, lambda node: list(node.outputs)),
        ("Backward Stagy", "bacward", pairs[::-1], lambda node: list(node.input_gradients.values())),
    )
    for title, word, ordered, tensors in stages:
        for step, pair in enumerate(ordered):
            text = _difference(tensors(pair.torch), tensors(pair.paddle), config)
            if text is not None:
                _print_failure(title, step, pair, text)
                return False
        print(f"{word} {len(ordered)} steps compared.")
    return True


def _difference(
    first: Sequence[KeptTensor | None], second: Sequence[KeptTensor | None], config: CompareConfig
) -> str | None:
    if len(first) != len(second):
        return f"\nnumber of tensors for compare is not equal, {len(first)} vs {len(second)}"
    for left, right in zip(first, second, strict=True):
        if left is None or right is None:
            if left is not right:
                return "\na gradient arrived in one of the two models only"
            continue
        outcome = compare(left.array, right.array, config)
        if not outcome.equal:
            return outcome.text
    return None


def _print_failure(title: str, step: int, pair: NodePair, text: str) -> None:
    print("FAILED !!!")
    print(
        f"    Diff found in `{title}` in step: {step}, net_id is {pair.torch.net_id} vs {pair.paddle.net_id}"
    )
    print(f"    Type of layer is  : {pair.torch.module_class} vs {pair.paddle.module_class}")
    print(f"{text}\n\n")
    for heading, node in (("Paddle Stacks:", pair.paddle), ("Torch  Stacks:", pair.torch)):
        print(f"{heading}\n{'=' * 25}")
        print(_stack(node.frames))


def _stack(frames: tuple[Frame, ...]) -> str:
    lines = []
    for file, number, function in frames:
        lines.append(f"{' ' * 9}File {file}: {number}    {function}")
        lines.append(f"{' ' * 16}{linecache.getline(file, number).strip()}")
    return "\n".join(lines)
