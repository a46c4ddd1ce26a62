"""The first tensor of a step that is not finite: a parameter, an input, or what a module gives."""

from __future__ import annotations

from typing import Any

import numpy as np

from parfocal.backends.protocol import Call
from parfocal.capture.tree import flatten
from parfocal.workflow.training.batches import Batch, arrays_of
from parfocal.workflow.training.sides import TrainingSide


def first_nonfinite(side: TrainingSide, batch: Batch) -> str:
    """In words; the model is run once more under watch for it."""
    backend = side.backend
    for entry in side.entries:
        if not _finite(backend.to_array(entry.value, copy=False)):
            return f"the {entry.role} {entry.path} of the {side.words}"
    for number, array in enumerate(arrays_of(batch.inputs)):
        if not _finite(array):
            return f"input {number} of the {side.words}"
    found: list[str] = []

    def on_exit(call: Call, output: Any) -> None:
        for slot, leaf in flatten(output).leaves.items():
            if not found and backend.is_tensor(leaf) and not _finite(backend.to_array(leaf)):
                what = f"output{f' {slot}' if slot else ''}"
                found.append(f"the {what} of {call.path or 'the whole model'} of the {side.words}")

    with backend.no_grad(), backend.watch(side.model, on_exit=on_exit):
        side.forward(batch)
    return found[0] if found else f"the loss of the {side.words} itself"


def _finite(array: Any) -> bool:
    return array.dtype.kind not in "fc" or bool(np.isfinite(array).all())
