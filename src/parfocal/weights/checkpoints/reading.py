"""Any checkpoint file, by its content: one function for all formats, sharded or not.

Training scripts wrap a state dict in other dictionaries and add prefixes to its names; both are
taken off here, and what was left out is noted.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from parfocal.backends import registry
from parfocal.backends.protocol import CheckpointReader
from parfocal.errors import FileFormatError, InputError, MissingFrameworkError
from parfocal.judge.named import flatten
from parfocal.phrases import joined, phrase
from parfocal.run.storage import open_for_reading, read_limited, storage_errors
from parfocal.run.tensorfile import is_safetensors, load_safetensors, read_metadata
from parfocal.weights.checkpoints import archives, pickles
from parfocal.weights.checkpoints.tensors import CheckpointFile, FileTensor, of_array

SUFFIXES = (".pth", ".pt", ".bin", ".safetensors", ".pdparams")
INDEX_SUFFIX = ".index.json"
MAX_INDEX_BYTES = 2**28

# Under which names training scripts keep the state dict, the likeliest first.
WRAPPERS = (
    *("state_dict", "model_state_dict", "model_state", "model", "module", "net", "network", "params"),
    *("weights", "parameters", "model_ema", "ema_state_dict", "ema", "generator", "backbone", "encoder"),
)
# What safetensors files say of the framework that wrote them.
FORMATS = {"pt": "torch", "torch": "torch", "pytorch": "torch", "pd": "paddle", "paddle": "paddle"}
# The first bytes of the format before torch 1.6: a pickle of one magic number.
LEGACY_TORCH = b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19."


def is_checkpoint(path: Path) -> bool:
    """Whether a path has a checkpoint's suffix."""
    return path.suffix in SUFFIXES or path.name.endswith(INDEX_SUFFIX)


def of_arrays(path: Path, arrays: Mapping[str, Any]) -> CheckpointFile:
    """Named arrays of another kind of file as a checkpoint that does not say its framework."""
    tensors = {
        ".".join(name): of_array(np.asarray(value))
        for name, value in flatten(arrays)
        if isinstance(value, (np.ndarray, np.generic, int, float))
    }
    return CheckpointFile(str(path), tensors, None)


def load_checkpoint(path: Path) -> CheckpointFile:
    """All tensors of a checkpoint, values still in the file."""
    if not os.path.exists(path):
        raise InputError(phrase("there is no file {path}", path=path), hint=_missing_hint(path))
    if path.name.endswith(INDEX_SUFFIX):
        return _load_shards(path)
    if os.path.isdir(path):
        raise InputError(
            phrase("{path} is a folder", path=path),
            hint=phrase(
                "give the file, or its *{index_suffix} when it is sharded", index_suffix=INDEX_SUFFIX
            ),
        )
    if path.suffix not in SUFFIXES:
        raise InputError(
            phrase(
                "{path}: the suffix {suffix} is not that of a checkpoint", path=path, suffix=repr(path.suffix)
            ),
            hint=phrase(
                "the suffixes are {suffixes}, and *{index_suffix} for shards",
                suffixes=joined(", ", SUFFIXES),
                index_suffix=INDEX_SUFFIX,
            ),
        )
    return load_file(path)


def _missing_hint(path: Path) -> str:
    index = path.with_name(path.name + INDEX_SUFFIX)
    if index.exists():
        return phrase("there is {index}: give that", index=index)
    return phrase("check the path")


def load_file(path: Path) -> CheckpointFile:
    """One file, by its content, whatever its suffix."""
    with os.fdopen(open_for_reading(path), "rb") as file, storage_errors("read", path):
        start = file.read(32)
        size = os.fstat(file.fileno()).st_size
    if is_safetensors(start, size):
        arrays = load_safetensors(path)
        said = read_metadata(path).get("format", "")
        return _checkpoint(path, {name: of_array(array) for name, array in arrays.items()}, FORMATS.get(said))
    for recognise, load, framework in _FORMATS:
        if recognise(start):
            return _checkpoint(path, load(path), framework)
    raise FileFormatError(
        phrase(
            "{path} ({size} bytes) is not a checkpoint: it begins with {value}",
            path=path,
            size=size,
            value=repr(start[:8]),
        ),
        hint=phrase(
            "files of torch.save, paddle.save and safetensors are read; a download may have been cut short"
        ),
    )


def _load_legacy(path: Path) -> dict[str, Any]:
    """The oldest format has its bytes in one stream, which only torch itself takes apart."""
    try:
        backend = registry.get("torch")
    except MissingFrameworkError as error:
        raise MissingFrameworkError(
            phrase(
                "{path} is in torch's format from before 1.6, which only torch reads; it is not installed",
                path=path,
            ),
            hint=error.hint,
        ) from None
    if not isinstance(backend, CheckpointReader):
        raise InputError(phrase("{path}: this backend for torch reads no checkpoints", path=path))
    loaded: dict[str, Any] = _as_tensors(backend.load_checkpoint(str(path)))
    return loaded


def _as_tensors(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _as_tensors(item) for key, item in value.items()}
    return of_array(value) if isinstance(value, np.ndarray) else value


_FORMATS: tuple[tuple[Callable[[bytes], bool], Callable[[Path], dict[str, Any]], str], ...] = (
    (lambda start: start.startswith(archives.MAGIC), archives.load, "torch"),
    (lambda start: start.startswith(LEGACY_TORCH), _load_legacy, "torch"),
    (lambda start: start[:1] == b"\x80", pickles.load, "paddle"),
)


# From what a file holds to a state dict.


def _checkpoint(path: Path, value: Mapping[Any, Any], framework: str | None) -> CheckpointFile:
    notes: list[str] = []
    place = ""
    tensors = _direct(value)
    while not tensors:
        inner = [name for name in value if isinstance(value[name], dict) and _holds_tensors(value[name])]
        chosen = next((name for name in WRAPPERS if name in inner), inner[0] if len(inner) == 1 else None)
        if chosen is None:
            raise _no_state_dict(path, value, inner)
        others = [str(name) for name in value if name != chosen]
        place = f"{place}[{chosen!r}]"
        if others:
            notes.append(f"read {place} of the checkpoint, left out: {', '.join(others)}")
        value = value[chosen]
        tensors = _direct(value)
    dropped = [str(name) for name, item in value.items() if not isinstance(item, FileTensor)]
    if dropped:
        notes.append(f"not tensors, left out of the checkpoint: {', '.join(dropped)}")
    return CheckpointFile(str(path), tensors, framework, tuple(notes))


def _direct(value: Mapping[Any, Any]) -> dict[str, FileTensor]:
    """The tensors right here; none when the tensors of a wrapped state dict are in the majority."""
    found = {str(name): item for name, item in value.items() if isinstance(item, FileTensor)}
    wrapped = max(
        (len(_direct(value[name])) for name in WRAPPERS if isinstance(value.get(name), dict)), default=0
    )
    return {} if wrapped > len(found) else found


def _holds_tensors(value: Mapping[Any, Any]) -> bool:
    return any(
        isinstance(item, FileTensor) or (isinstance(item, dict) and _holds_tensors(item))
        for item in value.values()
    )


def _no_state_dict(path: Path, value: Mapping[Any, Any], inner: list[Any]) -> FileFormatError:
    if inner:
        return FileFormatError(
            phrase(
                "{path} holds several dictionaries of tensors: {names}",
                path=path,
                names=joined(", ", map(str, inner)),
            ),
            hint=phrase("save the one that is meant to a file of its own"),
        )
    names = ", ".join(str(name) for name in list(value)[:8]) or "nothing"
    return FileFormatError(
        phrase("{path} holds no tensors; its entries are: {names}", path=path, names=names),
        hint=phrase("give a state dict"),
    )


# Shards.


def _load_shards(path: Path) -> CheckpointFile:
    try:
        index = json.loads(read_limited(path, MAX_INDEX_BYTES).decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise FileFormatError(phrase("{path} is not valid JSON: {error}", path=path, error=error)) from None
    places = index.get("weight_map") if isinstance(index, dict) else None
    if (
        not isinstance(places, dict)
        or not places
        or not all(isinstance(shard, str) for shard in places.values())
    ):
        raise FileFormatError(
            phrase(
                "{path} is not the index of a sharded checkpoint: it has no weight_map from names to files",
                path=path,
            )
        )
    shards = {shard: _load_shard(path, shard) for shard in dict.fromkeys(places.values())}
    tensors = {}
    for name, shard in places.items():
        if name not in shards[shard].tensors:
            raise FileFormatError(
                phrase(
                    "{path} says that {name} is in {shard}, which does not hold it",
                    path=path,
                    name=name,
                    shard=shard,
                )
            )
        tensors[name] = shards[shard].tensors[name]
    frameworks = {each.framework for each in shards.values()}
    framework = frameworks.pop() if len(frameworks) == 1 else None
    return CheckpointFile(str(path), tensors, framework, (f"read from {len(shards)} shards",))


def _load_shard(index: Path, shard: str) -> CheckpointFile:
    if shard != os.path.basename(shard) or shard in ("", ".", ".."):
        raise FileFormatError(
            phrase(
                "{index} names the shard {shard}; shards lie in the folder of their index",
                index=index,
                shard=repr(shard),
            )
        )
    path = index.with_name(shard)
    if not path.exists():
        raise FileFormatError(
            phrase(
                "{index} names the shard {shard}, and there is no file {path}",
                index=index,
                shard=shard,
                path=path,
            ),
            hint=phrase("download all shards"),
        )
    return load_file(path)
