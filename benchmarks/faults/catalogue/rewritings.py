"""Correct ports written otherwise: the same mathematics in other operations. No tool may complain."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import paddle
from paddle.nn import functional

from benchmarks.faults.fault import Change, rewritten


@dataclass(frozen=True)
class Rewriting:
    """``plant`` makes a port compute the same by other operations."""

    name: str
    pair: str
    plant: Change
    mode: str = "eval"
    spoil: Change | None = None


def _finite_mask(self: Any, length: Any) -> Any:
    return paddle.full([length, length], -1e9, dtype=self.embed.weight.dtype).triu(1)


def _gelu_by_hand(self: Any, x: Any) -> Any:
    return 0.5 * x * (1.0 + paddle.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * x * x * x)))


def _divided(self: Any, x: Any) -> Any:
    return self.weight * (x / paddle.sqrt((x * x).sum(-1, keepdim=True) / x.shape[-1] + self.epsilon))


def _softmax_by_hand(self: Any, query: Any, key: Any) -> Any:
    scores = paddle.matmul(query * self.scale, key.transpose([0, 1, 3, 2]))
    raised = paddle.exp(scores - scores.max(-1, keepdim=True).detach())
    return raised / raised.sum(-1, keepdim=True)


def _other_order(self: Any, x: Any) -> Any:
    kept = self.shortcut(x)
    return self.relu(kept + self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x))))))


def _mean_by_hand(self: Any, x: Any) -> Any:
    x = self.blocks(self.pool(self.stem(x)))
    return self.fc(x.flatten(2).sum(-1) / (x.shape[2] * x.shape[3]))


def _gate_by_hand(self: Any, x: Any) -> Any:
    return functional.relu6(self.gate(functional.adaptive_avg_pool2d(x, 1).flatten(1)) + 3.0) / 6.0


def _tanh_by_hand(self: Any, x: Any) -> Any:
    return 2.0 * functional.sigmoid(2.0 * x) - 1.0


def _variance_by_hand(self: Any, x: Any) -> Any:
    return ((x - x.mean(0, keepdim=True)) ** 2).mean(0)


def _stride_in_exponent(self: Any, x: Any, stride: Any) -> Any:
    return paddle.exp(x + math.log(stride))


def _logarithm(self: Any, x: Any) -> Any:
    return x - paddle.logsumexp(x, -1, keepdim=True)


_ALL = (
    Rewriting("finite mask in gpt", "gpt", rewritten("", masked=_finite_mask)),
    Rewriting("GELU by hand in gpt", "gpt", rewritten("blocks.0", activate=_gelu_by_hand)),
    Rewriting("RMSNorm by division in gpt", "gpt", rewritten("blocks.1.norm2", forward=_divided)),
    Rewriting("softmax by hand in vit", "vit", rewritten("blocks.1.attention", weigh=_softmax_by_hand)),
    Rewriting("addition in another order in resnet", "resnet", rewritten("blocks.2", forward=_other_order)),
    Rewriting("mean by hand in resnet", "resnet", rewritten("", forward=_mean_by_hand)),
    Rewriting("gate by hand in cnn", "cnn", rewritten("", squeezed=_gate_by_hand)),
    Rewriting("tanh by sigmoid in generator", "generator", rewritten("", coloured=_tanh_by_hand)),
    Rewriting("variance by hand in discriminator", "discriminator", rewritten("", spread=_variance_by_hand)),
    Rewriting("stride in the exponent in detector", "detector", rewritten("", sized=_stride_in_exponent)),
    Rewriting("log_softmax by hand in lstm", "lstm", rewritten("", tagged=_logarithm), mode="train"),
)
REWRITINGS: dict[str, Rewriting] = {each.name: each for each in _ALL}
