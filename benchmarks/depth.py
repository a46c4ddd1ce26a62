"""Models of any size for the benchmarks: residual blocks of norm, linear, gelu and linear."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

NAMES = ("norm", "up", "act", "down")
WIDTH = 16


@dataclass(frozen=True, slots=True)
class Writing:
    """How a port is written: what its layers are called, and in which order they are defined."""

    words: str
    names: tuple[str, ...] = NAMES
    order: tuple[int, ...] = (0, 1, 2, 3)
    blocks: str = "blocks"


WRITINGS = (
    Writing("same names"),
    Writing("renamed", ("ln", "fc1", "gelu", "fc2"), blocks="layers"),
    Writing("reordered", order=(3, 2, 1, 0)),
)


def deep(library: Any, depth: int, writing: Writing, width: int = WIDTH, *, parallel: bool = False) -> Any:
    """``depth`` residual blocks of torch or paddle, six parameters each: in a row, or side by side."""
    is_torch = library.__name__ == "torch"
    base = library.nn.Module if is_torch else library.nn.Layer
    listed = library.nn.ModuleList if is_torch else library.nn.LayerList
    makers: Sequence[Callable[[], Any]] = (
        lambda: library.nn.LayerNorm(width),
        lambda: library.nn.Linear(width, width),
        lambda: library.nn.GELU(),
        lambda: library.nn.Linear(width, width),
    )

    class Block(base):  # type: ignore[misc,valid-type]
        def __init__(self) -> None:
            super().__init__()
            for place in writing.order:
                setattr(self, writing.names[place], makers[place]())

        def forward(self, x: Any) -> Any:
            norm, up, act, down = (getattr(self, name) for name in writing.names)
            return x + down(act(up(norm(x))))

    class Deep(base):  # type: ignore[misc,valid-type]
        def __init__(self) -> None:
            super().__init__()
            setattr(self, writing.blocks, listed([Block() for _ in range(depth)]))

        def forward(self, x: Any) -> Any:
            blocks = getattr(self, writing.blocks)
            if parallel:
                return sum(block(x) for block in blocks)
            for block in blocks:
                x = block(x)
            return x

    return Deep()


@dataclass(frozen=True, slots=True)
class Row:
    """Seconds of CPU time that a transfer took."""

    parameters: int
    writing: str
    static: float  # without inputs
    verified: float  # with inputs


def rows(depths: Sequence[int]) -> Iterator[Row]:
    """Every depth in every way of writing it, torch to paddle."""
    import numpy as np
    import paddle
    import torch

    from parfocal.weights.transfer import transfer

    torch.set_num_threads(1)
    x = np.random.default_rng(0).standard_normal((2, 4, WIDTH)).astype("float32")
    transfer(deep(torch, 40, WRITINGS[0]), deep(paddle, 40, WRITINGS[1]), x)  # what the first time loads
    for depth in depths:
        for writing in WRITINGS:
            reference, port = deep(torch, depth, WRITINGS[0]), deep(paddle, depth, writing)
            seconds = []
            for inputs in (None, x):
                start = time.process_time()
                plan = transfer(reference, port, inputs)
                seconds.append(time.process_time() - start)
                if inputs is not None and not plan.verified:
                    raise SystemExit(f"{depth} blocks, {writing.words}: the plan is wrong")
            yield Row(6 * depth, writing.words, *seconds)
