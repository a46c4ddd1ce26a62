"""What is to be written: the state of a live port, or that of a template file.

Both give the same things: a framework, contents for matching, the list of tensors of the file to be
written, and the values that a tensor keeps when the checkpoint has none for it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from parfocal.backends import registry
from parfocal.errors import InputError
from parfocal.phrases import phrase
from parfocal.run.dtypes import DTYPES
from parfocal.weights.checkpoints import bare
from parfocal.weights.checkpoints.reading import load_checkpoint
from parfocal.weights.checkpoints.tensors import Array, FileTensor
from parfocal.weights.checkpoints.writing import OWNERS, PlannedTensor
from parfocal.weights.state import SideContents, read_model

OTHER = {"torch": "paddle", "paddle": "torch"}


@dataclass(frozen=True, slots=True)
class TargetFile:
    """The file to be written."""

    words: str  # "port" or "template"
    contents: SideContents
    tensors: tuple[PlannedTensor, ...]
    kept: Callable[[str], Array]  # the target's own values of a tensor
    live: bool


def of_model(model: Any) -> TargetFile:
    """A live port: everything that its framework saves."""
    backend = registry.of_model(model, phrase("port"))
    state = {tensor.path: tensor for tensor in backend.state(model) if tensor.persistent}
    contents = read_model(backend, model)
    stored = tuple(tensor for tensor in contents.stored if tensor.path in state)
    contents = replace(contents, stored=stored)
    planned = _planned(contents)

    def kept(path: str) -> Array:
        return backend.to_array(state[path].value, copy=False)

    return TargetFile("port", contents, planned, kept, live=True)


def of_template(path: Path, out: Path, source_framework: str | None) -> TargetFile:
    """A template file. Where it does not say, the framework is that of the output's suffix."""
    template = load_checkpoint(path)
    framework = (
        template.framework
        or OWNERS.get(out.suffix)
        or bare.framework_by_names(template.tensors)
        or (OTHER[source_framework] if source_framework else None)
    )
    if framework is None:
        raise InputError(
            phrase("neither {path} nor the checkpoint says which framework it is of", path=path),
            hint=phrase("give the port itself, or a template in the framework's own format"),
        )
    tensors: Mapping[str, FileTensor] = template.tensors
    contents = bare.contents_of(framework, tensors)
    return TargetFile("template", contents, _planned(contents), lambda name: tensors[name].read(), live=False)


def _planned(contents: SideContents) -> tuple[PlannedTensor, ...]:
    names = {tensor.path for tensor in contents.stored}
    planned = []
    for tensor in contents.stored:
        if tensor.dtype not in DTYPES:
            raise InputError(
                phrase(
                    "{path} is {dtype}, which no checkpoint file holds", path=tensor.path, dtype=tensor.dtype
                )
            )
        tied = tensor.tied_to if tensor.tied_to in names else None
        planned.append(PlannedTensor(tensor.path, tensor.shape, np.dtype(DTYPES[tensor.dtype]), tied))
    return tuple(planned)
