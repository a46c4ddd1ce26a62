"""The same four models in torch and paddle, with the same weights, as people write them.

Each pair is two functions that build a model and one that copies the torch model's weights
into the paddle model.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tests.conformance.models import kit_for

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Pair:
    """A torch model, the paddle model that equals it, and an input."""

    torch: Any
    paddle: Any
    inputs: Array

    def model(self, name: str) -> Any:
        return self.torch if name == "torch" else self.paddle


def residual_net() -> Pair:
    """In-place ReLU on the torch side only, BatchNorm in train mode, residuals, a strided branch."""
    torch, paddle = kit_for("torch"), kit_for("paddle")

    def block_of(kit: Any, conv: Any, norm: Any, relu: Any, off: dict[str, Any]) -> Callable[..., Any]:
        def forward(self: Any, x: Any) -> Any:
            y = self.relu(self.norm1(self.conv1(x)))
            y = self.norm2(self.conv2(y))
            shortcut = x if self.stride == 1 else self.shortcut(x)
            return self.relu(y + shortcut)

        def block(inputs: int, outputs: int, stride: int) -> Any:
            parts = {
                "conv1": conv(inputs, outputs, 3, stride=stride, padding=1, **off),
                "norm1": norm(outputs),
                "relu": relu(),
                "conv2": conv(outputs, outputs, 3, padding=1, **off),
                "norm2": norm(outputs),
            }
            if stride != 1:
                parts["shortcut"] = conv(inputs, outputs, 1, stride=stride)
            made = kit.module(forward, "Block", **parts)
            made.stride = stride
            return made

        return block

    def forward(self: Any, x: Any) -> Any:
        x = self.relu(self.norm(self.stem(x)))
        x = self.second(self.first(self.pool(x)))
        return self.head(self.mean(x).flatten(1))

    def build(kit: Any, names: dict[str, Any], relu: Any, off: dict[str, Any]) -> Any:
        block = block_of(kit, names["conv"], names["norm"], relu, off)
        return kit.module(
            forward,
            "ResidualNet",
            stem=names["conv"](3, 8, 3, padding=1, **off),
            norm=names["norm"](8),
            relu=relu(),
            pool=names["pool"](3, 2, 1),
            first=block(8, 8, 1),
            second=block(8, 16, 2),
            mean=names["mean"](1),
            head=kit.linear(16, 5),
        )

    nn = torch.nn
    one = build(
        torch,
        {"conv": nn.Conv2d, "norm": nn.BatchNorm2d, "pool": nn.MaxPool2d, "mean": nn.AdaptiveAvgPool2d},
        lambda: nn.ReLU(inplace=True),
        {"bias": False},
    )
    nn = paddle.nn
    other = build(
        paddle,
        {"conv": nn.Conv2D, "norm": nn.BatchNorm2D, "pool": nn.MaxPool2D, "mean": nn.AdaptiveAvgPool2D},
        nn.ReLU,
        {"bias_attr": False},
    )
    copy_weights(one, other)
    return Pair(one, other, normal(4, 3, 16, 16))


def encoder() -> Pair:
    torch, paddle = kit_for("torch"), kit_for("paddle")
    layer = torch.nn.TransformerEncoderLayer(16, 4, 32, dropout=0.0, batch_first=True)
    one = torch.nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
    other = paddle.nn.TransformerEncoder(paddle.nn.TransformerEncoderLayer(16, 4, 32, dropout=0.0), 2)
    for entry in torch.backend.state(one):  # every layer was a copy of the first
        torch.backend.write(
            entry.value, normal(*torch.backend.shape(entry.value), seed=len(entry.path)) * 0.3
        )
    copy_weights(one, other, split_attention)
    return Pair(one, other, normal(3, 7, 16))


def split_attention(name: str, value: Array) -> dict[str, Array]:
    """torch packs what paddle has as three layers."""
    head, _, tail = name.rpartition("in_proj_")
    if not head:
        return {name: value}
    return {f"{head}{part}_proj.{tail}": third for part, third in zip("qkv", np.split(value, 3), strict=True)}


def recurrent() -> Pair:
    torch, paddle = kit_for("torch"), kit_for("paddle")

    def forward(self: Any, x: Any) -> Any:
        sequence, (hidden, _) = self.lstm(self.embed(x))
        return self.head(sequence), hidden

    one = torch.module(
        forward,
        "Tagger",
        embed=torch.linear(4, 6),
        lstm=torch.nn.LSTM(6, 8, num_layers=2, batch_first=True),
        head=torch.linear(8, 3),
    )
    other = paddle.module(
        forward,
        "Tagger",
        embed=paddle.linear(4, 6),
        lstm=paddle.nn.LSTM(6, 8, num_layers=2),
        head=paddle.linear(8, 3),
    )
    copy_weights(one, other)
    return Pair(one, other, normal(3, 5, 4))


def forked() -> Pair:
    """Several outputs, a layer called three times, a tensor that goes into two layers."""
    torch, paddle = kit_for("torch"), kit_for("paddle")

    def forward(self: Any, x: Any) -> Any:
        x = self.shared(self.stem(x))
        left, right = self.left(x), self.right(x)
        return {"left": self.shared(left), "right": [self.shared(right), left]}

    def build(kit: Any) -> Any:
        return kit.module(
            forward,
            "Forked",
            stem=kit.linear(5, 6),
            shared=kit.linear(6, 6),
            left=kit.linear(6, 6),
            right=kit.linear(6, 6),
        )

    one, other = build(torch), build(paddle)
    copy_weights(one, other)
    return Pair(one, other, normal(4, 5))


PAIRS: dict[str, Callable[[], Pair]] = {
    "residual_net": residual_net,
    "encoder": encoder,
    "recurrent": recurrent,
    "forked": forked,
}


def normal(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).normal(size=shape).astype("float32")


def copy_weights(one: Any, other: Any, split: Callable[[str, Array], dict[str, Array]] | None = None) -> None:
    torch, paddle = kit_for("torch").backend, kit_for("paddle").backend
    values: dict[str, Array] = {}
    for entry in torch.state(one):
        name = entry.path.replace("running_mean", "_mean").replace("running_var", "_variance")
        value = torch.to_array(entry.value)
        values |= split(name, value) if split else {name: value}
    linear = {path for path, module in paddle.modules(other).items() if paddle.kind(module) == "Linear"}
    for entry in paddle.state(other):
        if entry.tied_to is None:
            value = values[entry.path]
            turned = value.T if entry.module in linear and value.ndim == 2 else value
            paddle.write(entry.value, np.ascontiguousarray(turned))
