"""torch -> paddle -> torch gives every bit back, in every float type; other types are converted and noted."""

from __future__ import annotations

from typing import Any

import numpy as np
import paddle
import pytest
import torch

import parfocal as pf
from tests.pairs.weights.tools import randomise, state_bytes

T, P = torch.nn, paddle.nn


def torch_model(recurrent: bool = True) -> Any:
    return T.Sequential(
        T.Conv2d(3, 8, 3), T.BatchNorm2d(8), T.PReLU(8), T.Flatten(), T.Linear(8 * 9, 72), T.LayerNorm((72,)),
        T.LSTM(72, 5, 2, bidirectional=True) if recurrent else T.Identity(),
        T.MultiheadAttention(8, 2), T.Embedding(11, 7),
        T.ConvTranspose2d(4, 6, 3), T.GroupNorm(2, 6), T.Bilinear(3, 4, 5),
    )  # fmt: skip


def paddle_model(recurrent: bool = True) -> Any:
    return P.Sequential(
        P.Conv2D(3, 8, 3), P.BatchNorm2D(8), P.PReLU(8), P.Flatten(), P.Linear(8 * 9, 72), P.LayerNorm((72,)),
        P.LSTM(72, 5, 2, direction="bidirect") if recurrent else P.Identity(),
        P.MultiHeadAttention(8, 2), P.Embedding(11, 7),
        P.Conv2DTranspose(4, 6, 3), P.GroupNorm(2, 6), P.Bilinear(3, 4, 5),
    )  # fmt: skip


def weights(model: Any) -> dict[str, bytes]:
    return {name: raw for name, raw in state_bytes(model).items() if "num_batches" not in name}


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "float64"])
def test_bit_exact(dtype: str) -> None:
    recurrent = dtype == "float32"  # paddle cannot convert its recurrent layers
    reference = randomise(torch_model(recurrent), 1).to(getattr(torch, dtype))
    with torch.no_grad():  # values that survive only as bits
        reference[0].bias[0], reference[0].bias[1] = float("nan"), -0.0
    between = randomise(paddle_model(recurrent), 2)
    if not recurrent:
        between.to(dtype=dtype)
    back = randomise(torch_model(recurrent), 3).to(getattr(torch, dtype))
    assert weights(reference) != weights(back)
    first, second = pf.transfer(reference, between), pf.transfer(between, back)
    assert not any("converted" in note for note in (*first.notes, *second.notes))
    assert weights(reference) == weights(back)


def test_another_dtype_is_converted_and_noted() -> None:
    reference, port = randomise(T.Linear(4, 3), 1), P.Linear(4, 3).to(dtype="bfloat16")
    plan = pf.transfer(reference, port)
    assert "converted from float32 to bfloat16: weight, bias" in plan.notes
    expected = reference.weight.detach().to(torch.bfloat16).float().numpy().T
    assert np.array_equal(port.weight.astype("float32").numpy(), expected)


def test_within_one_framework() -> None:
    reference, port = randomise(torch_model(), 1), randomise(torch_model(), 2)
    assert pf.transfer(reference, port).complete
    assert weights(reference) == weights(port)
    mine, yours = randomise(paddle_model(), 1), randomise(paddle_model(), 2)
    assert pf.transfer(mine, yours).complete
    assert weights(mine) == weights(yours)
