"""PyTorch's checkpoint files: read with weights only, mapped into memory; written in one go.

Nothing in a file is ever executed: a file that asks for more than tensors, NumPy values and
plain containers is refused by name. Values are mapped, not read, until somebody uses them.
"""

from __future__ import annotations

import codecs
import os
import pickle
import re
import struct
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import numpy as np
import torch

from parfocal.backends.files import complete_or_absent, no_such_file
from parfocal.backends.module_tree import join
from parfocal.backends.protocol import Array
from parfocal.backends.torch.capabilities import ALLOWS_FOR_A_WHILE, ALLOWS_GLOBALS, refuses_scripts
from parfocal.backends.torch.older import safe_globals
from parfocal.backends.torch.tensors import Tensors
from parfocal.errors import FileFormatError, StorageError, UnsafeFileError, UnsupportedError
from parfocal.phrases import phrase

# What torch says when it refuses, with the name of what the file asked for.
_REFUSED = re.compile(r"(?:GLOBAL|Unsupported class) ([\w.]+)")
# What torch warns of while it reads, and what is no news to whoever asked parfocal to read a file.
_UNHEARD = (
    ".*TorchScript archive",  # an error says it
    "TypedStorage is deprecated",  # torch's own use of it
    "Validating sparse tensor invariants",
)
# What makes an archive one of TorchScript's, as torch looks for it.
_SCRIPT = "constants.pkl"
_ZIP_MAGIC = b"PK\x03\x04"

_allowing = torch.serialization.safe_globals if ALLOWS_FOR_A_WHILE else safe_globals


class Checkpoints(Tensors):
    """Reading and writing ``.pth`` and ``.pt`` files."""

    def load_checkpoint(self, path: str) -> dict[str, Any]:
        """The file's mapping with every tensor as an array; nested mappings and lists stay nested."""
        loaded = _load(path)
        if not isinstance(loaded, dict):
            raise FileFormatError(
                phrase(
                    "{path} holds a {kind}, not a mapping from names to tensors",
                    path=path,
                    kind=type(loaded).__name__,
                ),
                hint=phrase("save a state dict: torch.save(model.state_dict(), path)"),
            )
        return self._plain(loaded, path, "")

    def save_checkpoint(self, path: str, state: Iterable[tuple[str, Array]]) -> None:
        """A state dict in PyTorch's own format; the file appears complete or not at all."""
        tensors = {name: self.from_array(array) for name, array in state}
        with complete_or_absent(path) as partial:
            torch.save(tensors, partial)

    def _plain(self, value: Any, path: str, key: str) -> Any:
        if isinstance(value, dict):
            return {
                name: self._plain(item, path, f"{key}.{name}".lstrip(".")) for name, item in value.items()
            }
        if isinstance(value, (list, tuple)):
            return type(value)(self._plain(item, path, join(key, str(at))) for at, item in enumerate(value))
        if not self.is_tensor(value):
            return value
        try:
            return self.to_array(value, copy=False)
        except UnsupportedError as error:
            raise UnsupportedError(
                phrase("{path}: {key}: {message}", path=path, key=key, message=error.message), hint=error.hint
            ) from error


def _load(path: str) -> Any:
    if not os.path.isfile(path):
        raise no_such_file(path)
    try:
        with open(path, "rb") as file:
            mapped = file.read(len(_ZIP_MAGIC)) == _ZIP_MAGIC  # the format before 1.6 cannot be mapped
        if mapped and not refuses_scripts() and torch._C.PyTorchFileReader(path).has_record(_SCRIPT):
            raise _script(path)
        with _numpy_values_allowed(), warnings.catch_warnings():
            for message in _UNHEARD:
                warnings.filterwarnings("ignore", message=message)
            return torch.load(path, map_location="cpu", weights_only=True, mmap=mapped)
    except pickle.UnpicklingError as error:
        raise _refusal(path, str(error)) from error
    except OSError as error:
        raise StorageError(phrase("cannot read {path}: {error}", path=path, error=error)) from error
    except DAMAGE as error:  # its own words are seldom of help
        raise _damage(path, error) from error


# What torch's readers raise over damaged files, those of the format before 1.6 among them.
DAMAGE = (
    *(RuntimeError, EOFError, KeyError, ValueError, TypeError, IndexError, AttributeError),
    *(AssertionError, struct.error, OverflowError, MemoryError),
)


def _refusal(path: str, message: str) -> FileFormatError:
    match = _REFUSED.search(message)
    if match is None:
        return FileFormatError(
            phrase("{path} is not a PyTorch checkpoint, or it is damaged", path=path),
            hint=phrase("check the file's source and size"),
        )
    return UnsafeFileError(
        phrase(
            "{path} asks for {name}, which is not a tensor or a plain value; nothing of it was run",
            path=path,
            name=match[1],
        ),
        hint=phrase("save only the state dict: torch.save(model.state_dict(), path)"),
    )


def _damage(path: str, error: Exception) -> FileFormatError:
    if "TorchScript" in str(error):
        return _script(path)
    size = os.path.getsize(path)
    return FileFormatError(
        phrase(
            "{path} ({size} bytes) is not a PyTorch checkpoint, or it is damaged: {kind}: {words}",
            path=path,
            size=size,
            kind=type(error).__name__,
            words=str(error).splitlines()[0] if str(error) else "no details",
        ),
        hint=phrase("check the file's source and size; a download may have been cut short"),
    )


def _script(path: str) -> UnsafeFileError:
    return UnsafeFileError(
        phrase("{path} is a TorchScript archive, which holds code; nothing of it was run", path=path),
        hint=phrase("save only the state dict: torch.save(torch.jit.load(path).state_dict(), other_path)"),
    )


@contextmanager
def _numpy_values_allowed() -> Iterator[None]:
    """Training checkpoints often hold a NumPy number or array beside the tensors."""
    with _allowing(_numpy_globals()) if ALLOWS_GLOBALS else nullcontext():
        yield


def _numpy_globals() -> list[Any]:
    # what pickles of a number and of an array call; NumPy has moved them
    functions: list[Any] = [np.float32(0).__reduce__()[0], np.empty(0).__reduce__()[0]]
    text_as_bytes = codecs.encode  # and how they write bytes
    plain = [np.dtype(code) for code in "?bBhHiIlLqQefdFD"]
    names = [
        (function, f"numpy.{core}.multiarray.{function.__name__}")
        for function in functions
        for core in ("core", "_core")
    ]
    return [*functions, text_as_bytes, np.ndarray, np.dtype, *names, *{type(kind) for kind in plain}]
