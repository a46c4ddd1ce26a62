"""One layer against several: qkv, kv, gate and up, in every layout, both ways, without a map."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import paddle
import pytest
import torch

from parfocal.errors import TransferError
from parfocal.weights.transfer import transfer
from tests.pairs.weights.tools import gap, randomise, run

WIDTH, HEADS, SIZE = 12, 3, 4
X = np.random.default_rng(5).standard_normal((2, 7, WIDTH)).astype("float32")
MEMORY = np.random.default_rng(6).standard_normal((2, 5, WIDTH)).astype("float32")


def attend(q: Any, k: Any, v: Any, softmax: Any) -> Any:
    """q, k, v as [batch, heads, length, size]."""
    swap = (0, 1, 3, 2)
    scores = q @ (k.permute(*swap) if isinstance(k, torch.Tensor) else k.transpose(list(swap)))
    return softmax(scores / SIZE**0.5) @ v


def build(library: Any, base: Any, make_linear: Any) -> dict[str, Any]:
    """The same attentions in either framework."""
    is_torch = library is torch

    def permute(x: Any, *axes: int) -> Any:
        return x.permute(*axes) if is_torch else x.transpose(list(axes))

    def softmax(x: Any) -> Any:
        return x.softmax(-1) if is_torch else paddle.nn.functional.softmax(x, -1)

    def heads(x: Any) -> Any:
        return permute(x.reshape((x.shape[0], x.shape[1], HEADS, SIZE)), 0, 2, 1, 3)

    def join(x: Any) -> Any:
        joined = permute(x, 0, 2, 1, 3)
        return joined.reshape((joined.shape[0], joined.shape[1], WIDTH))

    class Split(base):
        def __init__(
            self, names: tuple[str, ...] = ("q_proj", "k_proj", "v_proj", "out_proj"), bias: bool = True
        ):
            super().__init__()
            self.names = names
            for name in names:
                setattr(self, name, make_linear(WIDTH, WIDTH, bias))

        def forward(self, x: Any) -> Any:
            q, k, v = (heads(getattr(self, name)(x)) for name in self.names[:3])
            return getattr(self, self.names[3])(join(attend(q, k, v, softmax)))

    class Fused(base):
        """``layout``: "concatenated" in ``order``, "by head" (heads, 3, size), "finest" (size*heads, 3)."""

        def __init__(
            self, layout: str = "concatenated", order: tuple[int, ...] = (0, 1, 2), bias: bool = True
        ):
            super().__init__()
            self.layout, self.order = layout, order
            self.num_heads = HEADS
            self.a = make_linear(WIDTH, 3 * WIDTH, bias)
            self.b = make_linear(WIDTH, WIDTH, bias)

        def forward(self, x: Any) -> Any:
            y = self.a(x)
            batch, length = y.shape[0], y.shape[1]
            if self.layout == "concatenated":
                y = permute(y.reshape((batch, length, 3, HEADS, SIZE)), 2, 0, 3, 1, 4)
            elif self.layout == "by head":
                y = permute(y.reshape((batch, length, HEADS, 3, SIZE)), 3, 0, 2, 1, 4)
            else:
                y = permute(y.reshape((batch, length, HEADS, SIZE, 3)), 4, 0, 2, 1, 3)
            q, k, v = (y[self.order.index(number)] for number in range(3))
            return self.b(join(attend(q, k, v, softmax)))

    class Cross(base):
        def __init__(self, fused: bool):
            super().__init__()
            self.fused = fused
            for name in ("m1", "m2", "m3"):
                if name != "m3" or not fused:
                    setattr(self, name, make_linear(WIDTH, WIDTH * (1 + (fused and name == "m2")), True))
            self.m4 = make_linear(WIDTH, WIDTH, True)

        def forward(self, x: Any, memory: Any) -> Any:
            q = heads(self.m1(x))
            if self.fused:
                both = self.m2(memory)
                k, v = heads(both[:, :, :WIDTH]), heads(both[:, :, WIDTH:])
            else:
                k, v = heads(self.m2(memory)), heads(self.m3(memory))
            return self.m4(join(attend(q, k, v, softmax)))

    class Gated(base):
        def __init__(self, fused: bool, swapped: bool = False):
            super().__init__()
            self.fused, self.swapped = fused, swapped
            self.first = make_linear(WIDTH, 20 * (1 + fused), False)
            if not fused:
                self.second = make_linear(WIDTH, 20, False)
            self.last = make_linear(20, WIDTH, False)

        def forward(self, x: Any) -> Any:
            if self.fused:
                y = self.first(x)
                gate, up = (y[..., 20:], y[..., :20]) if self.swapped else (y[..., :20], y[..., 20:])
            else:
                gate, up = self.first(x), self.second(x)
            return self.last(gate * (1 / (1 + library.exp(-gate))) * up)

    class Stack(base):
        """Layers one after another, with a residual connection."""

        def __init__(self, *layers: Any):
            super().__init__()
            self.count = len(layers)
            for number, layer in enumerate(layers):
                setattr(self, f"s{number}", layer)

        def forward(self, x: Any) -> Any:
            for number in range(self.count):
                x = x + getattr(self, f"s{number}")(x)
            return x

    return {"Split": Split, "Fused": Fused, "Cross": Cross, "Gated": Gated, "Stack": Stack}


TORCH = build(torch, torch.nn.Module, lambda i, o, bias: torch.nn.Linear(i, o, bias=bias))
PADDLE = build(
    paddle, paddle.nn.Layer, lambda i, o, bias: paddle.nn.Linear(i, o, bias_attr=None if bias else False)
)
MEANINGLESS = ("w1", "w2", "w3", "w4")
SHUFFLED = ("c", "a", "d", "b")


def agree(reference: Any, port: Any, *inputs: np.ndarray) -> Any:
    randomise(reference, 1)
    randomise(port, 2)
    plan = transfer(reference, port, inputs)
    assert plan.complete
    assert plan.verified is True
    assert gap(run(reference, *inputs), run(port, *inputs)) < 1e-5
    return plan


LAYOUTS = [
    ("concatenated", (0, 1, 2)),
    ("concatenated", (2, 0, 1)),
    ("concatenated", (1, 2, 0)),
    ("by head", (0, 1, 2)),
    ("by head", (2, 1, 0)),
    ("finest", (0, 1, 2)),
]


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
@pytest.mark.parametrize(
    "names", [("q_proj", "k_proj", "v_proj", "out_proj"), MEANINGLESS, SHUFFLED], ids=str
)
def test_fused_into_split_and_back(layout: tuple[str, Any], names: tuple[str, ...]) -> None:
    agree(TORCH["Fused"](*layout), PADDLE["Split"](names), X)
    agree(TORCH["Split"](names), PADDLE["Fused"](*layout), X)


def test_a_stack_of_fused_attentions() -> None:
    layers = [TORCH["Fused"]("by head") for _ in range(4)]
    agree(TORCH["Stack"](*layers), PADDLE["Stack"](*(PADDLE["Split"](SHUFFLED) for _ in range(4))), X)


def test_without_bias() -> None:
    agree(TORCH["Fused"](bias=False), PADDLE["Split"](bias=False), X)


@pytest.mark.parametrize("fused", [True, False])
def test_key_and_value_fused_with_the_query_apart(fused: bool) -> None:
    agree(TORCH["Cross"](fused), PADDLE["Cross"](not fused), X, MEMORY)


@pytest.mark.parametrize(("fused", "swapped"), list(itertools.product([True, False], repeat=2)))
def test_gate_and_up(fused: bool, swapped: bool) -> None:
    agree(TORCH["Gated"](fused, swapped), PADDLE["Gated"](not fused, swapped), X)


@pytest.mark.parametrize(
    "names", [("q_proj", "k_proj", "v_proj", "out_proj"), MEANINGLESS, SHUFFLED], ids=str
)
def test_hand_written_against_the_frameworks_own(names: tuple[str, ...]) -> None:
    class Own(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.attention = torch.nn.MultiheadAttention(WIDTH, HEADS, batch_first=True)

        def forward(self, x: Any) -> Any:
            return self.attention(x, x, x)[0]

    agree(Own(), PADDLE["Split"](names), X)
    agree(PADDLE["Split"](names), Own(), X)
    agree(Own(), PADDLE["Fused"]("by head"), X)


@pytest.mark.parametrize("layout", LAYOUTS[1:], ids=str)
def test_fused_on_both_sides_in_different_ways(layout: tuple[str, Any]) -> None:
    agree(TORCH["Fused"](*layout), PADDLE["Fused"](), X)
    agree(TORCH["Fused"](), PADDLE["Fused"](*layout), X)


def test_a_difference_of_the_port_is_not_explained_away() -> None:
    class Scaled(PADDLE["Fused"]):  # type: ignore[misc]
        def forward(self, x: Any) -> Any:
            return 1.1 * super().forward(x)

    reference, port = randomise(TORCH["Fused"](), 1), randomise(Scaled(), 2)
    plan = transfer(reference, port, X)
    assert plan.verified is False
    assert np.array_equal(port.a.weight.numpy(), reference.a.weight.detach().numpy().T)


def test_choices_behind_a_difference_are_tried_on_the_references_inputs() -> None:
    class TorchModel(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.attention = torch.nn.Linear(WIDTH, WIDTH), TORCH["Fused"]("by head")

        def forward(self, x: Any) -> Any:
            return self.attention(self.first(x))

    class PaddleModel(paddle.nn.Layer):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.attention = paddle.nn.Linear(WIDTH, WIDTH), PADDLE["Split"](MEANINGLESS)

        def forward(self, x: Any) -> Any:
            return self.attention(1.3 * self.first(x))

    reference, port = randomise(TorchModel(), 1), randomise(PaddleModel(), 2)
    assert transfer(reference, port, X).verified is False
    assert gap(run(reference.attention, X), run(port.attention, X)) < 1e-5


def test_a_layer_that_differs_is_no_reason_to_try_orders_of_rows_around_it() -> None:
    runs = []

    class TorchModel(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.attention = torch.nn.LayerNorm(WIDTH), TORCH["Fused"]()

        def forward(self, x: Any) -> Any:
            return self.attention(self.first(x))

    class PaddleModel(paddle.nn.Layer):
        def __init__(self) -> None:
            super().__init__()
            self.norm, self.mixing = paddle.nn.LayerNorm(WIDTH, epsilon=1e-3), PADDLE["Fused"]()

        def forward(self, x: Any) -> Any:
            runs.append(1)
            return self.mixing(self.norm(x))

    small = 0.03 * X  # epsilon matters
    assert transfer(randomise(TorchModel(), 1), randomise(PaddleModel(), 2), small).verified is False
    assert len(runs) <= 4


class Backwards(paddle.nn.Layer):
    """Attention that computes v first, then k, then q."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b, self.c, self.d = (paddle.nn.Linear(WIDTH, WIDTH) for _ in range(4))

    def forward(self, x: Any) -> Any:
        shape = [x.shape[0], x.shape[1], HEADS, SIZE]
        v, k, q = (layer(x).reshape(shape).transpose([0, 2, 1, 3]) for layer in (self.a, self.b, self.c))
        y = attend(q, k, v, lambda scores: paddle.nn.functional.softmax(scores, -1))
        return self.d(y.transpose([0, 2, 1, 3]).reshape([x.shape[0], x.shape[1], WIDTH]))


def test_projections_executed_in_another_order() -> None:
    agree(TORCH["Split"](MEANINGLESS), Backwards(), X)
    agree(Backwards(), TORCH["Split"](MEANINGLESS), X)


def test_several_arrangements_that_fit_equally_are_not_guessed() -> None:
    # On a sequence of one element attention does not depend on q and k.
    reference, port = randomise(TORCH["Fused"](), 1), randomise(PADDLE["Split"](MEANINGLESS), 2)
    with pytest.raises(TransferError, match="several ways fit these inputs equally well"):
        transfer(reference, port, X[:, :1])


def test_without_inputs_nothing_is_guessed() -> None:
    reference, port = randomise(TORCH["Fused"](), 1), randomise(PADDLE["Split"](MEANINGLESS), 2)
    with pytest.raises(TransferError, match=r"ways to copy and none shown to be right") as caught:
        transfer(reference, port)
    assert "pass inputs=" in caught.value.hint
