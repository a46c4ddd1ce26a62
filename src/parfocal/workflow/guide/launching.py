"""A training of one side on several ranks of this machine, by its own launcher, and in one process.

The side's process starts the launcher, which starts ``rank.py`` once for every rank. The ranks end when the
side's process does: they watch the standard input that they have from it.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from typing import Any

from parfocal.backends.protocol import Mode
from parfocal.backends.training_protocol import LaunchingBackend
from parfocal.capture.determinism import no_dropout
from parfocal.capture.recording import record
from parfocal.errors import InputError, ParfocalError
from parfocal.phrases import phrase
from parfocal.workflow.guide import rank as rank_script
from parfocal.workflow.guide.jobs import Given, train_on, training_side
from parfocal.workflow.guide.messages import unpack
from parfocal.workflow.guide.processes import ending, last_lines
from parfocal.workflow.guide.side import FactoryError, GuideSide
from parfocal.workflow.guide.values import joined, keep, take
from parfocal.workflow.training.batches import Batch
from parfocal.workflow.training.sides import TrainingSide

STATE = ("parameter", "buffer", "gradient", "optimizer")


class LaunchError(ParfocalError):
    """A rank crashed, or raised where it should not."""

    code = "guide.launch"


def launch_training(side: GuideSide, given: Given) -> dict[str, Any]:
    """Train on all ranks; see ``train_rank``."""
    out = Path(given["out"])
    order = out / "order.json"
    out.mkdir(parents=True, exist_ok=True)
    plan = side.project.folder / side.project.file
    order.write_text(
        json.dumps({"plan": str(plan), "side": side.settings.name, "given": dict(given)}), encoding="utf-8"
    )
    launcher = launching(side).launcher(side.project.ranks, str(out / "logs"))
    command = [sys.executable, *launcher, str(Path(rank_script.__file__)), str(order)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, cwd=side.project.folder) as process:
        status = process.wait()
    _raise_told(side, out, status, Path(given["log"]))
    return {}


def launching(side: GuideSide) -> LaunchingBackend:
    backend = side.backend
    if not isinstance(backend, LaunchingBackend):
        raise InputError(
            phrase("{framework} cannot be launched on several ranks", framework=side.settings.framework),
            hint=phrase("take out {place}", place=side.project.place("many_cards.ranks")),
        )
    return backend


def _raise_told(side: GuideSide, out: Path, status: int, log: Path) -> None:
    """The error of the first rank that has one; a rank without an answer has crashed or was stopped."""
    answers = {rank: _answer(out, rank) for rank in range(side.project.ranks)}
    for rank, answer in answers.items():
        if "error" in answer:
            told = answer["error"]
            kind = FactoryError if told["code"] == FactoryError.code else LaunchError
            raise kind(
                phrase("{message} (rank {rank})", message=told["message"], rank=rank), hint=told["hint"]
            )
        if "raised" in answer:
            raise LaunchError(
                phrase(
                    "rank {rank} raised {error}{lines}",
                    rank=rank,
                    error=answer["raised"],
                    lines=last_lines(log),
                )
            )
    for rank, answer in answers.items():
        if not answer:
            raise LaunchError(
                phrase(
                    "rank {rank} gave no answer, the launcher {how}{lines}",
                    rank=rank,
                    how=ending(status),
                    lines=last_lines(log),
                )
            )


def _answer(out: Path, rank: int) -> dict[str, Any]:
    try:
        return unpack(json.loads(answer_file(out, rank).read_text(encoding="utf-8")))
    except (OSError, ValueError):
        return {}


def answer_file(out: Path, rank: int) -> Path:
    return out / f"rank-{rank}.json"


def batches_file(out: Path, rank: int) -> Path:
    return out / f"batches-{rank}.safetensors"


def train_rank(side: GuideSide, given: Given, rank: int) -> dict[str, Any]:
    """One rank: in training on its own data, then in evaluation on that of the reference's rank.

    In evaluation layers do not look at the batch as a whole, so that a launch can be compared with one
    process.
    """
    backend = launching(side)
    backend.join_ranks()
    out, leading = Path(given["out"]), Path(given["leading"])
    if given["own_data"]:
        share = rank, side.project.ranks
        own = [
            [side.arrays(batch.inputs), side.arrays(batch.label)]
            for batch in islice(side.batches("training_data", share=share), side.project.lockstep)
        ]
        keep(own, batches_file(out, rank))
    led = take(batches_file(leading, rank))
    record_updates(side, _spread(side, backend), own if given["own_data"] else led, out / "own", "train")
    record_updates(side, _spread(side, backend), led, out / "led", "eval")
    backend.leave_ranks()
    return {}


def _spread(side: GuideSide, backend: LaunchingBackend) -> TrainingSide:
    """A training on several ranks: by the user's own factories, or by the framework's wrapper."""
    trained = training_side(side)
    named = side.settings.factories
    if "parallel" in named:
        trained.model = side.make("parallel", trained.model)
    elif "reduce" not in named:
        trained.model = backend.data_parallel(trained.model)
    if "reduce" in named:
        trained.clip = _in_turn(side.factory("reduce"), trained.clip)
    trained.refresh()
    return trained


def _in_turn(reduce: Callable[[Any], Any], clip: Callable[[Any], Any] | None) -> Callable[[Any], None]:
    def change(parameters: Any) -> None:
        reduce(parameters)
        if clip is not None:
            clip(parameters)

    return change


def train_alone(side: GuideSide, given: Given) -> dict[str, Any]:
    """In one process on what all ranks had, in evaluation."""
    leading = Path(given["leading"])
    shares = [take(batches_file(leading, rank)) for rank in range(side.project.ranks)]
    batches = [joined(list(parts)) for parts in zip(*shares, strict=True)]
    record_updates(side, training_side(side), batches, Path(given["run"]), "eval")
    return {}


def record_updates(side: GuideSide, trained: TrainingSide, batches: list[Any], run: Path, mode: Mode) -> None:
    with ExitStack() as stack:
        stack.enter_context(side.backend.mode(trained.model, mode))
        stack.enter_context(side.backend.recurrence_in_training(trained.model))
        stack.enter_context(no_dropout(trained.model))
        stack.enter_context(record(trained.model, run, optimizer=trained.optimizer, state=STATE))
        for inputs, label in batches:
            loss = train_on(trained, Batch(inputs, label))
            if side.project.schedule == "update":
                trained.step_schedule(loss)


LAUNCH_JOBS: Mapping[str, Callable[[GuideSide, Given], dict[str, Any]]] = {
    each.__name__: each for each in (launch_training, train_alone)
}
