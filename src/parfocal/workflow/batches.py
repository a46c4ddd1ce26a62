"""``save_batches`` and ``load_batches``: one side's batches for the other, so that both train alike.

One safetensors file: arrays by batch and place, and the batches' structure as its metadata. Reading it runs
no code.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from parfocal.backends import registry
from parfocal.backends.protocol import Array
from parfocal.brief import brief
from parfocal.errors import EmptyComparisonError, FileFormatError, InputError, StorageError
from parfocal.phrases import phrase
from parfocal.run.storage import write_atomically
from parfocal.workflow.sample_streams import as_array

FORMAT = "parfocal batches 1"
PLAIN = "numpy"  # the framework of load_batches that is none


def save_batches(loader: Iterable[Any], path: str | Path, n: int) -> Path:
    """Write the first ``n`` batches of a loader to a ``.safetensors`` file; returns its path.

    A batch is an array or tensor, or a tuple, list or dict of such, nested as it likes.
    """
    if isinstance(n, bool) or not isinstance(n, int) or n < 1:
        raise InputError(phrase("n={n} is not a number of batches", n=brief(n)))
    target = Path(path)
    arrays: dict[str, Array] = {}
    structures = [
        _stored(batch, f"{index:06d}", arrays) for index, batch in enumerate(islice(iter(loader), n))
    ]
    if not structures:
        raise EmptyComparisonError(phrase("the loader gave no batch, so there is nothing to save"))
    if len(structures) < n:
        raise InputError(
            phrase("the loader gave {count} batches, {n} were asked for", count=len(structures), n=n),
            hint=f"save_batches(loader, path, {len(structures)})",
        )
    data = save(arrays, metadata={"format": FORMAT, "batches": json.dumps(structures)})
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(target, data)
    except OSError as error:
        raise StorageError(
            phrase("cannot write {target}: {strerror}", target=target, strerror=error.strerror)
        ) from error
    return target


def load_batches(path: str | Path, framework: str) -> list[Any]:
    """The batches of a file, in the structure they were saved in, as tensors of ``framework``.

    ``framework`` is the name of one that is installed, or "numpy" for arrays.
    """
    convert = (lambda array: array) if framework == PLAIN else registry.get(framework).from_array
    source = Path(path)
    try:
        with safe_open(str(source), framework="np") as file:
            metadata = file.metadata() or {}
            if metadata.get("format") != FORMAT:
                raise FileFormatError(
                    phrase(
                        "{source} holds no batches: format {get}, not {format}",
                        source=source,
                        get=brief(metadata.get("format")),
                        format=repr(FORMAT),
                    ),
                    hint=phrase("write it with pf.save_batches"),
                )
            return [_restored(each, file.get_tensor, convert) for each in json.loads(metadata["batches"])]
    except FileNotFoundError as error:
        raise InputError(phrase("there is no file {source}", source=source)) from error
    except (SafetensorError, KeyError, json.JSONDecodeError) as error:
        raise FileFormatError(
            phrase("{source} is no file of batches: {error}", source=source, error=error)
        ) from error
    except OSError as error:
        raise StorageError(
            phrase("cannot read {source}: {strerror}", source=source, strerror=error.strerror)
        ) from error


def _stored(value: Any, place: str, arrays: dict[str, Array]) -> Any:
    """The structure of a batch with the names of its arrays in their places."""
    if isinstance(value, Mapping):
        return {"dict": {str(key): _stored(item, f"{place}.{key}", arrays) for key, item in value.items()}}
    if isinstance(value, (tuple, list)):
        kind = "tuple" if isinstance(value, tuple) else "list"
        return {kind: [_stored(item, f"{place}.{index}", arrays) for index, item in enumerate(value)]}
    if value is None or isinstance(value, (str, bool, int, float)):
        return {"value": value}
    array = as_array(value)
    if array.dtype.kind not in "fiubcV":
        raise InputError(
            phrase(
                "batch {place} holds {value}, which cannot be saved as an array of numbers",
                place=place,
                value=brief(value),
            ),
            hint=phrase("save numbers: pictures as arrays, words as ids"),
        )
    arrays[place] = np.ascontiguousarray(array).reshape(array.shape)  # a number stays one
    return {"array": place}


def _restored(stored: Any, read: Any, convert: Any) -> Any:
    (kind, content), *_ = stored.items()
    if kind == "dict":
        return {key: _restored(item, read, convert) for key, item in content.items()}
    if kind in ("tuple", "list"):
        items = [_restored(item, read, convert) for item in content]
        return tuple(items) if kind == "tuple" else items
    return content if kind == "value" else convert(read(content))


def stacked(samples: list[Any]) -> Any:
    """Samples as one batch, in their structure."""
    first = samples[0]
    if isinstance(first, Mapping):
        return {key: stacked([each[key] for each in samples]) for key in first}
    if isinstance(first, (tuple, list)):
        return tuple(stacked([each[index] for each in samples]) for index in range(len(first)))
    return np.stack([as_array(each) for each in samples])
