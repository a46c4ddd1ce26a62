"""The same work divided otherwise between a module and the code around it: correct ports are the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import paddle
import pytest
import torch
from paddle.nn import functional as pfunctional
from torch.nn import functional

import parfocal as pf

WIDTH = 8
Work = Callable[[Any], Any]
# what is moved: by torch, by paddle
WORK: dict[str, tuple[Work, Work]] = {
    "clamp": (lambda x: x.clamp(-0.5, 0.5), lambda x: paddle.clip(x, -0.5, 0.5)),
    "silu": (functional.silu, pfunctional.silu),
    "relu": (functional.relu, pfunctional.relu),
    "gelu": (functional.gelu, pfunctional.gelu),
    "softmax": (lambda x: x.softmax(-1), lambda x: pfunctional.softmax(x, -1)),
    "scale": (lambda x: x * 0.25, lambda x: x * 0.25),
    "layer_norm": (
        lambda x: functional.layer_norm(x, [WIDTH]),
        lambda x: pfunctional.layer_norm(x, [WIDTH]),
    ),
    "normalize": (lambda x: functional.normalize(x, dim=-1), lambda x: pfunctional.normalize(x, axis=-1)),
    "transpose": (lambda x: x.transpose(1, 2), lambda x: x.transpose([0, 2, 1])),
    "dropout": (
        lambda x: functional.dropout(x, 0.1, training=False),
        lambda x: pfunctional.dropout(x, 0.1, training=False),
    ),
    "cast": (lambda x: (x.double() * 1.1).float(), lambda x: (x.astype("float64") * 1.1).astype("float32")),
    "two ops": (lambda x: (x * 2).tanh(), lambda x: paddle.tanh(x * 2)),
}
SIDES = pytest.mark.parametrize("inside", [True, False], ids=["reference inside", "port inside"])


def rows(*shape: int, seed: int = 3) -> Any:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def lively(model: torch.nn.Module) -> torch.nn.Module:
    torch.manual_seed(5)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(0.2, 0.5)
    return model


def check(reference: torch.nn.Module, port: paddle.nn.Layer, *inputs: Any, mode: Any = "eval") -> pf.Report:
    report = pf.align(lively(reference), port, inputs, mode=mode)
    assert report.ok, str(report)
    return report


def notes(report: pf.Report) -> list[str]:
    return [finding.message for finding in report.findings if finding.code == "work.divided"]


class TorchBody(torch.nn.Module):
    def __init__(self, work: Work | None) -> None:
        super().__init__()
        self.first, self.second = torch.nn.Linear(WIDTH, WIDTH), torch.nn.Linear(WIDTH, WIDTH)
        self.work = work

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.second(functional.relu(self.first(x)))
        return x if self.work is None else self.work(x)


class TorchModel(torch.nn.Module):
    def __init__(self, work: Work, inside: bool, last: bool) -> None:
        super().__init__()
        self.stem, self.body = torch.nn.Linear(WIDTH, WIDTH), TorchBody(work if inside else None)
        self.head = None if last else torch.nn.Linear(WIDTH, WIDTH)
        self.work = None if inside else work

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.body(self.stem(x))
        x = x if self.work is None else self.work(x)
        return x if self.head is None else self.head(x)


class PaddleBody(paddle.nn.Layer):
    def __init__(self, work: Work | None) -> None:
        super().__init__()
        self.first, self.second = paddle.nn.Linear(WIDTH, WIDTH), paddle.nn.Linear(WIDTH, WIDTH)
        self.work = work

    def forward(self, x: Any) -> Any:
        x = self.second(pfunctional.relu(self.first(x)))
        return x if self.work is None else self.work(x)


class PaddleModel(paddle.nn.Layer):
    def __init__(self, work: Work, inside: bool, last: bool) -> None:
        super().__init__()
        self.stem, self.body = paddle.nn.Linear(WIDTH, WIDTH), PaddleBody(work if inside else None)
        self.head = None if last else paddle.nn.Linear(WIDTH, WIDTH)
        self.work = None if inside else work

    def forward(self, x: Any) -> Any:
        x = self.body(self.stem(x))
        x = x if self.work is None else self.work(x)
        return x if self.head is None else self.head(x)


@SIDES
@pytest.mark.parametrize("name", WORK)
@pytest.mark.parametrize("last", [False, True], ids=["before a layer", "last"])
def test_work_may_be_done_at_the_end_of_a_module_or_after_it(name: str, inside: bool, last: bool) -> None:
    ours, theirs = WORK[name]
    report = check(
        TorchModel(ours, inside, last), PaddleModel(theirs, not inside, last), rows(4, WIDTH, WIDTH)
    )
    assert "body" in {pair.port.path for pair in report.pairs}
    assert not report.unpaired_port


class TorchBlock(torch.nn.Module):
    def __init__(self, work: Work | None) -> None:
        super().__init__()
        self.embed, self.mix = torch.nn.Linear(WIDTH, WIDTH), torch.nn.Linear(WIDTH, WIDTH)
        self.work = work

    def forward(self, x: torch.Tensor, c: torch.Tensor) -> torch.Tensor:
        c = c if self.work is None else self.work(c)
        return x + self.mix(functional.relu(x + self.embed(c)))


class TorchBlocks(torch.nn.Module):
    """Every block takes the same embedding."""

    def __init__(self, work: Work, inside: bool, count: int = 3) -> None:
        super().__init__()
        self.time = torch.nn.Linear(WIDTH, WIDTH)
        self.blocks = torch.nn.ModuleList(TorchBlock(work if inside else None) for _ in range(count))
        self.head = torch.nn.Linear(WIDTH, WIDTH)
        self.work = None if inside else work

    def forward(self, x: torch.Tensor, c: torch.Tensor) -> torch.Tensor:
        c = self.time(c)
        c = c if self.work is None else self.work(c)
        for block in self.blocks:
            x = block(x, c)
        return self.head(x)


class PaddleBlock(paddle.nn.Layer):
    def __init__(self, work: Work | None) -> None:
        super().__init__()
        self.embed, self.mix = paddle.nn.Linear(WIDTH, WIDTH), paddle.nn.Linear(WIDTH, WIDTH)
        self.work = work

    def forward(self, x: Any, c: Any) -> Any:
        c = c if self.work is None else self.work(c)
        return x + self.mix(pfunctional.relu(x + self.embed(c)))


class PaddleBlocks(paddle.nn.Layer):
    def __init__(self, work: Work, inside: bool, count: int = 3) -> None:
        super().__init__()
        self.time = paddle.nn.Linear(WIDTH, WIDTH)
        self.blocks = paddle.nn.LayerList([PaddleBlock(work if inside else None) for _ in range(count)])
        self.head = paddle.nn.Linear(WIDTH, WIDTH)
        self.work = None if inside else work

    def forward(self, x: Any, c: Any) -> Any:
        c = self.time(c)
        c = c if self.work is None else self.work(c)
        for block in self.blocks:
            x = block(x, c)
        return self.head(x)


@SIDES
@pytest.mark.parametrize("name", WORK)
def test_work_may_be_done_before_blocks_or_at_the_start_of_each(name: str, inside: bool) -> None:
    ours, theirs = WORK[name]
    inputs = rows(4, WIDTH, WIDTH), rows(4, WIDTH, WIDTH, seed=4)
    check(TorchBlocks(ours, inside), PaddleBlocks(theirs, not inside), *inputs)


@SIDES
def test_it_is_said_where_the_two_are_compared(inside: bool) -> None:
    ours, theirs = WORK["silu"]
    inputs = rows(4, WIDTH, WIDTH), rows(4, WIDTH, WIDTH, seed=4)
    report = check(TorchBlocks(ours, inside, 5), PaddleBlocks(theirs, not inside, 5), *inputs)
    (note,) = notes(report)
    assert note.startswith("input 1 of blocks.0, blocks.1, blocks.2 and 2 more: what the ")
    assert "(test_divisions.py:" in note
    assert note.endswith("; compared behind it")
    assert "own error" not in str(report).partition("not compared")[2].partition("note:")[0]


def test_nothing_is_said_where_the_work_is_divided_alike() -> None:
    ours, theirs = WORK["silu"]
    assert not notes(
        check(TorchModel(ours, True, False), PaddleModel(theirs, True, False), rows(4, 4, WIDTH))
    )


@SIDES
@pytest.mark.parametrize("name", ["clamp", "silu"])
def test_training_divides_the_work_no_differently(name: str, inside: bool) -> None:
    ours, theirs = WORK[name]
    check(
        TorchModel(ours, inside, False),
        PaddleModel(theirs, not inside, False),
        rows(4, 4, WIDTH),
        mode="train",
    )


class TorchResidual(torch.nn.Module):
    """Blocks that add their input themselves, or leave that to the model; with a learned scale."""

    def __init__(self, inside: bool) -> None:
        super().__init__()
        self.inside = inside
        self.blocks = torch.nn.ModuleList(TorchBody(None) for _ in range(3))
        self.scales = torch.nn.ParameterList(torch.ones(WIDTH) for _ in range(3))
        self.head = torch.nn.Linear(WIDTH, WIDTH)
        if inside:
            for block, scale in zip(self.blocks, self.scales, strict=True):
                block.scale = scale
                block.forward = _adding(block)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for block, scale in zip(self.blocks, self.scales, strict=True):
            x = block(x) if self.inside else x + scale * block(x)
        return self.head(x)


def _adding(block: TorchBody) -> Work:
    return lambda x: x + block.scale * block.second(functional.relu(block.first(x)))


class PaddleAdding(paddle.nn.Layer):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = paddle.nn.Linear(WIDTH, WIDTH), paddle.nn.Linear(WIDTH, WIDTH)
        self.scale = self.create_parameter([WIDTH])

    def forward(self, x: Any) -> Any:
        return x + self.second(pfunctional.relu(self.first(x))) * self.scale


class PaddleResidual(paddle.nn.Layer):
    def __init__(self, inside: bool) -> None:
        super().__init__()
        self.inside = inside
        makes = PaddleAdding if inside else lambda: PaddleBody(None)
        self.blocks = paddle.nn.LayerList([makes() for _ in range(3)])
        if not inside:
            self.scales = paddle.nn.ParameterList([self.create_parameter([WIDTH]) for _ in range(3)])
        self.head = paddle.nn.Linear(WIDTH, WIDTH)

    def forward(self, x: Any) -> Any:
        for index, block in enumerate(self.blocks):
            x = block(x) if self.inside else x + self.scales[index] * block(x)
        return self.head(x)


@SIDES
@pytest.mark.parametrize("mode", ["eval", "train"])
def test_a_residual_with_a_learned_scale_may_be_added_inside_or_outside(inside: bool, mode: Any) -> None:
    report = check(TorchResidual(inside), PaddleResidual(not inside), rows(4, 4, WIDTH), mode=mode)
    assert len(notes(report)) == 1
    assert not report.unpaired_port


class TorchStage(torch.nn.Module):
    """Hands the embedding on to blocks inside."""

    def __init__(self, work: Work | None) -> None:
        super().__init__()
        self.inner = torch.nn.ModuleList(TorchBlock(work) for _ in range(2))

    def forward(self, x: torch.Tensor, c: torch.Tensor) -> torch.Tensor:
        for block in self.inner:
            x = block(x, c[:, None])
        return x


class PaddleStage(paddle.nn.Layer):
    def __init__(self, work: Work | None) -> None:
        super().__init__()
        self.inner = paddle.nn.LayerList([PaddleBlock(work) for _ in range(2)])

    def forward(self, x: Any, c: Any) -> Any:
        for block in self.inner:
            x = block(x, c.unsqueeze(1))
        return x


@SIDES
def test_an_embedding_may_be_handed_on_through_stages(inside: bool) -> None:
    reference, port = TorchBlocks(functional.silu, inside, 0), PaddleBlocks(pfunctional.silu, not inside, 0)
    reference.blocks = torch.nn.ModuleList(TorchStage(functional.silu if inside else None) for _ in range(2))
    port.blocks = paddle.nn.LayerList([PaddleStage(None if inside else pfunctional.silu) for _ in range(2)])
    check(reference, port, rows(4, 5, WIDTH), rows(4, WIDTH, seed=4))


class PaddleCalling(paddle.nn.Layer):
    """Calls an activation layer of its own after what stands for a Sequential that ends with one."""

    def __init__(self) -> None:
        super().__init__()
        self.stem, self.act = paddle.nn.Linear(WIDTH, WIDTH), paddle.nn.Silu()
        self.body = paddle.nn.Sequential(paddle.nn.Linear(WIDTH, WIDTH), paddle.nn.Linear(WIDTH, WIDTH))
        self.head = paddle.nn.Linear(WIDTH, WIDTH)

    def forward(self, x: Any) -> Any:
        return self.head(self.act(self.body(self.stem(x))))


def test_an_activation_layer_may_be_the_last_of_a_sequential_or_be_called_after_it() -> None:
    linear = torch.nn.Linear(WIDTH, WIDTH)
    body = torch.nn.Sequential(torch.nn.Linear(WIDTH, WIDTH), torch.nn.Linear(WIDTH, WIDTH), torch.nn.SiLU())
    reference = torch.nn.Sequential(linear, body, torch.nn.Linear(WIDTH, WIDTH))
    check(reference, PaddleCalling(), rows(4, WIDTH))


class TorchSkipping(torch.nn.Module):
    """Blocks of which next to nothing is used."""

    def __init__(self, work: Work) -> None:
        super().__init__()
        self.body, self.head = TorchBody(work), torch.nn.Linear(WIDTH, WIDTH)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(x + 1e-9 * self.body(x))


class PaddleSkipping(paddle.nn.Layer):
    def __init__(self, work: Work | None, times: float = 1e-9) -> None:
        super().__init__()
        self.body, self.head, self.times = PaddleBody(work), paddle.nn.Linear(WIDTH, WIDTH), times

    def forward(self, x: Any) -> Any:
        return self.head(x + self.times * self.body(x))


@pytest.mark.parametrize("work", [None, pfunctional.relu], ids=["missing", "another"])
def test_a_layer_is_wrong_also_where_nothing_comes_of_it(work: Work | None) -> None:
    report = pf.align(lively(TorchSkipping(functional.silu)), PaddleSkipping(work), rows(4, WIDTH))
    assert report.first is not None
    assert report.first.port is not None
    assert (report.first.phase, report.first.port.path) == ("forward", "body")
    assert not notes(report)


def test_a_gradient_that_is_lost_in_work_that_was_moved_is_missed() -> None:
    port = PaddleModel(lambda x: pfunctional.silu(x).detach(), True, False)
    report = pf.align(lively(TorchModel(functional.silu, False, False)), port, rows(4, WIDTH))
    assert report.first is not None
    assert report.first.phase == "backward", str(report)
    assert report.first.cause is not None, str(report)
    assert report.first.cause.code == "grad.detached"
