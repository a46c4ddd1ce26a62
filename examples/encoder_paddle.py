"""The port: the same classifier in PaddlePaddle, with its own names, nesting and separate q, k, v."""

from __future__ import annotations

import paddle
from paddle import nn


class SelfAttention(nn.Layer):
    def __init__(self, dim: int, num_heads: int) -> None:
        super().__init__()
        self.num_heads = num_heads
        self.q_proj = nn.Linear(dim, dim)
        self.k_proj = nn.Linear(dim, dim)
        self.v_proj = nn.Linear(dim, dim)
        self.proj = nn.Linear(dim, dim)

    def forward(self, x: paddle.Tensor) -> paddle.Tensor:
        b, n, c = x.shape
        q, k, v = (
            layer(x).reshape([b, n, self.num_heads, c // self.num_heads]).transpose([0, 2, 1, 3])
            for layer in (self.q_proj, self.k_proj, self.v_proj)
        )
        attn = nn.functional.softmax(paddle.matmul(q, k, transpose_y=True) * (c // self.num_heads) ** -0.5)
        return self.proj(paddle.matmul(attn, v).transpose([0, 2, 1, 3]).reshape([b, n, c]))


class Layer(nn.Layer):
    def __init__(self, dim: int, num_heads: int, epsilon: float) -> None:
        super().__init__()
        self.ln_1 = nn.LayerNorm(dim)
        self.attn = SelfAttention(dim, num_heads)
        self.ln_2 = nn.LayerNorm(dim, epsilon=epsilon)
        self.fc1 = nn.Linear(dim, 4 * dim)
        self.fc2 = nn.Linear(4 * dim, dim)

    def forward(self, x: paddle.Tensor) -> paddle.Tensor:
        x = x + self.attn(self.ln_1(x))
        return x + self.fc2(nn.functional.gelu(self.fc1(self.ln_2(x))))


class Classifier(nn.Layer):
    def __init__(self, epsilons: list[float]) -> None:
        super().__init__()
        self.embed = nn.Embedding(1000, 64)
        self.layers = nn.Sequential(*(Layer(64, 4, epsilon) for epsilon in epsilons))
        self.final = nn.LayerNorm(64)
        self.classifier = nn.Linear(64, 10)

    def forward(self, ids: paddle.Tensor) -> paddle.Tensor:
        return self.classifier(self.final(self.layers(self.embed(ids))).mean(axis=1))


def build() -> Classifier:
    return Classifier([1e-5] * 6)


def build_with_a_mistake() -> Classifier:
    """One normalisation in the middle has another epsilon: worth about 1e-6 of the output."""
    return Classifier([1e-5, 1e-5, 1e-5, 1e-6, 1e-5, 1e-5])
