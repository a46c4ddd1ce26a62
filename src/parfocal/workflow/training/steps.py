"""``align`` with optimizers: the calls of a step, and every phase of the steps."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from parfocal.brief import brief
from parfocal.errors import InputError
from parfocal.inputs import split
from parfocal.phrases import phrase
from parfocal.report.report import Report
from parfocal.workflow.training.batches import Batch
from parfocal.workflow.training.comparing import TrainingOptions, run_training


def align_steps(
    reference: Any,
    port: Any,
    inputs: Any,
    *,
    loss: Any,
    optimizers: Any,
    schedulers: Any,
    steps: Any,
    backward: bool,
    **options: Any,
) -> Report:
    """The same inputs at every step; ``loss`` is a function of the output alone."""
    if isinstance(steps, bool) or not isinstance(steps, int) or steps < 1:
        raise InputError(
            phrase("steps={steps} is not a number of updates", steps=brief(steps)), hint="e.g. steps=3"
        )
    if optimizers is None:
        raise InputError(
            phrase(
                "steps={steps} and schedulers need optimizers: without them nothing is updated", steps=steps
            ),
            hint=phrase("optimizers=(reference_optimizer, port_optimizer), or functions model -> optimizer"),
        )
    if loss is None or not backward:
        raise InputError(
            phrase("an update needs gradients of a loss"),
            hint=phrase("pass loss=, a function of the output or a pair of them, and leave backward=True"),
        )
    losses = loss if isinstance(loss, tuple) else (loss, loss)
    if len(losses) != 2 or not all(callable(each) for each in losses):
        raise InputError(
            phrase(
                "loss={loss} is neither a function of the output nor a pair of such functions",
                loss=brief(loss),
            )
        )
    ours, theirs = split(inputs)

    def pairs(count: int | None) -> Iterator[tuple[Batch, Batch]]:
        for _ in range(count or 1):
            yield Batch(ours, None), Batch(theirs, None)

    made = TrainingOptions(
        tuple(_with_label(each) for each in losses),
        optimizers,
        schedulers,
        steps,
        look_always=True,
        **options,
    )
    return run_training(reference, port, pairs, made)


def _with_label(loss: Any) -> Any:
    return lambda output, label: loss(output)
