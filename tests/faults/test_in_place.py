"""Parts of a tensor that are written through a view in the reference, and are not written in the port."""

from __future__ import annotations

from typing import Any

import pytest

from tests.faults.test_code import WIDTH, Forward, PaddleBlock, TorchBlock
from tests.faults.tools import align, numbers, seeded, the_cause


def _adding(self: Any, x: Any) -> Any:
    hidden = self.first(x).clone()
    hidden[:, :3] += x[:, 2:]
    return self.second(hidden.tanh())


def _added(self: Any, x: Any) -> Any:
    hidden = self.first(x).clone()
    hidden[:, :3] = hidden[:, :3] + x[:, 2:]
    return self.second(hidden.tanh())


def _rebound(self: Any, x: Any) -> Any:
    hidden = self.first(x).clone()
    part = hidden[:, :3]
    part = part + x[:, 2:]
    return self.second(hidden.tanh())


def _halving(self: Any, x: Any) -> Any:
    hidden = self.first(x).clone()
    hidden[..., 4:].mul_(0.5)
    return self.second(hidden.tanh())


def _halved(self: Any, x: Any) -> Any:
    hidden = self.first(x).clone()
    hidden[..., 4:] = hidden[..., 4:] * 0.5
    return self.second(hidden.tanh())


def _half_lost(self: Any, x: Any) -> Any:
    hidden = self.first(x).clone()
    part = hidden[..., 4:] * 0.5
    return self.second(hidden.tanh() + 0.0 * part.sum())


def _quartered(self: Any, x: Any) -> Any:
    hidden = self.first(x).clone()
    hidden[..., 4:] = hidden[..., 4:] * 0.25
    return self.second(hidden.tanh())


LOST = {
    "added": (_adding, _rebound, "at [:, :3]", "hidden[:, :3] = part + x[:, 2:]"),
    "multiplied": (_halving, _half_lost, "at [..., 4:]", "hidden[..., 4:] = hidden[..., 4:] * 0.5"),
}


@pytest.mark.parametrize("lost", LOST.values(), ids=list(LOST))
def test_what_is_not_written_back_is_missing(lost: tuple[Forward, Forward, str, str]) -> None:
    reference, port, place, fix = lost
    cause = the_cause(align(seeded(lambda: TorchBlock(reference)), PaddleBlock(port), numbers(3, 5, WIDTH)))
    assert cause.code == "op.missing"
    assert f"the reference applies setitem {place}" in cause.message
    assert fix in cause.fix


@pytest.mark.parametrize("pair", [(_adding, _added), (_halving, _halved)], ids=["added", "multiplied"])
def test_what_is_written_is_right(pair: tuple[Forward, Forward]) -> None:
    report = align(seeded(lambda: TorchBlock(pair[0])), PaddleBlock(pair[1]), numbers(3, 5, WIDTH))
    assert report.ok


def test_what_is_written_otherwise_is_not_missing() -> None:
    report = align(seeded(lambda: TorchBlock(_halving)), PaddleBlock(_quartered), numbers(3, 5, WIDTH))
    assert the_cause(report).code == "op.scale"
