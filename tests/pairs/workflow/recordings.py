"""Record small trainings in either framework, so that a test of ``pf.compare`` is a few lines.

A ``Side`` is a model with what its training loop does; ``record_side`` runs the loop under ``pf.record``.
Batches are NumPy arrays: a tuple of the model's inputs, and the target that only the loss sees.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

import parfocal as pf
from parfocal.backends import registry
from parfocal.capture import recording
from parfocal.report.report import Report

Batch = tuple[Any, Any]


@dataclass(frozen=True)
class Side:
    """One side of a pair and its training loop."""

    model: Any
    loss: Callable[[Any, Any], Any]
    optimizer: Callable[[Any], Any] | None = None  # from the model
    scheduler: Callable[[Any], Any] | None = None  # from the optimizer
    before_update: Callable[[Any], None] = lambda model: None  # clips, for example
    after_update: Callable[[Any], None] = lambda model: None
    change: Callable[[Any], Any] = lambda batch: batch  # what this side does to a batch
    log: Callable[[Any, Any], dict[str, Any]] | None = None  # from output and target
    options: dict[str, Any] = field(default_factory=dict)  # of pf.record


def record_side(
    side: Side, path: Path, batches: Sequence[Batch], *, mark: bool = True, **options: Any
) -> Path:
    """Train on every batch, one step each; ``mark`` ends steps by hand where there is no optimizer."""
    backend = registry.of(side.model)
    optimizer = side.optimizer(side.model) if side.optimizer else None
    scheduler = side.scheduler(optimizer) if side.scheduler else None
    with pf.record(side.model, path, optimizer=optimizer, **{**side.options, **options}) as recorder:
        for batch in batches:
            inputs, target = (tensors_of(backend, part) for part in side.change(batch))
            output = side.model(*inputs) if isinstance(inputs, tuple) else side.model(inputs)
            loss = side.loss(output, target)
            if side.log is not None:
                for name, value in side.log(output, target).items():
                    recorder.log(name, value)
            loss.backward()
            side.before_update(side.model)
            if optimizer is not None:
                optimizer.step()
            side.after_update(side.model)
            if scheduler is not None:
                scheduler.step()
            backend.clear_gradients(side.model)
            if optimizer is None and mark:
                recorder.step()
    return recorder.path


def compare_sides(
    folder: Path, reference: Side, port: Side, batches: Sequence[Batch], **options: Any
) -> Report:
    """Record both and compare."""
    paths = [
        record_side(side, folder / name, batches, **options)
        for name, side in (("reference", reference), ("port", port))
    ]
    return pf.compare(*paths)


def tensors_of(backend: Any, value: Any) -> Any:
    """NumPy arrays as tensors of the framework, nested ones too."""
    if isinstance(value, tuple):
        return tuple(tensors_of(backend, item) for item in value)
    return backend.from_array(value) if isinstance(value, np.ndarray) else value


@contextmanager
def as_rank(rank: int, ranks: int, launch: str = "test") -> Any:
    """What is recorded inside belongs to one rank of a launch."""
    recording._recordings.clear()
    variables = {"RANK": str(rank), "WORLD_SIZE": str(ranks), "TORCHELASTIC_RUN_ID": launch}
    with mock.patch.dict(os.environ, variables):
        yield
    recording._recordings.clear()


def digest(report: Report) -> Any:
    """Phase, step, rank, place and code of the first divergence; None for a good verdict."""
    first = report.first
    if first is None:
        return None
    code = first.cause.code if first.cause is not None else None
    return first.phase, first.step, first.rank, first.port.path if first.port else None, code
