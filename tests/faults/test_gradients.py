"""Gradients that go wrong in a block's own code while its result is right, and twins that are right."""

from __future__ import annotations

from typing import Any

import paddle
import pytest
import torch
from paddle import nn as pnn
from torch import nn

import parfocal
from parfocal.judge.verdict import Divergence
from tests.faults.tools import align, numbers, own, seeded


class TorchBlock(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second, self.skip = nn.Linear(8, 8), nn.Linear(8, 8), nn.Identity()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.tanh(self.second(torch.tanh(self.first(x)))) + self.skip(x)


class TorchNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Linear(8, 8)
        self.blocks = nn.Sequential(TorchBlock(), TorchBlock(), TorchBlock())
        self.head = nn.Linear(8, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.blocks(self.stem(x)))


class Block(pnn.Layer):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second, self.skip = pnn.Linear(8, 8), pnn.Linear(8, 8), pnn.Identity()

    def forward(self, x: Any) -> Any:
        return paddle.tanh(self.second(paddle.tanh(self.first(x)))) + self.skip(x)


class Net(pnn.Layer):
    def __init__(self, middle: pnn.Layer) -> None:
        super().__init__()
        self.stem = pnn.Linear(8, 8)
        self.blocks = pnn.Sequential(Block(), middle, Block())
        self.head = pnn.Linear(8, 4)

    def forward(self, x: Any) -> Any:
        return self.head(self.blocks(self.stem(x)))


class CutShortcut(Block):
    def forward(self, x: Any) -> Any:
        y = paddle.tanh(self.second(paddle.tanh(self.first(x))))
        return y + self.skip(x.detach())


class WithoutGradient(Block):
    def forward(self, x: Any) -> Any:
        y = self.second(paddle.tanh(self.first(x)))
        with paddle.no_grad():
            y = paddle.tanh(y)
            y = y * 1.0
        return y + self.skip(x)


class Flagged(Block):
    def forward(self, x: Any) -> Any:
        y = paddle.tanh(self.first(x))
        y.stop_gradient = True
        return paddle.tanh(self.second(y)) + self.skip(x)


class FlaggedLayer(Block):
    def forward(self, x: Any) -> Any:
        y = self.first(x)
        y.stop_gradient = True
        return paddle.tanh(self.second(paddle.tanh(y))) + self.skip(x)


class FlaggedFactor(Block):
    def forward(self, x: Any) -> Any:
        y = self.second(paddle.tanh(self.first(x)))
        shortcut = self.skip(x) * 1.0
        shortcut.stop_gradient = True
        return paddle.tanh(y) + shortcut


class Clipped(Block):
    def forward(self, x: Any) -> Any:
        y = self.second(paddle.tanh(self.first(x)))
        y.register_hook(lambda gradient: gradient.clip(-0.01, 0.02))
        return paddle.tanh(y) + self.skip(x)


class ClippedInput(Block):
    def forward(self, x: Any) -> Any:
        x.register_hook(lambda gradient: gradient.clip(-0.05, 0.05))
        return super().forward(x)


class Scaled(Block):
    def forward(self, x: Any) -> Any:
        y = self.second(paddle.tanh(self.first(x)))
        y.register_hook(lambda gradient: gradient * 0.25)
        return paddle.tanh(y) + self.skip(x)


class Tanh(paddle.autograd.PyLayer):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        y = paddle.tanh(x)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        (y,) = ctx.saved_tensor()
        return 3.0 * gradient * (1 - y * y)


class OwnBackward(Block):
    def forward(self, x: Any) -> Any:
        y = self.second(paddle.tanh(self.first(x)))
        return Tanh.apply(y) + self.skip(x)


class Looking(Block):
    """Correct: the hook only looks, what is detached is not used in the result."""

    def forward(self, x: Any) -> Any:
        y = self.second(paddle.tanh(self.first(x)))
        y.register_hook(lambda gradient: None)
        self.seen = y.detach().mean()
        with paddle.no_grad():
            self.norm = (y * y).sum()
        return paddle.tanh(y) + self.skip(x)


def found(middle: pnn.Layer) -> list[Divergence]:
    reference, port = seeded(TorchNet), Net(middle)
    port.eval()
    return own(parfocal.align(reference, port, numbers(6, 8)))


@pytest.mark.parametrize(
    ("middle", "code", "words"),
    [
        (CutShortcut, "grad.detached", "self.skip(x.detach())"),
        (WithoutGradient, "grad.detached", "y = paddle.tanh(y)"),
        (Flagged, "grad.detached", "self.second(y)"),
        (FlaggedLayer, "grad.detached", "paddle.tanh(y)"),
        (FlaggedFactor, "grad.detached", "paddle.tanh(y) + shortcut"),
        (Clipped, "grad.clip", "y.register_hook"),
        (ClippedInput, "grad.clip", "x.register_hook"),
        (Scaled, "grad.scale", "y.register_hook"),
        (OwnBackward, "grad.scale", "Tanh.apply(y)"),
    ],
)
def test_the_block_is_named_with_the_line_and_nothing_before_it(middle: Any, code: str, words: str) -> None:
    (divergence,) = found(middle())
    assert divergence.port is not None
    assert divergence.port.path == "blocks.1"
    assert divergence.cause is not None
    assert divergence.cause.code == code
    assert divergence.port.file is not None
    assert divergence.port.line is not None
    with open(divergence.port.file, encoding="utf-8") as source:
        assert words in source.read().splitlines()[divergence.port.line - 1]


class HookedOutside(Net):
    def forward(self, x: Any) -> Any:
        y = self.blocks(self.stem(x))
        y.register_hook(lambda gradient: gradient.clip(-0.05, 0.05))
        return self.head(y)


def test_a_hook_on_what_blocks_inside_of_blocks_give_is_the_outer_codes() -> None:
    port = HookedOutside(Block())
    port.eval()
    (divergence,) = own(parfocal.align(seeded(TorchNet), port, numbers(6, 8)))
    assert divergence.port is not None
    assert (divergence.port.path, divergence.port.op) == ("", "register_hook")
    assert divergence.cause is not None
    assert divergence.cause.code == "grad.clip"


@pytest.mark.parametrize("middle", [Block, Looking])
def test_a_block_that_only_looks_is_right(middle: Any) -> None:
    assert found(middle()) == []


class TorchWithoutGradient(TorchBlock):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            y = self.first(x)
        return torch.tanh(self.second(torch.tanh(y))) + self.skip(x)


class TorchData(TorchBlock):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.tanh(self.second(torch.tanh(self.first(x)))) + self.skip(x.data)


class TorchInPlace(TorchBlock):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.tanh(self.first(x)).detach_()
        return torch.tanh(self.second(y)) + self.skip(x)


class TorchTanh(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        y = torch.tanh(x)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> torch.Tensor:
        (y,) = ctx.saved_tensors
        return (gradient * (1 - y * y)).clamp(-0.05, 0.05)


class TorchOwnBackward(TorchBlock):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.second(torch.tanh(self.first(x)))
        return TorchTanh.apply(y) + self.skip(x)


def found_in_torch(middle: nn.Module, reference: pnn.Layer) -> list[Divergence]:
    port = TorchNet()
    port.blocks[1] = middle
    paddle.seed(3)
    model = Net(reference)
    model.eval()
    return own(parfocal.align(model, port.eval(), numbers(6, 8)))


@pytest.mark.parametrize(
    ("middle", "code", "words"),
    [
        (TorchWithoutGradient, "grad.detached", "y = self.first(x)"),
        (TorchData, "grad.detached", "self.skip(x.data)"),
        (TorchInPlace, "grad.detached", ".detach_()"),
        (TorchOwnBackward, "grad.clip", "TorchTanh.apply(y)"),
    ],
)
def test_the_block_of_a_port_to_torch_is_named(middle: Any, code: str, words: str) -> None:
    (divergence,) = found_in_torch(middle(), Block())
    assert divergence.port is not None
    assert divergence.port.path == "blocks.1"
    assert divergence.cause is not None
    assert divergence.cause.code == code
    assert divergence.port.file is not None
    assert divergence.port.line is not None
    with open(divergence.port.file, encoding="utf-8") as source:
        assert words in source.read().splitlines()[divergence.port.line - 1]


def test_a_gradient_that_only_the_reference_stops() -> None:
    (divergence,) = found_in_torch(TorchBlock(), CutShortcut())
    assert divergence.cause is not None
    assert divergence.cause.code == "grad.detached"
    assert divergence.cause.message.startswith(
        "the reference stops the gradient with detach in test_gradients.py:"
    )
    assert divergence.reference is not None
    assert divergence.reference.op == "detach"


def test_what_both_sides_stop_is_right() -> None:
    assert found_in_torch(TorchData(), CutShortcut()) == []


class TorchGated(nn.Module):
    """Gates what it lets through; ``cut``: the gate learns nothing."""

    def __init__(self, cut: bool = False) -> None:
        super().__init__()
        self.gate, self.value, self.cut = nn.Linear(8, 8), nn.Linear(8, 8), cut

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        gate = torch.sigmoid(self.gate(x))
        return (gate.detach() if self.cut else gate) * self.value(x)


class Gated(pnn.Layer):
    def __init__(self, way: str = "") -> None:
        super().__init__()
        self.gate, self.value, self.way = pnn.Linear(8, 8), pnn.Linear(8, 8), way

    def forward(self, x: paddle.Tensor) -> paddle.Tensor:
        gate = paddle.nn.functional.sigmoid(self.gate(x))
        if self.way == "numpy":
            gate = paddle.to_tensor(gate.numpy())
        if self.way == "unused":
            self.kept = paddle.to_tensor(gate.numpy())
        return gate * self.value(x)


def test_what_only_the_reference_stops_is_one_mistake() -> None:
    (divergence,) = own(align(seeded(lambda: TorchGated(cut=True)), Gated(), numbers(4, 8)))
    assert divergence.cause is not None
    assert divergence.cause.code == "grad.detached"
    assert "the reference stops the gradient with detach" in divergence.cause.message


def test_a_tensor_made_of_anothers_numbers_has_no_gradient() -> None:
    divergence = own(align(seeded(TorchGated), Gated("numpy"), numbers(4, 8)))[0]
    assert divergence.cause is not None
    assert divergence.cause.code == "grad.detached"
    assert (
        "the port makes a new tensor of another's numbers in test_gradients.py:" in divergence.cause.message
    )


def test_numbers_that_are_only_looked_at_are_no_mistake() -> None:
    assert align(seeded(TorchGated), Gated("unused"), numbers(4, 8)).ok
    assert align(seeded(TorchGated), Gated(), numbers(4, 8)).ok
