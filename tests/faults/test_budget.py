"""The search for causes is bounded by the work of the alignment, and says where it stopped."""

from __future__ import annotations

import numpy as np
import paddle
import pytest
import torch

import parfocal as pf
from parfocal.errors import InputError
from parfocal.explain import allowance

X = np.random.default_rng(0).standard_normal((6, 16)).astype("float32")


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = torch.nn.Linear(16, 16), torch.nn.Linear(16, 16)

    def forward(self, x):
        y = torch.tanh(self.first(x))
        z = torch.sigmoid(self.second(y) * 0.5 + y)
        return z - y * 0.25 + x


class Port(paddle.nn.Layer):
    """Each kind makes another mistake in its own code."""

    def __init__(self, kind):
        super().__init__()
        self.kind = kind
        self.first, self.second = paddle.nn.Linear(16, 16), paddle.nn.Linear(16, 16)

    def forward(self, x):
        y = paddle.tanh(self.first(x))
        if self.kind == 0:
            y = y * 1.5
        if self.kind == 1:
            y = paddle.nn.functional.relu(y)
        z = paddle.nn.functional.sigmoid(self.second(y) * (0.75 if self.kind == 2 else 0.5) + y)
        if self.kind == 3:
            z = paddle.exp(z)
        if self.kind == 4:
            return z + y * 0.25 + x
        return z - y * (0.3 if self.kind == 5 else 0.25) + x


def pair(*kinds):
    reference = torch.nn.Sequential(*(Block() for _ in kinds))
    return reference, paddle.nn.Sequential(*(Port(kind) for kind in kinds))


def told_of(report):
    return [each.message for each in report.findings if each.code == "explain.budget"]


def explained(report):
    return {each.port.path for each in report.divergences if each.cause is not None}


@pytest.fixture
def tight(monkeypatch):
    """Room for a search or two."""
    monkeypatch.setattr(allowance, "SHARES", (0.1, 0.2))


def test_what_is_left_is_said_and_found_by_a_thorough_search(tight):
    models = pair(*range(6))
    usual, thorough = pf.align(*models, X), pf.align(*models, X, explain="thorough")
    assert {each.port.path for each in usual.divergences if not each.inherited} >= set("012345")
    (message,) = told_of(usual)
    assert message.startswith("the search for causes stopped after ")
    assert message.endswith('left; explain="thorough" goes on')
    assert told_of(thorough) == []
    assert set("012345") <= explained(thorough)
    assert explained(usual) < explained(thorough)
    assert "0" in explained(usual)  # in order of execution


def test_where_the_search_stops_does_not_depend_on_the_machine(tight):
    models = pair(*range(6))
    reports = [pf.align(*models, X) for _ in range(2)]
    assert told_of(reports[0]) == told_of(reports[1])
    assert explained(reports[0]) == explained(reports[1])


@pytest.mark.parametrize("kind", range(6))
def test_one_mistake_is_found_with_room_to_spare(kind):
    report = pf.align(*pair(kind, 6), X)
    assert report.first.cause is not None, str(report)
    assert told_of(report) == []


def test_nothing_is_said_where_nothing_was_searched():
    assert told_of(pf.align(*pair(6, 6), X)) == []
    assert told_of(pf.align(*pair(0, 1), X, explain=False)) == []


def test_another_word_is_refused():
    with pytest.raises(InputError, match="explain='fully' is neither True, False nor 'thorough'"):
        pf.align(*pair(6), X, explain="fully")
