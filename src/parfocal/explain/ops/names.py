"""Groups of ops by common name, and the layers that do the same as an op."""

from __future__ import annotations

# Ops that rearrange values without changing them.
LAYOUT = frozenset(
    {
        *("reshape", "transpose", "squeeze", "unsqueeze", "contiguous", "clone", "expand", "detach"),
        *("identity", "tile"),
    }
)
# Those of which a mistake puts the same values elsewhere.
MOVING = LAYOUT | {"flip", "roll", "concat", "stack", "split", "unbind", "pixel_shuffle", "pixel_unshuffle"}
# Those that take a part as it is.
SELECTING = frozenset({"getitem", "split", "unbind", "index_select", "take_along_axis"})
POINTWISE = frozenset(
    {
        *("relu", "relu6", "leaky_relu", "prelu", "elu", "celu", "selu", "gelu", "silu", "mish", "sigmoid"),
        *("log_sigmoid", "hardsigmoid", "hardswish", "tanh", "hardtanh", "softplus", "softsign", "glu"),
        *("softmax", "log_softmax", "exp", "log", "sqrt", "rsqrt", "square", "abs", "neg", "sin", "cos"),
        *("erf", "sign", "clamp", "softshrink", "hardshrink", "tanhshrink", "expm1", "log1p", "reciprocal"),
    }
)
REDUCTIONS = frozenset(
    {"mean", "sum", "amax", "amin", "max", "min", "prod", "var", "std", "norm", "logsumexp", "median"}
)
ARITHMETIC = frozenset({"add", "sub", "rsub", "mul", "div", "rdiv", "pow", "rpow", "maximum", "minimum"})
COMMUTATIVE = frozenset({"add", "mul", "maximum", "minimum", "logical_and", "logical_or", "equal"})
SCALING = frozenset({"mul", "div"})
MASKING = frozenset({"masked_fill", "where", "tril", "triu"})
RANDOM = frozenset(
    {
        *("rand", "randn", "randint", "randperm", "bernoulli", "multinomial", "normal", "uniform", "dropout"),
        *(
            "rand_like",
            "randn_like",
            "standard_normal",
            "gaussian",
            "poisson",
            "alpha_dropout",
            "exponential",
        ),
        *("dropout1d", "dropout2d", "dropout3d", "rrelu", "gumbel_softmax"),
    }
)
DROPPING = frozenset({"dropout", "dropout1d", "dropout2d", "dropout3d", "alpha_dropout"})

_KINDS = {
    **{
        kind: kind.lower()
        for kind in (
            *("ReLU", "ReLU6", "ELU", "CELU", "SELU", "GELU", "SiLU", "Mish", "Sigmoid", "Hardsigmoid"),
            *("Hardswish", "Tanh", "Hardtanh", "Softplus", "Softsign", "GLU", "Softmax", "Dropout", "Linear"),
            *("Dropout1d", "Dropout2d", "Dropout3d", "Embedding", "Identity", "Conv1d", "Conv2d", "Conv3d"),
        )
    },
    "LeakyReLU": "leaky_relu",
    "LogSigmoid": "log_sigmoid",
    "LogSoftmax": "log_softmax",
    "LayerNorm": "layer_norm",
    "GroupNorm": "group_norm",
    "RMSNorm": "rms_norm",
    "Flatten": "reshape",
    "PixelShuffle": "pixel_shuffle",
    "PixelUnshuffle": "pixel_unshuffle",
    "Upsample": "interpolate",
    **{f"BatchNorm{rank}d": "batch_norm" for rank in (1, 2, 3)},
    **{f"InstanceNorm{rank}d": "instance_norm" for rank in (1, 2, 3)},
    **{f"MaxPool{rank}d": f"max_pool{rank}d" for rank in (1, 2, 3)},
    **{f"AvgPool{rank}d": f"avg_pool{rank}d" for rank in (1, 2, 3)},
    **{f"AdaptiveAvgPool{rank}d": f"adaptive_avg_pool{rank}d" for rank in (1, 2, 3)},
    **{f"AdaptiveMaxPool{rank}d": f"adaptive_max_pool{rank}d" for rank in (1, 2, 3)},
    **{f"ConvTranspose{rank}d": f"conv{rank}d_transpose" for rank in (1, 2, 3)},
}


def kinds_of_name(name: str) -> list[str]:
    """The framework's layers that are an op of this name."""
    return [kind for kind, other in _KINDS.items() if other == name]


def name_of_kind(kind: str) -> str:
    """The op that a framework's layer of this kind is; the kind itself where it is no single op."""
    return _KINDS.get(kind, kind)
