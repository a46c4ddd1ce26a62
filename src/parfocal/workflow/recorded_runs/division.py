"""Launches whose ranks share one model: each has a part of the weights, and all see the same batch.

Their ranks are no copies of one model, so what holds of data-parallel training says nothing about them.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from parfocal.errors import UnsupportedError
from parfocal.judge.verdict import side_name
from parfocal.phrases import phrase
from parfocal.replay.trace import TensorData
from parfocal.workflow.recorded_runs.rank_drift import APART
from parfocal.workflow.recorded_runs.steps import RecordedStep
from parfocal.workflow.recorded_runs.vectors import projected


def refuse_divided(pairs: Sequence[tuple[RecordedStep, RecordedStep]]) -> None:
    """Raise where one side's model is divided over its ranks, and the other's is not in as many."""
    for ours, theirs in pairs:
        parts = divided_parameter(ours.launch), divided_parameter(theirs.launch)
        if parts == (None, None) or (None not in parts and ours.ranks == theirs.ranks):
            continue
        name, ranks, path = (
            ("reference", ours.ranks, parts[0]) if parts[0] is not None else ("port", theirs.ranks, parts[1])
        )
        raise UnsupportedError(
            phrase(
                "the model of the {side} is divided over its {ranks} ranks: they get the same batch and have "
                "other values of {path}; such a launch cannot be compared with whole models yet",
                side=side_name(name),
                ranks=ranks,
                path=path,
            ),
            hint=phrase("record it in one process, or compare two launches that divide the model alike"),
        )


def divided_parameter(launch: Sequence[RecordedStep]) -> str | None:
    """A parameter of which ranks that get the same batch have other parts; None: the ranks are copies."""
    if len(launch) < 2 or not _same_batch(launch):
        return None
    paths = dict.fromkeys(path for step in launch for path in step.parameters)
    return next((path for path in paths if _is_divided(launch, path)), None)


def _same_batch(launch: Sequence[RecordedStep]) -> bool:
    found = [[(data.shape, data.fingerprint) for data in _given(step)] for step in launch]
    return bool(found[0]) and all(each == found[0] for each in found)


def _given(step: RecordedStep) -> list[TensorData]:
    """What the model was given first."""
    if not step.roots:
        return []
    return [value.data for value in step.trace.nodes[step.roots[0]].inputs.values()]


def _is_divided(launch: Sequence[RecordedStep], path: str) -> bool:
    parts = [None if path not in step.parameters else step.parameters[path].before for step in launch]
    known = [(step, part) for step, part in zip(launch, parts, strict=True) if part is not None]
    if len({part.shape for _, part in known}) > 1 or 0 < len(known) < len(launch):
        return True
    values = [projected(step.tensors, part) for step, part in known]
    size = float(np.linalg.norm(values[0])) if values else 0.0
    return any(float(np.linalg.norm(each - values[0])) > APART * size for each in values[1:])
