"""Which common kinds of modules are one family, and which are activations or linear."""

from __future__ import annotations

import re

# Kinds that are the same thing up to a detail: their family.
_FAMILIES = {
    "SyncBatchNorm": "BatchNorm",
    "RNNOverCell": "RNN",
    "BiRNNOverCells": "RNN",
    "UpsamplingNearest": "Upsample",
    "UpsamplingBilinear": "Upsample",
    "ConstantPad": "Pad",
    "ZeroPad": "Pad",
    "ReflectionPad": "Pad",
    "ReplicationPad": "Pad",
    "CircularPad": "Pad",
    "HuberLoss": "SmoothL1Loss",
}


# Functions of one tensor, each value by itself or along one axis; Identity is the one that does nothing.
ACTIVATIONS = frozenset(
    {
        *(
            "ReLU",
            "ReLU6",
            "LeakyReLU",
            "ELU",
            "CELU",
            "SELU",
            "GELU",
            "SiLU",
            "Mish",
            "Sigmoid",
            "LogSigmoid",
        ),
        *("Hardsigmoid", "Hardswish", "Tanh", "Hardtanh", "Tanhshrink", "Hardshrink", "Softshrink"),
        *("Softplus", "Softsign", "Softmax", "LogSoftmax", "Identity", "Threshold"),
    }
)

# Sums of what they are given, each value times a factor that does not depend on it.
LINEAR = frozenset(
    {
        "Linear",
        *(
            f"{name}{rank}d"
            for name in ("Conv", "ConvTranspose", "AvgPool", "AdaptiveAvgPool")
            for rank in (1, 2, 3)
        ),
    }
)


def family(kind: str) -> str:
    """What a kind is when its rank and variant do not matter: "BatchNorm2d" and "BatchNorm" are one."""
    plain = re.sub(r"[123]d$", "", kind)
    return _FAMILIES.get(plain, plain)
