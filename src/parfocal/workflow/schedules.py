"""``compare_schedule``: do two learning rates go the same way, update by update.

Schedules are really stepped, once after each update, and the rate is read where the update reads it. What is
stepped is put back as it was.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import numpy as np

from parfocal.backends import registry
from parfocal.backends.protocol import Array, Backend
from parfocal.brief import brief
from parfocal.errors import EmptyComparisonError, InputError
from parfocal.explain.rates import RatePair, cause_of, distance, rounding
from parfocal.judge import limits
from parfocal.judge.floors import Size
from parfocal.judge.metrics import compare_arrays
from parfocal.judge.verdict import Divergence, Finding, Site, side_name
from parfocal.phrases import phrase
from parfocal.report.coverage import Compared, Coverage, LeftOut, Reason
from parfocal.report.report import Curve, Report

LIMIT = limits.verdicts.COMPUTED_ONCE.value

Rate = Callable[[int], float]


@dataclass(frozen=True, slots=True)
class _Schedule:
    """One side: what is stepped, where the rate is read, and what it is called."""

    name: str
    read: Callable[[int], list[float]]
    step: Callable[[int], None]
    keep: Callable[[ExitStack], None]
    given_number: bool = False


def compare_schedule(reference: Any, port: Any, steps: int) -> Report:
    """Compare the learning rate of ``steps`` updates.

    Each side is a scheduler, an optimizer that holds one, a pair ``(optimizer, scheduler)``, an optimizer
    without one, or a function from the update's number (0, 1, ...) to its rate. A scheduler that goes by a
    metric is told one that improves for a third of the steps and then no more.
    """
    if isinstance(steps, bool) or not isinstance(steps, int) or steps < 1:
        raise InputError(
            phrase("steps={steps} is not a number of updates", steps=brief(steps)),
            hint=phrase("e.g. steps=1000"),
        )
    if reference is port:
        raise InputError(
            phrase("a schedule compared with itself is always the same"), hint=phrase("pass two schedules")
        )
    return compare_rates(follow_schedule(reference, "reference", steps), follow_schedule(port, "port", steps))


@dataclass(frozen=True, slots=True)
class FollowedRates:
    """The rates of one side's updates: one row an update, one column a parameter group."""

    name: str
    rates: Array
    given_number: bool = False  # its optimizer was given a number and has a scheduler besides


def follow_schedule(value: Any, side: str, steps: int) -> FollowedRates:
    """Step one side's schedule and read its rates; it is put back as it was."""
    schedule = _schedule(value, side, steps)
    return FollowedRates(schedule.name, _followed(schedule, side, steps), schedule.given_number)


def compare_rates(ours: FollowedRates, theirs: FollowedRates, taken: int | None = None) -> Report:
    """Compare the rates of as many updates of both sides.

    ``taken``: how many of these a training takes; what differs beyond is worth knowing.
    """
    whole = (ours.rates, theirs.rates)
    curves = [curve[:taken] for curve in whole]
    steps = len(curves[0])
    groups = min(curve.shape[1] for curve in curves)
    divergences = [
        found
        for group in range(groups)
        if (found := _difference([curve[:, group] for curve in whole], steps, (ours, theirs), group, groups))
    ]
    beyond = [] if divergences else [_beyond(whole[0][:, at], whole[1][:, at], steps) for at in range(groups)]
    more = [curve.shape[1] - groups for curve in curves]
    return Report(
        reference_name=ours.name,
        port_name=theirs.name,
        divergences=tuple(divergences),
        findings=tuple(dict.fromkeys(each for each in beyond if each is not None)),
        coverage=Coverage(
            (Compared("learning rates", steps * groups, steps * groups),),
            tuple(
                LeftOut(
                    phrase("1 more parameter group")
                    if count == 1
                    else phrase("{count} more parameter groups", count=count),
                    reason,
                )
                for count, reason in zip(more, (Reason.ONLY_REFERENCE, Reason.ONLY_PORT), strict=True)
                if count
            ),
        ),
        limit=LIMIT,
        curves=tuple(
            Curve(
                "learning rate" if groups == 1 else f"learning rate of group {group}",
                *(tuple(map(float, curve[:, group])) for curve in curves),
            )
            for group in range(groups)
        ),
    )


def _schedule(value: Any, side: str, steps: int) -> _Schedule:
    if isinstance(value, tuple) and len(value) == 2:
        return _of_objects(*value, side, steps)
    try:
        backend = registry.of(value)
    except InputError:
        if callable(value) and not isinstance(value, type):
            return _of_function(value)
        raise InputError(
            phrase(
                "the {side} is {value}: neither a scheduler, an optimizer, a pair of both nor a function",
                side=side_name(side),
                value=brief(value),
            ),
            hint=phrase("pass a scheduler, (optimizer, scheduler), or a function from update to rate"),
        ) from None
    if backend.is_optimizer(value):
        return _of_objects(value, backend.scheduler_of(value), side, steps)
    if backend.is_scheduler(value):
        return _of_objects(backend.optimizer_of(value), value, side, steps)
    raise InputError(
        phrase("the {side} is a {name}, not a schedule", side=side_name(side), name=type(value).__name__),
        hint=phrase("pass a scheduler or an optimizer"),
    )


def _of_function(function: Rate) -> _Schedule:
    name = getattr(function, "__name__", type(function).__name__)
    return _Schedule(name, lambda step: [float(function(step))], lambda step: None, lambda stack: None)


def _of_objects(optimizer: Any, scheduler: Any, side: str, steps: int) -> _Schedule:
    backend = registry.of(optimizer if optimizer is not None else scheduler)
    if optimizer is not None and not backend.is_optimizer(optimizer):
        raise InputError(
            phrase(
                "the {side}'s pair begins with a {name}, not an optimizer",
                side=side_name(side),
                name=type(optimizer).__name__,
            )
        )
    if scheduler is None:
        rates = backend.optimizer_rates
        return _Schedule(
            type(optimizer).__name__, lambda step: rates(optimizer), lambda step: None, lambda stack: None
        )
    if not backend.is_scheduler(scheduler):
        raise InputError(
            phrase(
                "the {side}'s pair ends with a {name}, not a scheduler of its framework",
                side=side_name(side),
                name=type(scheduler).__name__,
            )
        )
    belongs = backend.optimizer_of(scheduler)
    if optimizer is not None and belongs is not None and belongs is not optimizer:
        raise InputError(
            phrase(
                "the {side}'s {name} belongs to another optimizer than the one beside it",
                side=side_name(side),
                name=type(scheduler).__name__,
            ),
            hint=phrase("make the scheduler from this optimizer"),
        )
    held = None if optimizer is None else backend.scheduler_of(optimizer)
    if optimizer is not None and belongs is None and held is not None and held is not scheduler:
        raise InputError(
            phrase(
                "the {side}'s {name} reads its rate from another scheduler",
                side=side_name(side),
                name=type(optimizer).__name__,
            ),
            hint=phrase("give the optimizer this scheduler"),
        )
    return _Schedule(
        type(scheduler).__name__,
        lambda step: _read(backend, optimizer, scheduler),
        lambda step: _stepped(backend, scheduler, step, steps),
        lambda stack: stack.enter_context(backend.schedule_kept(scheduler)),
        given_number=optimizer is not None and belongs is None and held is None,
    )


def _read(backend: Backend, optimizer: Any, scheduler: Any) -> list[float]:
    return backend.schedule_rates(scheduler) if optimizer is None else backend.optimizer_rates(optimizer)


def _stepped(backend: Backend, scheduler: Any, step: int, steps: int) -> None:
    metric = 1.0 / (1 + min(step, steps // 3)) if backend.needs_metric(scheduler) else None
    backend.scheduler_step(scheduler, metric)


def _followed(schedule: _Schedule, side: str, steps: int) -> Array:
    """The rates of all updates, one column a group."""
    rows = []
    with ExitStack() as stack:
        schedule.keep(stack)
        for step in range(steps):
            try:
                rows.append(schedule.read(step))
                if step + 1 < steps:  # a schedule with an end is not stepped beyond it
                    schedule.step(step)
            except (ValueError, IndexError, ZeroDivisionError, TypeError, RuntimeError) as error:
                raise InputError(
                    phrase(
                        "the {side}'s {name} raised {type_name} at update {step}: {error}",
                        side=side_name(side),
                        name=schedule.name,
                        type_name=type(error).__name__,
                        step=step,
                        error=error,
                    ),
                    hint=phrase("compare at most {step} steps, or make the schedule longer", step=step)
                    if step
                    else "",
                ) from error
    curve = np.asarray(rows, dtype=np.float64)
    if not curve.size:
        raise EmptyComparisonError(
            phrase(
                "the {side}'s optimizer has no parameter groups, so no learning rate", side=side_name(side)
            )
        )
    return curve


def _beyond(reference: Array, port: Array, taken: int) -> Finding | None:
    """Rates that differ only where the training has ended."""
    wrong = np.flatnonzero(~(np.abs(port - reference) <= LIMIT * rounding(reference)))
    if not len(wrong):
        return None
    return Finding(
        "lr.end",
        phrase(
            "the training takes {taken} steps of the schedule, and their rates are the same; from step "
            "{first} on they would differ: {reference} in the reference, {port} in the port",
            taken=taken,
            first=int(wrong[0]),
            reference=f"{reference[wrong[0]]:.7g}",
            port=f"{port[wrong[0]]:.7g}",
        ),
    )


def _difference(
    whole: Sequence[Array], steps: int, sides: tuple[FollowedRates, FollowedRates], group: int, groups: int
) -> Divergence | None:
    """Of the first ``steps`` rates; the others may tell why."""
    reference, port = (curve[:steps] for curve in whole)
    score = distance(port, reference)
    if score <= LIMIT:
        return None
    floor = rounding(reference)
    wrong = np.flatnonzero(~(np.abs(port - reference) <= LIMIT * floor))
    first = int(wrong[0])
    of_group = phrase(" of group {group}", group=group) if groups > 1 else ""
    pairs = (RatePair(ours, theirs, sides[1].given_number) for ours, theirs in ((reference, port), whole))
    cause = next((found for pair in pairs if (found := cause_of(pair, LIMIT)) is not None), None)
    return Divergence(
        "lr",
        Site("", sides[0].name),
        Site("", sides[1].name),
        phrase(
            "learning rate{of_group} of update {first}: {reference} in the reference, {port} in the "
            "port; {wrong} of {count} updates differ",
            of_group=of_group,
            first=first,
            reference=f"{reference[first]:.7g}",
            port=f"{port[first]:.7g}",
            wrong=len(wrong),
            count=len(reference),
        ),
        compare_arrays(port, reference),
        Size(float(floor.mean()), float(floor.max())),
        score,
        cause=cause,
        step=first,
    )
