"""The guide's commands in Chinese: what the processes of the sides say is translated, JSON stays English."""

from __future__ import annotations

import ast
import json
import re

from parfocal.phrases import VARIABLE
from parfocal.workflow.guide.settings import FILE, tomllib
from parfocal.workflow.guide.starting import ADAPTERS
from tests.cli.command import run_here
from tests.guide.bugs import BUGS
from tests.guide.projects import toy

DOCUMENTED = (ast.Module, ast.FunctionDef, ast.ClassDef)
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
        "3.1 模型结构对齐 model 失败（同一进程）：",
        "3.3 评估指标对齐 metric",
        "原因（config.epsilon）：epsilon 在参考模型中为 1e-05，在移植模型中为 0.001",
        "需要 model（失败）",
        "验收点 forward     未通过",
        "下一步：按上面给出的修改改正 model，再运行 parfocal check",
    ):
        assert told in first.out
    lines = first.out.replace(str(tmp_path), "").splitlines()
    code = [line for line in lines if "修改：self.norm" in line]
    assert len(code) == 1
    assert [line for line in lines if line not in code and WORDS.search(line)] == []
    again = run_here(monkeypatch, capsys, "status", "--project", tmp_path)
    assert "原因（config.epsilon）：epsilon 在参考模型中为 1e-05" in again.out
    machine = run_here(monkeypatch, capsys, "status", "--project", tmp_path, "--json")
    problem = json.loads(machine.out)["steps"][0]["problems"][0]
    assert problem["message"].startswith("epsilon is 1e-05 in the reference, 0.001 in the port")
    monkeypatch.setenv(VARIABLE, "en")
    english = run_here(monkeypatch, capsys, "status", "--project", tmp_path)
    assert "cause config.epsilon: epsilon is 1e-05 in the reference, 0.001 in the port" in english.out


def test_a_project_is_begun_and_handed_in_in_chinese(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv(VARIABLE, "zh")
    assert run_here(monkeypatch, capsys, "init", tmp_path / "port").status == 0
    for name in ("reference_side.py", "port_side.py"):
        tree = ast.parse((tmp_path / "port" / name).read_text(encoding="utf-8"))
        told = [ast.get_docstring(each) for each in ast.walk(tree) if isinstance(each, DOCUMENTED)]
        assert [each for each in told if each and WORDS.search(each)] == []
        assert "3.4：要最小化的一个数。" in told
    found = run_here(monkeypatch, capsys, "check", "model", "--project", tmp_path / "port")
    assert found.status == 0
    handed_in = run_here(monkeypatch, capsys, "accept", "--partial", "--project", tmp_path / "port")
    assert handed_in.status == 0, handed_in.err
    report = (tmp_path / "port" / "acceptance" / "report.txt").read_text(encoding="utf-8")
    assert report.startswith("这是提交的一部分，不含 metric、loss、bp_align、train_align。")
    assert "3.1 模型结构对齐 model" in report
    assert "验收点 forward：通过" in report
    names = re.sub(r"\b(num_batches_tracked|momentum=None|[a-z]+_[a-z_]+)\b", "", report)
    assert [line for line in names.splitlines() if WORDS.search(line)] == []


def test_a_project_is_the_same_code_in_both_languages(tmp_path, monkeypatch, capsys):
    codes = []
    for language in ("en", "zh"):
        monkeypatch.setenv(VARIABLE, language)
        run_here(monkeypatch, capsys, "init", tmp_path / language)
        trees = [ast.parse((tmp_path / language / name).read_text()) for name in ADAPTERS.values()]
        for each in (node for tree in trees for node in ast.walk(tree) if isinstance(node, DOCUMENTED)):
            if ast.get_docstring(each) is not None:
                each.body = each.body[1:]
        plan = tomllib.loads((tmp_path / language / FILE).read_text(encoding="utf-8"))
        codes.append(([ast.dump(tree) for tree in trees], plan))
    assert codes[0] == codes[1]


def test_errors_of_the_plan_are_told_in_chinese(tmp_path, monkeypatch, capsys):
    toy(tmp_path)
    plan = tmp_path / "parfocal.toml"
    plan.write_text("colour = 3\n" + plan.read_text())
    monkeypatch.setenv(VARIABLE, "zh")
    result = run_here(monkeypatch, capsys, "check", "--project", tmp_path)
    assert result.status == 2
    assert "parfocal.toml:1: colour 不是已知的键" in result.err
    assert "提示：此处可用：" in result.err
