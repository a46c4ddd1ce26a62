"""A call of a model made again on a copy that nobody watches, from what it started from.

Copies are deep: the repeat changes neither the model nor its arguments, and gradients that are sent
back through it end at the copy's own parameters and inputs.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from parfocal.backends.protocol import Array, Backend
from parfocal.capture.determinism import random_state
from parfocal.capture.nested_values import flatten, flatten_call, replace_call
from parfocal.errors import UnsupportedError
from parfocal.phrases import phrase

Bits = dict[str, Array | None]
Arguments = tuple[tuple[Any, ...], dict[str, Any]]


@dataclass(frozen=True, slots=True)
class CallStart:
    """What a call begins with: a copy of the module and of the arguments, and the generators' state."""

    module: Any
    arguments: Arguments
    restore_random: Callable[[], None]


@dataclass(frozen=True, slots=True)
class RepeatedCall:
    """A call that was made again."""

    module: Any
    output: Any
    left: Bits  # what the call left behind
    input_gradients: dict[str, Array] = field(default_factory=dict)


def start_of(backend: Backend, module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> CallStart:
    """Remember what a call that is about to be made begins with."""
    try:
        twin = backend.copy_as(module, None)
    except UnsupportedError as error:
        raise UnsupportedError(
            phrase(
                "check=True makes every call again on a copy of the model: {message}", message=error.message
            ),
            hint=phrase(
                "record the model inside of a wrapper that cannot be copied, or record without check=True"
            ),
        ) from error
    return CallStart(twin, _copied(backend, args, kwargs), random_state(backend))


def repeat(backend: Backend, start: CallStart, module: Any) -> RepeatedCall:
    """Make a call again, by ``module``: a copy of the start's, which is there for more than one repeat.

    The random generators are left where the call left them.
    """
    args, kwargs = _copied(backend, *start.arguments)
    gradients: dict[str, Array] = {}
    await_inputs(backend, args, kwargs, gradients.__setitem__)
    start.restore_random()
    output = module(*args, **kwargs)
    return RepeatedCall(module, output, left_behind(backend, module, output), gradients)


def await_inputs(
    backend: Backend, args: tuple[Any, ...], kwargs: dict[str, Any], arrived: Callable[[str, Array], None]
) -> list[Callable[[], None]]:
    """Call back with the gradient of every input; returns the removers of hooks that outlive the graph."""
    removers = []
    for slot, tensor in tensors_of(backend, flatten_call(args, kwargs).leaves).items():
        if backend.requires_grad(tensor) and backend.grad_enabled():

            def take(gradient: Any, slot: str = slot) -> None:
                arrived(slot, backend.to_array(gradient))

            remove = backend.watch_gradient(tensor, take)
            if remove is not None and backend.is_leaf(tensor):
                removers.append(remove)
    return removers


def left_behind(backend: Backend, module: Any, output: Any) -> Bits:
    """What a call leaves: its outputs, weights and buffers, and the random numbers that come next."""
    found: Bits = {}
    for slot, tensor in tensors_of(backend, flatten(output).leaves).items():
        _add(backend, found, f"output {slot}", tensor)
    for entry in backend.state(module):
        _add(backend, found, f"{entry.role} {entry.path}", entry.value)
    found["random generator"] = backend.random_values()
    return found


def send_back(backend: Backend, made: RepeatedCall, gradients: Mapping[str, Any]) -> Bits:
    """What gradients at the outputs become at the parameters and inputs of a repeated call.

    Each is the whole gradient of its output, what comes through other outputs included, so that it
    stands for whatever the pass brings there.
    """
    outputs = tensors_of(backend, flatten(made.output).leaves)
    backend.clear_gradients(made.module)
    made.input_gradients.clear()
    removers = [
        backend.watch_gradient(outputs[slot], partial(_instead, gradient))
        for slot, gradient in gradients.items()
    ]
    try:
        backend.backward([outputs[slot] for slot in gradients], list(gradients.values()), retain=True)
    finally:
        for remove in removers:
            if remove is not None:
                remove()
    found: Bits = {
        f"gradient {entry.path}": backend.gradient(entry.value)
        for entry in backend.state(made.module)
        if entry.trainable and entry.tied_to is None
    }
    return found | {f"gradient of input {slot}": value for slot, value in made.input_gradients.items()}


def differing(one: Bits, other: Bits) -> list[str]:
    """The names under which two outcomes are not the same bit for bit."""
    return sorted(
        name
        for name in one.keys() | other.keys()
        if name not in one or name not in other or not same_bits(one[name], other[name])
    )


def same_bits(one: Array | None, other: Array | None) -> bool:
    """Whether two arrays are the same, the bits of every NaN included."""
    if one is None or other is None:
        return one is other
    return one.dtype == other.dtype and one.shape == other.shape and one.tobytes() == other.tobytes()


def tensors_of(backend: Backend, leaves: Mapping[str, Any]) -> dict[str, Any]:
    """The tensors among the leaves, each once."""
    found: dict[int, tuple[str, Any]] = {}
    for slot, leaf in leaves.items():
        if backend.is_tensor(leaf):
            found.setdefault(id(leaf), (slot, leaf))
    return dict(found.values())


def _instead(whole: Any, _: Any) -> Any:
    return whole


def _add(backend: Backend, found: Bits, name: str, tensor: Any) -> None:
    try:
        array = backend.to_array(tensor, copy=False)
    except UnsupportedError:  # a kind of tensor without plain values has no bits to compare
        return
    if array.size:  # a tensor that has no values yet may get another dtype when it is copied
        found[name] = array


def _copied(backend: Backend, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Arguments:
    """Arguments of the call's own; an object inside that cannot be copied is shared."""
    leaves = flatten_call(args, kwargs).leaves
    tensors = {id(leaf): backend.duplicate(leaf) for leaf in leaves.values() if backend.is_tensor(leaf)}
    try:
        copied: Arguments = copy.deepcopy((args, kwargs), dict(tensors))
    except (RuntimeError, TypeError, ValueError):
        copies = {slot: tensors[id(leaf)] for slot, leaf in leaves.items() if id(leaf) in tensors}
        return replace_call(args, kwargs, copies)
    return copied
