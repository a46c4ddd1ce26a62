"""Every setting of every kind of layer: correct pairs are the same, a wrong setting is named.

Layers over one and three axes, further sizes and losses, and ports from paddle to torch say little that
those here do not; ``PARFOCAL_SWEEP=all`` sweeps them too.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import paddle
import pytest
import torch

import parfocal
from parfocal.backends.paddle import recipes as paddle_recipes
from parfocal.backends.torch import recipes as torch_recipes
from parfocal.judge.verdict import Divergence
from tests.faults.frames import arrays, model
from tests.faults.sweep import ROWS, Row, expected_code
from tests.faults.sweep_more import MORE_ROWS
from tests.faults.tools import own

pytestmark = pytest.mark.filterwarnings(
    "ignore:LSTM with projections is not supported with oneDNN:UserWarning"
)
ALL = os.environ.get("PARFOCAL_SWEEP") == "all"
DIRECTIONS = [("torch", "paddle"), ("paddle", "torch")] if ALL else [("torch", "paddle")]
SWEPT = [*ROWS, *MORE_ROWS] if ALL else [row for row in ROWS if not row.kind.endswith(("1d", "3d"))]
# The class of a padding is its mode, so a port with another one is another layer.
MODES = ("Circular", "Constant", "Reflection", "Replication")
PADDINGS = {f"{mode}Pad{rank}d" for mode in MODES for rank in "123"}
RECIPES = {"torch": torch_recipes.RECIPES, "paddle": paddle_recipes.RECIPES}


def faults() -> Iterator[Any]:
    """What a port can have wrong: a setting that its framework offers."""
    for direction in DIRECTIONS:
        for row in SWEPT:
            offered = RECIPES[direction[1]][row.kind].arguments
            for setting in (name for name in row.changes if name in offered):
                yield row, setting, direction


def name(value: Any) -> str:
    return (
        value.kind if isinstance(value, Row) else "-".join(value) if isinstance(value, tuple) else str(value)
    )


def aligned(row: Row, changes: dict[str, Any], direction: tuple[str, str]) -> parfocal.Report:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(7)
        paddle.seed(3)
        reference, port = (
            model(direction[0], row, row.base),
            model(direction[1], row, {**row.base, **changes}),
        )
    # what a loss is compared with has no gradient in one of the frameworks
    return parfocal.align(reference, port, arrays(row), backward=row.has_gradients)


def test_what_the_port_does_not_offer_is_known() -> None:
    """A setting that a recipe loses would no longer be swept."""
    swept = {(row.kind, setting) for row, setting, direction in faults() if direction == DIRECTIONS[0]}
    left = {(row.kind, setting) for row in SWEPT for setting in row.changes} - swept
    assert left == {(kind, "mode") for kind in PADDINGS & {row.kind for row in SWEPT}}
    assert len(swept) >= 128


@pytest.mark.parametrize("direction", DIRECTIONS, ids=name)
@pytest.mark.parametrize("row", SWEPT, ids=name)
def test_a_correct_pair_is_the_same(row: Row, direction: tuple[str, str]) -> None:
    report = aligned(row, {}, direction)
    assert report.ok, str(report)


@pytest.mark.parametrize(("row", "setting", "direction"), list(faults()), ids=name)
def test_a_wrong_setting_is_named(row: Row, setting: str, direction: tuple[str, str]) -> None:
    report = aligned(row, {setting: row.changes[setting]}, direction)
    found = own(report)
    assert found, str(report)
    for divergence in found:  # of a container that hands a setting on, each of the layers that have it
        check(divergence, row, setting, report)


def check(divergence: Divergence, row: Row, setting: str, report: parfocal.Report) -> None:
    site = divergence.port or divergence.reference  # weights that the port has no place for
    assert site is not None
    assert site.path.startswith("layer"), str(report)
    assert divergence.cause is not None, str(report)
    assert divergence.cause.code == expected_code(setting, row.kind), str(report)
    right, wrong = (
        f"{value:.7g}" if isinstance(value, float) else repr(value)
        for value in (row.base[setting], row.changes[setting])
    )
    assert f"{setting} is {right} in the reference, {wrong} in the port" in divergence.cause.message
    assert divergence.cause.score_after <= report.limit
