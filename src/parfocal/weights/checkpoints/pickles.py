"""``.pdparams``: pickles of dictionaries of NumPy arrays, as ``paddle.save`` writes them.

Read by the restricted reader of ``parfocal.run`` over the mapped file: long values stay in the
file. A tensor inside a nested dictionary is a pair of its name and its array; bfloat16 is stored
as uint16; the oldest protocols cut large tensors into pieces.
"""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import Any

import numpy as np

from parfocal.errors import FileFormatError
from parfocal.phrases import phrase
from parfocal.run.dtypes import DTYPES
from parfocal.run.standins import GLOBALS, NUMPY, MalformedError, PickleDialect, WorkBudget
from parfocal.run.storage import map_file, open_for_reading, storage_errors
from parfocal.run.unpickle import load_pickle
from parfocal.weights.checkpoints.tensors import (
    Array,
    FileTensor,
    MappedText,
    mapped_readers,
    of_array,
)

PARAMETER_NAMES = "StructuredToParameterName@@"
PIECES = "UnpackBigParamInfor@@"


def load(path: Path) -> dict[str, Any]:
    """What the pickle holds, with every array as a ``FileTensor``."""
    data = map_file(path)
    dialect = PickleDialect(
        globals=GLOBALS | {("builtins", "tuple"): "tuple", ("__builtin__", "tuple"): "tuple"},
        reducers=dict(NUMPY.reducers) | {"encode": _encode, "tuple": _tuple},
        readers=mapped_readers(data, str(path)),
        hint=phrase("save only a state dict: paddle.save(model.state_dict(), path)"),
    )
    with os.fdopen(open_for_reading(path), "rb") as file, storage_errors("read", path):
        value = load_pickle(file, data.nbytes, str(path), dialect)
    if not isinstance(value, dict):
        raise FileFormatError(
            phrase(
                "{path} holds a {kind}, not a mapping from names to tensors",
                path=path,
                kind=type(value).__name__,
            ),
            hint=phrase("save a state dict: paddle.save(model.state_dict(), path)"),
        )
    try:
        plain: dict[str, Any] = _plain(_joined(value))
    except MalformedError as error:
        raise FileFormatError(phrase("{path}: {error}", path=path, error=error)) from None
    return plain


def _encode(arguments: tuple[Any, ...], budget: WorkBudget) -> Any:
    match arguments:
        case (MappedText() as text, "latin1"):
            budget.spend(text.data.size)
            return text.encoded()
        case _:
            return NUMPY.reducers["encode"](arguments, budget)


def _tuple(arguments: tuple[Any, ...], budget: WorkBudget) -> tuple[Any, ...]:
    match arguments:
        case (tuple(items) | list(items),):
            budget.spend(len(items))
            return tuple(items)
        case _:
            raise MalformedError(phrase("a tuple is made from something else than items"))


def _plain(value: Any) -> Any:
    """Arrays as tensors, pairs of a name and an array as the array."""
    match value:
        case dict():
            return {key: _plain(item) for key, item in value.items() if key != PARAMETER_NAMES}
        case (str(), np.ndarray() | FileTensor() as array):
            return _tensor(array)
        case list() | tuple():
            return type(value)(_plain(item) for item in value)
        case np.ndarray() | FileTensor():
            return _tensor(value)
        case _:
            return value


def _tensor(value: Array | FileTensor) -> Any:
    tensor = of_array(value) if isinstance(value, np.ndarray) else value
    if tensor.dtype == np.uint16:  # paddle's bfloat16; it has no uint16 of its own
        bits, dtype = tensor, DTYPES["bfloat16"]
        return FileTensor(bits.shape, dtype, lambda: bits.read().view(dtype), bits.memory)
    return tensor if tensor.dtype.name in DTYPES else None


def _joined(value: dict[Any, Any]) -> dict[Any, Any]:
    """A dictionary whose large tensors were cut has them whole again."""
    cut = value.get(PIECES)
    if not isinstance(cut, dict):
        return value
    found = dict(value)
    del found[PIECES]
    for name, description in cut.items():
        match description:
            case {"OriginShape": tuple(shape) | list(shape), "slices": list(pieces)} if all(
                type(extent) is int and extent >= 0 for extent in shape
            ):
                found[name] = _glued([found.pop(piece, None) for piece in pieces], tuple(shape), name)
            case _:
                raise MalformedError(
                    phrase("the pieces of {name} are not described as they should be", name=repr(name))
                )
    return found


def _glued(pieces: list[Any], shape: tuple[int, ...], name: Any) -> FileTensor:
    tensors = [of_array(each) if isinstance(each, np.ndarray) else each for each in pieces]
    if not tensors or not all(isinstance(each, FileTensor) and len(each.shape) == 1 for each in tensors):
        raise MalformedError(phrase("a piece of {name} is missing", name=repr(name)))
    dtype = tensors[0].dtype
    if any(each.dtype != dtype for each in tensors) or sum(each.shape[0] for each in tensors) != math.prod(
        shape
    ):
        raise MalformedError(
            phrase(
                "the pieces of {name} do not make up a tensor of shape {shape}",
                name=repr(name),
                shape=list(shape),
            )
        )

    def read() -> Array:
        whole = np.empty(math.prod(shape), dtype)
        start = 0
        for each in tensors:
            whole[start : start + each.shape[0]] = each.read()
            start += each.shape[0]
        return whole.reshape(shape)

    return FileTensor(shape, dtype, read)
