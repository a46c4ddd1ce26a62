"""How each framework writes an op of one tensor that the port lacks or should have instead."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from parfocal.explain.fixes.literals import written

# Ops with a sign of their own and a number beside the tensor.
SIGNS = {"add": "+", "sub": "-", "mul": "*", "div": "/", "pow": "**"}

_FUNCTIONAL = {"torch": "torch.nn.functional", "paddle": "paddle.nn.functional"}
_ACTIVATIONS = (
    *("relu", "relu6", "leaky_relu", "elu", "celu", "selu", "gelu", "silu", "mish", "hardsigmoid"),
    *("hardswish", "hardtanh", "softplus", "softsign", "softmax", "log_softmax", "log_sigmoid"),
    *("tanhshrink", "hardshrink", "softshrink"),
)
_POOLS = tuple(f"{kind}_pool{rank}d" for kind in ("max", "avg") for rank in (1, 2, 3))
_ADAPTIVE = tuple(f"adaptive_{name}" for name in _POOLS)
_PLAIN = (
    *("tanh", "sigmoid", "exp", "log", "sqrt", "rsqrt", "abs", "square", "sin", "cos", "erf", "sign"),
    *("neg", "floor", "ceil", "round", "mean", "sum", "amax", "amin", "cumsum", "logsumexp", "clamp"),
)
# Common name -> full name in each framework.
FUNCTIONS: dict[str, dict[str, str]] = {
    **{
        name: {f: f"{module}.{name}" for f, module in _FUNCTIONAL.items()}
        for name in (*_ACTIVATIONS, *_POOLS, *_ADAPTIVE)
    },
    **{name: {f: f"{f}.{name}" for f in _FUNCTIONAL} for name in _PLAIN},
    "log_sigmoid": {"torch": "torch.nn.functional.logsigmoid", "paddle": "paddle.nn.functional.log_sigmoid"},
    "sigmoid": {"torch": "torch.sigmoid", "paddle": "paddle.nn.functional.sigmoid"},
    "clamp": {"torch": "torch.clamp", "paddle": "paddle.clip"},
    **{
        name: {f: f"{f}.{name}" for f in _FUNCTIONAL}
        for name in (
            *("triu", "tril", "flip", "roll", "var", "std", "median", "nanmedian", "kthvalue", "trunc"),
            *("prod", "quantile"),
        )
    },
    **{
        name: {f: f"{module}.{name}" for f, module in _FUNCTIONAL.items()}
        for name in ("interpolate", "pixel_shuffle", "normalize")
    },
}
# Arguments that say what an op computes -> what need not be said.
_NOT_SAID = object()
ARGUMENTS: dict[str, dict[str, Any]] = {
    **{key: {"axis": _NOT_SAID} for key in ("softmax", "log_softmax", "cumsum", "logsumexp")},
    **{key: {"axis": _NOT_SAID, "keepdim": False} for key in ("mean", "sum", "amax", "amin", "prod")},
    **{key: {"axis": _NOT_SAID, "keepdim": False, "mode": "avg"} for key in ("median", "nanmedian")},
    "kthvalue": {"k": _NOT_SAID, "axis": _NOT_SAID, "keepdim": False},
    "quantile": {"q": _NOT_SAID, "axis": _NOT_SAID, "keepdim": False, "interpolation": "linear"},
    **{key: {"alpha": 1.0} for key in ("elu", "celu")},
    **{key: {"output_size": _NOT_SAID} for key in _ADAPTIVE},
    **{
        key: {
            "kernel_size": _NOT_SAID,
            "stride": None,
            "padding": 0,
            "ceil_mode": False,
            **({"count_include_pad": _NOT_SAID} if key.startswith("avg") else {}),
        }
        for key in _POOLS
    },
    "gelu": {"approximate": "none"},
    "leaky_relu": {"negative_slope": _NOT_SAID},
    "softplus": {"beta": 1.0, "threshold": 20.0},
    "clamp": {"minimum": None, "maximum": None},
    "hardtanh": {"min": -1.0, "max": 1.0},
    "hardshrink": {"threshold": 0.5},
    "softshrink": {"threshold": 0.5},
    **{key: {"diagonal": 0} for key in ("triu", "tril")},
    **{key: {"axis": _NOT_SAID, "unbiased": True, "keepdim": False} for key in ("var", "std")},
    "flip": {"axis": _NOT_SAID},
    "roll": {"shifts": _NOT_SAID, "axis": _NOT_SAID},
    "interpolate": {"size": None, "scale_factor": None, "mode": "nearest", "align_corners": False},
    "pixel_shuffle": {"upscale_factor": _NOT_SAID},
    "normalize": {"p": 2.0, "axis": 1, "epsilon": 1e-12},
}
REQUIRED = frozenset({"kernel_size", "output_size", "negative_slope", "shifts", "upscale_factor", "k", "q"})
LISTS = frozenset({"flip.axis"})  # never a single number
ONE_OF = {"flip": ("axis",), "interpolate": ("size", "scale_factor")}  # without any there is no call
# Common names of arguments in each framework's words, where they are others.
WORDS = {
    "torch": {
        "axis": "dim",
        "minimum": "min",
        "maximum": "max",
        "flip.axis": "dims",
        "roll.axis": "dims",
        "epsilon": "eps",
        "hardtanh.min": "min_val",
        "hardtanh.max": "max_val",
        "hardshrink.threshold": "lambd",
        "softshrink.threshold": "lambd",
    },
    "paddle": {"minimum": "min", "maximum": "max", "count_include_pad": "exclusive"},
}
# What paddle says in other values.
CONVERTED: dict[str, Callable[[Any], Any]] = {
    "approximate": lambda value: value == "tanh",
    "count_include_pad": lambda value: not value,
}


def function_of(op: str, framework: str) -> str | None:
    """The full name of the function; None for ops that take more than a tensor and values."""
    return FUNCTIONS.get(op, {}).get(framework)


def arguments_of(op: str, framework: str, told: Mapping[str, Any]) -> str | None:
    """What has to be said besides the tensor, as it is written: ``axis=-1``; None: something is not known."""
    if not REQUIRED & ARGUMENTS.get(op, {}).keys() <= told.keys():
        return None
    if op in ONE_OF and all(told.get(name) is None for name in ONE_OF[op]):
        return None
    words = WORDS[framework]
    said = []
    for name, default in ARGUMENTS.get(op, {}).items():
        value = told.get(name, default)
        if value is _NOT_SAID or value == default or value is None:
            continue
        if framework == "paddle" and name in CONVERTED:
            value = CONVERTED[name](value)
        if f"{op}.{name}" in LISTS and isinstance(value, int):
            value = [value]
        said.append(f"{words.get(f'{op}.{name}', words.get(name, name))}={written(value)}")
    return ", ".join(said)
