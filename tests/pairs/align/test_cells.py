"""Cells of recurrent networks: one of the frameworks gives the state twice, the other once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import paddle
import pytest
import torch

import parfocal

X = np.random.default_rng(0).standard_normal((4, 3, 4)).astype(np.float32)


class TorchLoop(torch.nn.Module):
    def __init__(self, cell: Any, step: Callable[..., Any]) -> None:
        super().__init__()
        self.cell, self.last, self.step = cell, torch.nn.Linear(5, 3), step

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        state: Any = None
        for time in range(x.shape[1]):
            given, state = self.step(self.cell(x[:, time], state))
        return self.last(given)


class PaddleLoop(paddle.nn.Layer):
    def __init__(self, cell: Any, step: Callable[..., Any]) -> None:
        super().__init__()
        self.cell, self.last, self.step = cell, paddle.nn.Linear(5, 3), step

    def forward(self, x: paddle.Tensor) -> paddle.Tensor:
        state: Any = None
        for time in range(x.shape[1]):
            given, state = self.step(self.cell(x[:, time], state))
        return self.last(given)


def _torch_memory(result: Any) -> Any:
    return result[0], result


def _torch_state(result: Any) -> Any:
    return result, result


def _as_given(result: Any) -> Any:
    return result


def _by_the_state(result: Any) -> Any:
    _, state = result
    return (state[0] if isinstance(state, tuple) else state), state


def pair(name: str, step: Callable[..., Any]) -> tuple[Any, Any]:
    kinds = {"LSTM": ("LSTMCell", _torch_memory), "GRU": ("GRUCell", _torch_state)}
    kind, torch_step = kinds[name]
    torch.manual_seed(0)
    return (
        TorchLoop(getattr(torch.nn, kind)(4, 5), torch_step),
        PaddleLoop(getattr(paddle.nn, kind)(4, 5), step),
    )


@pytest.mark.parametrize("step", [_as_given, _by_the_state])
@pytest.mark.parametrize("name", ["LSTM", "GRU"])
def test_whichever_of_the_two_is_used(name: str, step: Callable[..., Any]) -> None:
    ours, theirs = pair(name, step)
    report = parfocal.align(ours, theirs, X)
    assert report.ok, str(report)
    back = parfocal.align(theirs, pair(name, step)[0], X)
    assert back.ok, str(back)


@pytest.mark.parametrize("step", [_as_given, _by_the_state])
def test_two_of_the_same_framework(step: Callable[..., Any]) -> None:
    report = parfocal.align(pair("LSTM", step)[1], pair("LSTM", step)[1], X)
    assert report.ok, str(report)


def test_a_state_that_is_cut_off_is_seen() -> None:
    def cut(result: Any) -> Any:
        given, (hidden, memory) = result
        return given, (hidden, memory.detach())

    ours, theirs = pair("LSTM", cut)
    report = parfocal.align(ours, theirs, X)
    assert report.first is not None
    assert report.first.cause is not None
    assert report.first.cause.code == "grad.detached"
