"""The layers for which PaDiff brings a special init; here the transfer's own rules cover them."""

from __future__ import annotations

from typing import Any

from parfocal.compat.padiff.weight_init.special_init.special_init_pool import add_special_init

# The class's name in torch, and in paddle.
CLASSES = (("MultiheadAttention", "MultiHeadAttention"), ("LSTM", "LSTM"), ("BatchNorm2d", "BatchNorm2D"))


def copy_layer(base_layer: Any, raw_layer: Any) -> None:
    """Copy one layer's weights and statistics into its counterpart."""
    from parfocal.weights.transfer import transfer

    transfer(base_layer, raw_layer)


def register_all() -> None:
    """Add every class, in both directions."""
    for torch_name, paddle_name in CLASSES:
        add_special_init("torch", torch_name, "paddle", paddle_name, copy_layer)
        add_special_init("paddle", paddle_name, "torch", torch_name, copy_layer)
