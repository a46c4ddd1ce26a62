"""Two transformers with attention written by hand: a vision encoder and a causal decoder."""

from __future__ import annotations

import paddle
import torch
from examples.pairs.pair import Pair, images, pair, token_ids
from paddle.nn import functional as paddle_functional
from torch import nn
from torch.nn import functional as torch_functional

WIDTH, HEADS, VOCABULARY, LENGTH = 48, 4, 50, 10
SCALE = (WIDTH // HEADS) ** -0.5


class TorchAttention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
        self.proj = nn.Linear(WIDTH, WIDTH)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        count, length, width = x.shape
        qkv = self.qkv(x).reshape(count, length, 3, HEADS, width // HEADS).permute(2, 0, 3, 1, 4)
        query, key, value = qkv[0], qkv[1], qkv[2]
        weights = torch.softmax(query @ key.transpose(-2, -1) * SCALE, -1)
        return self.proj((weights @ value).transpose(1, 2).reshape(count, length, width))


class PaddleAttention(paddle.nn.Layer):
    def __init__(self) -> None:
        super().__init__()
        self.heads = HEADS
        self.scale = SCALE
        self.qkv = paddle.nn.Linear(WIDTH, 3 * WIDTH)
        self.proj = paddle.nn.Linear(WIDTH, WIDTH)

    def forward(self, x: paddle.Tensor) -> paddle.Tensor:
        query, key, value = self.split(x)
        weights = self.weigh(query, key)
        return self.proj(self.join(paddle.matmul(weights, value)))

    def split(self, x: paddle.Tensor) -> list[paddle.Tensor]:
        count, length, width = x.shape
        shape = [count, length, 3, self.heads, width // self.heads]
        # guilty: vit heads
        qkv = self.qkv(x).reshape(shape).transpose([2, 0, 3, 1, 4])
        return [qkv[0], qkv[1], qkv[2]]

    def weigh(self, query: paddle.Tensor, key: paddle.Tensor) -> paddle.Tensor:
        # guilty: vit scale of the width
        return paddle_functional.softmax(paddle.matmul(query, key, transpose_y=True) * self.scale, -1)

    def join(self, mixed: paddle.Tensor) -> paddle.Tensor:
        count, heads, length, size = mixed.shape
        return mixed.transpose([0, 2, 1, 3]).reshape([count, length, heads * size])


class TorchVitBlock(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(WIDTH, eps=1e-6)
        self.attention = TorchAttention()
        self.norm2 = nn.LayerNorm(WIDTH, eps=1e-6)
        self.fc1 = nn.Linear(WIDTH, 2 * WIDTH)
        self.act = nn.GELU()
        self.fc2 = nn.Linear(2 * WIDTH, WIDTH)
        self.gamma = nn.Parameter(0.3 + 0.4 * torch.rand(WIDTH))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.attention(self.norm1(x))
        return x + self.gamma * self.fc2(self.act(self.fc1(self.norm2(x))))


class PaddleVitBlock(paddle.nn.Layer):
    def __init__(self) -> None:
        super().__init__()
        self.norm1 = paddle.nn.LayerNorm(WIDTH, epsilon=1e-6)
        self.attention = PaddleAttention()
        self.norm2 = paddle.nn.LayerNorm(WIDTH, epsilon=1e-6)
        self.fc1 = paddle.nn.Linear(WIDTH, 2 * WIDTH)
        self.act = paddle.nn.GELU()
        self.fc2 = paddle.nn.Linear(2 * WIDTH, WIDTH)
        self.gamma = self.create_parameter([WIDTH], default_initializer=paddle.nn.initializer.Constant(0.1))

    def forward(self, x: paddle.Tensor) -> paddle.Tensor:
        x = x + self.attention(self.norm1(x))
        return x + self.gamma * self.fc2(self.act(self.fc1(self.norm2(x))))


class TorchVit(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.token = nn.Parameter(torch.randn(1, 1, WIDTH))
        self.position = nn.Parameter(0.5 * torch.randn(1, 10, WIDTH))
        self.patches = nn.Conv2d(3, WIDTH, 8, 8)
        self.blocks = nn.ModuleList(TorchVitBlock() for _ in range(3))
        self.norm = nn.LayerNorm(WIDTH, eps=1e-6)
        self.head = nn.Linear(WIDTH, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(x.shape[0], -1, -1), x], 1) + self.position
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x)[:, 0])


class PaddleVit(paddle.nn.Layer):
    def __init__(self) -> None:
        super().__init__()
        normal = paddle.nn.initializer.Normal(0.0, 0.5)
        self.token = self.create_parameter([1, 1, WIDTH], default_initializer=normal)
        self.position = self.create_parameter([1, 10, WIDTH], default_initializer=normal)
        self.patches = paddle.nn.Conv2D(3, WIDTH, 8, 8)
        self.blocks = paddle.nn.LayerList([PaddleVitBlock() for _ in range(3)])
        self.norm = paddle.nn.LayerNorm(WIDTH, epsilon=1e-6)
        self.head = paddle.nn.Linear(WIDTH, 10)

    def forward(self, x: paddle.Tensor) -> paddle.Tensor:
        x = self.placed(self.patches(x).flatten(2).transpose([0, 2, 1]))
        for block in self.blocks:
            x = block(x)
        return self.decided(x)

    def placed(self, x: paddle.Tensor) -> paddle.Tensor:
        return paddle.concat([self.token.expand([x.shape[0], -1, -1]), x], 1) + self.position

    def decided(self, x: paddle.Tensor) -> paddle.Tensor:
        return self.head(self.norm(x)[:, 0])


class TorchRmsNorm(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(0.6 + 0.8 * torch.rand(WIDTH))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * self.weight


class PaddleRmsNorm(paddle.nn.Layer):
    def __init__(self) -> None:
        super().__init__()
        self.epsilon = 1e-6
        self.weight = self.create_parameter([WIDTH], default_initializer=paddle.nn.initializer.Constant(1.0))

    def forward(self, x: paddle.Tensor) -> paddle.Tensor:
        # guilty: gpt epsilon by hand
        size = x.pow(2).mean(-1, keepdim=True) + self.epsilon
        return x * paddle.rsqrt(size) * self.weight


class TorchGptBlock(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(WIDTH)
        self.query = nn.Linear(WIDTH, WIDTH)
        self.key = nn.Linear(WIDTH, WIDTH)
        self.value = nn.Linear(WIDTH, WIDTH)
        self.out = nn.Linear(WIDTH, WIDTH)
        self.norm2 = TorchRmsNorm()
        self.up = nn.Linear(WIDTH, 2 * WIDTH)
        self.down = nn.Linear(2 * WIDTH, WIDTH)

    def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        x = x + self.attend(self.norm1(x), mask)
        return x + self.down(torch_functional.gelu(self.up(self.norm2(x)), approximate="tanh"))

    def attend(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        shape = (x.shape[0], x.shape[1], HEADS, WIDTH // HEADS)
        query, key, value = (f(x).reshape(shape).transpose(1, 2) for f in (self.query, self.key, self.value))
        weights = torch.softmax(query @ key.transpose(-2, -1) * SCALE + mask, -1)
        return self.out((weights @ value).transpose(1, 2).reshape(x.shape))


class PaddleGptBlock(paddle.nn.Layer):
    def __init__(self) -> None:
        super().__init__()
        self.norm1 = paddle.nn.LayerNorm(WIDTH)
        self.query = paddle.nn.Linear(WIDTH, WIDTH)
        self.key = paddle.nn.Linear(WIDTH, WIDTH)
        self.value = paddle.nn.Linear(WIDTH, WIDTH)
        self.out = paddle.nn.Linear(WIDTH, WIDTH)
        self.norm2 = PaddleRmsNorm()
        self.up = paddle.nn.Linear(WIDTH, 2 * WIDTH)
        self.down = paddle.nn.Linear(2 * WIDTH, WIDTH)

    def forward(self, x: paddle.Tensor, mask: paddle.Tensor) -> paddle.Tensor:
        x = x + self.attend(self.norm1(x), mask)
        return x + self.down(self.activate(self.up(self.norm2(x))))

    def activate(self, x: paddle.Tensor) -> paddle.Tensor:
        return paddle_functional.gelu(x, approximate=True)

    def attend(self, x: paddle.Tensor, mask: paddle.Tensor) -> paddle.Tensor:
        shape = [x.shape[0], x.shape[1], HEADS, WIDTH // HEADS]
        query, key, value = (
            f(x).reshape(shape).transpose([0, 2, 1, 3]) for f in (self.query, self.key, self.value)
        )
        weights = self.weigh(paddle.matmul(query, key, transpose_y=True) * SCALE, mask)
        return self.out(paddle.matmul(weights, value).transpose([0, 2, 1, 3]).reshape(x.shape))

    def weigh(self, scores: paddle.Tensor, mask: paddle.Tensor) -> paddle.Tensor:
        return paddle_functional.softmax(scores + mask, -1)


class TorchGpt(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(VOCABULARY, WIDTH)
        self.place = nn.Embedding(LENGTH, WIDTH)
        self.blocks = nn.ModuleList(TorchGptBlock() for _ in range(2))
        self.norm = nn.LayerNorm(WIDTH)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        length = x.shape[1]
        mask = torch.full((length, length), float("-inf"), dtype=self.embed.weight.dtype).triu(1)
        y = self.embed(x) * WIDTH**0.5 + self.place(torch.arange(length))
        for block in self.blocks:
            y = block(y, mask)
        return torch_functional.linear(self.norm(y), self.embed.weight)


class PaddleGpt(paddle.nn.Layer):
    def __init__(self) -> None:
        super().__init__()
        self.embed = paddle.nn.Embedding(VOCABULARY, WIDTH)
        self.place = paddle.nn.Embedding(LENGTH, WIDTH)
        self.blocks = paddle.nn.LayerList([PaddleGptBlock() for _ in range(2)])
        self.norm = paddle.nn.LayerNorm(WIDTH)

    def forward(self, x: paddle.Tensor) -> paddle.Tensor:
        mask = self.masked(x.shape[1])
        y = self.embedded(x)
        for block in self.blocks:
            y = block(y, mask)
        return self.predicted(self.norm(y))

    def masked(self, length: int) -> paddle.Tensor:
        return paddle.full([length, length], float("-inf"), dtype=self.embed.weight.dtype).triu(1)

    def embedded(self, x: paddle.Tensor) -> paddle.Tensor:
        return self.embed(x) * WIDTH**0.5 + self.place(paddle.arange(x.shape[1]))

    def predicted(self, x: paddle.Tensor) -> paddle.Tensor:
        return paddle.matmul(x, self.embed.weight, transpose_y=True)


PAIRS: tuple[Pair, ...] = (
    pair("vit", TorchVit, PaddleVit, images(2, 24)),
    pair("gpt", TorchGpt, PaddleGpt, token_ids(2, LENGTH, VOCABULARY)),
)
