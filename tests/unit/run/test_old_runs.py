"""Runs that an earlier parfocal wrote are read and compared."""

from __future__ import annotations

from pathlib import Path

import parfocal as pf
from parfocal.run.reader import load_run
from parfocal.run.records import SCHEMA_VERSION

SCHEMA1 = Path(__file__).parent / "schema1"


def test_a_run_of_the_first_schema_is_read() -> None:
    run = load_run(SCHEMA1 / "reference")
    assert run.header.schema == 1 < SCHEMA_VERSION
    assert run.complete
    assert run.verify() == []
    assert len(run.steps()) == 2
    assert all(step.update_norm is None for step in run.steps())
    assert all(state.tied_to is None and not state.transposed for state in run.state())


def test_runs_of_the_first_schema_are_compared() -> None:
    report = pf.compare(SCHEMA1 / "reference", SCHEMA1 / "port")
    assert report.first is not None
    assert (report.first.phase, report.first.step, report.first.port.path) == ("forward", 0, "1")
    assert report.first.cause is not None
    assert report.first.cause.code == "config.epsilon"
    assert report.coverage.count("updates of parameters") == 0
