"""What the installed PyTorch has, asked once.

What differs between versions is looked for here, and never told by a version's number. Whoever needs it
takes the other way, of ``older.py``, where it is not there.
"""

from __future__ import annotations

import io
import warnings
import zipfile
from functools import cache
from typing import Any

import torch
from torch.overrides import TorchFunctionMode


class _Seeing(TorchFunctionMode):
    """Counts the functions that are called."""

    seen = 0

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.seen += 1
        return func(*args, **(kwargs or {}))


def _modes_see_indices() -> bool:
    tensor = torch.zeros(1, device="cpu")
    with _Seeing() as mode:
        tensor[0]
    return mode.seen > 0


# A function mode is told of ``tensor[0]``, and not of ``tensor[0, 0]`` alone.
MODES_SEE_INDICES = _modes_see_indices()
# A switch turns the fused path of the transformer layers off.
SWITCHES_FAST_PATH = hasattr(torch.backends, "mha")
# Every backward pass goes through one function in Python, which may be exchanged.
ONE_BACKWARD_DOOR = hasattr(torch.autograd, "_engine_run_backward")
# Whether a device can compute in lower precision is a question of its own.
TELLS_AUTOCAST = hasattr(torch.amp, "is_autocast_available")
# What a file may ask for, beside what PyTorch knows, is said for a while; or said at all.
ALLOWS_FOR_A_WHILE = hasattr(torch.serialization, "safe_globals")
ALLOWS_GLOBALS = hasattr(torch.serialization, "add_safe_globals")


@cache
def refuses_scripts() -> bool:
    """Whether reading with weights only refuses a TorchScript archive, and does not load it as a script."""
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as empty:
        empty.writestr("empty/version", "3")
        empty.writestr("empty/constants.pkl", b"")
    archive.seek(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            torch.load(archive, weights_only=True)
        except RuntimeError as error:
            return "TorchScript" in str(error)
    return False
