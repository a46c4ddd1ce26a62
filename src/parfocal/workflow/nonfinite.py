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
    sites = Sites((backend.name,))

    def on_exit(call: Call, output: Any) -> None:
        for slot, leaf in flatten(output).leaves.items():
            if not found and backend.is_tensor(leaf) and not _finite(backend.to_array(leaf)):
                what = tensor_words("output", slot) if slot else phrase("output")
                path = call.path or phrase("the whole model")
                found.append(phrase("the {what} of {path} of the {side}", what=what, path=path, side=side))

    def on_op(op: OpCall) -> None:
        # infinity is what masks are made of
        for leaf in flatten(op.output).leaves.values():
            if not found and backend.is_tensor(leaf) and _has_nan(backend.to_array(leaf)):
                path, (file, line) = op.module or phrase("the whole model"), sites.find()
                at = f" ({Path(file).name}:{line})" if file else ""
                found.append(
                    phrase(
                        "the result of {op} in {path} of the {side}{at}",
                        op=op.name,
                        path=path,
                        side=side,
                        at=at,
                    )
                )

    with backend.no_grad(), backend.watch(model, on_exit=on_exit, on_op=on_op):
        forward()
    return found[0] if found else ""


def _has_nan(array: Any) -> bool:
    return array.dtype.kind in "fc" and bool(np.isnan(array).any())


def _finite(array: Any) -> bool:
    return array.dtype.kind not in "fc" or bool(np.isfinite(array).all())
