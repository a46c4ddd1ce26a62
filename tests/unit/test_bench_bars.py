"""The table of bars: a row says whether its bar holds, and a benchmark by itself writes none."""

from __future__ import annotations

from pathlib import Path

import pytest
from benchmarks import bars

from parfocal.native.library import path_in_use


def test_rows_of_all_parts_come_out_as_one_table(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = tmp_path / "rows.jsonl"
    monkeypatch.setenv(bars.ROWS, str(file))
    bars.note("compare / dot(a, b)", 1.5, 2, path="x86-64-v3", read=10.25)
    bars.note("align resnet50, full", 2.345, 2.2)
    bars.note("record, stats", 1.1, None)
    rows = bars.noted(file)
    assert [row.holds for row in rows] == [True, False, True]
    assert rows[1].path == path_in_use()
    *legend, head, first, second, third = bars.table(rows)
    assert tuple(legend) == bars.LEGEND
    assert head.split() == ["path", "what", "measured", "bar", "holds", "read"]
    assert first.split()[-5:] == ["1.50x", "2.00x", "yes", "10.25", "ms"]
    assert second.split()[-5:-2] == ["2.35x", "2.20x", "NO"]
    assert third.split()[-6:-2] == ["1.10x", "no", "bar", "-"]
    assert rows[1].read == rows[2].read > 0  # of this machine, where a row has none of its own


def test_aligning_and_recording_have_bars_where_vectors_are_wide() -> None:
    asked = {
        path: bars.has_time_bars(path) for path in ("x86-64-v4", "x86-64-v3", "x86-64", "portable", "none")
    }
    assert asked == {"x86-64-v4": True, "x86-64-v3": True, "x86-64": False, "portable": False, "none": False}


def test_the_bar_itself_holds_and_the_least_more_does_not() -> None:
    def row(measured: float) -> bars.MeasuredBar:
        return bars.MeasuredBar("what", "none", measured, 2.0, "x", 1.0)

    assert row(2.0).holds
    assert not row(2.001).holds


def test_a_benchmark_by_itself_writes_no_rows(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv(bars.ROWS, raising=False)
    monkeypatch.chdir(tmp_path)
    bars.note("compare", 1.0, 2)
    assert not list(tmp_path.iterdir())
