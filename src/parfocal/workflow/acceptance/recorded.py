"""The guide's values from two recorded runs of the user's own scripts."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TypeGuard

from parfocal.errors import EmptyComparisonError, InputError
from parfocal.judge import limits
from parfocal.phrases import joined, phrase
from parfocal.run.reader import Run, load_run
from parfocal.run.records import CallRecord, TensorValue
from parfocal.workflow.acceptance.writing import CheckpointValues

FEWEST_LOSSES = limits.recorded.FEWEST_LOSSES.value


def values_of_runs(
    reference: str | os.PathLike[str], port: str | os.PathLike[str]
) -> tuple[list[CheckpointValues], dict[str, str]]:
    """What the runs hold for each checkpoint; and why there is nothing for the others.

    Outputs of the model's first call are the forward pass, losses of all steps the backward pass. Of logged
    numbers the first is the metric, and the last, where there are several, that after training.
    """
    runs = [load_run(each) for each in (reference, port)]
    if Path(reference).resolve() == Path(port).resolve():
        raise InputError(
            phrase("{run} is given twice", run=reference),
            hint=phrase("give two runs: the reference's and the port's"),
        )
    found: list[CheckpointValues] = []
    missing: dict[str, str] = {}
    sides = [_checkpoints(run) for run in runs]
    for name, words in _WORDS.items():
        ours, theirs = (side[name] for side in sides)
        if ours and theirs:
            found.append(CheckpointValues(name, ours, theirs))
        else:
            missing[name] = _lacking(ours, theirs, words)
    if not found:
        raise EmptyComparisonError(
            phrase("the runs hold nothing for any checkpoint: {why}", why=joined("; ", missing.values())),
            hint=phrase("record both sides in full: parfocal record train.py"),
        )
    return found, missing


_WORDS = {
    "forward": phrase("an output of the model in full"),
    "metric": phrase("a logged number"),
    "loss": phrase("a step with a loss"),
    "bp_align": phrase("at least {count} steps with a loss", count=FEWEST_LOSSES),
    "train_align": phrase("a number that was logged several times"),
}


def _lacking(ours: Mapping[str, Any], theirs: Mapping[str, Any], words: str) -> str:
    if not ours and not theirs:
        return phrase("neither run has {words}", words=words)
    if ours:
        return phrase("the port's run has not {words}", words=words)
    return phrase("the reference's run has not {words}", words=words)


def _checkpoints(run: Run) -> dict[str, dict[str, Any]]:
    losses = [step.loss for step in run.steps(0) if step.loss is not None]
    logged = _logged(run)
    return {
        "forward": dict(_outputs(run)),
        "metric": {name: values[0] for name, values in logged.items()},
        "loss": {"loss": losses[0]} if losses else {},
        "bp_align": (
            {f"loss_{step}": loss for step, loss in enumerate(losses)} if len(losses) >= FEWEST_LOSSES else {}
        ),
        "train_align": {name: values[-1] for name, values in logged.items() if len(values) > 1},
    }


def _outputs(run: Run) -> Iterator[tuple[str, Any]]:
    """Of the first call that no other encloses."""
    first = next(filter(_is_outermost, run.records(0)), None)
    if first is None:
        return
    kept = {
        slot: leaf
        for slot, leaf in first.outputs.leaves.items()
        if isinstance(leaf, TensorValue) and leaf.ref is not None
    }
    for slot, leaf in kept.items():
        yield ("output" if len(kept) == 1 else f"output.{slot}"), run.read(leaf)


def _is_outermost(record: Any) -> TypeGuard[CallRecord]:
    return isinstance(record, CallRecord) and record.parent is None and record.op is None


def _logged(run: Run) -> dict[str, list[float]]:
    found: dict[str, list[float]] = {}
    for record in run.values(0):
        if isinstance(record.value, (int, float)) and not isinstance(record.value, bool):
            found.setdefault(record.name, []).append(float(record.value))
    return found
