"""``transfer``: copy a reference's weights into its port, all or nothing.

Reads both sides, drafts a plan, lets values correct it when inputs are given, checks that nothing
is left over, writes, and verifies. Whatever fails, the port is as it was before.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from parfocal.backends import registry
from parfocal.backends.protocol import Array
from parfocal.brief import words_of
from parfocal.collecting import full_collections_put_off
from parfocal.errors import InputError, TransferError
from parfocal.inputs import arguments, split
from parfocal.judge import limits
from parfocal.judge.verdict import SIDES, side_name
from parfocal.phrases import phrase
from parfocal.weights import ruling, views
from parfocal.weights.assignment import surplus
from parfocal.weights.choices import take_as_they_are
from parfocal.weights.computed_buffers import leave_what_is_made
from parfocal.weights.draft import Draft, Regions, Runs
from parfocal.weights.drafting import build, settle_by_execution
from parfocal.weights.fingerprint import WeightFingerprint
from parfocal.weights.finishing import conclude
from parfocal.weights.identify_by_value import ValueFollower
from parfocal.weights.idle import set_idle_apart
from parfocal.weights.observe import ObservedRun, observe, run
from parfocal.weights.plan import Entry, Plan, PlanNote, refusal
from parfocal.weights.regions import regions_of
from parfocal.weights.rules import Rule, checked
from parfocal.weights.settings import setting_notes
from parfocal.weights.state import SideContents, read_model
from parfocal.weights.trials import TrialResults
from parfocal.weights.units import Unit, read_units
from parfocal.weights.verify import agree, check_coverage, check_entries, verify
from parfocal.weights.writer import WritableModel, write

PASSES = limits.transfer.PASSES.value
CONFIDENT = limits.verdicts.FREE_OF_RUNS.value


@dataclass(slots=True)
class _Work:
    """What the steps of one transfer share."""

    reference: WritableModel
    port: WritableModel
    contents: tuple[SideContents, SideContents]
    inputs: Any
    notes: list[str]


def transfer(
    reference: Any,
    port: Any,
    inputs: Any = None,
    rules: Sequence[Rule] | None = None,
    layers: Mapping[str, str] | None = None,
    *,
    partial: bool = False,
    plan: Plan | str | Path | None = None,
) -> Plan:
    """Copy the weights of ``reference`` into ``port``; returns the plan that was carried out.

    Works between frameworks and within one. ``inputs`` lets values decide which layer is which;
    ``layers`` maps reference paths to port paths and wins over everything. A TransferError names
    every tensor without a counterpart and leaves the port untouched, unless ``partial`` is true.
    """
    if reference is port:
        raise InputError(
            phrase("the reference and the port are the same object"), hint=phrase("pass two models")
        )
    with full_collections_put_off():
        sides = _side(reference, "reference"), _side(port, "port")
        contents = [read_model(side.backend, side.model, side.tensors.values()) for side in sides]
        work = _Work(*sides, (contents[0], contents[1]), inputs, [])
        own = checked(rules) if plan is None else ()
        before = sides[1].snapshot() if inputs is not None or own else {}
        try:
            if plan is not None:
                return _apply_plan(work, plan if isinstance(plan, Plan) else Plan.load(plan), partial)
            return _carry_out(work, own, layers or {}, partial, before)
        except BaseException:
            sides[1].restore(before)
            raise


def _side(model: Any, words: str) -> WritableModel:
    return WritableModel(registry.of_model(model, side_name(words)), model)


def _carry_out(
    work: _Work, rules: Sequence[Rule], layers: Mapping[str, str], partial: bool, before: Mapping[str, Array]
) -> Plan:
    """``before``: all of the port as it was, where something may have to be taken back."""
    ruled = ruling.pair(work.reference, work.port, rules, layers)
    contents = ruling.without(work.contents, ruled)
    references, ports = (read_units(each) for each in contents)
    regions = regions_of(references, ports, layers, work.contents)
    ruling.copy(ruled)
    even = not surplus(references, ports)
    if work.inputs is not None and even:
        now = {**before, **work.port.changed_since(before)} if ruled else before
        found = _confident(work, references, ports, regions, now, notes=ruling.notes(ruled))
        if found is not None:
            return found
    # where every unit has one of its like, nothing is fused: what goes in and out need not be known yet
    runs = _run_both(work, values=not even)
    draft = build(references, ports, runs, regions)
    work.notes += leave_what_is_made(draft, work.reference, work.port)
    if work.contents[0].framework == work.contents[1].framework:
        take_as_they_are(draft.choices, ran=runs is not None)
    outputs = _follow(work, draft, runs) if runs else None
    found = _concluded(work, draft, ran=runs is not None)
    found = replace(
        found, noted=(*map(PlanNote, ruling.notes(ruled)), *found.noted, *map(PlanNote, work.notes))
    )
    if runs and (found.unmatched_reference or found.unmatched_port):
        given = [_arguments(work, number) for number in (0, 1)]
        found = set_idle_apart(found, (work.reference, work.port), runs, given)
    if not found.complete and not partial:
        raise _failure(found, with_inputs=work.inputs is not None)
    write(found.entries, work.reference, work.port)
    found = _with_settings(found, draft, work)
    if runs is None:
        return found
    return verify(found, draft, work.contents, work.port, runs[0], _arguments(work, 1), outputs)


def _confident(
    work: _Work,
    references: Sequence[Unit],
    ports: Sequence[Unit],
    regions: Regions,
    before: Mapping[str, Array],
    notes: Sequence[str],
) -> Plan | None:
    """A plan that names, shapes and order settle, shown to be right by one run of each side; else None.

    The port is ``before`` again then.
    """
    draft = build(references, ports, None, regions)
    if work.contents[0].framework == work.contents[1].framework:
        take_as_they_are(draft.choices, ran=False)
    if draft.left_references or draft.left_ports or not _is_sure(draft):
        return None
    made = leave_what_is_made(draft, work.reference, work.port)
    found = _concluded(work, draft, ran=False)
    if not found.complete:
        return None
    write(found.entries, work.reference, work.port)
    outputs = [
        _try_port(work, functools.partial(run, side, _arguments(work, number)))
        for number, side in enumerate((work.reference, work.port))
    ]
    if None in outputs or not agree(outputs[0], outputs[1]):
        work.port.restore(before)
        work.notes.clear()
        return None
    found = replace(found, noted=(*map(PlanNote, notes), *found.noted, *map(PlanNote, made)), verified=True)
    return _with_settings(found, draft, work)


def _with_settings(found: Plan, draft: Draft, work: _Work) -> Plan:
    """With notes of the settings that differ."""
    return replace(found, noted=(*found.noted, *setting_notes(draft, work.contents)))


def _is_sure(draft: Draft) -> bool:
    return all(link.confidence >= CONFIDENT for link in draft.links.values()) and not any(
        choice.open for choice in draft.choices
    )


def _concluded(work: _Work, draft: Draft, *, ran: bool) -> Plan:
    return conclude(
        draft, work.contents, lambda first, second: _same_values(work.reference, first, second), ran=ran
    )


def _run_both(work: _Work, *, values: bool = True) -> Runs | None:
    if work.inputs is None:
        return None
    try:
        reference = observe(work.reference, _arguments(work, 0))
    except (Exception, SystemExit) as error:
        raise InputError(
            phrase(
                "the reference cannot run on these inputs: {kind}: {error}",
                kind=type(error).__name__,
                error=error,
            ),
            hint=phrase(
                "a tuple is passed by position, a dict by keyword; pf.sides(a, b) gives each side its own"
            ),
        ) from error
    port = _try_port(work, lambda: observe(work.port, _arguments(work, 1), values=values))
    return (reference, port) if isinstance(port, ObservedRun) else None


def _follow(work: _Work, draft: Draft, runs: Runs) -> tuple[WeightFingerprint, ...] | None:
    """Let values correct the draft; returns what the port gives with the weights of the draft, if known."""
    known = TrialResults()
    for _ in range(PASSES):
        follower = ValueFollower(work.reference, work.port, draft, runs[0], known)
        _try_port(work, functools.partial(follower.run, _arguments(work, 1)))
        if not follower.unsettled_runs:
            break
    certain = all(link.decided for link in draft.links.values())
    follower.settle_twins()
    settle_by_execution(draft, runs)
    if any(choice.open for choice in draft.choices):
        _try_port(work, functools.partial(follower.settle_the_rest, work.reference, _arguments(work, 0)))
    return follower.outputs if certain and not (follower.book.changes or follower.book.behind) else None


def _try_port(work: _Work, run: Any) -> Any:
    """Run the port; a port that cannot run can still take weights, so its error becomes a note."""
    try:
        return run()
    except (InputError, TransferError):
        raise
    except (Exception, SystemExit) as error:  # noqa: BLE001  # whatever the user's model raises
        first = words_of(error).strip().splitlines()
        note = phrase(
            "the port does not run on these inputs: {name}: {first}",
            name=type(error).__name__,
            first=first[0] if first else "",
        )
        if note not in work.notes:
            work.notes.append(note)
        return None


def _same_values(side: WritableModel, first: Entry, second: Entry) -> bool:
    mine, yours = (views.apply(each.source_view, side.array(each.source)) for each in (first, second))
    return mine.shape == yours.shape and bool(np.array_equal(mine, yours))


def _arguments(work: _Work, number: int) -> Any:
    return arguments(split(work.inputs)[number], (work.reference, work.port)[number].backend)


def _apply_plan(work: _Work, plan: Plan, partial: bool) -> Plan:
    hint = phrase("paths are those of the model's state, e.g. layer1.0.conv1.weight")
    check_entries(plan.entries, work.contents, SIDES, hint)
    found = check_coverage(plan, work.contents)
    if not found.complete and not partial:
        raise _failure(found, with_inputs=False)
    write(found.entries, work.reference, work.port)
    if work.inputs is None:
        return replace(found, verified=None)
    runs = _run_both(work)
    draft = Draft([], [])
    return verify(found, draft, work.contents, work.port, runs[0], _arguments(work, 1)) if runs else found


def _failure(plan: Plan, with_inputs: bool) -> TransferError:
    hint = "mend the port, or say which layer is which: layers={'reference path': 'port path'}"
    if plan.ambiguous and not with_inputs:
        hint = "pass inputs=..., so that values decide which layer is which; or layers={...}"
    return TransferError(refusal(plan), hint=hint, plan=plan)
