"""Small models of blocks, written for either framework, with other names, other cuts and planted mistakes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import paddle
import torch

WIDTH, HEADS, SIZE, INNER, EXPERTS = 24, 4, 6, 20, 4
X = np.random.default_rng(7).standard_normal((2, 5, 10)).astype("float32")

Build = Callable[["Library"], Any]
SPLIT = ("q_proj", "k_proj", "v_proj", "o_proj")
SPELLED = ("query", "key", "value", "dense")
SILENT = ("aa", "bb", "cc", "dd")


class Library:
    """The few calls in which the two frameworks differ."""

    def __init__(self, library: Any) -> None:
        self.is_torch = library is torch
        self.base = torch.nn.Module if self.is_torch else paddle.nn.Layer
        self.listed = torch.nn.ModuleList if self.is_torch else paddle.nn.LayerList
        self.norm = torch.nn.LayerNorm if self.is_torch else paddle.nn.LayerNorm
        self.einsum, self.tanh = library.einsum, library.tanh
        functions = library.nn.functional
        self.silu, self.gelu, self.sigmoid = functions.silu, functions.gelu, functions.sigmoid

    def linear(self, inputs: int, outputs: int, bias: bool = True) -> Any:
        if self.is_torch:
            return torch.nn.Linear(inputs, outputs, bias=bias)
        return paddle.nn.Linear(inputs, outputs, bias_attr=None if bias else False)

    def conv(self, inputs: int, outputs: int) -> Any:
        return (torch.nn.Conv2d if self.is_torch else paddle.nn.Conv2D)(inputs, outputs, 1)

    def parameter(self, module: Any, name: str, *shape: int) -> None:
        made = (
            torch.nn.Parameter(torch.zeros(*shape)) if self.is_torch else module.create_parameter(list(shape))
        )
        setattr(module, name, made)

    def softmax(self, x: Any) -> Any:
        return x.softmax(-1) if self.is_torch else paddle.nn.functional.softmax(x, -1)

    def concat(self, parts: Sequence[Any], axis: int) -> Any:
        return torch.cat(parts, axis) if self.is_torch else paddle.concat(parts, axis)

    def permute(self, x: Any, *axes: int) -> Any:
        return x.permute(*axes) if self.is_torch else x.transpose(list(axes))

    def largest(self, x: Any, count: int) -> Any:
        return x.topk(count, -1).values if self.is_torch else paddle.topk(x, count, -1)[0]

    def as_numbers(self, x: Any) -> Any:
        return x.float() if self.is_torch else x.astype("float32")


TORCH, PADDLE = Library(torch), Library(paddle)


def attention(
    names: Sequence[str] = SPLIT, fault: str = "", fused: str = "", groups: int = HEADS, defined: str = "0123"
) -> Build:
    """``fused``: q, k and v in one layer of that name; ``groups``: heads of k and v; ``defined``: the order.

    Faults: "split" (heads cut across), "scale", "swap" (q for k), "group" (the wrong heads share k and v).
    """

    def build(library: Library) -> Any:
        class Attention(library.base):  # type: ignore[name-defined,misc]
            def __init__(self) -> None:
                super().__init__()
                self.heads = HEADS
                widths = (WIDTH, groups * SIZE, groups * SIZE, WIDTH)
                if fused:
                    setattr(self, fused, library.linear(WIDTH, sum(widths[:3])))
                for place in map(int, defined):
                    if place == 3 or not fused:
                        setattr(self, names[place], library.linear(WIDTH, widths[place]))

            def project(self, x: Any) -> list[Any]:
                if not fused:
                    return [getattr(self, name)(x) for name in names[:3]]
                both, first, second = getattr(self, fused)(x), WIDTH, WIDTH + groups * SIZE
                return [both[..., :first], both[..., first:second], both[..., second:]]

            def cut(self, x: Any, heads: int) -> Any:
                across = fault == "split"
                x = x.reshape([*x.shape[:2], *((SIZE, heads) if across else (heads, SIZE))])
                x = library.permute(x, 0, 1, 3, 2) if across else x
                if heads == HEADS:
                    return x
                owners = [
                    head % heads if fault == "group" else head * heads // HEADS for head in range(HEADS)
                ]
                return library.concat([x[:, :, owner : owner + 1] for owner in owners], 2)

            def forward(self, x: Any) -> Any:
                q, k, v = self.project(x)
                q, k = (k, q) if fault == "swap" else (q, k)
                q, k, v = self.cut(q, HEADS), self.cut(k, groups), self.cut(v, groups)
                scale = (WIDTH if fault == "scale" else SIZE) ** -0.5
                weights = library.softmax(library.einsum("bqhd,bkhd->bhqk", q, k) * scale)
                mixed = library.einsum("bhqk,bkhd->bqhd", weights, v)
                return getattr(self, names[3])(mixed.reshape([*x.shape[:2], WIDTH]))

        return Attention()

    return build


def gated(
    names: Sequence[str] = ("gate", "up", "down"), fault: str = "", fused: str = "", inner: int = INNER
) -> Build:
    """Faults: "activation", "swap" (gate for up)."""

    def build(library: Library) -> Any:
        class Gated(library.base):  # type: ignore[name-defined,misc]
            def __init__(self) -> None:
                super().__init__()
                for name in (fused,) if fused else names[:2]:
                    setattr(self, name, library.linear(WIDTH, 2 * inner if fused else inner, bias=False))
                setattr(self, names[2], library.linear(inner, WIDTH, bias=False))

            def forward(self, x: Any) -> Any:
                if fused:
                    both = getattr(self, fused)(x)
                    gate, up = both[..., :inner], both[..., inner:]
                else:
                    gate, up = (getattr(self, name)(x) for name in names[:2])
                gate, up = (up, gate) if fault == "swap" else (gate, up)
                act = library.gelu if fault == "activation" else library.silu
                return getattr(self, names[2])(act(gate) * up)

        return Gated()

    return build


def routed(
    names: Sequence[str] = ("gate", "up", "down"),
    stacks: Sequence[str] = (),
    fault: str = "",
    inner: int = INNER,
    router: str = "router",
    experts: str = "experts",
) -> Build:
    """Experts as a list of gated layers, or as ``stacks`` [experts, in, out] (two: gate and up in one).

    Faults: "unnormalised" (shares that do not add up to 1), "twice" (all shares doubled).
    """

    def build(library: Library) -> Any:
        class Stacked(library.base):  # type: ignore[name-defined,misc]
            def __init__(self) -> None:
                super().__init__()
                for name in stacks[:-1]:
                    library.parameter(self, name, EXPERTS, WIDTH, inner * (2 if len(stacks) == 2 else 1))
                library.parameter(self, stacks[-1], EXPERTS, inner, WIDTH)

            def forward(self, x: Any, share: Any) -> Any:
                made = [library.einsum("blc,eco->bleo", x, getattr(self, name)) for name in stacks[:-1]]
                gate, up = made if len(made) == 2 else (made[0][..., :inner], made[0][..., inner:])
                given = library.einsum("blec,eco->bleo", library.silu(gate) * up, getattr(self, stacks[-1]))
                return (share.unsqueeze(-1) * given).sum(2)

        class Routed(library.base):  # type: ignore[name-defined,misc]
            def __init__(self) -> None:
                super().__init__()
                setattr(self, router, library.linear(WIDTH, EXPERTS, bias=False))
                listed = [gated(names, inner=inner)(library) for _ in range(0 if stacks else EXPERTS)]
                setattr(self, experts, Stacked() if stacks else library.listed(listed))

            def forward(self, x: Any) -> Any:
                share = library.softmax(getattr(self, router)(x))
                share = share * library.as_numbers(share >= library.largest(share, 2)[..., -1:])
                share = share if fault == "unnormalised" else share / share.sum(-1, keepdim=True)
                share = share * 2.0 if fault == "twice" else share
                if stacks:
                    return getattr(self, experts)(x, share)
                given = [share[..., n : n + 1] * each(x) for n, each in enumerate(getattr(self, experts))]
                return sum(given[1:], given[0])

        return Routed()

    return build


def cell(names: Sequence[str] = "ifgo", fused: Sequence[str] = (), fault: str = "") -> Build:
    """A recurrent cell: a layer for every gate, or two for all. Faults: "forget" (one more), "tanh"."""

    def build(library: Library) -> Any:
        class Cell(library.base):  # type: ignore[name-defined,misc]
            def __init__(self) -> None:
                super().__init__()
                for name in fused or (*names, *(f"{name}_h" for name in names)):
                    setattr(self, name, library.linear(WIDTH, 4 * WIDTH if fused else WIDTH))

            def gates(self, x: Any, h: Any) -> list[Any]:
                if not fused:
                    return [getattr(self, name)(x) + getattr(self, f"{name}_h")(h) for name in names]
                all_four = getattr(self, fused[0])(x) + getattr(self, fused[1])(h)
                return [all_four[..., n * WIDTH : (n + 1) * WIDTH] for n in range(4)]

            def forward(self, x: Any) -> Any:
                h = c = 0.0 * x[:, 0]
                for time in range(x.shape[1]):
                    i, f, g, o = self.gates(x[:, time], h)
                    f = f + 1.0 if fault == "forget" else f
                    c = library.sigmoid(f) * c + library.sigmoid(i) * library.tanh(g)
                    h = library.sigmoid(o) * (c if fault == "tanh" else library.tanh(c))
                return x + h.unsqueeze(1)

        return Cell()

    return build


def branches(names: Sequence[str] = SILENT, fault: str = "") -> Build:
    """Convolutions side by side. Faults: "order" (joined otherwise), "activation" (one too many)."""

    def build(library: Library) -> Any:
        class Branches(library.base):  # type: ignore[name-defined,misc]
            def __init__(self) -> None:
                super().__init__()
                for name in names:
                    setattr(self, name, library.conv(WIDTH, WIDTH // 4))

            def forward(self, x: Any) -> Any:
                image = library.permute(x.unsqueeze(2), 0, 3, 1, 2)
                one, two, three, four = (getattr(self, name)(image) for name in names)
                two, three = library.silu(two), library.tanh(three)
                four = library.gelu(four) if fault == "activation" else four
                joined = [four, two, three, one] if fault == "order" else [one, two, three, four]
                return library.permute(library.concat(joined, 1), 0, 2, 3, 1)[:, :, 0]

        return Branches()

    return build


OURS = ("embed", "layers", "norm1", "attn", "norm2", "mlp", "head")
THEIRS = ("inp", "h", "ln_1", "attention", "ln_2", "ffn", "out")


def model(library: Library, blocks: Sequence[tuple[Build, Build]], names: Sequence[str] = OURS) -> Any:
    """Residual blocks, each of a mixing and a feeding part; ``names`` of all that is not in those."""
    embed, layers, norm1, mixing, norm2, feeding, head = names

    class Block(library.base):  # type: ignore[name-defined,misc]
        def __init__(self, mix: Build, feed: Build) -> None:
            super().__init__()
            for name, part in ((norm1, None), (mixing, mix), (norm2, None), (feeding, feed)):
                setattr(self, name, library.norm(WIDTH) if part is None else part(library))

        def forward(self, x: Any) -> Any:
            x = x + getattr(self, mixing)(getattr(self, norm1)(x))
            return x + getattr(self, feeding)(getattr(self, norm2)(x))

    class Model(library.base):  # type: ignore[name-defined,misc]
        def __init__(self) -> None:
            super().__init__()
            setattr(self, embed, library.linear(10, WIDTH))
            setattr(self, layers, library.listed([Block(*block) for block in blocks]))
            setattr(self, head, library.linear(WIDTH, 7))

        def forward(self, x: Any) -> Any:
            x = getattr(self, embed)(x)
            for block in getattr(self, layers):
                x = block(x)
            return getattr(self, head)(x)

    return Model()
