"""The first tensor of a run that is not finite: a parameter, an input, or what a module or an op gives."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np

from parfocal.backends.protocol import Array, Backend, Call, OpCall
from parfocal.capture.nested_values import flatten
from parfocal.capture.sites import Sites
from parfocal.judge.verdict import side_name, tensor_words
from parfocal.phrases import phrase

_ROLES = {"parameter": phrase("parameter"), "buffer": phrase("buffer")}


def first_nonfinite(
    backend: Backend, model: Any, words: str, inputs: Iterable[Array], forward: Callable[[], object]
) -> str:
    """In words, empty where all is finite; ``forward`` is run once more under watch for it."""
    side = side_name(words)
    for entry in backend.state(model):
        if not _finite(backend.to_array(entry.value, copy=False)):
            role = _ROLES.get(entry.role, entry.role)
            return phrase("the {role} {path} of the {side}", role=role, path=entry.path, side=side)
    for number, array in enumerate(inputs):
        if not _finite(array):
            return phrase("input {number} of the {side}", number=number, side=side)
    found: list[str] = []
    origins = _Origins(backend)
    sites = Sites((backend.name,))

    def on_exit(call: Call, output: Any) -> None:
        for slot, leaf in flatten(output).leaves.items():
            if not found and backend.is_tensor(leaf) and not _finite(backend.to_array(leaf)):
                what = tensor_words("output", slot) if slot else phrase("output")
                path = call.path or phrase("the whole model")
                where = phrase("the {what} of {path} of the {side}", what=what, path=path, side=side)
                found.append(_from(where, origins.of((call.args, call.kwargs))))

    def on_op(op: OpCall) -> None:
        made = [leaf for leaf in flatten(op.output).leaves.values() if backend.is_tensor(leaf)]
        if found or all(_finite(backend.to_array(leaf)) for leaf in made):
            return
        path, (file, line) = op.module or phrase("the whole model"), sites.find()
        where = phrase(
            "the result of {op} in {path} of the {side}{at}",
            op=op.name,
            path=path,
            side=side,
            at=f" ({Path(file).name}:{line})" if file else "",
        )
        origin = origins.of((op.args, op.kwargs))
        if any(_has_nan(backend.to_array(leaf)) for leaf in made):
            found.append(_from(where, origin))
        else:
            origins.keep(made, origin or where)

    with backend.no_grad(), backend.watch(model, on_exit=on_exit, on_op=on_op):
        forward()
    return found[0] if found else ""


class _Origins:
    """Which op made the infinity in a tensor. That alone is no mistake: masks are made of it."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._known: dict[int, tuple[Any, str]] = {}  # with the tensor, so that its id stays its own

    def keep(self, made: Iterable[Any], origin: str) -> None:
        for tensor in made:
            self._known[id(tensor)] = tensor, origin

    def of(self, given: Any) -> str:
        """Of the first infinite tensor that a call is given; empty: there is none."""
        leaves = (id(leaf) for leaf in flatten(given).leaves.values() if self._backend.is_tensor(leaf))
        return next((self._known[each][1] for each in leaves if each in self._known), "")


def _from(where: str, origin: str) -> str:
    if not origin:
        return where
    return phrase("{where}, which is given infinity by {origin}", where=where, origin=origin)


def _has_nan(array: Any) -> bool:
    return array.dtype.kind in "fc" and bool(np.isnan(array).any())


def _finite(array: Any) -> bool:
    return array.dtype.kind not in "fc" or bool(np.isfinite(array).all())
