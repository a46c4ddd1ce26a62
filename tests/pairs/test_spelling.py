"""The words for a missing op are those of the frameworks, and both compute the same by them."""

from __future__ import annotations

from typing import Any

import numpy as np
import paddle
import pytest
import torch

from parfocal.backends import registry
from parfocal.explain.fixes.spelling import arguments_of, function_of

TOLD: dict[str, dict[str, Any]] = {
    **{key: {"axis": 1} for key in ("softmax", "log_softmax", "cumsum", "logsumexp")},
    **{key: {"axis": 1, "keepdim": True} for key in ("mean", "sum", "amax", "amin")},
    **{key: {"alpha": 0.5} for key in ("elu", "celu")},
    "gelu": {"approximate": "tanh"},
    "leaky_relu": {"negative_slope": 0.3},
    "softplus": {"beta": 2.0, "threshold": 1.5},
    **{f"{kind}_pool1d": {"kernel_size": 3, "stride": 2, "padding": 1} for kind in ("avg", "max")},
    **{f"{kind}_pool2d": {"kernel_size": 3, "stride": 2, "padding": 1} for kind in ("avg", "max")},
    **{f"{kind}_pool3d": {"kernel_size": 2, "stride": 1, "padding": 1} for kind in ("avg", "max")},
    **{f"adaptive_{kind}_pool{rank}d": {"output_size": 2} for kind in ("avg", "max") for rank in (1, 2, 3)},
    "clamp": {"minimum": 0.6, "maximum": 1.4},
    "hardtanh": {"min": 0.6, "max": 1.4},
    "hardshrink": {"threshold": 0.8},
    "softshrink": {"threshold": 0.8},
    **{key: {"diagonal": 1} for key in ("triu", "tril")},
    **{key: {"axis": 1, "unbiased": False, "keepdim": True} for key in ("var", "std")},
    "flip": {"axis": 1},
    "roll": {"shifts": 2, "axis": 1},
    "interpolate": {"scale_factor": 2, "mode": "bilinear", "align_corners": True},
    "pixel_shuffle": {"upscale_factor": 2},
    "normalize": {"p": 1.0, "axis": 0, "epsilon": 1.0},
    "kthvalue": {"k": 2, "axis": 1, "keepdim": True},
    "quantile": {"q": 0.3, "axis": 1, "interpolation": "lower"},
}
# ops that cannot do without an argument
NEEDY = {
    *("clamp", "cumsum", "logsumexp", "leaky_relu", "flip", "roll", "interpolate", "pixel_shuffle"),
    *("kthvalue", "quantile"),
}
SHAPES = {"interpolate": (1, 2, 3, 4), "pixel_shuffle": (1, 4, 3, 3)}


@pytest.mark.parametrize("op", registry.dialect("torch").functions)
@pytest.mark.parametrize("told", ["default", "told"])
def test_both_frameworks_compute_the_same(op: str, told: str) -> None:
    values = {} if told == "default" and op not in ("softmax", "log_softmax") else TOLD.get(op, {})
    if op in NEEDY or "pool" in op:
        values = {**TOLD[op], **({"count_include_pad": told == "told"} if op.startswith("avg") else {})}
    shape = (2, 3, *[5] * int(op[-2])) if "pool" in op else SHAPES.get(op, (3, 5))
    x = np.random.default_rng(0).uniform(0.25, 1.75, shape).astype(np.float32)
    results = []
    for name, tensor in (("torch", torch.from_numpy(x)), ("paddle", paddle.to_tensor(x))):
        function = function_of(op, name)
        code = f"{function}(x, {arguments_of(op, name, values)})"
        result = eval(code, {"torch": torch, "paddle": paddle, "x": tensor})
        results.append((result[0] if isinstance(result, tuple) else result).numpy())  # values and places
    np.testing.assert_allclose(results[0], results[1], rtol=2e-6, atol=1e-6)


def test_what_takes_more_than_a_tensor_has_no_words() -> None:
    assert function_of("matmul", "paddle") is None
    assert arguments_of("gelu", "torch", {"approximate": "none"}) == ""
    assert arguments_of("gelu", "torch", {"approximate": "tanh"}) == 'approximate="tanh"'
    assert arguments_of("gelu", "paddle", {"approximate": "tanh"}) == "approximate=True"
    assert arguments_of("softmax", "torch", {"axis": -1}) == "dim=-1"
    assert arguments_of("max_pool2d", "paddle", {"stride": 2}) is None
    assert arguments_of("interpolate", "torch", {"mode": "nearest"}) is None
    assert arguments_of("flip", "torch", {}) is None
