"""How each framework writes an op of one tensor that the port lacks or should have instead."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from parfocal.backends import registry
from parfocal.backends.dialects import ADAPTIVE_POOLS, POOLS
from parfocal.explain.fixes.literals import written

# Ops with a sign of their own and a number beside the tensor.
SIGNS = {"add": "+", "sub": "-", "mul": "*", "div": "/", "pow": "**"}

# Arguments that say what an op computes -> what need not be said.
_NOT_SAID = object()
ARGUMENTS: dict[str, dict[str, Any]] = {
    **{key: {"axis": _NOT_SAID} for key in ("softmax", "log_softmax", "cumsum", "logsumexp")},
    **{key: {"axis": _NOT_SAID, "keepdim": False} for key in ("mean", "sum", "amax", "amin", "prod")},
    **{key: {"axis": _NOT_SAID, "keepdim": False, "mode": "avg"} for key in ("median", "nanmedian")},
    "kthvalue": {"k": _NOT_SAID, "axis": _NOT_SAID, "keepdim": False},
    "quantile": {"q": _NOT_SAID, "axis": _NOT_SAID, "keepdim": False, "interpolation": "linear"},
    **{key: {"alpha": 1.0} for key in ("elu", "celu")},
    **{key: {"output_size": _NOT_SAID} for key in ADAPTIVE_POOLS},
    **{
        key: {
            "kernel_size": _NOT_SAID,
            "stride": None,
            "padding": 0,
            "ceil_mode": False,
            **({"count_include_pad": _NOT_SAID} if key.startswith("avg") else {}),
        }
        for key in POOLS
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


def function_of(op: str, framework: str) -> str | None:
    """The full name of the function; None for ops that take more than a tensor and values."""
    return registry.dialect(framework).functions.get(op)


def arguments_of(op: str, framework: str, told: Mapping[str, Any]) -> str | None:
    """What has to be said besides the tensor, as it is written: ``axis=-1``; None: something is not known."""
    if not REQUIRED & ARGUMENTS.get(op, {}).keys() <= told.keys():
        return None
    if op in ONE_OF and all(told.get(name) is None for name in ONE_OF[op]):
        return None
    dialect = registry.dialect(framework)
    said = []
    for name, default in ARGUMENTS.get(op, {}).items():
        value = told.get(name, default)
        if value is _NOT_SAID or value == default or value is None:
            continue
        if name in dialect.values:
            value = dialect.values[name](value)
        if f"{op}.{name}" in LISTS and isinstance(value, int):
            value = [value]
        said.append(f"{dialect.words.get(f'{op}.{name}', dialect.words.get(name, name))}={written(value)}")
    return ", ".join(said)
