"""Small models of every sort that recordings are tried on, in each framework.

Each entry of ``EXAMPLES`` builds a model and its inputs (as arrays) from a kit; the model's
output may be any nesting of tensors, ``total`` makes one number of it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from parfocal.capture.nested_values import flatten


@dataclass
class Output:
    """What the multi-output model gives."""

    wide: Any
    pair: tuple[Any, Any]
    nothing: None = None


def total(kit: Any, output: Any) -> Any:
    """One number that every floating output goes into, each with another weight."""
    leaves = [leaf for leaf in flatten(output).leaves.values() if kit.backend.is_tensor(leaf)]
    return sum(((leaf * leaf).mean() * (index + 1) for index, leaf in enumerate(leaves)), 0.0)


def values(*shape: int, seed: int = 0) -> np.ndarray[Any, Any]:
    return np.random.default_rng(seed).normal(size=shape).astype("float32")


def residual_cnn(kit: Any) -> tuple[Any, tuple[Any, ...]]:
    """Convolutions, BatchNorm, an in-place ReLU that is called twice, a residual added in place."""

    def block_forward(self: Any, x: Any) -> Any:
        y = kit.relu_(self.norm1(self.conv1(x)))
        y = self.norm2(self.conv2(y))
        kit.add_(y, x)
        return self.relu(y)

    def forward(self: Any, x: Any) -> Any:
        return self.head(self.flatten(self.pool(self.second(self.first(self.stem(x))))))

    def block() -> Any:
        return kit.module(
            block_forward,
            "Block",
            conv1=kit.padded_conv(4, 4),
            norm1=kit.batch_norm(4),
            conv2=kit.padded_conv(4, 4),
            norm2=kit.batch_norm(4),
            relu=in_place_relu(kit),
        )

    model = kit.module(
        forward,
        "ResidualNet",
        stem=kit.padded_conv(3, 4),
        first=block(),
        second=block(),
        pool=kit.average_to(2),
        flatten=kit.nn.Flatten(),
        head=kit.linear(16, 5),
    )
    return model, (values(2, 3, 6, 6),)


def in_place_relu(kit: Any) -> Any:
    """A ReLU layer that works in place; paddle's is a user's own there."""
    if kit.name == "torch":
        return kit.nn.ReLU(inplace=True)
    return kit.module(lambda self, x: kit.relu_(x), "ReLU")


def transformer(kit: Any) -> tuple[Any, tuple[Any, ...]]:
    if kit.name == "torch":
        layer = kit.nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
        return kit.nn.TransformerEncoder(layer, 2, enable_nested_tensor=False), (values(2, 5, 8),)
    layer = kit.nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0)
    return kit.nn.TransformerEncoder(layer, 2), (values(2, 5, 8),)


def lstm(kit: Any) -> tuple[Any, tuple[Any, ...]]:
    def forward(self: Any, x: Any) -> Any:
        sequence, (hidden, cell) = self.lstm(x)
        return self.head(sequence), {"hidden": hidden, "cell": cell}

    options = {"batch_first": True} if kit.name == "torch" else {}
    recurrent = kit.nn.LSTM(4, 6, num_layers=2, **options)
    return kit.module(forward, "Tagger", lstm=recurrent, head=kit.linear(6, 3)), (values(2, 5, 4),)


def multi_output(kit: Any) -> tuple[Any, tuple[Any, ...]]:
    """Nested inputs and outputs, keyword arguments, a module that is called three times."""

    def fork_forward(self: Any, x: Any, *, scale: float = 1.0, extra: Any = None) -> Any:
        left = self.shared(x) * scale
        return Output(wide=left, pair=(self.shared(left), self.shared(extra["more"])))

    def forward(self: Any, x: Any) -> Any:
        forked = self.fork(x, scale=2.0, extra={"more": x + 1.0, "none": None})
        return forked.pair[0], [forked.wide, forked.pair[1]]

    fork = kit.module(fork_forward, "Fork", shared=kit.linear(4, 4))
    return kit.module(forward, "Forked", fork=fork), (values(3, 4),)


def dropouts(kit: Any) -> tuple[Any, tuple[Any, ...]]:
    model = kit.sequential(
        kit.linear(6, 8), kit.nn.Dropout(0.5), kit.nn.ReLU(), kit.nn.Dropout(0.3), kit.linear(8, 2)
    )
    return model, (values(4, 6),)


EXAMPLES: dict[str, Callable[[Any], tuple[Any, tuple[Any, ...]]]] = {
    "residual_cnn": residual_cnn,
    "transformer": transformer,
    "lstm": lstm,
    "multi_output": multi_output,
    "dropouts": dropouts,
}
