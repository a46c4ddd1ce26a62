"""Each difference of training parts: found and named where it is, and the fix makes it vanish."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import pytest

from parfocal.backends.gaps import Family, Gap, Status, families
from parfocal.errors import InputError
from parfocal.judge.codes import codes
from tests.pairs.gaps.planted import ROWS
from tests.pairs.gaps.planted.row import gap_of

FAMILIES = (Family.LOSSES, Family.INITIALISATION, Family.OPTIMIZERS, Family.SCHEDULES, Family.DATA)


@pytest.fixture(autouse=True)
def _quiet() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def not_planted(rows: Mapping[Family, Iterable[Gap]], names: Iterable[str]) -> set[str]:
    """Rows of these families that no entry plants, and entries that no row has."""
    return {gap.id for family in FAMILIES for gap in rows[family]} ^ {gap_of(name) for name in names}


def test_every_row_of_these_families_is_planted() -> None:
    assert not_planted(families(), ROWS) == set()
    assert {gap.status for family in FAMILIES for gap in families()[family]} == {Status.VERIFIED}


def test_a_row_without_an_entry_and_an_entry_without_a_row_are_told() -> None:
    rows = families()
    added = (replace(rows[Family.DATA][0], id="a-new-row"),)
    assert not_planted({**rows, Family.DATA: rows[Family.DATA] + added}, ROWS) == {"a-new-row"}
    assert not_planted(rows, [*ROWS, "no-such-row: a case"]) == {"no-such-row"}
    other = {**rows, Family.SEQUENCES: rows[Family.SEQUENCES] + added}  # of a family that has other tests
    assert not_planted(other, ROWS) == set()


def test_every_entry_says_what_is_to_be_found() -> None:
    for name, row in ROWS.items():
        assert row.code == InputError.code if row.raises else row.phase in codes()[row.code].phases, name
        assert row.plant is not row.twin, name


@pytest.mark.parametrize("name", ROWS)
def test_the_difference_is_found_and_named(name: str) -> None:
    row = ROWS[name]
    if row.raises:
        with pytest.raises(InputError, match=row.raises):
            row.plant()
        return
    first = row.plant().first
    assert first is not None, "nothing was found"
    assert (first.phase, first.cause and first.cause.code) == (row.phase, row.code)
    assert first.cause.fix


@pytest.mark.parametrize("name", ROWS)
def test_its_twin_is_the_same(name: str) -> None:
    report = ROWS[name].twin()
    assert report.ok, report
