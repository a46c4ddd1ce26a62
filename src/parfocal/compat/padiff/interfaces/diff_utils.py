"""Running two models and checking what they dumped: the inside of ``auto_diff``."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, Literal

import numpy as np

from parfocal.backends import registry
from parfocal.backends.protocol import Backend
from parfocal.capture.nested_values import flatten
from parfocal.compat.opinion import ModelState, opinion_on_models, tell
from parfocal.compat.padiff.abstracts import ProxyModel
from parfocal.compat.padiff.abstracts.tree import route
from parfocal.compat.padiff.checker import check_grads, check_report, check_weights
from parfocal.compat.padiff.interfaces.options import Options
from parfocal.compat.padiff.partners import Partners
from parfocal.compat.padiff.report.following import BaseFollower
from parfocal.compat.padiff.report.report import Report
from parfocal.compat.padiff.utils import log
from parfocal.compat.padiff.weight_init.weights import layer_map
from parfocal.errors import InputError
from parfocal.inputs import Sides
from parfocal.phrases import phrase

Models = tuple[ProxyModel, ProxyModel]
Failed = Literal["report", "grads", "weights"]


def pipeline(
    models: Models, inputs: Sequence[Mapping[str, Any]], losses: Sequence[Any], optimizers: Sequence[Any],
    options: Options, partners: Partners | None = None,
) -> bool:  # fmt: skip
    """Run both models and check; the first step that differs ends it.

    ``partners`` says which modules hold the same weights, where that is known.
    """
    for model in models:
        # Gradients left by an earlier run would be compared along with this one's.
        model.backend.clear_gradients(model.model)
    before = [ModelState(model.model, parameters=options.use_opt) for model in models]
    for step in range(options.steps):
        if options.steps > 1:
            log(f"Step {step}")
        run = _single_step if options.single_step else _plain_step
        failed = run(models, inputs, losses, optimizers, options, partners)
        if failed is not None:
            if failed != "weights":  # what an optimizer makes of equal gradients is no question to models
                with before[0].put_back(), before[1].put_back():
                    _tell_opinion(models, inputs, losses, options, partners, step)
            return False
    return True


def _plain_step(
    models: Models, inputs: Sequence[Any], losses: Sequence[Any], optimizers: Sequence[Any],
    options: Options, partners: Partners | None,
) -> Failed | None:  # fmt: skip
    for model, given, loss, optimizer in zip(models, inputs, losses, optimizers, strict=True):
        model.clear_report()
        _finish_run(model, model(**given), loss, optimizer, options)
        model.clear_report()
    phase = "forward" if options.diff_phase == "forward" else "both"
    return _check(models, phase, options, partners, single_step=False)


def _single_step(
    models: Models, inputs: Sequence[Any], losses: Sequence[Any], optimizers: Sequence[Any],
    options: Options, partners: Partners | None,
) -> Failed | None:  # fmt: skip
    base, raw = models
    base.clear_report()
    output = base.run_single_step(dict(inputs[0]))
    _finish_run(base, output, losses[0], optimizers[0], options)
    follower = BaseFollower(base.report, _rehearsal(raw, inputs[1]), layer_map(models), partners)
    raw.clear_report()
    output = raw.run_single_step(dict(inputs[1]), follower)
    _finish_run(raw, output, losses[1], optimizers[1], options)
    for model in models:
        model.clear_report()
    for stage in ("forward", "backward"):
        wanted = options.diff_phase in (stage, "both")
        failed = _check(models, stage, options, partners, single_step=True) if wanted else None
        if failed is not None:
            log(f"In single step mode, diff found at {stage} stage!")
            return failed
    return None


def _tell_opinion(
    models: Models, inputs: Sequence[Any], losses: Sequence[Any], options: Options,
    partners: Partners | None, step: int,
) -> None:  # fmt: skip
    """parfocal's own line, about the models as they were before the first step."""
    renamed = dict(partners.renamed) if partners is not None else {}
    line = opinion_on_models(
        models[0].model,
        models[1].model,
        Sides(dict(inputs[0]), dict(inputs[1])),
        mode="keep",
        backward=options.diff_phase != "forward",
        loss=tuple(losses) if options.use_loss else None,
        layers={**renamed, **layer_map(models)},
        subject="the first step by itself" if step else "",
    )
    tell(line)


def _rehearsal(model: ProxyModel, inputs: Mapping[str, Any]) -> Report:
    """The calls a model makes, found out by running it without leaving a trace."""
    model.clear_report()
    with _undisturbed(model.backend, model.model):
        model(**inputs)
    report = model.report
    report.release()
    model.report = Report()
    return report


def folder(model: ProxyModel) -> str:
    """Where ``auto_diff`` dumps a model."""
    return f"{model.dump_path}/auto_diff"


def _finish_run(model: ProxyModel, output: Any, loss: Any, optimizer: Any, options: Options) -> None:
    """Backward, dumps and the optimizer's step, as far as they are wanted."""
    path = folder(model)
    if options.diff_phase == "forward":
        model.dump_report(path)
        return
    model.backward(loss(output) if options.use_loss else default_loss(output, model.framework))
    model.dump_report(path)
    model.dump_grads(path)
    if options.use_opt:
        optimizer.step()
        model.dump_weights(path)


def _check(
    models: Models, phase: str, options: Options, partners: Partners | None, *, single_step: bool
) -> Failed | None:
    """What differs, or None. Of weights after a step the dumps are all there is to judge by."""
    cfg = options.config.as_dict()
    first, second = (folder(model) for model in models)
    known = partners and partners.routed(*(partial(route, model.name) for model in models))
    if not check_report(first, second, cfg, phase, single_step=single_step, partners=known, opinion=False):
        return "report"
    if phase == "forward":
        return None
    if not check_grads(first, second, cfg, partners=known, opinion=False):
        return "grads"
    agree = not options.use_opt or check_weights(first, second, cfg, partners=known)
    return None if agree else "weights"


def default_loss(inp: Any, mode: str) -> Any:
    """The mean of the output; of several outputs the mean of their means, in float32."""
    backend = registry.get(mode)
    if backend.is_tensor(inp):
        return inp.mean()
    means = [
        backend.cast(leaf, "float32").mean()
        for leaf in flatten(inp).leaves.values()
        if backend.is_tensor(leaf)
    ]
    if not means:
        raise InputError(
            phrase(
                "the output of type {kind} holds no tensor of {mode} to take a mean of",
                kind=type(inp).__name__,
                mode=mode,
            )
        )
    return sum(means[1:], means[0]) / len(means)


def show_options(options: Options) -> None:
    """Print the options as PaDiff does."""
    log("Your options:")
    print("{")
    for key, value in options.shown().items():
        print(f"  {key}: `{value}`")
    print("}")


class OptimizerHelper:
    """An optimizer of either framework, or a function that does the step and clears the gradients."""

    def __init__(self, optimizer: Any) -> None:
        self.optimizer = optimizer

    @staticmethod
    def accepts(value: Any) -> bool:
        return callable(value) or _backend_of(value) is not None

    def step(self) -> None:
        """One step, and the gradients are cleared."""
        backend = _backend_of(self.optimizer)
        if backend is None:
            self.optimizer()
            return
        backend.optimizer_step(self.optimizer)
        clear = getattr(self.optimizer, "clear_grad", None) or self.optimizer.zero_grad
        clear()


def _backend_of(value: Any) -> Backend | None:
    try:
        backend = registry.of(value)
    except InputError:
        return None
    return backend if backend.is_optimizer(value) else None


@contextmanager
def _undisturbed(backend: Backend, model: Any) -> Iterator[None]:
    """Whatever the model does meanwhile to its buffers and to random generators is undone."""
    buffers = [
        (tensor.value, backend.to_array(tensor.value))
        for tensor in backend.state(model)
        if tensor.role == "buffer" and tensor.tied_to is None
    ]
    states = backend.rng_state(), random.getstate(), np.random.get_state()
    try:
        yield
    finally:
        for value, array in buffers:
            backend.write(value, array)
        backend.set_rng_state(states[0])
        random.setstate(states[1])
        np.random.set_state(states[2])
