"""A small encoder: words and places, attention over the words that are there, their mean."""

import math

import paddle
from paddle import nn


class Attention(nn.Layer):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x, there):
        batch, length, width = x.shape
        parts = self.qkv(x).reshape([batch, length, 3, self.heads, width // self.heads])
        q, k, v = parts.transpose([2, 0, 3, 1, 4]).unbind(0)
        scores = paddle.matmul(q, k, transpose_y=True) / math.sqrt(q.shape[-1])
        scores = paddle.where(there[:, None, None, :], scores, paddle.full_like(scores, -1e9))
        mixed = paddle.matmul(nn.functional.softmax(scores, axis=-1), v)
        return self.out(mixed.transpose([0, 2, 1, 3]).reshape([batch, length, width]))


class Block(nn.Layer):
    def __init__(self, width, heads, dropout):
        super().__init__()
        self.norm1 = nn.LayerNorm(width, epsilon=1e-5)
        self.attention = Attention(width, heads)
        self.norm2 = nn.LayerNorm(width, epsilon=1e-5)
        self.widen = nn.Linear(width, 2 * width)
        self.narrow = nn.Linear(2 * width, width)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x, there):
        x = x + self.dropout(self.attention(self.norm1(x), there))
        hidden = nn.functional.gelu(self.widen(self.norm2(x)))
        return x + self.dropout(self.narrow(hidden))


class Classifier(nn.Layer):
    def __init__(self, words=64, width=32, heads=4, depth=2, classes=3, dropout=0.1, longest=16):
        super().__init__()
        self.words = nn.Embedding(words, width, padding_idx=0)
        self.places = nn.Embedding(longest, width)
        self.blocks = nn.LayerList([Block(width, heads, dropout) for _ in range(depth)])
        self.norm = nn.LayerNorm(width, epsilon=1e-5)
        self.head = nn.Linear(width, classes)
        self.apply(_begin)
        with paddle.no_grad():
            self.words.weight[0] = 0.0

    def forward(self, ids):
        there = ids != 0
        x = self.words(ids) + self.places(paddle.arange(ids.shape[1]))
        for block in self.blocks:
            x = block(x, there)
        weight = there.astype("float32").unsqueeze(-1)
        x = (self.norm(x) * weight).sum(1) / weight.sum(1).clip(min=1)
        return self.head(x)


def _begin(layer):
    if isinstance(layer, (nn.Linear, nn.Embedding)):
        nn.initializer.Normal(std=0.1)(layer.weight)
    if isinstance(layer, nn.Linear):
        nn.initializer.Constant(0.0)(layer.bias)
