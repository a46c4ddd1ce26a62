"""Why two updates of the same numbers differ: as the optimizers are set, or as their updates show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from parfocal.backends.protocol import Array
from parfocal.explain.causes import said as words
from parfocal.explain.updates.floors import LIMIT, UpdateFloor, distance
from parfocal.explain.updates.rules import AfterUpdate, BeforeUpdate, updated
from parfocal.explain.updates.settings import code_of, differences, same
from parfocal.explain.updates.solving import SideUpdate, UpdateEvidence, get, solve, with_settings
from parfocal.explain.updates.writing import PortParameter, SettingChange, Written, places_of, to_write
from parfocal.judge import limits
from parfocal.judge.verdict import SIDES, Cause, Claim, Grounds, ProvenBy, side_name
from parfocal.phrases import phrase

EFFECT = limits.causes.UPDATE_EFFECT.value
# What a rule does where no setting says anything.
DEFAULTS = {"lr": 1.0, "bias_correction": True, "amsgrad": False, "nesterov": False, "added_decay": 0.0}
NAMES = {
    "added_decay": phrase("a decay of the gradient, besides the one apart from it,"),
    "weight_decay": phrase("the weight decay"),
    "decay": phrase("the form of weight decay"),
    "lr": phrase("the factor on the learning rate"),
    "epsilon_place": phrase("the place of epsilon (of the root)"),
    "bias_correction": phrase("whether moments are corrected for their start at zero"),
    "kind": phrase("the rule of update"),
}


def explain_updates(
    wrong: Sequence[UpdateEvidence], every: Sequence[UpdateEvidence], written: Written
) -> list[Cause]:
    """Causes of the ``wrong`` among ``every`` update of a step; several where several things are wrong."""
    left_out = _left_out(wrong)
    if left_out is not None:
        cause, theirs = left_out
        others = [each for each in wrong if each not in theirs]
        return [cause, *(explain_updates(others, every, written) if others else ())]
    hidden = [each for each in wrong if not _as_said(each.port)]
    told = [each for each in wrong if each not in hidden]
    causes = _by_settings(told or wrong, every, written)
    if hidden:
        causes = [*_by_solving(hidden, every, written), *(causes if told else [])] or causes
    distinct: dict[str, Cause] = {}
    for cause in causes:
        distinct.setdefault(f"{cause.code} {cause.message}", cause)
    return list(distinct.values())


def _as_said(update: SideUpdate) -> bool:
    score = update.score()
    return score is not None and score <= LIMIT


def _left_out(wrong: Sequence[UpdateEvidence]) -> tuple[Cause, list[UpdateEvidence]] | None:
    """Parameters that only one side moves, though its rule would move them too, as a cause."""
    for side, other in (SIDES[::-1], SIDES):
        unmoved = [
            each
            for each in wrong
            if not _moves(getattr(each, side))
            and _moves(getattr(each, other))
            and not _as_said(getattr(each, side))
        ]
        if unmoved:
            places = places_of([each.path for each in unmoved])
            message = phrase(
                "{places} is not updated in the {side}, and is in the {other}",
                places=places,
                side=side_name(side),
                other=side_name(other),
            )
            fix = (
                phrase("give the port's optimizer all parameters that the reference's has")
                if side == "port"
                else phrase("leave {places} out of the port's optimizer", places=places)
            )
            after = max(map(_mended if side == "port" else left_alone, unmoved))
            return judged_updates(Claim("optim.lr_group", message, fix), unmoved, after), unmoved
    return None


def judged_updates(claim: Claim, where: Sequence[UpdateEvidence], after: float) -> Cause:
    """Proven where the port's updates, computed again with the cause removed, are the reference's."""
    before = max(distance(each.port.outcome, each.reference.outcome, _floor(each)) for each in where)
    return claim.judged(ProvenBy.RECOMPUTED, before, after, LIMIT, Grounds.SETTINGS)


def _mended(evidence: UpdateEvidence) -> float:
    """How far the port's update by the reference's rule, as that is set, would be from the reference's."""
    reference, start = evidence.reference, evidence.port.moment
    slots = {**reference.moment.slots, **start.slots}  # a setting may need a slot of its own
    made = updated(reference.kind, reference.settings, BeforeUpdate(start.weight, start.gradient, slots))
    return np.inf if made is None else distance(made, reference.outcome, _floor(evidence))


def left_alone(evidence: UpdateEvidence) -> float:
    """How far the port's weight without its update would be from the reference's."""
    return distance(
        AfterUpdate(evidence.port.moment.weight, {}), evidence.reference.outcome, _floor(evidence)
    )


def _floor(evidence: UpdateEvidence) -> UpdateFloor:
    return evidence.reference.floor() | evidence.port.floor()


def _moves(update: SideUpdate) -> bool:
    return not np.array_equal(update.outcome.weight, update.moment.weight)


def _by_settings(
    wrong: Sequence[UpdateEvidence], every: Sequence[UpdateEvidence], written: Written
) -> list[Cause]:
    """What the optimizers say of themselves, as far as it has an effect here.

    A setting is told of every parameter that has it, also of one that it did not move at this step.
    """
    effects: dict[str, float] = {}
    for each in wrong:
        for name, ours, theirs in _said_otherwise(each):
            effect = np.inf if name == "kind" else effect_of(each, name, ours)
            if name != "lr" and effect > EFFECT:
                key = f"{name} {ours!r} {theirs!r}"
                effects[key] = max(effects.get(key, 0.0), effect)
    groups: dict[str, tuple[str, Any, Any, list[UpdateEvidence]]] = {}
    for each in every:
        for name, ours, theirs in _said_otherwise(each):
            key = f"{name} {ours!r} {theirs!r}"
            if key in effects:
                groups.setdefault(key, (name, ours, theirs, []))[3].append(each)
    return [_told(*groups[key], every, written) for key in sorted(groups, key=lambda key: -effects[key])]


def _said_otherwise(each: UpdateEvidence) -> list[tuple[str, Any, Any]]:
    """The settings of a parameter's update that the two optimizers state differently."""
    sides = (each.reference.kind, each.reference.settings), (each.port.kind, each.port.settings)
    return list(differences(*sides))


def effect_of(evidence: UpdateEvidence, name: str, ours: Any) -> float:
    """How much the port's update would change with the reference's value of a setting: a share of it."""
    port = evidence.port
    kind = evidence.reference.kind if name in ("momentum", "decay") else port.kind
    now = updated(port.kind, port.settings, port.moment)
    settings = {
        **evidence.reference.settings,
        **port.settings,
        name: ours,
        "lr": port.settings.get("lr", 0.0),
    }
    slots = {**evidence.reference.moment.slots, **port.moment.slots}  # a setting may need a slot of its own
    then = updated(kind, settings, BeforeUpdate(port.moment.weight, port.moment.gradient, slots))
    if now is None or then is None:
        return np.inf
    shares = [_share(then.weight, now.weight, now.weight - port.moment.weight)]
    shares += [
        _share(np.asarray(values), np.asarray(now.slots[slot]), np.asarray(now.slots[slot]))
        for slot, values in then.slots.items()
        if slot in now.slots and np.shape(values) == np.shape(now.slots[slot])
    ]
    return max(shares)


def _share(then: Array, now: Array, whole: Array) -> float:
    apart, size = float(np.linalg.norm(then - now)), float(np.linalg.norm(whole))
    return apart / size if size else (np.inf if apart else 0.0)


def _told(
    name: str,
    ours: Any,
    theirs: Any,
    where: Sequence[UpdateEvidence],
    every: Sequence[UpdateEvidence],
    written: Written,
) -> Cause:
    some = len(where) < len(every)
    few = phrase(" of {places}", places=places_of([each.path for each in where])) if some else ""
    title = NAMES.get(name, name)
    message = phrase(
        "{title}{few} is {reference} in the reference and {port} in the port",
        title=title,
        few=few,
        reference=words(ours),
        port=words(theirs),
    )
    first = where[0]
    change = SettingChange(
        name,
        ours,
        (first.reference.kind, first.reference.settings),
        first.port.kind,
        [_parameter(each) for each in where],
        [_parameter(each) for each in every],
    )
    fix = change.fix(written)
    claim = Claim(code_of(name), message, fix, (name, words(ours), words(theirs)))
    return judged_updates(claim, where, max(map(_mended, where)))


def _parameter(each: UpdateEvidence) -> PortParameter:
    return PortParameter(each.path, each.port.moment.weight.ndim)


def _by_solving(
    hidden: Sequence[UpdateEvidence], every: Sequence[UpdateEvidence], written: Written
) -> list[Cause]:
    """Causes found from the updates themselves, which do not follow their optimizer's settings."""
    found = solve([each.port for each in hidden])
    if found is None:
        return _one_by_one(hidden, every, written)
    return [
        _shown(name, value, hidden, len(every), written)
        for name, value in _differing(found.changed, hidden[0])
    ]


def _differing(changed: Mapping[str, Any], evidence: UpdateEvidence) -> list[tuple[str, Any]]:
    """The settings of a solution that differ from the reference's."""
    right = evidence.reference.settings
    kept = {**changed}
    if kept.get("decay") == right.get("decay", "l2") or not kept.get("weight_decay", True):
        kept.pop("decay", None)
    return [
        (name, value)
        for name, value in kept.items()
        if not same(value, DEFAULTS.get(name) if name in DEFAULTS else get(right, name))
    ]


def _one_by_one(
    hidden: Sequence[UpdateEvidence], every: Sequence[UpdateEvidence], written: Written
) -> list[Cause]:
    """Parameters that are not all wrong in the same way: each by itself, the same told once."""
    if len(hidden) < 2:
        return []
    causes: list[Cause] = []
    for each in hidden:
        found = solve([each.port])
        if found is not None:
            causes += [_shown(n, v, [each], len(every), written) for n, v in _differing(found.changed, each)]
    return causes


def _shown(name: str, value: Any, where: Sequence[UpdateEvidence], of: int, written: Written) -> Cause:
    few = phrase(" of {places}", places=places_of([each.path for each in where])) if len(where) < of else ""
    first = where[0]
    right = DEFAULTS.get(name) if name in DEFAULTS else get(first.reference.settings, name)
    said = get(first.port.settings, name)
    message = phrase(
        "{title}{few} is {reference} in the reference; the port's updates, computed again, show {value}",
        title=NAMES.get(name, name),
        few=few,
        reference=words(right),
        value=words(value),
    )
    if name != "lr" and said is not None and not same(said, value):
        message += phrase(", whatever its optimizer says ({value})", value=words(said))
    line = written(first.port.kind, to_write(name, right, first.reference.settings))
    fix = phrase("make the port's update that of {line}", line=line)
    claim = Claim(code_of(name), message, fix, (name, words(right), words(value)))
    before, after = (_unlike_its_rule(first.port, changed) for changed in ({}, {name: value}))
    return claim.judged(ProvenBy.RECOMPUTED, before, after, LIMIT, Grounds.VALUES)


def _unlike_its_rule(update: SideUpdate, changed: Mapping[str, Any]) -> float:
    """How far an update is from its rule with some settings changed; infinite where that is not known."""
    found = update.score(with_settings(update.settings, changed))
    return np.inf if found is None else found
