"""Initial values, as ports have them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import paddle
import torch

import parfocal as pf
from tests.pairs.gaps.planted.row import Planted, Run
from tests.versions.made import made


def initial(ours: Any, theirs: Any) -> Run:
    return lambda: pf.compare_init(ours, theirs, seeds=4)


TI, NI = torch.nn.init, paddle.nn.initializer


def initialised(ours: Callable[[Any], Any], theirs: Any, width: int = 64) -> Run:
    """A Linear whose weight begins so, without a bias."""

    def reference() -> Any:
        layer = torch.nn.Linear(width, 32, bias=False)
        ours(layer.weight)
        return layer

    return initial(reference, lambda: paddle.nn.Linear(width, 32, weight_attr=theirs, bias_attr=False))


def truncated(weight: Any) -> None:
    """At two standard deviations; the bounds are values in both frameworks."""
    TI.trunc_normal_(weight, std=0.02, a=-0.04, b=0.04)


def as_torch(kind: Any, *sizes: int, fan: int) -> Callable[[], Any]:
    bound = fan**-0.5
    return lambda: kind(*sizes, weight_attr=NI.Uniform(-bound, bound), bias_attr=NI.Uniform(-bound, bound))


ROWS = {
    "linear-initialiser": Planted(
        initial(lambda: torch.nn.Linear(64, 32), as_torch(paddle.nn.Linear, 64, 32, fan=64)),
        initial(lambda: torch.nn.Linear(64, 32), lambda: paddle.nn.Linear(64, 32)),
        *("init", "init.scale"),
    ),
    "convolution-initialiser": Planted(
        initial(lambda: torch.nn.Conv2d(8, 32, 3), as_torch(paddle.nn.Conv2D, 8, 32, 3, fan=72)),
        initial(lambda: torch.nn.Conv2d(8, 32, 3), lambda: paddle.nn.Conv2D(8, 32, 3)),
        *("init", "init.distribution"),
    ),
    "embedding-initialiser": Planted(
        initial(
            lambda: torch.nn.Embedding(64, 32),
            lambda: paddle.nn.Embedding(64, 32, weight_attr=NI.Normal(0.0, 1.0)),
        ),
        initial(lambda: torch.nn.Embedding(64, 32), lambda: paddle.nn.Embedding(64, 32)),
        *("init", "init.distribution"),
    ),
    "linear-initialiser: bias": Planted(
        initial(lambda: torch.nn.Linear(64, 32), as_torch(paddle.nn.Linear, 64, 32, fan=64)),
        initial(
            lambda: torch.nn.Linear(64, 32),
            lambda: paddle.nn.Linear(64, 32, weight_attr=NI.Uniform(-0.125, 0.125)),
        ),
        *("init", "init.bias"),
    ),
    "uniform-initialiser-range": Planted(
        initialised(TI.uniform_, NI.Uniform(0.0, 1.0)),
        initialised(TI.uniform_, NI.Uniform()),
        *("init", "init.scale"),
    ),
    # here the frameworks agree: what is planted are other mistakes with the same initialisers
    "kaiming-initialisers-agree": Planted(
        initialised(lambda w: TI.kaiming_normal_(w, nonlinearity="relu"), NI.KaimingNormal()),
        initialised(lambda w: TI.kaiming_normal_(w, nonlinearity="relu"), NI.KaimingNormal(fan_in=32)),
        *("init", "init.scale"),
    ),
    "kaiming-initialisers-agree: uniform": Planted(
        initialised(
            lambda w: TI.kaiming_uniform_(w, a=5**0.5), NI.KaimingUniform(None, 5**0.5, "leaky_relu")
        ),
        initialised(lambda w: TI.kaiming_uniform_(w, a=5**0.5), NI.KaimingUniform()),
        *("init", "init.scale"),
    ),
    "kaiming-initialisers-agree: truncated normal": Planted(
        initialised(truncated, made(NI.TruncatedNormal, 0.0, 0.02, -0.04, 0.04), 256),
        initialised(truncated, NI.Normal(0.0, 0.02), 256),
        *("init", "init.distribution"),
    ),
}
