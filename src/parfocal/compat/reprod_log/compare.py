"""The model comparisons of the old tool: one forward pass, or a few steps of training, side by side.

Parameters are compared by name. The two frameworks store a linear layer's weight differently;
which ones are turned follows from the layer's type, never from a shape that happens to fit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from parfocal.backends import registry
from parfocal.backends.protocol import Array, Backend
from parfocal.compat.opinion import ModelState, opinion_on_models, tell
from parfocal.compat.reprod_log.differences import (
    DifferenceTree,
    figures,
    map_pairs,
    pair_up,
    problems,
)
from parfocal.compat.reprod_log.losses import call_loss, labels_of
from parfocal.compat.reprod_log.utils import check_print_diff, methods_of, opinion_line, to_numpy
from parfocal.compat.reprod_log.values import to_array, to_tensors
from parfocal.errors import InputError
from parfocal.inputs import Sides
from parfocal.phrases import phrase

_SIDES = ("torch_model", "paddle_model")
_COMMON_NAMES = {("PReLU", "_weight"): "weight"}  # (kind, paddle's own name) -> torch's name


def check_data(data1: Mapping[str, Any], data2: Mapping[str, Any]) -> None:
    """Raise when the two do not have the same keys, nested ones included, or hold no numbers."""
    found = problems(pair_up(data1, data2, names=("data1", "data2")))
    if found:
        raise InputError(
            phrase("data1 and data2 cannot be compared: {found}", found="; ".join(found)),
            hint=phrase("save the same keys on both sides"),
        )


def compute_diff(
    data1: Mapping[str, Any], data2: Mapping[str, Any], names: tuple[str, str] = ("data1", "data2")
) -> DifferenceTree:
    """The "mean", "max" and "min" of the absolute difference for every key, nested like the data."""
    return map_pairs(pair_up(data1, data2, names), figures)


def compare_forward(
    torch_model: Any,
    paddle_model: Any,
    input_dict: Mapping[str, Any],
    diff_threshold: float = 1e-6,
    diff_method: str | Sequence[str] = "mean",
) -> bool:
    """Run both models in eval mode on the same inputs, print their outputs' differences; the verdict."""
    methods = methods_of(diff_method)
    models = (torch_model, paddle_model)
    torch_output, paddle_output = (_forward(model, input_dict) for model in models)
    passed = check_print_diff(compute_diff(torch_output, paddle_output, _SIDES), methods, diff_threshold)
    if not passed:
        _print_opinion(models, input_dict, backward=False)
    print("diff check passed" if passed else "diff check failed")
    return passed


def compare_loss_and_backward(
    torch_model: Any,
    paddle_model: Any,
    torch_loss: Any,
    paddle_loss: Any,
    input_dict: Mapping[str, Any],
    lr: float = 1e-3,
    steps: int = 10,
    diff_threshold: float = 1e-6,
    diff_method: str | Sequence[str] = "mean",
) -> bool:
    """Train both models with plain SGD in eval mode and compare every step; the verdict.

    A loss is a function ``loss(inputs, outputs)`` or a loss layer such as ``nn.CrossEntropyLoss()``,
    which gets the output and the labels: the entries of ``input_dict`` that the model does not take.
    It returns the scalar, or a dict with it under "loss". A step's loss, gradients and updated weights
    are compared; the first step that fails is the last. The models keep the weights they have then.
    """
    methods = methods_of(diff_method)
    if steps < 1:
        raise InputError(
            phrase("steps is {steps}: without a step nothing is compared", steps=steps),
            hint=phrase("give 1 or more"),
        )
    trainers = (
        _Trainer.of(torch_model, torch_loss, input_dict, lr),
        _Trainer.of(paddle_model, paddle_loss, input_dict, lr),
    )
    before = [ModelState(trainer.model, parameters=True) for trainer in trainers]
    for iteration in range(steps):
        torch_step, paddle_step = (trainer.step() for trainer in trainers)
        sections = [
            compute_diff(torch_step.loss, paddle_step.loss, _SIDES),
            compute_diff(torch_step.gradients, paddle_step.gradients, _SIDES),
            {"weights": compute_diff(torch_step.weights, paddle_step.weights, _SIDES)},
        ]
        verdicts = [check_print_diff(section, methods, diff_threshold) for section in sections]
        passed = all(verdicts)
        if not all(verdicts[:2]):
            with before[0].put_back(), before[1].put_back():
                _print_opinion(
                    (torch_model, paddle_model),
                    trainers[0].inputs,
                    loss=(trainers[0].loss_of, trainers[1].loss_of),
                    subject="the first step by itself" if iteration else "",
                )
        elif not passed:
            tell(opinion_line(sections[2], methods, diff_threshold))
        print(f"diff check {'passed' if passed else 'failed'} in iter {iteration}")
        if not passed:
            return False
    print("diff check passed")
    return True


@dataclass(frozen=True, slots=True)
class _Step:
    """What one step of one model is compared by."""

    loss: dict[str, Array]
    gradients: dict[str, Array]
    weights: dict[str, Array]


@dataclass(frozen=True, slots=True)
class _Trainer:
    """One model with its loss, inputs and optimizer, taking steps."""

    backend: Backend
    model: Any
    loss: Any
    inputs: Mapping[str, Any]
    labels: Mapping[str, Any]
    optimizer: Any

    @classmethod
    def of(cls, model: Any, loss: Any, input_dict: Mapping[str, Any], lr: float) -> _Trainer:
        backend = registry.of(model)
        for_loss = labels_of(backend, model, loss, _checked(input_dict))
        inputs = {key: value for key, value in input_dict.items() if key not in for_loss}
        labels = {key: input_dict[key] for key in for_loss}
        return cls(backend, model, loss, inputs, labels, backend.sgd(model, lr))

    def step(self) -> _Step:
        """Forward, backward and update, with gradients that are this step's only."""
        backend, model = self.backend, self.model
        backend.clear_gradients(model)
        with backend.mode(model, "eval"):
            # Fresh tensors every step, as a model may write into its inputs; and live ones, as some
            # kernels' backward crashes on an input that wants no gradient.
            inputs = _inputs(backend, model, self.inputs, live=True)
            loss = self._loss(inputs, model(**inputs))
            backend.backward([loss], [None])
            gradients = self._parameters(gradient=True)
            backend.optimizer_step(self.optimizer)
        backend.clear_gradients(model)
        return _Step({"loss": to_array(loss, "loss").copy()}, gradients, self._parameters(gradient=False))

    def loss_of(self, outputs: Any) -> Any:
        """The loss of these outputs."""
        return self._loss(_inputs(self.backend, self.model, self.inputs), outputs)

    def _loss(self, inputs: Mapping[str, Any], outputs: Any) -> Any:
        labels = _inputs(self.backend, self.model, self.labels)
        return call_loss(self.backend, self.loss, inputs, labels, outputs)

    def _parameters(self, *, gradient: bool) -> dict[str, Array]:
        """Every parameter's value or gradient by name; a tied one under its first name."""
        modules = self.backend.modules(self.model)
        found: dict[str, Array] = {}
        for tensor in self.backend.state(self.model):
            if (
                tensor.role != "parameter"
                or tensor.tied_to is not None
                or (gradient and not tensor.trainable)
            ):
                continue
            values = self.backend.gradient(tensor.value) if gradient else self.backend.to_array(tensor.value)
            if values is not None:
                module = modules[tensor.module]
                turned = self.backend.settings(module).get("weight_layout") == "in,out"
                name = _COMMON_NAMES.get((self.backend.kind(module), tensor.name), tensor.name)
                path = tensor.path.removesuffix(tensor.name) + name
                found[path] = values.T if turned and name == "weight" else values
        return found


def _forward(model: Any, input_dict: Mapping[str, Any]) -> dict[str, Any]:
    backend = registry.of(model)
    with backend.mode(model, "eval"):
        return to_numpy(model(**_inputs(backend, model, input_dict)))


def _inputs(backend: Backend, model: Any, arrays: Mapping[str, Any], *, live: bool = False) -> dict[str, Any]:
    dtype = _float_dtype(backend, model)
    return {name: to_tensors(backend, value, dtype, live=live) for name, value in _checked(arrays).items()}


def _checked(input_dict: Any) -> Mapping[str, Any]:
    if not isinstance(input_dict, Mapping):
        raise InputError(
            phrase("input_dict is {input_dict}, not a dict of arrays", input_dict=f"{input_dict!r:.60}"),
            hint=phrase("pass {{argument name of the models' forward: array}}"),
        )
    return input_dict


def _print_opinion(models: tuple[Any, Any], input_dict: Mapping[str, Any], **options: Any) -> None:
    """parfocal's own line about two models that failed."""
    inputs = [_inputs(registry.of(model), model, input_dict) for model in models]
    tell(opinion_on_models(*models, Sides(*inputs), mode="eval", **options))


def _float_dtype(backend: Backend, model: Any) -> str:
    """The floating type of the model's parameters: arrays are fed in it, whatever NumPy made them."""
    names = (backend.dtype(tensor.value) for tensor in backend.state(model) if tensor.role == "parameter")
    return next((name for name in names if "float" in name), "float32")
