"""A small encoder: words and places, attention over the words that are there, their mean."""

import math

import torch
from torch import nn


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x, there):
        batch, length, width = x.shape
        q, k, v = self.qkv(x).view(batch, length, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
        scores = scores.masked_fill(~there[:, None, None, :], -1e9)
        mixed = scores.softmax(-1) @ v
        return self.out(mixed.transpose(1, 2).reshape(batch, length, width))


class Block(nn.Module):
    def __init__(self, width, heads, dropout):
        super().__init__()
        self.norm1 = nn.LayerNorm(width)
        self.attention = Attention(width, heads)
        self.norm2 = nn.LayerNorm(width)
        self.widen = nn.Linear(width, 2 * width)
        self.narrow = nn.Linear(2 * width, width)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x, there):
        x = x + self.dropout(self.attention(self.norm1(x), there))
        hidden = nn.functional.gelu(self.widen(self.norm2(x)))
        return x + self.dropout(self.narrow(hidden))


class Classifier(nn.Module):
    def __init__(self, words=64, width=32, heads=4, depth=2, classes=3, dropout=0.1, longest=16):
        super().__init__()
        self.words = nn.Embedding(words, width, padding_idx=0)
        self.places = nn.Embedding(longest, width)
        self.blocks = nn.ModuleList(Block(width, heads, dropout) for _ in range(depth))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, classes)
        self.apply(_begin)
        nn.init.zeros_(self.words.weight.data[0])

    def forward(self, ids):
        there = ids != 0
        x = self.words(ids) + self.places(torch.arange(ids.shape[1]))
        for block in self.blocks:
            x = block(x, there)
        weight = there.float().unsqueeze(-1)
        x = (self.norm(x) * weight).sum(1) / weight.sum(1).clamp(min=1)
        return self.head(x)


def _begin(module):
    if isinstance(module, (nn.Linear, nn.Embedding)):
        nn.init.normal_(module.weight, std=0.1)
    if isinstance(module, nn.Linear):
        nn.init.zeros_(module.bias)
