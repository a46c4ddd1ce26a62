"""Weights, buffers, parameter gradients and optimizer state, at the moments a recording asks for."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from parfocal.backends.protocol import Array, StateTensor
from parfocal.capture.session import Session
from parfocal.errors import InputError
from parfocal.judge.moments import Pass, gather, real_view
from parfocal.run.records import StateRecord, TensorValue

ROLES = ("parameter", "buffer", "gradient", "optimizer")

Moment = str  # "before" or "after" the step's update


def check_roles(roles: Sequence[str], has_optimizer: bool) -> tuple[str, ...]:
    """The roles a user asked for; a lone string counts as one."""
    chosen = (roles,) if isinstance(roles, str) else tuple(roles)
    for role in chosen:
        if role not in ROLES:
            raise InputError(f"state has {role!r}; allowed are {', '.join(ROLES)}")
    if "optimizer" in chosen and not has_optimizer:
        raise InputError(
            'state="optimizer" needs to know the optimizer', hint="record(..., optimizer=your_optimizer)"
        )
    return chosen


class StateListener:
    """Records state. ``roles`` are those asked for before and after every step."""

    def __init__(self, session: Session, roles: Sequence[str], optimizers: Sequence[Any]) -> None:
        self._session = session
        self._roles = tuple(roles)
        self._optimizers = tuple(optimizers)

    def begin_step(self) -> None:
        """Something happens for the first time in a step: record what it starts from.

        Gradients are not among that: those before an update are what its backward passes bring.
        """
        steps = self._session.steps
        if not steps.begun:
            steps.begun = True
            self._record(tuple(role for role in self._roles if role != "gradient"), "before")

    def end_step(self) -> None:
        """Record what a step leaves."""
        self._record(self._roles, "after")

    def end_backward(self) -> None:
        """Record every parameter's gradient as accumulated so far, and the norm of all of them."""
        self._session.steps.norm(self._record_gradients("before"))

    def _record(self, roles: Sequence[str], moment: Moment) -> None:
        if self._session.wanted:
            for role in roles:
                _RECORDERS[role](self, moment)

    def _record_gradients(self, moment: Moment) -> list[float]:
        """Record every parameter's gradient; returns the sums of their squares."""
        backend, squares = self._session.backend, []
        for tensor in self._tensors("parameter"):
            if tensor.trainable:
                gradient = backend.gradient_tensor(tensor.value)
                kept = self._append("gradient", tensor.path, None, moment, gradient)
                if kept is not None and moment == "before":
                    squares.append(_square(kept) or sum_of_squares(backend.to_array(gradient, copy=False)))
        return squares

    def _record_tensors(self, role: str, moment: Moment) -> None:
        for tensor in self._tensors(role):
            self._append(role, tensor.path, None, moment, tensor.value)

    def _record_optimizers(self, moment: Moment) -> None:
        session = self._session
        for optimizer in self._optimizers:
            for path, slots in session.backend.optimizer_state(optimizer, session.model).items():
                if session.chosen.wants_path(path.rpartition(".")[0]):
                    for slot, array in slots.items():
                        self._append("optimizer", path, slot, moment, array)

    def _tensors(self, role: str) -> Iterator[StateTensor]:
        """The wanted tensors of a role, each once."""
        for tensor in self._session.backend.state(self._session.model):
            if (
                tensor.role == role
                and tensor.tied_to is None
                and self._session.chosen.wants_path(tensor.module)
            ):
                yield tensor

    def _append(
        self, role: str, path: str, slot: str | None, moment: Moment, value: Any
    ) -> TensorValue | None:
        session = self._session
        kept = None
        if value is not None:
            kept = session.tensor_value(value, f"{role} {path}")
            if kept is None:
                return None
        session.writer.append(StateRecord(role, path, slot, moment, kept, session.steps.step, session.rank))
        return kept


_RECORDERS: dict[str, Callable[[StateListener, Moment], object]] = {
    "parameter": lambda listener, moment: listener._record_tensors("parameter", moment),
    "buffer": lambda listener, moment: listener._record_tensors("buffer", moment),
    "gradient": StateListener._record_gradients,
    "optimizer": StateListener._record_optimizers,
}


def _square(value: TensorValue) -> float | None:
    """The sum of squares, where a sketch has it already."""
    return None if value.sketch is None else float(value.sketch["fingerprint"]["l2"]) ** 2


def sum_of_squares(array: Array) -> float:
    """Right in every digit that float32 has, whatever the processor; not finite if a value is not."""
    found = gather(real_view(array), Pass())
    if found.finite < found.count:
        return math.nan if found.nan else math.inf
    return found.square.over(1)
