"""The first tensor of a step that is not finite: a parameter, an input, or what a module or an op gives."""

from __future__ import annotations

from typing import Any

import numpy as np

from parfocal.backends.protocol import Call, OpCall
from parfocal.capture.nested_values import flatten
from parfocal.judge.verdict import side_name, tensor_words
from parfocal.phrases import phrase
from parfocal.workflow.training.batches import Batch, arrays_of
from parfocal.workflow.training.sides import TrainingSide

_ROLES = {"parameter": phrase("parameter"), "buffer": phrase("buffer")}


def first_nonfinite(side: TrainingSide, batch: Batch) -> str:
    """In words; the model is run once more under watch for it."""
    backend = side.backend
    for entry in side.entries:
        if not _finite(backend.to_array(entry.value, copy=False)):
            return phrase(
                "the {role} {path} of the {side}",
                role=_ROLES.get(entry.role, entry.role),
                path=entry.path,
                side=side_name(side.words),
            )
    for number, array in enumerate(arrays_of(batch.inputs)):
        if not _finite(array):
            return phrase("input {number} of the {side}", number=number, side=side_name(side.words))
    found: list[str] = []

    def on_exit(call: Call, output: Any) -> None:
        for slot, leaf in flatten(output).leaves.items():
            if not found and backend.is_tensor(leaf) and not _finite(backend.to_array(leaf)):
                what = tensor_words("output", slot) if slot else phrase("output")
                found.append(
                    phrase(
                        "the {what} of {path} of the {side}",
                        what=what,
                        path=call.path or phrase("the whole model"),
                        side=side_name(side.words),
                    )
                )

    def on_op(op: OpCall) -> None:
        # infinity is what masks are made of
        for leaf in flatten(op.output).leaves.values():
            if not found and backend.is_tensor(leaf) and _has_nan(backend.to_array(leaf)):
                found.append(
                    phrase(
                        "the result of {op} in {path} of the {side}",
                        op=op.name,
                        path=op.module or phrase("the whole model"),
                        side=side_name(side.words),
                    )
                )

    with backend.no_grad(), backend.watch(side.model, on_exit=on_exit, on_op=on_op):
        side.forward(batch)
    return found[0] if found else phrase("the loss of the {side} itself", side=side_name(side.words))


def _has_nan(array: Any) -> bool:
    return array.dtype.kind in "fc" and bool(np.isnan(array).any())


def _finite(array: Any) -> bool:
    return array.dtype.kind not in "fc" or bool(np.isfinite(array).all())
