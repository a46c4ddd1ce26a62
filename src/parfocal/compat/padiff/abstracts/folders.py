"""Which folder a model dumps to: its name below the root, and never another model's.

PaDiff empties the folder when a model is created. Here that happens once for each model and
process, and a second model of the same name gets a folder of its own, so that no dump is lost.
"""

from __future__ import annotations

import os
import weakref
from typing import Any

from parfocal.compat.padiff.utils import log, reset_shared_dir

_taken: dict[str, weakref.ref[Any]] = {}


def claim_folder(root: str, name: str, model: Any) -> str:
    """An empty folder for this model; the same one when the same model comes again."""
    wished = f"{root}/{name}"
    folder = wished
    count = 0
    while _belongs_to_another(folder, model):
        count += 1
        folder = f"{wished}_{count}"
    if folder != wished:
        log(f"Another model has dumped to {wished} already; this {name} dumps to {folder}")
    _taken[os.path.abspath(folder)] = weakref.ref(model)
    reset_shared_dir(folder)
    return folder


def _belongs_to_another(folder: str, model: Any) -> bool:
    owner = _taken.get(os.path.abspath(folder))
    return owner is not None and owner() is not model
