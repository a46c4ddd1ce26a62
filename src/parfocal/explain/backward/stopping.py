"""Where a call's own code stops or changes a gradient, and how to run it again without that.

A gradient is stopped by ``detach``, by a ``no_grad`` block or by a flag on a tensor: either way an op
returns a tensor without a gradient though one of its inputs has one. It is changed on its way
by a hook. Both are found by watching the ops of one run, and undone in another.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import numpy as np

from parfocal.backends.protocol import Array, Backend, Call, OpCall
from parfocal.capture.nested_values import flatten, flatten_call, replace_call
from parfocal.capture.sites import Sites
from parfocal.explain.case import Case
from parfocal.explain.causes import OpLine, line
from parfocal.replay.trace import Node

HOOK = "register_hook"
COPY = "tensor"  # made from plain numbers: those of a tensor, if it was taken out of the graph
FLOATING = frozenset({"float16", "bfloat16", "float32", "float64", "complex64", "complex128"})


@dataclass(frozen=True, slots=True)
class Stop:
    """An op after which there is no gradient, or a hook.

    ``how``: detach, copy, no_grad, flag, hook or function.
    """

    order: int  # of the op; of a call that is given a tensor without its gradient, that of the call, negative
    how: str
    where: OpLine

    @property
    def line(self) -> str:
        return line(self.where)


class GradientTracker:
    """Remembers the tensors that had a gradient when they were made; base of the watchers below."""

    def __init__(self, backend: Backend) -> None:
        self.backend = backend
        self._alive: dict[int, tuple[Any, Any]] = {}  # the tensor itself too, so that its id stays its own

    def entered(self, call: Call) -> None:
        self._keep(flatten_call(call.args, call.kwargs).leaves)

    def left(self, call: Call, computed: Any, given: Any) -> None:
        self._keep(flatten(given).leaves)

    def _flagged(self, leaves: Iterable[Any]) -> list[Any]:
        """The tensors whose gradient was switched off after they were made."""
        return [leaf for leaf in leaves if id(leaf) in self._alive and not self.backend.requires_grad(leaf)]

    def _keep(self, leaves: dict[str, Any]) -> None:
        for leaf in leaves.values():
            if self._floats(leaf) and self.backend.requires_grad(leaf) and id(leaf) not in self._alive:
                self._alive[id(leaf)] = (leaf, self.backend.alias(leaf))

    def _floats(self, leaf: Any) -> bool:
        return self.backend.is_tensor(leaf) and self.backend.dtype(leaf) in FLOATING

    def _dead(self, op: OpCall) -> bool:
        """Whether the op's result has no gradient."""
        leaves = [leaf for leaf in flatten(op.output).leaves.values() if self._floats(leaf)]
        return bool(leaves) and not any(self.backend.requires_grad(leaf) for leaf in leaves)

    def _living(self, op: OpCall) -> dict[str, Any]:
        """The inputs that have a gradient, or had one."""
        leaves = flatten_call(op.args, op.kwargs).leaves
        if op.name == "detach" and id(op.output) in self._alive:  # in place
            leaves = {"0": op.output}
        if op.name == COPY:
            return self._copied(op.output)
        floating = {slot: leaf for slot, leaf in leaves.items() if self._floats(leaf)}
        return {
            slot: leaf if self.backend.requires_grad(leaf) else self._alive[id(leaf)][1]
            for slot, leaf in floating.items()
            if self.backend.requires_grad(leaf) or id(leaf) in self._alive
        }

    def _copied(self, copy: Any) -> dict[str, Any]:
        """The latest tensor with a gradient that holds exactly these numbers."""
        if not self._floats(copy):
            return {}
        numbers = self.backend.to_array(copy)
        for tensor, alias in reversed(self._alive.values()):
            if self.backend.shape(tensor) == self.backend.shape(copy) and np.array_equal(
                self.backend.to_array(tensor), numbers
            ):
                return {"0": alias}
        return {}


class StopFinder(GradientTracker):
    """Notes the stops of one run; ``owns`` says of a call, by its order, whether it is looked at."""

    def __init__(self, backend: Backend, owns: Callable[[int | None], bool]) -> None:
        super().__init__(backend)
        self.stops: list[Stop] = []
        self._stopped: list[Any] = []  # tensors that would have a gradient
        self._owns = owns
        self._sites = Sites((backend.name,))
        self._paths: dict[int | None, str] = {}  # of the calls so far

    def __call__(self, op: OpCall) -> None:
        if op.name == HOOK:  # wherever it is set, also inside: it acts on what comes back from there
            self._note(op, "hook", op.module)
        elif self._owns(op.call) and not op.name.endswith("_like"):  # those look at the shape alone
            leaves = flatten_call(op.args, op.kwargs).leaves
            reached = bool(self._living(op)) or self._continues(leaves.values())
            if (reached and self._dead(op)) or self._flagged(leaves.values()):
                self._note(op, self._how(op), op.module)
                self._stopped += flatten(op.output).leaves.values()
        self._keep(flatten(op.output).leaves)

    def _continues(self, leaves: Iterable[Any]) -> bool:
        """Whether a tensor comes from further up in the same no_grad block."""
        found = {id(leaf) for leaf in self._stopped}
        return not self.backend.grad_enabled() and any(id(leaf) in found for leaf in leaves)

    def _how(self, op: OpCall) -> str:
        if op.name in ("detach", COPY):
            return "detach" if op.name == "detach" else "copy"
        if not self.backend.grad_enabled():
            return "no_grad"
        return "flag" if self._flagged(flatten_call(op.args, op.kwargs).leaves.values()) else "no_grad"

    def entered(self, call: Call) -> None:
        leaves = flatten_call(call.args, call.kwargs).leaves
        self._paths[call.order] = call.path
        if self._owns(call.parent):
            living = any(self._floats(leaf) and self.backend.requires_grad(leaf) for leaf in leaves.values())
            reached = living or self._continues(leaves.values())
            off = reached and not self.backend.grad_enabled()
            how = "no_grad" if off else "flag" if self._flagged(leaves.values()) else ""
            if how:
                where = OpLine(call.path, *self._sites.find(), self._paths.get(call.parent))
                self.stops.append(Stop(-1 - call.order, how, where))
        super().entered(call)

    def left(self, call: Call, computed: Any, given: Any) -> None:
        super().left(call, computed, given)
        if not self.backend.grad_enabled() and self._owns(call.parent):
            self._stopped += flatten(given).leaves.values()

    def _note(self, op: OpCall, how: str, module: str | None) -> None:
        file, line = self._sites.find()
        caller = _caller_of_function(self._sites)
        if how == "no_grad" and caller is not None:
            how, (file, line) = "function", caller
        self.stops.append(Stop(op.order, how, OpLine(op.name, file, line, module)))


def _caller_of_function(sites: Sites) -> tuple[str, int] | None:
    """The line that applies a function with a backward of its own, when the code runs inside one."""
    frame = sys._getframe(1)
    inside = False
    while frame is not None:
        code = frame.f_code
        if sites.is_users(code.co_filename):
            if inside:
                return code.co_filename, frame.f_lineno
            first = frame.f_locals.get(code.co_varnames[0]) if code.co_argcount else None
            inside = hasattr(first, "save_for_backward")
        frame = frame.f_back  # type: ignore[assignment]
    return None


class StopRemover(GradientTracker):
    """Undoes the stops of these orders: ops run again with gradients, hooks are taken away."""

    def __init__(self, backend: Backend, orders: Collection[int]) -> None:
        super().__init__(backend)
        self._orders = frozenset(orders)
        self._switched: dict[int, AbstractContextManager[None]] = {}  # calls that have gradients for a while

    def entered(self, call: Call) -> None:
        leaves = flatten_call(call.args, call.kwargs).leaves
        if -1 - call.order in self._orders:
            for leaf in self._flagged(leaves.values()):
                self.backend.require_grad(leaf)
            if not self.backend.grad_enabled():
                self._switched[call.order] = self.backend.with_grad()
                self._switched[call.order].__enter__()
        super().entered(call)

    def left(self, call: Call, computed: Any, given: Any) -> None:
        super().left(call, computed, given)
        switched = self._switched.pop(call.order, None)
        if switched is not None:
            switched.__exit__(None, None, None)

    def __call__(self, op: OpCall) -> Any:
        new = self._undone(op) if op.order in self._orders else None
        self._keep(flatten(op.output if new is None else new).leaves)
        return new

    def _undone(self, op: OpCall) -> Any:
        if op.name == HOOK:
            op.output.remove()
            return None
        living = self._living(op)
        if not living or op.function is None:
            return None
        if op.name in ("detach", COPY):
            return next(iter(living.values()))
        with self.backend.with_grad():
            args, kwargs = replace_call(op.args, op.kwargs, living)
            return op.function(*args, **kwargs)


class HookListener(GradientTracker):
    """Notes what a hook gets and gives."""

    def __init__(self, backend: Backend, order: int) -> None:
        super().__init__(backend)
        self._order = order
        self.before: Array | None = None
        self.after: Array | None = None

    def __call__(self, op: OpCall) -> None:
        if op.order != self._order or op.name != HOOK:
            return
        tensor, hook = (*op.args, *op.kwargs.values())[:2]
        op.output.remove()

        def listen(gradient: Any) -> Any:
            self.before = self.backend.to_array(gradient)
            changed = hook(gradient)
            self.after = self.before if changed is None else self.backend.to_array(changed)
            return changed

        self.backend.watch_gradient(tensor, listen)


def owner_of(case: Case, *, own: bool) -> Callable[[int | None], bool]:
    """Whether a call, by its order in the repetition, is the blamed one or part of its code."""
    nodes = (case.precise.port if own else case.precise.reference).trace.nodes
    call = case.call if own else case.counterpart
    start = case.start if own else call
    return owner_among(nodes, call, start, case.steps(own=own))


def owner_among(
    nodes: list[Node], call: int | None, start: int | None, paired: Collection[int]
) -> Callable[[int | None], bool]:
    """The same, of a ``call`` inside of a repetition that begins with ``start``."""

    def owns(offset: int | None) -> bool:
        order = None if offset is None or start is None else start + offset
        while order is not None and order != call and order not in paired:
            order = nodes[order].parent
        return order is not None and order == call

    return owns


def by_line(stops: Collection[Stop]) -> Iterator[tuple[Stop, ...]]:
    """The stops of each line, and last all stops together."""
    lines: dict[tuple[str | None, int | None], list[Stop]] = {}
    for stop in stops:
        lines.setdefault((stop.where.file, stop.where.line), []).append(stop)
    yield from (tuple(each) for each in lines.values())
    if len(lines) > 1:
        yield tuple(stops)
