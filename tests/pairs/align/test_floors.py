"""Long sums round differently in every kernel: that is noise, and a small mistake beside it is none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import paddle
import pytest
import torch
from paddle.nn import functional
from torch import nn

from parfocal.attribution import whole_model
from parfocal.replay.noise_floors import NoiseFloors, Repetition
from parfocal.report.report import Report
from parfocal.workflow.align import align
from tests.pairs.align.tools import blamed

SLIGHTLY = 2e-5  # a mistake of some 170 units in the last place


class Squeeze(nn.Module):
    """A squeeze-and-excite block: the gate's gradient is a sum over the whole map."""

    def __init__(self) -> None:
        super().__init__()
        self.reduce, self.act = nn.Conv2d(24, 4, 1), nn.SiLU()
        self.expand, self.gate = nn.Conv2d(4, 24, 1), nn.Sigmoid()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.gate(self.expand(self.act(self.reduce(x.mean((2, 3), keepdim=True)))))


class Activated(paddle.nn.Layer):
    """A convolution with its activation, which only the port puts together."""

    def __init__(self, first: int, second: int, act: Callable[[Any], Any]) -> None:
        super().__init__()
        self.conv, self.act = paddle.nn.Conv2D(first, second, 1), act

    def forward(self, x: paddle.Tensor) -> paddle.Tensor:
        return self.act(self.conv(x))


class PortedSqueeze(paddle.nn.Layer):
    def __init__(self) -> None:
        super().__init__()
        self.pool = paddle.nn.AdaptiveAvgPool2D(1)
        self.first = Activated(24, 4, functional.swish)
        self.second = Activated(4, 24, functional.sigmoid)

    def forward(self, x: paddle.Tensor) -> paddle.Tensor:
        return paddle.multiply(x, self.second(self.first(self.pool(x))))


class Mixer(nn.Module):
    """One gate for all of many tokens."""

    def __init__(self) -> None:
        super().__init__()
        self.score, self.act = nn.Linear(16, 16), nn.Tanh()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.act(self.score(x[:, :1]))


class Scored(paddle.nn.Layer):
    def __init__(self) -> None:
        super().__init__()
        self.linear = paddle.nn.Linear(16, 16)

    def forward(self, x: paddle.Tensor) -> paddle.Tensor:
        return paddle.tanh(self.linear(x))


class PortedMixer(paddle.nn.Layer):
    def __init__(self) -> None:
        super().__init__()
        self.gate = Scored()

    def forward(self, x: paddle.Tensor) -> paddle.Tensor:
        return x * self.gate(x[:, :1])


class Averaged(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.head = nn.Linear(6, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(x.mean(1))


class PortedAverage(paddle.nn.Layer):
    """Adds one value after the other: the worst order there is."""

    def __init__(self, factor: float = 1.0) -> None:
        super().__init__()
        self.head, self.factor = paddle.nn.Linear(6, 5), factor

    def forward(self, x: paddle.Tensor) -> paddle.Tensor:
        return self.head(paddle.cumsum(x, 1)[:, -1] * (self.factor / x.shape[1]))


def inputs(*shape: int, seed: int = 0) -> Any:
    return (np.random.default_rng(seed).standard_normal(shape) + 1.0).astype("float32")


def aligned(reference: Callable[[], Any], port: Callable[[], Any], given: Any, seed: int = 0) -> Report:
    torch.manual_seed(seed)
    return align(nn.Sequential(reference()), paddle.nn.Sequential(port()), given, explain=False)


PAIRS = {
    "squeeze": (Squeeze, PortedSqueeze, (2, 24, 112, 112)),
    "mixer": (Mixer, PortedMixer, (2, 30_000, 16)),
    "average": (Averaged, PortedAverage, (2, 50_000, 6)),
}


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", PAIRS)
def test_long_sums_in_another_order_are_noise(name: str, seed: int) -> None:
    reference, port, shape = PAIRS[name]
    report = aligned(reference, port, inputs(*shape, seed=seed), seed)
    assert report.ok, str(report)


def test_a_slightly_wrong_average_is_none() -> None:
    """Of a short sum, whose rounding is small: beside 50,000 terms added one by one it would drown."""
    port = lambda: PortedAverage(1.0 + SLIGHTLY)  # noqa: E731
    assert blamed(aligned(Averaged, port, inputs(2, 40, 6))) == ["0"]


def test_a_slightly_wrong_gradient_of_the_wrapped_activation_is_none() -> None:
    class Wrong(Scored):
        def forward(self, x: paddle.Tensor) -> paddle.Tensor:
            y = super().forward(x)
            return y + SLIGHTLY * (y - y.detach())

    def port() -> paddle.nn.Layer:
        made = PortedMixer()
        made.gate = Wrong()
        return made

    report = aligned(Mixer, port, inputs(2, 300, 16))
    assert not report.ok
    assert report.first is not None
    assert report.first.phase == "backward"


def test_a_layer_that_only_the_port_has_is_asked_by_way_of_the_call_around_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """torch projects queries, keys and values in one matrix, paddle in layers that are given nothing."""
    repeated: list[tuple[str, bool]] = []
    ask = NoiseFloors._repeat

    def heard(self: NoiseFloors, repetition: Repetition, calls: Any, *more: Any) -> Any:
        side = self.port if repetition.port else self.reference
        repeated.append((side.trace.nodes[calls[0]].path, repetition.port))
        return ask(self, repetition, calls, *more)

    monkeypatch.setattr(NoiseFloors, "_repeat", heard)
    monkeypatch.setattr(whole_model, "LIMIT", 0.01)  # every gradient of a parameter is suspicious
    torch.manual_seed(0)
    reference = nn.TransformerEncoder(
        nn.TransformerEncoderLayer(32, 4, 64, batch_first=True), 2, enable_nested_tensor=False
    )
    port = paddle.nn.TransformerEncoder(paddle.nn.TransformerEncoderLayer(32, 4, 64), 2)
    x = np.random.default_rng(0).standard_normal((4, 16, 32)).astype("float32")
    report = align(reference, port, x)
    assert report.first is None or report.first.phase == "gradient"
    assert ("layers.0.self_attn", True) in repeated
    assert not any(path.endswith(("q_proj", "k_proj", "v_proj")) for path, _ in repeated)
    assert not any("no recorded counterpart" in finding.message for finding in report.findings)
