"""One call of the reference that takes several of the port: what is wrong in these is named like in one."""

from __future__ import annotations

from typing import Any

import paddle
import pytest
import torch
from paddle import nn as pnn
from torch import nn
from torch.nn import functional as F

from tests.faults.tools import align, mend, numbers, own, seeded, the_cause


class NormAct(nn.GroupNorm):
    """A norm that activates what it gives."""

    def __init__(self, groups: int, channels: int) -> None:
        super().__init__(groups, channels)
        self.act = nn.ReLU()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        normed = F.group_norm(x, self.num_groups, self.weight, self.bias, self.eps)
        return self.act(normed)  # type: ignore[no-any-return]


class NormThenAct(pnn.Layer):  # type: ignore[misc]
    def __init__(self, groups: int, channels: int, **settings: Any) -> None:
        super().__init__()
        self.norm = pnn.GroupNorm(groups, channels, **settings)
        self.act = pnn.ReLU()

    def forward(self, x: paddle.Tensor) -> paddle.Tensor:
        return self.act(self.norm(x))


def reference() -> nn.Module:
    return seeded(
        lambda: nn.Sequential(
            nn.Conv2d(3, 8, 3), NormAct(4, 8), nn.Conv2d(8, 8, 3), NormAct(4, 8), nn.Conv2d(8, 4, 1)
        )
    )


def port(groups: int = 4, **settings: Any) -> pnn.Layer:
    return pnn.Sequential(
        *(pnn.Conv2D(3, 8, 3), NormThenAct(4, 8), pnn.Conv2D(8, 8, 3)),
        *(NormThenAct(groups, 8, **settings), pnn.Conv2D(8, 4, 1)),
    )


@pytest.mark.parametrize(
    ("wrong", "code", "says"),
    [
        ({"groups": 2}, "config.groups", "num_groups is 4 in the reference, 2 in the port"),
        ({"epsilon": 1e-2}, "config.epsilon", "epsilon is 1e-05 in the reference, 0.01 in the port"),
    ],
)
def test_a_setting_of_the_first_of_them(wrong: dict[str, Any], code: str, says: str) -> None:
    ours, theirs, x = reference(), port(**wrong), numbers(2, 3, 9, 9)
    report = align(ours, theirs, x)
    cause = the_cause(report)
    assert cause.code == code
    assert says in cause.message
    assert [each.port.path for each in own(report) if each.port] == ["3.norm"]
    mend(theirs, cause.fix)
    assert align(ours, theirs, x).ok


def test_the_right_setting_is_no_cause() -> None:
    assert align(reference(), port(), numbers(2, 3, 9, 9)).ok
