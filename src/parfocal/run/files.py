"""Any file of named arrays that parfocal reads: one function, by the file's content.

``reprod_log`` files, ``.npy``, ``.npz``, ``.safetensors``, Run folders and folders of ``.npy`` files all
become one dictionary. Nothing in a file is ever executed.
"""

from __future__ import annotations

import os
import pickle
import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from parfocal.errors import FileFormatError, InputError
from parfocal.phrases import phrase
from parfocal.run.layout import HEADER_FILE
from parfocal.run.npy import NPY_MAGIC, NPZ_MAGICS, load_npy, load_npz
from parfocal.run.reader import Run, load_run
from parfocal.run.records import (
    CallRecord,
    FloorRecord,
    GradientRecord,
    InterruptionRecord,
    Leaf,
    OptimizerRecord,
    StateRecord,
    StepRecord,
    TensorValue,
    ValueRecord,
)
from parfocal.run.storage import PARTIAL_SUFFIX, open_for_reading, storage_errors
from parfocal.run.tensorfile import is_safetensors, load_safetensors

_HINT = phrase(
    "a Run folder, a folder of .npy files, .npy (also of reprod_log), .npz and .safetensors can be read"
)


def load_arrays(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Name -> array (or number, text, dictionary), whatever kind of file it is.

    A plain array has the name ``""``; one in a folder has the name of its file. When ``path`` does not
    exist but ``path.npy`` does, that is read, as ``reprod_log`` adds the suffix on saving.
    """
    path = _existing(Path(path))
    if os.path.isdir(path):
        found = {} if (path / HEADER_FILE).exists() else _load_folder(path)
        return found or flatten_run(load_run(path))
    with os.fdopen(open_for_reading(path), "rb") as file, storage_errors("read", path):
        start = file.read(16)
        size = os.fstat(file.fileno()).st_size
    if start.startswith(NPY_MAGIC):
        return _named(load_npy(path), path)
    if start.startswith(NPZ_MAGICS):
        return load_npz(path)
    if is_safetensors(start, size):
        return dict(load_safetensors(path))
    if not size:
        raise FileFormatError(phrase("{path} is empty", path=path), hint=_HINT)
    raise FileFormatError(
        phrase("{path}: unknown kind of file; it begins with {value}", path=path, value=repr(start[:8])),
        hint=_HINT,
    )


def _load_folder(folder: Path) -> dict[str, Any]:
    """The arrays of a folder and the folders in it, by their paths without ``.npy``."""
    found: dict[str, Any] = {}
    for file in sorted(folder.rglob("*.npy")):
        if file.is_file():
            value = load_npy(file)
            name = file.relative_to(folder).with_suffix("").as_posix()
            found[name] = _named(value, file) if isinstance(value, dict) else value
    return found


def save_reprod_log(path: str | os.PathLike[str], data: Mapping[str, Any]) -> Path:
    """Write what ``numpy.save(path, data)`` writes for a dictionary, in one step.

    Adds ``.npy`` where it is missing, and returns the path of the file.
    """
    target = Path(path)
    if not target.name:
        raise InputError(phrase("{path} does not name a file", path=repr(os.fspath(path))))
    if target.suffix != ".npy":
        target = target.with_name(f"{target.name}.npy")
    partial = target.with_name(f".{target.name}-{secrets.token_hex(8)}{PARTIAL_SUFFIX}")
    try:
        with storage_errors("write", target):
            with open(partial, "xb") as file:
                np.save(file, dict(data), allow_pickle=True)  # type: ignore[arg-type]
            os.replace(partial, target)
    except (pickle.PicklingError, TypeError, AttributeError) as error:
        raise InputError(
            phrase("cannot write {target}: a value cannot be pickled: {error}", target=target, error=error)
        ) from error
    finally:
        with suppress(FileNotFoundError):
            os.unlink(partial)
    return target


def _existing(path: Path) -> Path:
    with_suffix = path.with_name(f"{path.name}.npy") if path.name else path
    return with_suffix if not os.path.exists(path) and os.path.exists(with_suffix) else path


def _named(value: Any, path: Path) -> dict[str, Any]:
    """The dictionary of a reprod_log file, or the one array without a name."""
    if not isinstance(value, dict):
        return {"": value}
    named = {str(key): item for key, item in value.items()}
    if len(named) != len(value):
        raise FileFormatError(phrase("{path}: two keys are the same when written as text", path=path))
    return named


# A Run as named arrays.


def flatten_run(run: Run) -> dict[str, Any]:
    """All tensors and values of a Run under readable names.

    ``layer1.0.conv1#0/output/0`` is the first output of the first call of a module, with
    ``/grad`` its gradient; an op adds its name: ``layer1.0:relu#0``. State is named
    ``parameter/conv1.weight@before``. A step or rank other than the first leads the name.
    """
    arrays: dict[str, Any] = {}
    calls: dict[tuple[int, int, int], str] = {}
    for record in run.records():
        if isinstance(record, CallRecord):
            calls[record.rank, record.step, record.order] = _call_name(record)
        for name, leaf in _NAMES[type(record)](record, calls):
            full = _lead(record) + name
            if full in arrays and not _adds_up(record):
                raise FileFormatError(
                    phrase("{path}: two records have the name {full}", path=run.path, full=repr(full))
                )
            if isinstance(leaf, TensorValue):
                if leaf.ref is not None:
                    arrays[full] = run.read(leaf)
            elif leaf is not None:
                arrays[full] = leaf
    return arrays


def _adds_up(record: Any) -> bool:
    """Gradients of parameters are recorded after every backward pass of a step, each time the sum so far."""
    return isinstance(record, StateRecord) and record.role == "gradient"


_Calls = dict[tuple[int, int, int], str]
_Named = Iterator[tuple[str, Leaf]]


def _lead(record: Any) -> str:
    return (f"rank{record.rank}/" if record.rank else "") + (f"step{record.step}/" if record.step else "")


def _call_name(record: CallRecord) -> str:
    op = f":{record.op}" if record.op else ""
    return f"{record.path}{op}#{record.occurrence}"


def _of_call(record: CallRecord, calls: _Calls) -> _Named:
    for side, structure in (("input", record.inputs), ("output", record.outputs)):
        for slot, leaf in structure.leaves.items():
            if isinstance(leaf, TensorValue):
                yield f"{_call_name(record)}/{side}/{slot}", leaf


def _of_gradient(record: GradientRecord, calls: _Calls) -> _Named:
    call = calls.get((record.rank, record.step, record.call), f"call {record.call}")
    backward = record.backward or ""
    if not record.hidden:
        yield f"{call}/{record.side}/{record.slot}/grad{backward}", record.value


def _of_state(record: StateRecord, calls: _Calls) -> _Named:
    slot = f".{record.slot}" if record.slot else ""
    yield f"{record.role}/{record.path}{slot}@{record.moment}", record.value


def _of_step(record: StepRecord, calls: _Calls) -> _Named:
    for name in ("loss", "learning_rate", "gradient_norm", "update_norm"):
        yield f"end/{name}", getattr(record, name)


def _of_value(record: ValueRecord, calls: _Calls) -> _Named:
    yield f"value/{record.name}", record.value


def _of_none(record: Any, calls: _Calls) -> _Named:
    """What holds no values."""
    return iter(())


_NAMES: dict[type[Any], Callable[[Any, _Calls], _Named]] = {
    CallRecord: _of_call,
    GradientRecord: _of_gradient,
    StateRecord: _of_state,
    OptimizerRecord: _of_none,
    StepRecord: _of_step,
    FloorRecord: _of_none,
    InterruptionRecord: _of_none,
    ValueRecord: _of_value,
}
