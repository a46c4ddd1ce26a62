"""Trainings in mixed precision: judged by the rounding of the lower precision, on both sides."""

from __future__ import annotations

from typing import Any

import numpy as np
import paddle
import pytest
import torch

import parfocal as pf
from parfocal.errors import InputError, UnsupportedError
from tests.pairs.training.tools import LOSSES

pytestmark = pytest.mark.filterwarnings(
    "ignore:When training, we now always track:UserWarning",
    "ignore:amp_guard can only be enabled:UserWarning",
)
ADAMS = (
    lambda model: torch.optim.Adam(model.parameters(), 1e-3),
    lambda model: paddle.optimizer.Adam(1e-3, parameters=model.parameters()),
)
USERS = (
    lambda: torch.autocast("cpu", torch.bfloat16),
    lambda: paddle.amp.auto_cast(level="O1", dtype="bfloat16"),  # does nothing on a CPU
)


def with_norm(nn: Any, epsilon: float = 1e-5) -> Any:
    named = {"eps" if nn is torch.nn else "epsilon": epsilon}
    return nn.Sequential(nn.LayerNorm(16, **named), nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4))


def convolutions(nn: Any) -> Any:
    convolution = nn.Conv2d if nn is torch.nn else nn.Conv2D
    norm = nn.BatchNorm2d if nn is torch.nn else nn.BatchNorm2D
    return nn.Sequential(
        *(convolution(3, 8, 3), norm(8), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 64, 4)),
    )


def batches(shape: tuple[int, ...], scale: float = 1.0, seed: int = 0) -> list[tuple[Any, Any]]:
    generator = np.random.default_rng(seed)
    return [
        (scale * generator.standard_normal(shape).astype("float32"), generator.integers(0, 4, shape[0]))
        for _ in range(4)
    ]


def compare(models: tuple[Any, Any], data: list[Any], amp: Any) -> Any:
    return pf.compare_training(*models, data, loss=LOSSES, optimizers=ADAMS, amp=amp, progress=False)


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("amp", ["O1", "O2", "bfloat16"])
@pytest.mark.parametrize(
    ("make", "shape"), [(with_norm, (16, 16)), (convolutions, (8, 3, 10, 10))], ids=["norm", "convolution"]
)
def test_a_correct_pair_is_the_same(make: Any, shape: tuple[int, ...], amp: str, seed: int) -> None:
    torch.manual_seed(seed)
    report = compare((make(torch.nn), make(paddle.nn)), batches(shape, seed=seed), amp)
    assert report.ok, report
    notes = [each.message for each in report.findings if each.code == "training.precision"]
    assert notes, "paddle has no kernels on a CPU, and the report must say so"


def test_without_the_lower_precision_s_floor_such_a_pair_would_differ() -> None:
    """The two really compute in another precision than float32, so that the tests above say something."""
    models = with_norm(torch.nn), with_norm(paddle.nn)
    given = torch.from_numpy(batches((16, 16))[0][0])
    with torch.autocast("cpu", torch.bfloat16):
        lowered = models[0](given)
    assert lowered.dtype == torch.bfloat16
    assert float((lowered.float() - models[0](given)).abs().max().detach()) > 1e-4


def test_a_wrong_epsilon_is_found_and_named() -> None:
    torch.manual_seed(0)
    report = compare((with_norm(torch.nn), with_norm(paddle.nn, 1e-3)), batches((16, 16), 0.02), "O1")
    first = report.first
    assert (first.step, first.phase, first.cause.code) == (0, "forward", "config.epsilon")


def test_a_wrong_decay_is_found_and_named() -> None:
    report = pf.compare_training(
        *(with_norm(torch.nn), with_norm(paddle.nn), batches((16, 16))),
        loss=LOSSES,
        optimizers=(
            lambda model: torch.optim.AdamW(model.parameters(), 1e-3, weight_decay=0.1),
            lambda model: paddle.optimizer.Adam(1e-3, parameters=model.parameters(), weight_decay=0.1),
        ),
        amp="O1",
    )
    assert (report.first.phase, report.first.cause.code) == ("optimizer", "optim.weight_decay")


@pytest.mark.parametrize("amp", [("O1", None), (None, "O1"), USERS], ids=["reference", "port", "users"])
def test_one_side_in_float32_is_named(amp: Any) -> None:
    report = compare((with_norm(torch.nn), with_norm(paddle.nn)), batches((16, 16)), amp)
    first = report.first
    assert (first.step, first.phase, first.cause.code) == (0, "forward", "dtype.precision")
    assert all(each.inherited for each in report.divergences[1:])


@pytest.mark.parametrize(
    ("amp", "error", "words"),
    [
        ("float16", UnsupportedError, "needs its loss scaled"),
        ("O3", InputError, "no level of mixed precision"),
        (3, InputError, "no level of mixed precision"),
        (USERS[0], InputError, "not for two sides"),
        (("O1", "O1", "O1"), InputError, "not for two sides"),
    ],
)
def test_what_cannot_be_asked_for(amp: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        compare((with_norm(torch.nn), with_norm(paddle.nn)), batches((16, 16)), amp)
