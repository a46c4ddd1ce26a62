"""Sequence models: recurrent taggers and a small GPT whose head shares the embedding's weight."""

from __future__ import annotations

import paddle
import torch
from torch import nn

from examples.pairs.pair import Pair, pair, token_ids

VOCABULARY, EMBEDDED, HIDDEN, TAGS = 60, 24, 32, 9


class TorchTagger(nn.Module):
    def __init__(self, kind: type[nn.RNNBase], layers: int, bidirectional: bool) -> None:
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, EMBEDDED)
        self.rnn = kind(EMBEDDED, HIDDEN, layers, batch_first=True, bidirectional=bidirectional)
        self.tagger = nn.Linear(HIDDEN * (1 + bidirectional), TAGS)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.tagger(self.rnn(self.embedding(tokens))[0])


class PaddleTagger(paddle.nn.Layer):
    def __init__(self, kind: type[paddle.nn.Layer], layers: int, bidirectional: bool) -> None:
        super().__init__()
        self.embed = paddle.nn.Embedding(VOCABULARY, EMBEDDED)
        direction = "bidirect" if bidirectional else "forward"
        self.recurrent = kind(EMBEDDED, HIDDEN, layers, direction=direction)
        self.classify = paddle.nn.Linear(HIDDEN * (1 + bidirectional), TAGS)

    def forward(self, tokens: paddle.Tensor) -> paddle.Tensor:
        return self.classify(self.recurrent(self.embed(tokens))[0])


class TorchGptBlock(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.ln_1 = nn.LayerNorm(width)
        self.c_attn = nn.Linear(width, 3 * width)
        self.c_proj = nn.Linear(width, width)
        self.ln_2 = nn.LayerNorm(width)
        self.c_fc = nn.Linear(width, 4 * width)
        self.act = nn.GELU(approximate="tanh")
        self.mlp_proj = nn.Linear(4 * width, width)

    def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        x = x + self.attend(self.ln_1(x), mask)
        return x + self.mlp_proj(self.act(self.c_fc(self.ln_2(x))))

    def attend(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        count, length, width = x.shape
        split = (count, length, self.heads, width // self.heads)
        query, key, value = (part.reshape(split).transpose(1, 2) for part in self.c_attn(x).split(width, 2))
        scores = query @ key.transpose(-2, -1) * (width // self.heads) ** -0.5
        weights = scores.masked_fill(mask, float("-inf")).softmax(-1)
        return self.c_proj((weights @ value).transpose(1, 2).reshape(count, length, width))


class TorchGpt(nn.Module):
    def __init__(self, width: int = 48, heads: int = 4, depth: int = 2, length: int = 16) -> None:
        super().__init__()
        self.wte = nn.Embedding(VOCABULARY, width)
        self.wpe = nn.Embedding(length, width)
        self.h = nn.ModuleList(TorchGptBlock(width, heads) for _ in range(depth))
        self.ln_f = nn.LayerNorm(width)
        self.lm_head = nn.Linear(width, VOCABULARY, bias=False)
        self.lm_head.weight = self.wte.weight

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        length = tokens.shape[1]
        mask = torch.ones(length, length, dtype=torch.bool).triu(1)
        x = self.wte(tokens) + self.wpe(torch.arange(length))
        for block in self.h:
            x = block(x, mask)
        return self.lm_head(self.ln_f(x))


class PaddleGptBlock(paddle.nn.Layer):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm1 = paddle.nn.LayerNorm(width)
        self.qkv_proj = paddle.nn.Linear(width, 3 * width)
        self.out_proj = paddle.nn.Linear(width, width)
        self.norm2 = paddle.nn.LayerNorm(width)
        self.linear1 = paddle.nn.Linear(width, 4 * width)
        self.act = paddle.nn.GELU(approximate=True)
        self.linear2 = paddle.nn.Linear(4 * width, width)

    def forward(self, x: paddle.Tensor, bias: paddle.Tensor) -> paddle.Tensor:
        x = x + self.attend(self.norm1(x), bias)
        return x + self.linear2(self.act(self.linear1(self.norm2(x))))

    def attend(self, x: paddle.Tensor, bias: paddle.Tensor) -> paddle.Tensor:
        count, length, width = x.shape
        split = [count, length, self.heads, width // self.heads]
        parts = paddle.split(self.qkv_proj(x), 3, 2)
        query, key, value = (part.reshape(split).transpose([0, 2, 1, 3]) for part in parts)
        scores = paddle.matmul(query, key, transpose_y=True) * (width // self.heads) ** -0.5
        weights = paddle.nn.functional.softmax(scores + bias, -1)
        mixed = paddle.matmul(weights, value).transpose([0, 2, 1, 3])
        return self.out_proj(mixed.reshape([count, length, width]))


class PaddleGpt(paddle.nn.Layer):
    """The tied head is a product with the embedding's weight: paddle's Linear has it the other way round."""

    def __init__(self, width: int = 48, heads: int = 4, depth: int = 2, length: int = 16) -> None:
        super().__init__()
        self.word_embeddings = paddle.nn.Embedding(VOCABULARY, width)
        self.position_embeddings = paddle.nn.Embedding(length, width)
        self.layers = paddle.nn.LayerList([PaddleGptBlock(width, heads) for _ in range(depth)])
        self.norm = paddle.nn.LayerNorm(width)

    def forward(self, tokens: paddle.Tensor) -> paddle.Tensor:
        length = tokens.shape[1]
        x = self.word_embeddings(tokens) + self.position_embeddings(paddle.arange(length))
        bias = paddle.triu(paddle.full([length, length], float("-inf"), dtype=x.dtype), 1)
        for layer in self.layers:
            x = layer(x, bias)
        return paddle.matmul(self.norm(x), self.word_embeddings.weight, transpose_y=True)


PAIRS: tuple[Pair, ...] = (
    pair(
        "lstm_tagger",
        lambda: TorchTagger(nn.LSTM, 2, True),
        lambda: PaddleTagger(paddle.nn.LSTM, 2, True),
        token_ids(2, 11, VOCABULARY),
        "recurrent",
    ),
    pair(
        "gru_tagger",
        lambda: TorchTagger(nn.GRU, 1, False),
        lambda: PaddleTagger(paddle.nn.GRU, 1, False),
        token_ids(2, 11, VOCABULARY),
        "recurrent",
    ),
    pair("gpt", TorchGpt, PaddleGpt, token_ids(2, 12, VOCABULARY), "transformer", "tied"),
)
