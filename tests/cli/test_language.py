"""Commands in Chinese: reports, errors and their hints; what is for machines stays English."""

from __future__ import annotations

import json

import numpy as np
import pytest

from tests.cli.command import run_here
from tests.unit.report.reports import CAUSE, divergence, report


@pytest.fixture
def chinese(monkeypatch):
    monkeypatch.setenv("PARFOCAL_LANG", "zh")
    return monkeypatch


def test_a_report(chinese, capsys, tmp_path):
    report(divergence(cause=CAUSE)).save(tmp_path)
    done = run_here(chinese, capsys, "report", tmp_path, "--format", "txt")
    assert (done.status, done.out.splitlines()[0]) == (
        1,
        "不一致：Net (paddle 3.3.1) 对比 Net (torch 2.13.0)",
    )
    done = run_here(chinese, capsys, "report", tmp_path, "--format", "md")
    assert done.out.startswith("### parfocal: 不一致")
    assert "| 位置 | 内容 | 原因 |" in done.out
    done = run_here(chinese, capsys, "report", tmp_path, "--format", "json")
    assert json.loads(done.out)["divergences"][0]["cause"]["message"] == str(CAUSE.message)
    done = run_here(chinese, capsys, "report", tmp_path, "--format", "junit")
    assert "DIFFERENT: " in done.out


def test_an_error_and_its_hint(chinese, capsys, tmp_path):
    done = run_here(chinese, capsys, "report", tmp_path)
    assert done.status == 2
    assert done.err.splitlines() == [
        f"parfocal: {tmp_path} 及其下没有 report.json",
        "  提示：report.save(folder)、parfocal align --save 或 parfocal compare --save 会写出报告",
    ]


def test_an_error_in_english(monkeypatch, capsys, tmp_path):
    done = run_here(monkeypatch, capsys, "report", tmp_path)
    assert done.err.splitlines() == [
        f"parfocal: there is no report.json in {tmp_path} or below it",
        "  hint: report.save(folder), parfocal align --save or parfocal compare --save write one",
    ]


def test_the_differences_of_a_layer(chinese, capsys):
    done = run_here(chinese, capsys, "map", "torch.nn.BatchNorm2d")
    assert "BatchNorm 的 momentum 含义相反" in done.out


def test_a_table_of_differences(chinese, capsys, tmp_path):
    np.save(tmp_path / "a.npy", np.ones(3))
    np.save(tmp_path / "b.npy", np.zeros(3))
    done = run_here(
        chinese, capsys, "diff", tmp_path / "a.npy", tmp_path / "b.npy", "--log", tmp_path / "log"
    )
    assert done.status == 1
    assert done.out.splitlines()[-1] == "不一致：比较了 1 项，1 项超过 1e-06"
