"""The guide's commands in Chinese: what the processes of the sides say is translated, JSON stays English."""

from __future__ import annotations

import json
import re

from parfocal.phrases import VARIABLE
from tests.cli.command import run_here
from tests.guide.bugs import BUGS
from tests.guide.projects import toy

BUG = next(bug for bug in BUGS if bug.code == "config.epsilon")
# English that Chinese readers meet all the same: names, codes, paths and lines of code.
WORDS = re.compile(r"\b(the|is|are|of|in|and|needs|names|failed|passed|blocked|left out|next|cause|fix)\b")


def test_a_failing_step_is_told_and_remembered_in_chinese(tmp_path, monkeypatch, capsys):
    toy(tmp_path, bug=BUG)
    monkeypatch.setenv(VARIABLE, "zh")
    first = run_here(monkeypatch, capsys, "check", "model", "metric", "--project", tmp_path)
    assert first.status == 1
    for told in (
        "步骤",
        "model 失败（同一进程）：",
        "原因 config.epsilon：epsilon 在参考模型中为 1e-05，在移植模型中为 0.001",
        "需要 model（失败）",
        "验收点 forward     未通过",
        "下一步：按以上所述修复 model，再运行 parfocal check",
    ):
        assert told in first.out
    lines = first.out.replace(str(tmp_path), "").splitlines()
    code = [line for line in lines if "修复 self.norm" in line]
    assert len(code) == 1
    assert [line for line in lines if line not in code and WORDS.search(line)] == []
    again = run_here(monkeypatch, capsys, "status", "--project", tmp_path)
    assert "原因 config.epsilon：epsilon 在参考模型中为 1e-05" in again.out
    machine = run_here(monkeypatch, capsys, "status", "--project", tmp_path, "--json")
    problem = json.loads(machine.out)["steps"][0]["problems"][0]
    assert problem["message"].startswith("epsilon is 1e-05 in the reference, 0.001 in the port")
    monkeypatch.setenv(VARIABLE, "en")
    english = run_here(monkeypatch, capsys, "status", "--project", tmp_path)
    assert "cause config.epsilon: epsilon is 1e-05 in the reference, 0.001 in the port" in english.out


def test_errors_of_the_plan_are_told_in_chinese(tmp_path, monkeypatch, capsys):
    toy(tmp_path)
    plan = tmp_path / "parfocal.toml"
    plan.write_text("colour = 3\n" + plan.read_text())
    monkeypatch.setenv(VARIABLE, "zh")
    result = run_here(monkeypatch, capsys, "check", "--project", tmp_path)
    assert result.status == 2
    assert "parfocal.toml:1: colour 不是已知的键" in result.err
    assert "提示：此处可用：" in result.err
