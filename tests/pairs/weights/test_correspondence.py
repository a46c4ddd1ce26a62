"""Models that have their weights already: what corresponds is told without a run, or not at all."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import parfocal as pf
from parfocal.weights.correspondence import correspond
from parfocal.weights.transfer import transfer
from tests.pairs.weights.blocks import (
    OURS,
    PADDLE,
    SILENT,
    SPELLED,
    THEIRS,
    TORCH,
    X,
    attention,
    gated,
    model,
)
from tests.pairs.weights.tools import randomise, state_bytes

BLOCKS = {
    "the same names": (attention(), gated()),
    "other names": (attention(SPELLED), gated(("w1", "w3", "w2"))),
    "names that say nothing": (attention(SILENT), gated(("x", "y", "z"))),
    "fused": (attention(fused="qkv"), gated(fused="gate_up")),
}


def pair(name: str) -> tuple[Any, Any, pf.Plan]:
    reference = randomise(model(TORCH, [(attention(), gated())] * 2, OURS), 1)
    port = randomise(model(PADDLE, [BLOCKS[name]] * 2, THEIRS), 2)
    return reference, port, transfer(reference, port, X)


def copies(plan: pf.Plan) -> set[tuple[Any, ...]]:
    return {(each.source, each.source_view, each.target, each.target_view) for each in plan.entries}


@pytest.mark.parametrize("name", BLOCKS)
def test_it_is_the_plan_that_was_carried_out(name: str) -> None:
    reference, port, carried_out = pair(name)
    before = state_bytes(port)
    found = correspond(reference, port)
    assert found is not None
    assert copies(found) == copies(carried_out)
    assert state_bytes(port) == before


def test_aligning_without_a_transfer_runs_the_port_no_more_than_it_needs() -> None:
    reference, port, _ = pair("names that say nothing")
    runs: list[int] = []
    port.register_forward_pre_hook(lambda *given: runs.append(1))
    assert pf.align(reference, port, X, transfer=False).ok
    alone = len(runs)
    runs.clear()
    assert pf.align(reference, port, X, transfer=correspond(reference, port)).ok
    assert alone <= len(runs)


def test_weights_that_differ_are_not_told_apart_by_values() -> None:
    reference, port, _ = pair("names that say nothing")
    weight = port.h[1].attention.aa.weight
    weight.set_value(weight * np.float32(1.5))
    assert correspond(reference, port) is None
    first = pf.align(reference, port, X, transfer=False).first
    assert first.phase == "weights"
    assert first.port.path == "h.1.attention.aa.weight"
