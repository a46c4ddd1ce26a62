"""A report as data: verdict, JSON and files."""

from __future__ import annotations

import errno
import json
import math

import pytest

from parfocal.errors import DivergedError, StorageError
from parfocal.report.page.page import to_html
from tests.unit.report.reports import CAUSE, NOTE, divergence, report


def test_ok_means_no_divergence_and_findings_do_not_count():
    assert report(findings=(NOTE,)).ok
    assert report().first is None
    assert not report(divergence()).ok
    assert report(divergence("x"), divergence("y")).first.port.path == "x"


def test_raise_if_diverged_raises_the_whole_text():
    report().raise_if_diverged()
    bad = report(divergence())
    with pytest.raises(DivergedError) as caught:
        bad.raise_if_diverged()
    assert str(caught.value) == str(bad)


def test_json_is_strict_and_complete():
    bad = report(divergence(score=math.inf, cause=CAUSE), findings=(NOTE,))
    data = json.loads(json.dumps(bad.to_json(), allow_nan=False))
    assert (data["ok"], data["schema"]) == (False, 1)
    (found,) = data["divergences"]
    assert found["score"] == "inf"
    assert found["port"]["settings"] == {"epsilon": 1e-06}
    assert found["cause"]["code"] == "config.epsilon"
    assert found["error"]["max_index"] == [1, 2]
    assert data["findings"][0]["code"] == "transfer"
    assert data["coverage"]["directions"] == ["forward", "backward"]


def test_settings_of_any_type_become_json():
    odd = divergence()
    object.__setattr__(odd, "port", type(odd.port)("x", "Odd", None, None, None, {1: {2}, "f": print}))
    data = json.loads(json.dumps(report(odd).to_json(), allow_nan=False))
    assert data["divergences"][0]["port"]["settings"] == {"1": "{2}", "f": str(print)}


def test_saving(tmp_path):
    bad = report(divergence())
    folder = bad.save(tmp_path / "new" / "folder")
    assert folder == tmp_path / "new" / "folder"
    assert (folder / "report.txt").read_text(encoding="utf-8") == f"{bad}\n"
    assert (folder / "report.html").read_text(encoding="utf-8") == to_html(bad)
    assert json.loads((folder / "report.json").read_text(encoding="utf-8")) == bad.to_json()
    report().save(folder)  # a second report takes the place of the first
    assert json.loads((folder / "report.json").read_text())["ok"] is True


def test_a_place_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match=r"cannot write the report to .*/file/report: Not a directory"):
        report().save(tmp_path / "file" / "report")


def test_a_full_disk_leaves_nothing_half_written(tmp_path, monkeypatch):
    def full(descriptor, data):
        raise OSError(errno.ENOSPC, "No space left on device")

    report().save(tmp_path)
    before = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    monkeypatch.setattr("parfocal.run.storage.os.write", full)
    with pytest.raises(StorageError, match="No space left on device"):  # the disk is full
        report(divergence()).save(tmp_path)
    monkeypatch.undo()
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == before
