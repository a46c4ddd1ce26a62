"""The counterfactual step: the reference's rule of update on the numbers that the port recorded.

Where weights, gradients and slots were kept in full, an update needs no comparison of two runs: the rule
that the reference says it follows, and does follow on its own numbers, either gives what the port has after
its step or it does not. That holds whatever gradients differed before, and needs no framework.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from parfocal.backends.protocol import Array
from parfocal.explain.updates.causes import explain_updates
from parfocal.explain.updates.floors import LIMIT, distance
from parfocal.explain.updates.rules import AfterUpdate, BeforeUpdate, updated
from parfocal.explain.updates.solving import SideUpdate, UpdateEvidence
from parfocal.judge import limits
from parfocal.judge.verdict import Cause
from parfocal.replay.trace import TensorData
from parfocal.workflow.recorded_runs.pair import StepPair
from parfocal.workflow.recorded_runs.steps import BeforeAndAfter, RecordedStep
from parfocal.workflow.recorded_runs.update_settings import spelling_of

EXACT = ("float32", "float64")
FITTED = limits.causes.FITTED.value


@dataclass(frozen=True, slots=True)
class Counterfactual:
    """What came of it: parameters that the reference's rule was tried on, and those it does not fit."""

    tried: int = 0
    wrong: Mapping[str, float] = field(default_factory=dict)  # score by the reference's path
    causes: Sequence[Cause] = ()
    slots_apart: frozenset[str] = frozenset()  # parameters whose slots are of another size after the step


NOT_TRIED = Counterfactual()


def counterfactual_step(pair: StepPair) -> Counterfactual:
    """The reference's rule on the port's numbers, parameter by parameter."""
    every: list[UpdateEvidence] = []
    apart: set[str] = set()
    for tie in pair.parameters:
        ours = _update(pair.reference, tie.reference)
        theirs = _update(pair.port, tie.port)
        if ours is None or theirs is None:
            continue
        score = ours.score()
        if score is None or score > LIMIT:
            return NOT_TRIED  # the reference does not follow the rule that it names
        every.append(_applied(tie.port, tie.reference, ours, theirs))
        if _slots_differ(ours.outcome, theirs.outcome):
            apart.add(tie.reference)
    wrong = {}
    for each in every:
        floor = each.reference.floor() | each.port.floor()
        measured = distance(each.port.outcome, each.reference.outcome, floor)
        if measured > LIMIT:
            wrong[each.name] = measured
    written = spelling_of(pair.port).written
    causes = explain_updates([each for each in every if each.name in wrong], every, written) if wrong else []
    return Counterfactual(len(every), wrong, causes, frozenset(apart))


def _slots_differ(ours: AfterUpdate, theirs: AfterUpdate) -> bool:
    """By their sizes, which say the same in every layout."""
    sizes = [
        (float(np.linalg.norm(values)), float(np.linalg.norm(theirs.slots[name])))
        for name, values in ours.slots.items()
        if name in theirs.slots and np.size(values) == np.size(theirs.slots[name])
    ]
    return any(abs(mine - yours) > FITTED * max(mine, yours) for mine, yours in sizes)


def _applied(path: str, name: str, ours: SideUpdate, theirs: SideUpdate) -> UpdateEvidence:
    """Rates are told apart from rules: the port's own is used."""
    settings = {**ours.settings, "lr": theirs.settings.get("lr", 0.0)}
    outcome = updated(ours.kind, settings, theirs.moment)
    assert outcome is not None  # it was for the reference
    return UpdateEvidence(path, name, SideUpdate(ours.kind, settings, theirs.moment, outcome), theirs)


def _update(side: RecordedStep, path: str) -> SideUpdate | None:
    """One side's update of one parameter; None where something of it was not kept."""
    weight, said = side.parameters.get(path), side.updates.get(path)
    gradient = side.used.get(path) if side.used else None
    gradient = gradient if gradient is not None else side.gradients.get(path)
    if weight is None or said is None or gradient is None or weight.before is weight.after:
        return None
    before, after = _array(side, weight.before), _array(side, weight.after)
    given = _array(side, gradient)
    if before is None or after is None or given is None:
        return None
    slots = {slot: moments for (owner, slot), moments in side.slots.items() if owner == path}
    return SideUpdate(
        said.kind,
        _settings(side, said.settings),
        BeforeUpdate(before, given.reshape(before.shape), _slots(side, slots, "before")),
        AfterUpdate(after, _slots(side, slots, "after")),
    )


def _settings(side: RecordedStep, said: Mapping[str, Any]) -> dict[str, Any]:
    """With the rate that the update was made with: a scheduler may have changed it since."""
    rates = {each.settings.get("lr") for each in side.updates.values()}
    rate = side.end.learning_rate if side.end is not None else None
    return {**said, "lr": rate} if rate is not None and len(rates) == 1 else {**said}


def _slots(side: RecordedStep, slots: Mapping[str, BeforeAndAfter], moment: str) -> dict[str, Array]:
    found = {name: _array(side, getattr(moments, moment)) for name, moments in slots.items()}
    return {name: array for name, array in found.items() if array is not None}


def _array(side: RecordedStep, data: TensorData | None) -> Array | None:
    if data is None or data.dtype not in EXACT:
        return None
    array = side.tensors.array(data)
    return None if array is None else np.asarray(array)
