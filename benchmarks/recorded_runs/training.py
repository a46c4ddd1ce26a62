"""Run the training loop of a ``Side`` under ``pf.record``."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

import parfocal as pf
from benchmarks.recorded_runs.kits import Kit
from benchmarks.recorded_runs.optimizers import build_optimizer, clip_gradients, forget_state, set_rate
from benchmarks.recorded_runs.pairs import SIDES, STEPS, Side, build, draw_batches
from parfocal.capture import recording


class PlannedCrashError(Exception):
    """What a side raises whose run is to end early."""


def record(kit: Kit, side: Side, path: Path, seed: int, tensors: str) -> Path:
    """All ranks of a side, one after the other, into one run."""
    if side.ranks == 1:
        return _record_rank(kit, side, path, seed, tensors, 0)
    for rank in range(side.ranks):
        with _as_rank(rank, side.ranks, path.name):
            found = _record_rank(kit, side, path, seed, tensors, rank)
    return found


def _of_rank(side: Side, rank: int) -> Side:
    """Where one rank alone has the mistake, the others do what is right."""
    if side.only_rank in (None, rank):
        return side
    right = SIDES[side.model]
    return replace(side, data=right.data, loss=right.loss, changes=right.changes, logged=right.logged)


@contextmanager
def _as_rank(rank: int, ranks: int, launch: str) -> Iterator[None]:
    """What is recorded inside belongs to one rank of a launch."""
    variables = {"RANK": str(rank), "WORLD_SIZE": str(ranks), "TORCHELASTIC_RUN_ID": launch}
    recording._recordings.clear()
    with mock.patch.dict(os.environ, variables):
        yield
    recording._recordings.clear()


def _record_rank(kit: Kit, every: Side, path: Path, seed: int, tensors: str, rank: int) -> Path:
    side = _of_rank(every, rank)
    model = build(kit, side, seed)
    if side.evaluates:
        kit.set_mode(kit.module_at(model, side.evaluates), False)
    optimizer = build_optimizer(kit, model, side.rule) if side.rule else None
    batches = side.data(draw_batches(side.model, seed, side.shares[rank]))
    reduces = side.ranks > 1 and side.reduction != "none"
    reduced = _reduced_gradients(kit, every, seed) if reduces else []
    options = {"optimizer": optimizer, "tensors": tensors, "state": side.state}
    recorder = None
    try:
        with pf.record(model, path, **options) as recorder:
            for step, (inputs, target) in enumerate(batches):
                with _crash(kit, model, side, step):
                    output = model(kit.tensor(inputs))
                _train(kit, side, model, optimizer, recorder, step, output, target, reduced)
    except PlannedCrashError:
        if recorder is None:
            raise
    return Path(recorder.path)


def _train(
    kit: Kit,
    side: Side,
    model: Any,
    optimizer: Any,
    recorder: Any,
    step: int,
    output: Any,
    target: np.ndarray,
    reduced: list[dict[str, np.ndarray]],
) -> None:
    """Everything of one step that comes after the model's call."""
    if side.training:
        for number in range(side.backward_passes):
            # a loss of its own: going backward twice from one cross entropy, paddle's gradients are not twice
            loss = side.loss(kit, output, kit.tensor(target))
            loss.backward(retain_graph=number + 1 < side.backward_passes)
    if side.logged is not None:
        for name, value in side.logged(output.detach().numpy(), target).items():
            recorder.log(name, value)
    if reduced:
        _put(kit, model, reduced[step])
    _update(kit, side, model, optimizer, step)
    if optimizer is None:
        recorder.step()
    if side.clears:
        _clear(kit, model)


def _clear(kit: Kit, model: Any) -> None:
    for parameter in kit.parameters(model).values():
        if kit.square:
            parameter.clear_gradient(set_to_zero=False)
        else:
            parameter.grad = None


@contextmanager
def _crash(kit: Kit, model: Any, side: Side, step: int) -> Iterator[None]:
    if side.crashes is None or side.crashes[0] != step:
        yield
        return

    def fail(*_: Any) -> None:
        raise PlannedCrashError(side.crashes)

    module = kit.module_at(model, side.crashes[1])
    hooked = module.register_forward_pre_hook(fail)
    try:
        yield
    finally:
        hooked.remove()


def _reduced_gradients(kit: Kit, side: Side, seed: int) -> list[dict[str, np.ndarray]]:
    """Step by step the gradients over all ranks, from a training of all of them that is not recorded."""
    sides = [_of_rank(side, rank) for rank in range(side.ranks)]
    models = [build(kit, each, seed) for each in sides]
    optimizers = [build_optimizer(kit, model, side.rule) for model in models]
    batches = [
        each.data(draw_batches(each.model, seed, each.shares[rank])) for rank, each in enumerate(sides)
    ]
    share = np.float32(1.0 if side.reduction == "sum" else 1.0 / side.ranks)
    found = []
    for step in range(STEPS):
        for each, model, of_rank in zip(sides, models, batches, strict=True):
            inputs, target = of_rank[step]
            each.loss(kit, model(kit.tensor(inputs)), kit.tensor(target)).backward()
        gradients = [
            {name: parameter.grad.numpy() for name, parameter in kit.parameters(model).items()}
            for model in models
        ]
        found.append({name: sum(each[name] for each in gradients) * share for name in gradients[0]})
        for model, optimizer in zip(models, optimizers, strict=True):
            _put(kit, model, found[-1])
            _update(kit, side, model, optimizer, step)
            _clear(kit, model)
    return found


def _put(kit: Kit, model: Any, gradients: dict[str, np.ndarray]) -> None:
    for name, parameter in kit.parameters(model).items():
        kit.assign(parameter.grad, gradients[name])


def _update(kit: Kit, side: Side, model: Any, optimizer: Any, step: int) -> None:
    if side.clip is not None:
        clip_gradients(kit, model, *side.clip)
    if optimizer is None or side.rule is None:
        return
    if step == side.forgets:
        forget_state(kit, optimizer)
    set_rate(kit, optimizer, side.rule.rate * side.rates[step])
    optimizer.step()
