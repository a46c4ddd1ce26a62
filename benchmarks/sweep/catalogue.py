"""Which pairs are swept and which mistakes are planted in them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import paddle
from examples.pairs import PAIRS as BUNDLED
from examples.pairs.faults import (
    PLANTED,
    Fault,
    changed,
    layer_at,
    one_wrong_weight,
    recast,
    replaced,
    wrong_epsilon,
)
from examples.pairs.pair import Pair
from paddle import nn
from paddle.nn import functional

from benchmarks.sweep.kind_blocks import PaddleCode, PaddleHeads, PaddleRms
from benchmarks.sweep.kinds import PAIRS as KINDS
from benchmarks.timm_ports.layers import NormAct
from benchmarks.timm_ports.pairs import PAIRS as TIMM

ALL: dict[str, Pair] = {**BUNDLED, **TIMM, **KINDS}
TYPED = 1e-5  # relative error of a constant that was typed with five digits


class _OutsideRms(PaddleRms):
    """The epsilon is added to the root instead of under it."""

    def forward(self, x: paddle.Tensor) -> paddle.Tensor:
        return x / (paddle.sqrt((x * x).mean(-1, keepdim=True)) + 1e-5) * self.weight


class _TypedHeads(PaddleHeads):
    """The scale of the attention is typed with five digits."""

    def forward(self, x: paddle.Tensor) -> paddle.Tensor:
        usual = paddle.einsum
        calls = iter((1.0 + TYPED, 1.0))
        paddle.einsum = lambda *operands: usual(*operands) * next(calls)
        try:
            return super().forward(x)
        finally:
            paddle.einsum = usual


def _with_epsilon(path: str, epsilon: float) -> Callable[[nn.Layer], None]:
    def plant(model: nn.Layer) -> None:
        layer = layer_at(model, path)
        assert layer._epsilon != epsilon
        layer._epsilon = epsilon

    return plant


SMALL: tuple[Fault, ...] = (
    Fault("epsilon 1e-6 for 1e-5", "kind_layer_norm", "2", _with_epsilon("2", 1e-6)),
    Fault("epsilon 1e-6 for 1e-5", "kind_group_norm", "1", _with_epsilon("1", 1e-6)),
    Fault("epsilon 1e-6 for 1e-5", "kind_instance_norm", "1", _with_epsilon("1", 1e-6)),
    Fault("epsilon 1e-6 for 1e-5", "kind_batch_norm_of_large_maps", "1", _with_epsilon("1", 1e-6), "train"),
    Fault("epsilon beside the root", "kind_root_mean_square_norm", "1", recast("1", _OutsideRms)),
    Fault("a scale typed with five digits", "kind_attention", "0", recast("0", _TypedHeads)),
    Fault("variance over n - 1", "kind_variance_of_large_maps", "0",
          changed("0", function=lambda x: x.var([2, 3]))),
    Fault("hardsigmoid typed with four digits", "kind_activations", "7",
          replaced("7", lambda: PaddleCode(lambda x: functional.hardsigmoid(x, slope=0.1667)))),
    Fault("slope 0.0101 for 0.01", "kind_activations", "25", replaced("25", lambda: nn.LeakyReLU(0.0101))),
    Fault("one wrong weight", "kind_large_linears", "0", one_wrong_weight("0", 0.01)),
    Fault("one wrong weight", "kind_convolution_depthwise", "1", one_wrong_weight("1", 0.01)),
    Fault("one wrong weight", "kind_pointwise_on_pooled_maps", "3", one_wrong_weight("3", 0.01)),
)  # fmt: skip


def faults_of(name: str) -> Sequence[Fault]:
    """What is planted in a pair."""
    found = [each for each in (*PLANTED, *SMALL) if each.pair == name]
    epsilon = None if name in KINDS else wrong_epsilon(ALL[name])
    if epsilon is not None and name in TIMM:
        epsilon = _of_another_library(epsilon)
    return found if epsilon is None else [epsilon, *found]


def faint_faults_of(name: str) -> Sequence[Fault]:
    """Mistakes that may be too small to be found: a tenth of an epsilon beside whatever variance."""
    epsilon = wrong_epsilon(ALL[name]) if name in TIMM else None
    return [] if epsilon is None else [epsilon]


def _of_another_library(fault: Fault) -> Fault:
    """The same layer with the epsilon of TensorFlow's norms (1e-3) for torch's, or the other way round."""
    layer = layer_at(ALL[fault.pair].port(0), fault.guilty)
    other = 1e-5 if layer._epsilon == 1e-3 else 1e-3
    return replace(fault, plant=_with_epsilon(fault.guilty, other))


def names_of(fault: Fault, port: nn.Layer) -> tuple[str, ...]:
    """The guilty layer; also the one that puts a norm and its activation together, as the reference does."""
    around = fault.guilty.rpartition(".")[0]
    return (fault.guilty, around) if isinstance(layer_at(port, around), NormAct) else (fault.guilty,)
