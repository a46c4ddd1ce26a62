"""timm's models at small sizes, each with a port: paddle's own where there is one, else built here."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import paddle
import torch
from examples.pairs.library import CLASSES, RELU_GAIN, port, torchvision_models
from examples.pairs.pair import Pair, images, pair

from benchmarks.timm_ports import attentive, building, convolutional  # registers the blocks' forwards

REGISTERED = attentive, convolutional


@cache
def timm() -> Any:
    """timm imports torchvision, which a CPU build of torch cannot load without help."""
    torchvision_models()
    import timm as library

    return library


def reference(name: str, settings: dict[str, Any]) -> Callable[[], torch.nn.Module]:
    """Constant parameters (scales of layers, biases of attention) get values as training would give them."""

    def make() -> torch.nn.Module:
        model = timm().create_model(name, num_classes=CLASSES, **settings)
        with torch.no_grad():
            for parameter in model.parameters():
                if parameter.numel() > 1 and parameter.min() == parameter.max():
                    parameter.uniform_(0.1, 0.5)
        return model

    return make


def _built(name: str, size: int, settings: dict[str, Any], **facts: Any) -> Pair:
    """A model against the port that is built from its tree."""
    make = reference(name, settings)
    return _pair(name, make, lambda: building.port_of(make()), size, **facts)


def _shipped(name: str, own: str, size: int, settings: dict[str, Any], **facts: Any) -> Pair:
    """A model against the one that paddle ships."""
    return _pair(f"{name}_by_paddle", reference(name, settings), port(own), size, **facts)


def _pair(name: str, ours: Callable[[], torch.nn.Module], theirs: Callable[[], paddle.nn.Layer],
          size: int, gain: float = RELU_GAIN) -> Pair:  # fmt: skip
    """The last maps are small: a batch of two is too few to fit statistics to."""
    return pair(
        f"timm_{name}", ours, theirs, images(2, size), "timm", gain=gain,
        settling=images(16, size), drift=0.3,
    )  # fmt: skip


SMALL_SWIN = {
    "img_size": 56, "embed_dim": 24, "depths": (2, 2), "num_heads": (2, 4), "drop_path_rate": 0.0,
}  # fmt: skip

PAIRS: dict[str, Pair] = {
    each.name: each
    for each in (
        _shipped("resnet18", "resnet18", 64, {}),
        _built("seresnext26d_32x4d", 64, {"layers": (1, 1, 1, 1)}),
        _built("res2net50_14w_8s", 64, {"layers": (1, 1, 1, 1)}),
        _built("repvgg_a0", 64, {}),
        _built("efficientnet_b0", 64, {}),
        _built("tf_efficientnet_b0", 64, {}),
        _built("mobilenetv3_small_100", 64, {}),
        _built("tf_mobilenetv3_small_100", 65, {}),
        _built("regnety_002", 64, {}),
        _built("ghostnet_100", 64, {}),
        _built("densenet121", 64, {"block_config": (2, 2, 2, 2)}),
        _built("legacy_xception", 80, {}),
        _built("hrnet_w18_small", 64, {}),
        _built("convnext_atto", 64, {"depths": (1, 1, 2, 1), "ls_init_value": 0.3}, gain=1.0),
        _built("poolformer_s12", 64, {}, gain=1.0),
        _built("nextvit_small", 64, {"drop_path_rate": 0.0}),
        _built("vit_tiny_patch16_224", 64, {"img_size": 64, "depth": 3}, gain=1.0),
        _built("deit_tiny_distilled_patch16_224", 64, {"img_size": 64, "depth": 3}, gain=1.0),
        _built("swin_tiny_patch4_window7_224", 56, SMALL_SWIN, gain=1.0),
        _built("levit_128s", 96, {"img_size": 96}, gain=1.0),
        _built("mixer_s32_224", 64, {"img_size": 64}, gain=1.0),
        _built("gmlp_s16_224", 64, {"img_size": 64}, gain=1.0),
    )
}  # fmt: skip
