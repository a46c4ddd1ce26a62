"""Ways to make an op give something else, as functions of the call under way."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from parfocal.backends.protocol import Array, Backend, OpCall
from parfocal.capture.tree import flatten_call, replace_call
from parfocal.explain.ops.arguments import Said, retold
from parfocal.explain.ops.log import Op

Remake = Callable[[OpCall], Any]


def picking(slot: str) -> Remake:
    """One of its inputs, as if the op were not there."""
    return lambda call: flatten_call(call.args, call.kwargs).leaves[slot]


def scaling(factor: float) -> Remake:
    """What it gives, times a number."""
    return lambda call: call.output * factor


def retelling(op: Op, argument: Said, value: Any) -> Remake:
    def remake(call: OpCall) -> Any:
        assert call.function is not None
        args, kwargs = retold(_live(op, call), argument, value)
        return call.function(*args, **kwargs)

    return remake


def _live(op: Op, call: OpCall) -> Op:
    """The recorded op with the arguments of the call under way."""
    return Op(op.order, op.name, op.native, call.args, call.kwargs, op.function, {}, {}, None, None)


def reordering(slots: list[str], order: tuple[int, ...]) -> Remake:
    def remake(call: OpCall) -> Any:
        assert call.function is not None
        leaves = flatten_call(call.args, call.kwargs).leaves
        moved = {slot: leaves[slots[index]] for slot, index in zip(slots, order, strict=True)}
        args, kwargs = replace_call(call.args, call.kwargs, moved)
        return call.function(*args, **kwargs)

    return remake


def feeding(backend: Backend, slot: str, array: Array) -> Remake:
    def remake(call: OpCall) -> Any:
        assert call.function is not None
        args, kwargs = replace_call(call.args, call.kwargs, {slot: backend.from_array(array)})
        return call.function(*args, **kwargs)

    return remake
