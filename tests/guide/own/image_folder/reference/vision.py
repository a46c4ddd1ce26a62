"""torchvision, also beside a build of torch that its binary operators were not made for."""

import sys

import torch


def _torchvision():
    from torchvision import datasets, transforms

    return datasets, transforms


try:
    datasets, transforms = _torchvision()
except RuntimeError as error:
    if "operator torchvision::" not in str(error):
        raise
    for name in [name for name in sys.modules if name.split(".")[0] == "torchvision"]:
        del sys.modules[name]
    library = torch.library.Library("torchvision", "DEF")
    for name in ("nms", "qnms"):
        library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    datasets, transforms = _torchvision()
