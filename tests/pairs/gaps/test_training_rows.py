"""Each verified difference of training parts: found and named where it is, and the fix makes it vanish."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

from parfocal.backends.gaps import GAPS
from parfocal.backends.gaps.entry import Family, Status
from parfocal.errors import InputError
from tests.pairs.gaps.planted import ROWS

FAMILIES = (Family.LOSSES, Family.INITIALISATION, Family.OPTIMIZERS, Family.SCHEDULES, Family.DATA)
# What needs no plant: both frameworks do the same, or the difference is in what a user reads.
AGREEING = {"adam-rounding", "kaiming-initialisers-agree", "reading-the-rate"}


@pytest.fixture(autouse=True)
def _quiet() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def test_every_verified_row_of_these_families_is_planted() -> None:
    verified = {gap.id for gap in GAPS if gap.family in FAMILIES and gap.status is Status.VERIFIED}
    assert verified == set(ROWS)
    assert {name for name, row in ROWS.items() if row.plant is None} == AGREEING


@pytest.mark.parametrize("name", [name for name, row in ROWS.items() if row.plant is not None])
def test_the_difference_is_found_and_named(name: str) -> None:
    row = ROWS[name]
    assert row.plant is not None
    if row.raises:
        with pytest.raises(InputError, match=row.raises):
            row.plant()
        return
    first = row.plant().first
    assert first is not None, "nothing was found"
    assert (first.phase, first.cause and first.cause.code) == (row.phase, row.code)


@pytest.mark.parametrize("name", ROWS)
def test_its_twin_is_the_same(name: str) -> None:
    report = ROWS[name].twin()
    assert report.ok, report
