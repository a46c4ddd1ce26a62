"""Weights, buffers, parameter gradients and optimizer state, at the moments a recording asks for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from parfocal.backends.protocol import Array, StateTensor
from parfocal.capture.session import Session
from parfocal.errors import InputError
from parfocal.run.records import StateRecord

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

    def record(self, moment: Moment) -> None:
        """Everything that was asked for, as it is now."""
        if self._session.wanted:
            for role in self._roles:
                _RECORDERS[role](self, moment)

    def record_gradients(self, moment: Moment) -> None:
        """Every parameter's gradient as accumulated so far, and the norm of all of them."""
        backend, squares = self._session.backend, []
        for tensor in self._tensors("parameter"):
            if not tensor.trainable:
                continue
            gradient = backend.gradient(tensor.value)
            if gradient is not None:
                squares.append(sum_of_squares(gradient))
            self._append("gradient", tensor.path, None, moment, gradient)
        self._session.steps.norm(squares)

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

    def _append(self, role: str, path: str, slot: str | None, moment: Moment, value: Any) -> None:
        session = self._session
        kept = None
        if value is not None:
            kept = session.tensor_value(value, f"{role} {path}")
            if kept is None:
                return
        session.writer.append(StateRecord(role, path, slot, moment, kept, session.steps.step, session.rank))


_RECORDERS: dict[str, Callable[[StateListener, Moment], None]] = {
    "parameter": lambda listener, moment: listener._record_tensors("parameter", moment),
    "buffer": lambda listener, moment: listener._record_tensors("buffer", moment),
    "gradient": StateListener.record_gradients,
    "optimizer": StateListener._record_optimizers,
}


def sum_of_squares(array: Array) -> float:
    """In float64 by blocks, so that neither precision nor memory suffers."""
    flat = array.reshape(-1)
    block = 2**16
    total = 0.0
    for start in range(0, flat.size, block):
        part = flat[start : start + block].astype(np.float64)
        total += float(np.vdot(part, part).real)
    return total
