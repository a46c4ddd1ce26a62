"""``record``: a context manager around any code that runs a model, the user's loop included."""

from __future__ import annotations

import os
import platform
import sys
import tempfile
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np

from parfocal.backends import registry
from parfocal.backends.protocol import Array, Backend
from parfocal.brief import brief
from parfocal.capture.calls import CallListener
from parfocal.capture.filters import make_filter
from parfocal.capture.follow import RunFollower
from parfocal.capture.keep import Keep, Keeper
from parfocal.capture.proof import InertnessProof
from parfocal.capture.recorder import Recorder
from parfocal.capture.session import Session
from parfocal.capture.state import StateListener, check_roles
from parfocal.errors import InputError, ParfocalError
from parfocal.judge.sketch import sketch_fields, stats
from parfocal.phrases import joined, phrase
from parfocal.run.dtypes import dtype_name
from parfocal.run.launch import current_launch
from parfocal.run.reader import Run
from parfocal.run.records import RunHeader, TensorValue
from parfocal.run.writer import RunWriter

_recordings: Counter[str] = Counter()

SMALL_BYTES = 2**14  # up to which a parameter or buffer is kept in full, whatever tensors= says

LATER: Any = object()  # as optimizer=: whoever records tells of every update when it is made

Level = Literal["modules", "ops"]
Tensors = Literal["full", "sketch", "stats"]


@contextmanager
def record(
    model: Any,
    path: str | PathLike[str] | None = None,
    *,
    level: Level = "modules",
    tensors: Tensors = "full",
    grads: bool = True,
    follow: Run | str | PathLike[str] | None = None,
    include: Sequence[str] = (),
    exclude: Sequence[str] = (),
    kinds: Collection[str] | None = None,
    every: int = 1,
    max_bytes: int | None = None,
    optimizer: Any = None,
    state: Sequence[str] = (),
    check: bool = False,
) -> Iterator[Recorder]:
    """Record what ``model`` does inside the with block; ``recorder.run`` has it afterwards.

    path: the run's folder; without one it lives in a temporary folder, as long as the Run does.
    tensors: "full" keeps every value, "sketch" a few hundred numbers each, "stats" statistics.
    grads: also the gradients at every call's inputs and outputs and at every parameter.
    follow: another run, whose inputs and output gradients every matching call is fed.
    include, exclude: path patterns (``layer1.*``); kinds: e.g. ``{"Linear"}``; every: each n-th step.
    max_bytes: of a larger tensor only statistics are kept.
    optimizer: one or several; each of their steps ends a step of the recording.
    state: any of "parameter", "buffer", "gradient", "optimizer", before and after every step.
    check: make every call once more without recording, and raise at the end if anything differs.
    """
    _check_choice("level", level, Level)
    _check_choice("tensors", tensors, Tensors)
    if max_bytes is not None and (not isinstance(max_bytes, int) or max_bytes < 0):
        raise InputError(
            phrase("max_bytes is {max_bytes}, must not be negative", max_bytes=brief(max_bytes)),
            hint=phrase("a number of bytes"),
        )
    backend = registry.of_model(model, phrase("model to record"))
    if check and follow is not None:
        raise InputError(
            phrase(
                "check=True proves that recording changes nothing, "
                "and follow= changes what the model computes"
            ),
            hint=phrase("leave out one of them"),
        )
    optimizers = () if optimizer is LATER else _as_tuple(optimizer)
    for each in optimizers:
        if not (backend.is_optimizer(each) or callable(getattr(each, "step", None))):  # or one around it
            raise InputError(
                phrase(
                    "optimizer is {each}, not an optimizer of {name}", each=brief(each), name=backend.name
                ),
                hint=phrase("pass one, or several in a list"),
            )
    roles = check_roles(state, bool(optimizers) or optimizer is LATER)
    chosen = make_filter(include, exclude, kinds, every)
    follower = None if follow is None else RunFollower(follow, backend)
    temporary = Path(tempfile.mkdtemp(prefix="parfocal-")) if path is None else None
    writer = _open_writer(path, temporary, _header(model, backend, level, tensors))
    marks = None
    if tensors != "stats":
        marks = Keeper(backend, partial(_marked, writer), partial(_marked, writer, turned=True))
    keeper = Keeper(backend, *_keep(tensors, writer, max_bytes))
    session = Session(model, backend, writer, keeper, chosen, marks)
    states = StateListener(session, roles, optimizers)
    proof = (
        InertnessProof(backend, partial(record, level=level, tensors=tensors, grads=grads)) if check else None
    )
    calls = CallListener(session, states, grads=grads, follower=follower, proof=proof)
    recorder = Recorder(session, calls, states, optimizers, proof)
    try:
        with ExitStack() as watches:
            on_op = calls.on_op if level == "ops" else None
            watches.enter_context(backend.watch(model, calls.on_enter, calls.on_exit, on_op))
            watches.enter_context(
                backend.watch_backward(recorder.on_backward_start, recorder.on_backward_end)
            )
            if (
                not optimizers and optimizer is not LATER
            ):  # marked by hand: what was used is known at the updates only
                watches.enter_context(backend.watch_updates(recorder.note_update, lambda _: None))
            for each in optimizers:
                watches.enter_context(_watch_updates(backend, each, recorder))
            yield recorder
        recorder.finish()
        writer.close()
    except BaseException as error:
        with suppress(ParfocalError):  # where nothing can be written any more, the exception is what counts
            recorder.note_interruption(error)
        raise
    finally:
        writer.close(complete=False)  # of no effect on a run that is closed already
        recorder.close(temporary)
    if proof is not None:
        proof.inertness.check(str(writer.path))


def _watch_updates(backend: Backend, optimizer: Any, recorder: Recorder) -> AbstractContextManager[None]:
    return backend.watch_optimizer(
        optimizer, partial(recorder.before_update, optimizer), recorder.after_update
    )


def _open_writer(path: str | PathLike[str] | None, temporary: Path | None, header: RunHeader) -> RunWriter:
    """A writer to the user's folder, which the ranks of a launch share, or to one of this process alone."""
    if path is None:
        assert temporary is not None
        return RunWriter(temporary / "run", header, durable=False)
    launch = current_launch()
    # The n-th recording of this process to a path belongs with the n-th of every other rank.
    number = _recordings[os.path.abspath(path)]
    _recordings[os.path.abspath(path)] += 1
    run_id = f"{launch.run_id}/{number}" if launch.run_id else ""
    return RunWriter(path, header, rank=launch.rank, ranks=launch.ranks, run_id=run_id)


def _header(model: Any, backend: Backend, level: str, tensors: str) -> RunHeader:
    first = next((tensor.value for tensor in backend.state(model) if tensor.role == "parameter"), None)
    kind = type(model)
    return RunHeader(
        framework=backend.name,
        versions={
            backend.name: backend.framework_version,
            "parfocal": sys.modules["parfocal"].__version__,
            "numpy": np.__version__,
            "python": platform.python_version(),
        },
        device="cpu" if first is None else backend.device(first),
        dtype="float32" if first is None else backend.dtype(first),
        command=tuple(sys.argv),
        model_class=f"{kind.__module__}.{kind.__qualname__}",
        level=level,
        tensors=tensors,
    )


def _keep(tensors: str, writer: RunWriter, max_bytes: int | None) -> tuple[Keep, Keep]:
    """What becomes of an array, and of a matrix that lies the other way round."""
    ways: dict[str, tuple[Keep, Keep]] = {
        "full": (writer.tensor_value, writer.tensor_value),
        "sketch": (_sketched, lambda array: _sketched(array.T)),
        "stats": (_described, _described),
    }
    if max_bytes is None:
        return ways[tensors]

    def limited(keep: Keep) -> Keep:
        return lambda array: keep(array) if array.nbytes <= max_bytes else _described(array)

    plain, turned = ways[tensors]
    return limited(plain), limited(turned)


def _marked(writer: RunWriter, array: Array, *, turned: bool = False) -> TensorValue:
    """Enough to tell a parameter from any other: a sketch, or the values where those are fewer bytes."""
    if array.nbytes <= SMALL_BYTES:
        return writer.tensor_value(array)
    return _sketched(array.T if turned else array)


def _sketched(array: Array) -> TensorValue:
    return TensorValue(str(dtype_name(array.dtype)), tuple(array.shape), sketch=sketch_fields(array))


def _described(array: Array) -> TensorValue:
    return TensorValue(str(dtype_name(array.dtype)), tuple(array.shape), stats=stats(array))


def _check_choice(name: str, value: str, allowed: Any) -> None:
    if value not in get_args(allowed):
        raise InputError(
            phrase(
                "{name} is {value}; allowed are {names}",
                name=name,
                value=brief(value),
                names=joined(", ", map(repr, get_args(allowed))),
            )
        )


def _as_tuple(optimizer: Any) -> tuple[Any, ...]:
    if optimizer is None:
        return ()
    return tuple(optimizer) if isinstance(optimizer, (tuple, list)) else (optimizer,)
