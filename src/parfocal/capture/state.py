"""Weights, buffers, parameter gradients and optimizer state, at the moments a recording asks for."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from parfocal.backends.protocol import Array, StateTensor
from parfocal.capture.session import Session, plain_settings
from parfocal.errors import InputError, ParfocalError
from parfocal.judge.moments import Pass, gather
from parfocal.phrases import phrase
from parfocal.run.records import Leaf, OptimizerRecord, StateRecord, TensorValue, ValueRecord

ROLES = ("parameter", "buffer", "gradient", "optimizer")

Moment = str  # "before" or "after" the step's update; "used": gradients as it uses them
CHANGED = 1e-6  # relative difference of norms of gradients that are not the same


def check_roles(roles: Sequence[str], has_optimizer: bool) -> tuple[str, ...]:
    """The roles a user asked for; a lone string counts as one."""
    chosen = (roles,) if isinstance(roles, str) else tuple(roles)
    for role in chosen:
        if role not in ROLES:
            raise InputError(
                phrase("state has {role}; allowed are {roles}", role=repr(role), roles=", ".join(ROLES))
            )
    if "optimizer" in chosen and not has_optimizer:
        raise InputError(
            phrase('state="optimizer" needs to know the optimizer'),
            hint="record(..., optimizer=your_optimizer)",
        )
    return chosen


@dataclass(frozen=True, slots=True)
class _KeptState:
    """What was kept of a named tensor, before it becomes a record."""

    role: str
    path: str
    value: Leaf
    slot: str | None = None
    tied_to: str | None = None


class StateListener:
    """Records state. ``roles`` are those asked for before and after every step.

    Of parameters and buffers that were not asked for a fingerprint is kept wherever they changed.
    """

    def __init__(self, session: Session, roles: Sequence[str], optimizers: Sequence[Any]) -> None:
        self._session = session
        self._roles = tuple(roles)
        self._optimizers = tuple(optimizers)
        self._met: list[Any] = []  # others that made updates meanwhile
        self._marked: dict[tuple[str, str], Leaf] = {}  # what was recorded last, by role and path
        self._made_with: dict[int, OptimizerRecord] = {}  # by the optimizer's identity
        self._turned: frozenset[str] | None = None  # paths of matrices that lie the other way round

    def begin_step(self) -> None:
        """Something happens for the first time in a step: record what it starts from.

        Gradients are not among that: those before an update are what its backward passes bring.
        """
        steps = self._session.steps
        if not steps.begun:
            steps.begun = True
            self._record(tuple(role for role in self._roles if role != "gradient"), "before")
            self._mark("before")

    def end_step(self) -> None:
        """Record what a step leaves."""
        self._record(self._roles, "after")
        self._mark("after")

    def end_backward(self) -> None:
        """Record every parameter's gradient as accumulated so far, and the norm of all of them."""
        self._session.steps.norm(self._record_gradients("before"))

    def record_optimizer(self, optimizer: Any) -> None:
        """Record what an optimizer is about to make its update with, where that has changed."""
        session = self._session
        if not any(each is optimizer for each in (*self._optimizers, *self._met)):
            self._met.append(optimizer)
        if not session.wanted:
            return
        try:
            kind = session.backend.optimizer_kind(optimizer)
            settings = session.backend.optimizer_settings(optimizer, session.model)
            clip = session.backend.gradient_clip(optimizer)
        except (ParfocalError, KeyError, AttributeError, TypeError):
            return  # a user's own, or one of another model
        record = OptimizerRecord(kind, _grouped(settings), clip, rank=session.rank)
        if self._made_with.get(id(optimizer)) != record:
            self._made_with[id(optimizer)] = record
            session.writer.append(replace(record, step=session.steps.step))

    def update_norm(self, optimizer: Any) -> float | None:
        """The norm of the gradients as an update will use them."""
        backend = self._session.backend
        if not self._session.wanted:
            return None
        gradients = [
            backend.gradient_tensor(tensor.value) for tensor in self._tensors("parameter") if tensor.trainable
        ]
        arrays = [backend.to_array(each, copy=False) for each in gradients if each is not None]
        if not arrays:
            return None
        squares = [sum_of_squares(array) for array in arrays]
        self._record_reduced(math.sqrt(math.fsum(squares)))
        return clipped_norm(squares, arrays, self._clip(optimizer))

    def _record_reduced(self, norm: float) -> None:
        """Record gradients again where code between backward pass and update changed those of a rank."""
        session = self._session
        before = session.steps.gradient_norm
        if session.writer.header.ranks > 1 and before is not None and abs(norm - before) > CHANGED * before:
            self._record_gradients("used")

    def _clip(self, optimizer: Any) -> Mapping[str, Any] | None:
        known = self._made_with.get(id(optimizer))
        return None if known is None else known.clip

    def _mark(self, moment: Moment) -> None:
        """Fingerprints of parameters and buffers that are not as they were recorded last."""
        session = self._session
        if session.marks is None or not session.wanted:
            return
        found = []
        for tensor in session.backend.state(session.model):
            key = tensor.role, tensor.path
            if tensor.role in self._roles or not session.chosen.wants_path(tensor.module):
                continue
            if tensor.tied_to is not None:
                if key not in self._marked:
                    self._marked[key] = None
                    found.append(_KeptState(*key, None, tied_to=tensor.tied_to))
                continue
            kept = session.marks.leaf(tensor.value, turned=tensor.path in self._matrices(), updated=True)
            if isinstance(kept, TensorValue) and kept is not self._marked.get(key):
                self._marked[key] = kept
                found.append(_KeptState(*key, kept))
        self._append(moment, found)

    def _record(self, roles: Sequence[str], moment: Moment) -> None:
        if self._session.wanted:
            for role in roles:
                _RECORDERS[role](self, moment)

    def _record_gradients(self, moment: Moment) -> list[float]:
        """Record every parameter's gradient; returns the sums of their squares."""
        backend, found, squares = self._session.backend, [], []
        for tensor in self._tensors("parameter"):
            if tensor.trainable:
                gradient = backend.gradient_tensor(tensor.value)
                kept = self._keep(tensor.path, gradient)
                found.append(_KeptState("gradient", tensor.path, kept))
                if isinstance(kept, TensorValue) and moment == "before":
                    squares.append(_square(kept) or sum_of_squares(backend.to_array(gradient, copy=False)))
        self._append(moment, found)
        return squares

    def _record_tensors(self, role: str, moment: Moment) -> None:
        found = [
            _KeptState(role, tensor.path, self._keep(tensor.path, tensor.value))
            for tensor in self._tensors(role)
        ]
        self._append(moment, found)

    def _record_optimizers(self, moment: Moment) -> None:
        session = self._session
        for optimizer in (*self._optimizers, *self._met):
            found = [
                _KeptState("optimizer", path, self._keep(path, array), slot)
                for path, slots in self._slots(optimizer).items()
                if session.chosen.wants_path(path.rpartition(".")[0])
                for slot, array in slots.items()
            ]
            self._append(moment, found)

    def _slots(self, optimizer: Any) -> Mapping[str, Mapping[str, Array]]:
        """By path; none of an optimizer that nobody gave and that is another model's, or a user's own."""
        try:
            return self._session.backend.optimizer_state(optimizer, self._session.model)
        except (ParfocalError, KeyError, AttributeError, TypeError):
            if any(each is optimizer for each in self._optimizers):
                raise
            return {}

    def _tensors(self, role: str) -> Iterator[StateTensor]:
        """The wanted tensors of a role, each once."""
        for tensor in self._session.backend.state(self._session.model):
            if (
                tensor.role == role
                and tensor.tied_to is None
                and self._session.chosen.wants_path(tensor.module)
            ):
                yield tensor

    def _keep(self, path: str, value: Any) -> Leaf:
        """What is kept of a tensor or array; None of one that is not there."""
        if value is None:
            return None
        turned = path in self._matrices() and len(np.shape(value)) == 2
        return self._session.keeper.leaf(value, turned=turned, updated=True)

    def _append(self, moment: Moment, found: Sequence[_KeptState]) -> None:
        """Append the records of what was kept, all at once.

        Every large tensor that is looked at drives all else out of the caches: that is done before.
        """
        self._session.writer.append(*(self._record_of(moment, each) for each in found))

    def _record_of(self, moment: Moment, found: _KeptState) -> StateRecord | ValueRecord:
        session, value = self._session, found.value
        step, rank = session.steps.step, session.rank
        if value is not None and not isinstance(value, TensorValue):  # without plain values: in words
            return ValueRecord(f"{found.role} {found.path}", value, step, rank)
        matrix = value is not None and value.sketch is not None and len(value.shape) == 2
        turned = matrix and found.path in self._matrices()
        return StateRecord(
            found.role, found.path, found.slot, moment, value, step, rank, found.tied_to, turned
        )

    def _matrices(self) -> frozenset[str]:
        """Paths of matrices that lie "in,out"; they are sketched as others are, so that sketches compare."""
        if self._turned is None:
            backend, model = self._session.backend, self._session.model
            self._turned = frozenset(
                f"{path}.weight" if path else "weight"
                for path, module in backend.modules(model).items()
                if backend.settings(module).get("weight_layout") == "in,out"
            )
        return self._turned


_RECORDERS: dict[str, Callable[[StateListener, Moment], object]] = {
    "parameter": lambda listener, moment: listener._record_tensors("parameter", moment),
    "buffer": lambda listener, moment: listener._record_tensors("buffer", moment),
    "gradient": StateListener._record_gradients,
    "optimizer": StateListener._record_optimizers,
}


def _grouped(settings: Mapping[str, Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Parameters with the same settings together."""
    groups: list[dict[str, Any]] = []
    for path, own in settings.items():
        plain = plain_settings(own)
        group = next((each for each in groups if each["settings"] == plain), None)
        if group is None:
            groups.append(group := {"settings": plain, "parameters": []})
        group["parameters"].append(path)
    return groups


def clipped_norm(squares: Sequence[float], arrays: Sequence[Array], clip: Mapping[str, Any] | None) -> float:
    """The norm of gradients with these sums of squares, after what the optimizer itself does to them."""
    if clip is not None and clip["kind"] == "norm":  # each gradient by itself
        squares = [min(square, clip["limit"] ** 2) for square in squares]
    elif clip is not None and clip["kind"] == "value":
        low, high = clip["least"], clip["limit"]
        squares = [sum_of_squares(np.clip(array, low, high)) for array in arrays]
    norm = math.sqrt(math.fsum(squares))
    return min(norm, clip["limit"]) if clip is not None and clip["kind"] == "global_norm" else norm


def _square(value: TensorValue) -> float | None:
    """The sum of squares, where a sketch has it already."""
    return None if value.sketch is None else float(value.sketch["fingerprint"]["l2"]) ** 2


def sum_of_squares(array: Array) -> float:
    """Right in every digit that float32 has, whatever the processor; not finite if a value is not."""
    found = gather(array, Pass())
    if found.finite < found.count:
        return math.nan if found.nan else math.inf
    return found.square.over(1)
