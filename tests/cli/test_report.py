"""``parfocal report``: saved reports in other forms, without a framework."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.cli.command import run_apart, run_here
from tests.unit.report.reports import CAUSE, divergence, report


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    report(divergence(cause=CAUSE)).save(tmp_path / "bad")
    report().save(tmp_path / "good")
    return tmp_path


def test_texts_of_a_saved_report(folder, monkeypatch, capsys):
    bad = report(divergence(cause=CAUSE))
    done = run_here(monkeypatch, capsys, "report", folder / "bad", "--format", "txt")
    assert (done.status, done.out) == (1, f"{bad}\n")
    done = run_here(monkeypatch, capsys, "report", folder / "bad" / "report.json", "--format", "json")
    assert json.loads(done.out) == bad.to_json()
    done = run_here(monkeypatch, capsys, "report", folder / "good", "--format", "md")
    assert (done.status, done.out.splitlines()[0]) == (0, "### parfocal: SAME")


def test_a_folder_of_several_reports(folder, monkeypatch, capsys):
    target = folder / "junit.xml"
    done = run_here(monkeypatch, capsys, "report", folder, "--format", "junit", "--output", target)
    assert (done.status, done.out) == (1, "")
    suites = ElementTree.parse(target).getroot().findall("testsuite")
    assert [Path(suite.get("name", "")).parent.name for suite in suites] == ["bad", "good"]
    done = run_here(monkeypatch, capsys, "report", folder, "--format", "json")
    assert [each["ok"] for each in json.loads(done.out)] == [False, True]
    done = run_here(monkeypatch, capsys, "report", folder, "--format", "txt")
    assert done.out.count("== ") == 2


def test_pages(folder, monkeypatch, capsys):
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", lambda address: opened.append(address) or True)
    (folder / "good" / "report.html").unlink()
    done = run_here(monkeypatch, capsys, "report", folder, "--open")
    pages = [folder / name / "report.html" for name in ("bad", "good")]
    assert (done.status, done.out.split()) == (1, [str(page) for page in pages])
    assert opened == [page.as_uri() for page in pages]
    assert "<!doctype html>" in pages[1].read_text(encoding="utf-8")
    target = folder / "other.html"
    done = run_here(monkeypatch, capsys, "report", folder / "good", "-o", target)
    assert (done.status, done.out.strip()) == (0, str(target))
    assert target.read_bytes() == pages[1].read_bytes()
    done = run_here(monkeypatch, capsys, "report", folder, "-o", target)
    assert (done.status, "is one file, and there are 2 reports" in done.err) == (2, True)
    monkeypatch.setattr("webbrowser.open", lambda address: False)
    assert "no browser was found" in run_here(monkeypatch, capsys, "report", folder / "good", "--open").err


def test_what_is_no_report(folder, monkeypatch, capsys):
    def said(*arguments: object) -> str:
        done = run_here(monkeypatch, capsys, "report", *arguments)
        assert done.status == 2
        return done.err

    (folder / "empty").mkdir()
    (folder / "run").mkdir()
    (folder / "run" / "run.json").write_text("{}")
    assert "there is no report.json in" in said(folder / "empty")
    assert "is one recorded run, and a report is about two" in said(folder / "run")
    assert "cannot read" in said(folder / "nothing.json")
    assert "--open shows HTML, and --format is md" in said(folder / "good", "--format", "md", "--open")
    assert "--format pdf is none of" in said(folder / "good", "--format", "pdf")
    assert "cannot write" in said(folder / "good", "--format", "md", "--output", folder / "none" / "x.md")


def test_no_framework_is_imported(folder):
    code = (
        "import sys; sys.argv = ['parfocal', 'report', 'good', '--format', 'md']\n"
        "from parfocal.cli.main import main\n"
        "try:\n    main()\nexcept SystemExit: pass\n"
        "assert not {'torch', 'paddle'} & set(sys.modules)"
    )
    import subprocess
    import sys

    subprocess.run([sys.executable, "-c", code], cwd=folder, check=True, capture_output=True)
    assert run_apart(folder, "report", "bad", "--format", "md").status == 1
