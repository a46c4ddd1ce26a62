"""torchvision on a CPU build of torch, whose binary operators it cannot load.

torchvision registers fake kernels for its operators while it is imported, and fails when the
operators themselves are missing. Only then are their schemas defined here; nothing in the tests
calls them.
"""

from __future__ import annotations

import importlib
import sys
from typing import Any

import torch

SCHEMAS = (
    "nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    "qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
)


def _models() -> Any:
    try:
        return importlib.import_module("torchvision.models")
    except RuntimeError as error:
        if "does not exist" not in str(error):
            raise
    for name in [name for name in sys.modules if name.partition(".")[0] == "torchvision"]:
        del sys.modules[name]
    library = torch.library.Library("torchvision", "DEF")
    for schema in SCHEMAS:
        library.define(schema)
    _models.library = library  # type: ignore[attr-defined]  # the schemas live as long as it does
    return importlib.import_module("torchvision.models")


torchvision_models = _models()
torchvision_transforms = importlib.import_module("torchvision.transforms")
torchvision_datasets = importlib.import_module("torchvision.datasets")
