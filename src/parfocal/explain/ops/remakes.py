"""Changes of an op's result, as functions that are called in place of the op."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from parfocal.backends.protocol import Array, Backend, OpCall
from parfocal.capture.nested_values import flatten, flatten_call, replace_call
from parfocal.capture.nested_values import replace as replace_leaves
from parfocal.explain.ops.arguments import PassedArgument, retold
from parfocal.explain.ops.log import Op

Remake = Callable[[OpCall], Any]


def picking(slot: str) -> Remake:
    """One of its inputs, as if the op were not there."""
    return lambda call: flatten_call(call.args, call.kwargs).leaves[slot]


def scaling(factor: float) -> Remake:
    """What it gives, times a number."""
    return lambda call: call.output * factor


def reshaping(shape: tuple[int, ...], right: tuple[int, ...]) -> Remake:
    """What it gives, in another shape: where the two are the same, as long as the axis is in the call."""

    def remake(call: OpCall) -> Any:
        lengths = zip(shape, right, call.output.shape, strict=True)
        return call.output.reshape([wanted if own != wanted else here for own, wanted, here in lengths])

    return remake


def retelling_all(op: Op, changes: Mapping[str, tuple[PassedArgument, Any]]) -> Remake:
    """The op with several other arguments at once."""

    def remake(call: OpCall) -> Any:
        assert call.function is not None
        live = _live(op, call)
        for argument, value in changes.values():
            args, kwargs = retold(live, argument, value)
            live = replace(live, args=args, kwargs=kwargs)
        return _like(call.output, call.function(*live.args, **live.kwargs))

    return remake


def _like(before: Any, new: Any) -> Any:
    """Of a tensor and its indices, which some functions give when told so, the tensor."""
    return new[0] if isinstance(new, tuple) and not isinstance(before, (list, tuple)) else new


def again(op: Op, argument: PassedArgument, value: Any) -> Callable[[], Any]:
    """The op's result for the same tensors with another argument."""

    def make() -> Any:
        assert op.function is not None
        args, kwargs = retold(op, argument, value)
        return op.function(*args, **kwargs)

    return make


def retelling(op: Op, argument: PassedArgument, value: Any) -> Remake:
    def remake(call: OpCall) -> Any:
        assert call.function is not None
        args, kwargs = retold(_live(op, call), argument, value)
        return _like(call.output, call.function(*args, **kwargs))

    return remake


def _live(op: Op, call: OpCall) -> Op:
    """The recorded op with the arguments of the call under way."""
    return replace(op, args=call.args, kwargs=call.kwargs)


def reordering(slots: list[str], order: tuple[int, ...]) -> Remake:
    def remake(call: OpCall) -> Any:
        assert call.function is not None
        leaves = flatten_call(call.args, call.kwargs).leaves
        moved = {slot: leaves[slots[index]] for slot, index in zip(slots, order, strict=True)}
        args, kwargs = replace_call(call.args, call.kwargs, moved)
        return call.function(*args, **kwargs)

    return remake


def turning(backend: Backend, slots: Sequence[str], order: tuple[int, ...]) -> Remake:
    """The op with axes of some inputs permuted, by an order that is its own inverse, and its result too."""

    def turned(tensor: Any) -> Any:
        return backend.from_array(np.ascontiguousarray(backend.to_array(tensor).transpose(order)))

    def remake(call: OpCall) -> Any:
        assert call.function is not None
        leaves = flatten_call(call.args, call.kwargs).leaves
        args, kwargs = replace_call(call.args, call.kwargs, {slot: turned(leaves[slot]) for slot in slots})
        given = call.function(*args, **kwargs)
        first = next(iter(flatten(given).leaves.items()))
        return replace_leaves(given, {first[0]: turned(first[1])})

    return remake


@dataclass(frozen=True, slots=True)
class Feeding:
    """Other tensors in some slots."""

    tensors: Mapping[str, Callable[[], Any]]

    def __call__(self, call: OpCall) -> Any:
        assert call.function is not None
        fed = {slot: make() for slot, make in self.tensors.items()}
        args, kwargs = replace_call(call.args, call.kwargs, fed)
        return call.function(*args, **kwargs)


def feeding(backend: Backend, slot: str, array: Array) -> Remake:
    return Feeding({slot: lambda: backend.from_array(array)})


def merged(choices: Iterable[Mapping[int, Remake]]) -> dict[int, Remake]:
    """Several changes at once; of two for one op the first, except that inputs in different slots combine."""
    found: dict[int, Remake] = {}
    for edits in choices:
        for index, remake in edits.items():
            before = found.setdefault(index, remake)
            if isinstance(before, Feeding) and isinstance(remake, Feeding):
                found[index] = Feeding({**remake.tensors, **before.tensors})
    return found


def handing(backend: Backend, word: str, array: Array) -> Remake:
    """The op's result with one more tensor as an argument."""

    def remake(call: OpCall) -> Any:
        assert call.function is not None
        return call.function(*call.args, **{**call.kwargs, word: backend.from_array(array)})

    return remake


def giving(backend: Backend, array: Array) -> Remake:
    """A fixed value."""
    return lambda call: backend.from_array(array)


def bridging(backend: Backend, reference: Backend, other: Op) -> Remake:
    """What an op of the reference gives for the same tensors: of several results, as many as the port's."""

    def remake(call: OpCall) -> Any:
        assert other.function is not None
        leaves = flatten_call(call.args, call.kwargs).leaves
        tensors = [leaf for leaf in leaves.values() if backend.is_tensor(leaf)]
        arrays = [reference.from_array(backend.to_array(tensor)) for tensor in tensors]
        args, kwargs = replace_call(other.args, other.kwargs, dict(zip(other.inputs, arrays, strict=True)))
        given = flatten(other.function(*args, **kwargs)).leaves.values()
        back = [backend.from_array(reference.to_array(each)) for each in given if reference.is_tensor(each)]
        slots = [slot for slot, leaf in flatten(call.output).leaves.items() if backend.is_tensor(leaf)]
        return replace_leaves(call.output, dict(zip(slots, back, strict=False)))

    return remake


def followed_by(next_one: Remake) -> Remake:
    """What the op gives, through another one."""
    return lambda call: next_one(replace(call, args=(call.output,), kwargs={}))
