"""One stacked tensor against a list of layers: experts, heads, blocks, in every layout, both ways, no map."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import paddle
import pytest
import torch

from parfocal.errors import TransferError
from parfocal.weights.plan import Basis
from parfocal.weights.transfer import transfer
from tests.pairs.weights.tools import gap, randomise, run, state_bytes

EXPERTS, WIDTH, INNER, HEADS, SIZE = 5, 12, 10, 3, 4
X = np.random.default_rng(5).standard_normal((2, 7, WIDTH)).astype("float32")

Build = Callable[[Any], Any]


class Library:
    """The few calls in which the two frameworks differ."""

    def __init__(self, library: Any) -> None:
        self.is_torch = library is torch
        self.base = torch.nn.Module if self.is_torch else paddle.nn.Layer
        self.listed = torch.nn.ModuleList if self.is_torch else paddle.nn.LayerList
        self.einsum = library.einsum
        self.silu = library.nn.functional.silu

    def linear(self, inputs: int, outputs: int, bias: bool = True) -> Any:
        if self.is_torch:
            return torch.nn.Linear(inputs, outputs, bias=bias)
        return paddle.nn.Linear(inputs, outputs, bias_attr=None if bias else False)

    def parameter(self, module: Any, name: str, *shape: int) -> None:
        made = (
            torch.nn.Parameter(torch.zeros(*shape)) if self.is_torch else module.create_parameter(list(shape))
        )
        setattr(module, name, made)

    def softmax(self, x: Any) -> Any:
        return x.softmax(-1) if self.is_torch else paddle.nn.functional.softmax(x, -1)

    def interleaved(self, x: Any) -> tuple[Any, Any]:
        return x[..., 0::2], x[..., 1::2]

    def halves(self, x: Any) -> tuple[Any, Any]:
        return x[..., :INNER], x[..., INNER:]


TORCH, PADDLE = Library(torch), Library(paddle)


def listed_experts(names: tuple[str, str, str] = ("gate", "up", "down"), bias: bool = False) -> Build:
    def build(library: Library) -> Any:
        class Expert(library.base):  # type: ignore[name-defined,misc]
            def __init__(self) -> None:
                super().__init__()
                for name, shape in zip(names, ((WIDTH, INNER), (WIDTH, INNER), (INNER, WIDTH)), strict=True):
                    setattr(self, name, library.linear(*shape, bias))

            def forward(self, x: Any) -> Any:
                gate, up, down = (getattr(self, name) for name in names)
                return down(library.silu(gate(x)) * up(x))

        class Model(library.base):  # type: ignore[name-defined,misc]
            def __init__(self) -> None:
                super().__init__()
                self.router = library.linear(WIDTH, EXPERTS)
                self.members = library.listed([Expert() for _ in range(EXPERTS)])
                self.head = library.linear(WIDTH, 3)

            def forward(self, x: Any) -> Any:
                share = library.softmax(self.router(x))
                parts = [share[..., n : n + 1] * member(x) for n, member in enumerate(self.members)]
                return self.head(x + sum(parts[1:], parts[0]))

        return Model()

    return build


def stacked_experts(
    *, fused: bool = True, turned: bool = False, split: str = "halves", bias: bool = False
) -> Build:
    """``turned``: [experts, in, out]; ``split``: how gate and up lie in one tensor."""

    def build(library: Library) -> Any:
        def shape(inputs: int, outputs: int) -> tuple[int, int, int]:
            return (EXPERTS, inputs, outputs) if turned else (EXPERTS, outputs, inputs)

        class Experts(library.base):  # type: ignore[name-defined,misc]
            def __init__(self) -> None:
                super().__init__()
                first = {"w_in": 2 * INNER} if fused else {"one": INNER, "two": INNER}
                for name, height in first.items():
                    library.parameter(self, name, *shape(WIDTH, height))
                library.parameter(self, "w_out", *shape(INNER, WIDTH))
                if bias:
                    library.parameter(self, "b_in", EXPERTS, 2 * INNER)
                    library.parameter(self, "b_out", EXPERTS, WIDTH)

            def times(self, x: Any, name: str, x_axes: str = "blc") -> Any:
                axes = "eco" if turned else "eoc"
                return library.einsum(f"{x_axes},{axes}->bleo", x, getattr(self, name))

            def forward(self, x: Any, share: Any) -> Any:
                if fused:
                    both = self.times(x, "w_in") + (self.b_in if bias else 0.0)
                    gate, up = getattr(library, split)(both)
                else:
                    gate, up = self.times(x, "one"), self.times(x, "two")
                out = self.times(library.silu(gate) * up, "w_out", "blec") + (self.b_out if bias else 0.0)
                return (share.unsqueeze(-1) * out).sum(2)

        class Model(library.base):  # type: ignore[name-defined,misc]
            def __init__(self) -> None:
                super().__init__()
                self.gate = library.linear(WIDTH, EXPERTS)
                self.experts = Experts()
                self.last = library.linear(WIDTH, 3)

            def forward(self, x: Any) -> Any:
                return self.last(x + self.experts(x, library.softmax(self.gate(x))))

        return Model()

    return build


def heads_listed(library: Library) -> Any:
    class Head(library.base):  # type: ignore[name-defined,misc]
        def __init__(self) -> None:
            super().__init__()
            self.first = library.linear(WIDTH, SIZE)
            self.second = library.linear(WIDTH, SIZE)
            self.third = library.linear(WIDTH, SIZE)

        def forward(self, x: Any) -> Any:
            q, k, v = self.first(x), self.second(x), self.third(x)
            return library.softmax(library.einsum("bqd,bkd->bqk", q, k)) @ v

    class Model(library.base):  # type: ignore[name-defined,misc]
        def __init__(self) -> None:
            super().__init__()
            self.several = library.listed([Head() for _ in range(HEADS)])
            self.out = library.linear(HEADS * SIZE, WIDTH)

        def forward(self, x: Any) -> Any:
            joined = (torch.cat if library.is_torch else paddle.concat)(
                [head(x) for head in self.several], -1
            )
            return self.out(joined)

    return Model()


def heads_in_one(by_head: bool) -> Build:
    """One Linear layer for q, k and v of all heads."""

    def build(library: Library) -> Any:
        class Model(library.base):  # type: ignore[name-defined,misc]
            def __init__(self) -> None:
                super().__init__()
                self.inward = library.linear(WIDTH, 3 * HEADS * SIZE)
                self.outward = library.linear(HEADS * SIZE, WIDTH)

            def forward(self, x: Any) -> Any:
                axes = (HEADS, 3, SIZE) if by_head else (3, HEADS, SIZE)
                seen = self.inward(x).reshape((*x.shape[:2], *axes))
                q, k, v = ((seen[..., n, :] if by_head else seen[:, :, n]) for n in range(3))
                weights = library.softmax(library.einsum("bqhd,bkhd->bhqk", q, k))
                mixed = library.einsum("bhqk,bkhd->bqhd", weights, v)
                return self.outward(mixed.reshape((*x.shape[:2], HEADS * SIZE)))

        return Model()

    return build


def heads_as_axes(library: Library) -> Any:
    """Raw parameters with heads as an axis of their own."""

    class Model(library.base):  # type: ignore[name-defined,misc]
        def __init__(self) -> None:
            super().__init__()
            for name in "QKV":
                library.parameter(self, f"W_{name}", HEADS, WIDTH, SIZE)
                library.parameter(self, f"b_{name}", HEADS, SIZE)
            library.parameter(self, "W_O", HEADS, SIZE, WIDTH)
            library.parameter(self, "b_O", WIDTH)

        def forward(self, x: Any) -> Any:
            q, k, v = (
                library.einsum("blc,hcd->blhd", x, getattr(self, f"W_{name}")) + getattr(self, f"b_{name}")
                for name in "QKV"
            )
            weights = library.softmax(library.einsum("bqhd,bkhd->bhqk", q, k))
            return library.einsum("bhqk,bkhd,hdc->bqc", weights, v, self.W_O) + self.b_O

    return Model()


def heads_in_layers(library: Library) -> Any:
    class Model(library.base):  # type: ignore[name-defined,misc]
        def __init__(self) -> None:
            super().__init__()
            for name in ("query", "key", "value", "out"):
                setattr(self, name, library.linear(WIDTH, WIDTH))

        def forward(self, x: Any) -> Any:
            shape = (*x.shape[:2], HEADS, SIZE)
            q, k, v = (layer(x).reshape(shape) for layer in (self.query, self.key, self.value))
            weights = library.softmax(library.einsum("bqhd,bkhd->bhqk", q, k))
            return self.out(library.einsum("bhqk,bkhd->bqhd", weights, v).reshape((*x.shape[:2], WIDTH)))

    return Model()


def blocks_stacked(library: Library) -> Any:
    class Model(library.base):  # type: ignore[name-defined,misc]
        def __init__(self) -> None:
            super().__init__()
            library.parameter(self, "scales", 4, WIDTH)
            library.parameter(self, "wide", 4, WIDTH, INNER)
            library.parameter(self, "narrow", 4, INNER, WIDTH)

        def forward(self, x: Any) -> Any:
            for n in range(4):
                x = x + library.silu((x * self.scales[n]) @ self.wide[n]) @ self.narrow[n]
            return x

    return Model()


def blocks_listed(library: Library) -> Any:
    class Block(library.base):  # type: ignore[name-defined,misc]
        def __init__(self) -> None:
            super().__init__()
            library.parameter(self, "gamma", WIDTH)
            self.first = library.linear(WIDTH, INNER, bias=False)
            self.second = library.linear(INNER, WIDTH, bias=False)

        def forward(self, x: Any) -> Any:
            return x + self.second(library.silu(self.first(x * self.gamma)))

    class Model(library.base):  # type: ignore[name-defined,misc]
        def __init__(self) -> None:
            super().__init__()
            self.layers = library.listed([Block() for _ in range(4)])

        def forward(self, x: Any) -> Any:
            for layer in self.layers:
                x = layer(x)
            return x

    return Model()


PAIRS: dict[str, tuple[Build, Build]] = {
    "gate and up in one": (stacked_experts(), listed_experts()),
    "names that say nothing": (stacked_experts(), listed_experts(("b", "c", "a"))),
    "up before gate in the list": (stacked_experts(), listed_experts(("z", "y", "x"))),
    "in, out": (stacked_experts(turned=True), listed_experts()),
    "row by row in turn": (stacked_experts(split="interleaved"), listed_experts()),
    "in turn, in, out, with biases": (
        stacked_experts(turned=True, split="interleaved", bias=True),
        listed_experts(bias=True),
    ),
    "three stacks": (stacked_experts(fused=False), listed_experts(("e", "f", "g"))),
    "three stacks, in, out": (stacked_experts(fused=False, turned=True), listed_experts(("e", "f", "g"))),
    "heads one after the other": (heads_in_one(by_head=True), heads_listed),
    "q of all heads, k, v": (heads_in_one(by_head=False), heads_listed),
    "heads as an axis": (heads_as_axes, heads_in_layers),
    "blocks": (blocks_stacked, blocks_listed),
}
WAYS = [(TORCH, PADDLE), (PADDLE, TORCH)]


@pytest.mark.parametrize("stack_first", [True, False], ids=["from stack", "to stack"])
@pytest.mark.parametrize("way", WAYS, ids=["torch-paddle", "paddle-torch"])
@pytest.mark.parametrize("name", PAIRS)
def test_a_stack_and_a_list(name: str, way: tuple[Library, Library], stack_first: bool) -> None:
    stack, listed = PAIRS[name]
    builds = (stack, listed) if stack_first else (listed, stack)
    reference, port = randomise(builds[0](way[0]), 3), randomise(builds[1](way[1]), 4)
    plan = transfer(reference, port, X)
    assert plan.complete
    assert plan.verified
    assert gap(run(reference, X), run(port, X)) < 1e-5


def test_a_list_that_is_one_short_is_refused() -> None:
    reference, port = randomise(stacked_experts()(TORCH), 3), randomise(listed_experts()(PADDLE), 4)
    port.members = paddle.nn.LayerList(list(port.members)[:-1])
    before = state_bytes(port)
    with pytest.raises(TransferError, match=r"unmatched in the reference: experts\.w_in"):
        transfer(reference, port, X)
    assert state_bytes(port) == before


def test_without_inputs_several_ways_are_ambiguous() -> None:
    reference, port = stacked_experts(fused=False)(TORCH), listed_experts(("e", "f", "g"))(PADDLE)
    with pytest.raises(TransferError, match="none shown to be right"):
        transfer(reference, port)


def test_a_port_that_computes_otherwise_gets_no_proof_and_the_likeliest_way() -> None:
    reference, port = (
        randomise(stacked_experts()(TORCH), 3),
        randomise(listed_experts(("b", "c", "a"))(PADDLE), 4),
    )
    port.members[2].forward = lambda x: 2.0 * type(port.members[2]).forward(port.members[2], x)
    plan = transfer(reference, port, X, partial=True)
    assert not plan.verified
    assert [item.basis for item in plan.presumed] == [Basis.USUAL]
    right = randomise(listed_experts(("b", "c", "a"))(PADDLE), 5)
    assert transfer(reference, right, X).verified
    assert state_bytes(port) == state_bytes(right)


class Scales(torch.nn.Module):
    """Factors with axes of length one beside norms of as many channels: no stack of anything."""

    def __init__(self) -> None:
        super().__init__()
        self.one, self.two = (torch.nn.Parameter(torch.zeros(6, 1, 1)) for _ in range(2))
        self.norms = torch.nn.ModuleList([torch.nn.BatchNorm2d(6) for _ in range(3)])

    def forward(self, x: Any) -> Any:
        x = self.norms[0](x) * self.one
        return self.norms[2]((self.norms[1](x) * self.two).relu())


class ScalesPort(paddle.nn.Layer):
    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = self.create_parameter([6]), self.create_parameter([6])
        self.x, self.y, self.z = (paddle.nn.BatchNorm2D(6) for _ in range(3))

    def forward(self, x: Any) -> Any:
        x = self.x(x) * self.a.reshape([6, 1, 1])
        return self.z(paddle.nn.functional.relu(self.y(x) * self.b.reshape([6, 1, 1])))


def test_axes_of_length_one_make_no_stack() -> None:
    images = np.random.default_rng(2).standard_normal((2, 6, 4, 4)).astype("float32")
    reference, port = randomise(Scales(), 3), randomise(ScalesPort(), 4)
    plan = transfer(reference, port, images)
    assert plan.verified
    assert not any("stack" in words for entry in plan.entries for words in entry.evidence)


class Response(torch.nn.Module):
    """A norm of a user's own, its factors with axes of length one."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(1, 1, WIDTH))
        self.bias = torch.nn.Parameter(torch.zeros(1, 1, WIDTH))

    def forward(self, x: Any) -> Any:
        size = x.norm(dim=1, keepdim=True)
        return self.weight * (x * size / size.mean(-1, keepdim=True)) + self.bias + x


class ResponsePort(paddle.nn.Layer):
    def __init__(self) -> None:
        super().__init__()
        self.gamma, self.beta = self.create_parameter([WIDTH]), self.create_parameter([WIDTH])
        self.linear = paddle.nn.Linear(WIDTH, WIDTH)

    def forward(self, x: Any) -> Any:
        x = self.linear(x)
        size = x.square().sum(1, keepdim=True).sqrt()
        return self.gamma * (x * size / size.mean(-1, keepdim=True)) + self.beta + x


def test_factors_with_axes_of_length_one_against_raw_ones() -> None:
    layers = [torch.nn.Linear(WIDTH, WIDTH), Response(), torch.nn.Linear(WIDTH, WIDTH), Response()]
    reference = randomise(torch.nn.Sequential(*layers), 3)
    port = randomise(paddle.nn.Sequential(ResponsePort(), ResponsePort()), 4)
    assert transfer(reference, port, X).verified
    assert gap(run(reference, X), run(port, X)) < 1e-5
