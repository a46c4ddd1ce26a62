"""``compare_training``: do two trainings go the same way, step by step and phase by phase."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence, Sized
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

from parfocal.attribution.sides import ModelSide
from parfocal.backends.checks import check_mode
from parfocal.backends.protocol import Mode
from parfocal.brief import brief
from parfocal.errors import EmptyComparisonError, InputError, UnsupportedError
from parfocal.inputs import Sides, convert
from parfocal.judge.tolerance import Tolerance
from parfocal.phrases import phrase
from parfocal.replay.ledger import parse_amount
from parfocal.report.report import Report
from parfocal.weights.plan import Plan
from parfocal.workflow.align import align, find_plan
from parfocal.workflow.progress import telling_progress
from parfocal.workflow.state import weight_differences
from parfocal.workflow.training.batches import Batch, read_batches
from parfocal.workflow.training.dropout import dropout_differences
from parfocal.workflow.training.evaluation import TOLD
from parfocal.workflow.training.free_running import FreeRunning, steps_to_run
from parfocal.workflow.training.lockstep import Lockstep
from parfocal.workflow.training.precision import (
    give_precision,
    parse_amp,
    precision_difference,
    rounding_notes,
)
from parfocal.workflow.training.reporting import report_of
from parfocal.workflow.training.sides import TrainingSide, give_optimizers, make_sides

Pairs = Iterator[tuple[Batch, Batch]]


def compare_training(
    reference: Any,
    port: Any,
    batches: Any,
    *,
    loss: Any,
    optimizers: Any,
    schedulers: Any = None,
    steps: int | None = None,
    clip: Any = None,
    accumulate: Any = 1,
    amp: Any = None,
    mode: Mode = "train",
    transfer: bool | str | Path | Plan = True,
    tolerance: Tolerance | None = None,
    explain: bool | str = True,
    memory: str | int | None = None,
    progress: bool | None = None,
) -> Report:
    """Compare two trainings in lockstep: the first step and phase that part, and why.

    ``batches`` gives tuples ``(input, ..., label)`` or dicts with a label; ``loss`` is called with the output
    and the label; ``optimizers`` are two optimizers or two functions from model to optimizer, ``schedulers``
    likewise from optimizer to scheduler. Every phase is judged on what the reference had right before it, so
    an error in one step hides none in another. ``amp="O1"`` or ``"O2"`` runs forward pass and loss in mixed
    precision, a pair says so for each side. Both models are trained by it.
    """
    return run_training(
        reference,
        port,
        partial(read_batches, batches),
        TrainingOptions(
            loss,
            optimizers,
            schedulers,
            steps,
            clip,
            accumulate,
            amp,
            mode,
            transfer,
            tolerance,
            explain,
            memory,
            progress,
            batches=len(batches) if isinstance(batches, Sized) else None,
        ),
    )


@dataclass(frozen=True, slots=True)
class TrainingOptions:
    """What ``compare_training`` is told besides models and batches."""

    loss: Any
    optimizers: Any
    schedulers: Any = None
    steps: int | None = None
    clip: Any = None
    accumulate: Any = 1
    amp: Any = None
    mode: Mode = "train"
    transfer: bool | str | Path | Plan = True
    tolerance: Tolerance | None = None
    explain: bool | str = True
    memory: str | int | None = None
    progress: bool | None = None
    batches: int | None = None  # how many there are, where that is known
    look_always: bool = False  # into the calls of the first step, even where it does not part
    layers: Mapping[str, str] | None = None
    ignore: str | Sequence[str] = ()
    variance_told: float = TOLD  # infinite: a running variance that parts by convention is a note only


def run_training(
    reference: Any, port: Any, pairs: Callable[[int | None], Pairs], options: TrainingOptions
) -> Report:
    """The comparison itself; ``pairs`` gives so many batches, or all."""
    _check(reference, port, options)
    mode, tolerance, explain, steps = options.mode, options.tolerance, options.explain, options.steps
    ours, theirs = sides = make_sides((reference, port), options.loss, options.clip, options.accumulate)
    per_step = max(ours.accumulate, theirs.accumulate)
    stream = pairs(None if steps is None else steps * per_step)
    first = next(stream)
    stream = chain([first], stream)
    plan = _plan(sides, first, options.transfer)
    differing = _weights(sides, plan) if options.transfer is False else []
    give_optimizers(sides, options.optimizers, options.schedulers)
    give_precision(sides, options.amp)

    def look(pair: tuple[Batch, Batch]) -> Report | None:
        return _aligned(sides, pair, plan, options)

    lockstep = Lockstep(ours, theirs, plan, mode, tolerance, bool(explain), look)
    lockstep.variance_told = options.variance_told
    for number, each in enumerate(dropout_differences(sides, first, mode, look)):
        lockstep.found.add(("dropping", number), each)
    for note in rounding_notes(sides):
        lockstep.found.note(note)
    imprecise = precision_difference(sides, first, mode)
    if imprecise is not None:
        lockstep.found.add(("precision",), imprecise)
    lockstep.look_always = options.look_always
    known = steps if steps is not None or options.batches is None else options.batches // per_step
    lockstep.free = FreeRunning(ours, theirs, steps_to_run(known))
    for number, each in enumerate(differing):
        lockstep.found.add(("weights", number), each)
    if differing:  # from here on the port has the reference's: the weights' own mistake is told
        lockstep.start_equal()
    with telling_progress(options.progress) as tell, lockstep:

        def tell_step(step: int) -> None:
            tell(
                phrase("step {step}", step=step)
                if steps is None
                else phrase("step {step} of {steps}", step=step, steps=steps)
            )

        lockstep.run(_grouped(stream, per_step), tell_step)
        lockstep.finish()
        return report_of(lockstep)


def _check(reference: Any, port: Any, options: TrainingOptions) -> None:
    check_mode(options.mode)
    parse_amount(options.memory)
    steps, amp, tolerance = options.steps, options.amp, options.tolerance
    if reference is port:
        raise InputError(
            phrase("a model compared with itself is always the same"), hint=phrase("pass two models")
        )
    if steps is not None and (isinstance(steps, bool) or not isinstance(steps, int) or steps < 1):
        raise InputError(
            phrase("steps={steps} is not a number of updates", steps=brief(steps)), hint="e.g. steps=30"
        )
    parse_amp(amp)
    if not (tolerance is None or isinstance(tolerance, Tolerance)):
        raise InputError(
            phrase("tolerance={tolerance} is not a pf.Tolerance", tolerance=brief(tolerance)),
            hint="e.g. tolerance=pf.Tolerance(rtol=1e-5, atol=1e-6)",
        )


def _players(sides: tuple[TrainingSide, TrainingSide]) -> tuple[ModelSide, ModelSide]:
    def never() -> Any:
        raise InputError(phrase("these models are not run by themselves"))

    ours, theirs = (ModelSide(each.words, each.backend, each.model, never, None) for each in sides)
    return ours, theirs


def _plan(sides: tuple[TrainingSide, TrainingSide], first: tuple[Batch, Batch], transfer: Any) -> Plan:
    return find_plan(_players(sides), Sides(first[0].inputs, first[1].inputs), transfer, None)


def _weights(sides: tuple[TrainingSide, TrainingSide], plan: Plan) -> list[Any]:
    return list(weight_differences(plan, *_players(sides)))


def _grouped(stream: Pairs, size: int) -> Iterator[list[tuple[Batch, Batch]]]:
    group: list[tuple[Batch, Batch]] = []
    for pair in stream:
        group.append(pair)
        if len(group) == size:
            yield group
            group = []
    if group and size > 1:
        raise InputError(
            phrase(
                "the last update has {count} of the {size} batches that it adds up",
                count=len(group),
                size=size,
            ),
            hint=phrase("give a multiple of accumulate, or say steps="),
        )


def _aligned(
    sides: tuple[TrainingSide, TrainingSide], pair: tuple[Batch, Batch], plan: Plan, options: TrainingOptions
) -> Report | None:
    """One step looked into call by call; None where that cannot be done."""
    try:
        return align(
            sides[0].model,
            sides[1].model,
            Sides(pair[0].inputs, pair[1].inputs),
            loss=(_closed(sides[0], pair[0]), _closed(sides[1], pair[1])),
            mode=options.mode,
            transfer=plan,
            tolerance=options.tolerance,
            explain=options.explain,
            layers=options.layers,
            ignore=options.ignore,
            memory=options.memory,
            progress=False,
        )
    except (EmptyComparisonError, UnsupportedError, InputError):
        return None


def _closed(side: TrainingSide, batch: Batch) -> Callable[[Any], Any]:
    """The loss as a function of the output alone."""
    return lambda output: side.loss(output, convert(batch.label, side.backend))
