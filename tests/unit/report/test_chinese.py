"""A report in Chinese: whole texts pinned, and no line wider than the terminal."""

from __future__ import annotations

import json

import pytest

from parfocal.columns import width_of, wrapped
from parfocal.phrases import phrase
from parfocal.report.coverage import Compared, Coverage, LeftOut, Reason
from parfocal.report.report import Report
from tests.unit.report.reports import COVERAGE, divergence, report, site

DIFFERENT = """\
不一致：Net (paddle 3.3.1) 对比 Net (torch 2.13.0)

首个差异：前向、blocks.1.norm：output 0，为噪声的 123 倍
  参考模型   blocks.1.norm  LayerNorm  models/net.py:12
  移植模型   blocks.1.norm  LayerNorm  models/net.py:34
  设置       epsilon：参考模型为 1e-05，移植模型为 1e-06
  误差       float32 2x4：均方根 0.0884，相对 0.135，噪声 1e-07
  最大偏差   0.25，位于 [1, 2]：参考模型 0.714285731，移植模型 0.964285731

另有：反向、d：output 0，为噪声的 7 倍
传播所致：另有 1 处差异由上述各处差异引起
偏差走势   ▂▂▂▂ 最大 1.0e-07
产生于此     ^^
已比较     4 个调用中的 4 个（100%）、20 个张量、6 个参数梯度、前向和反向
           自身误差最大为噪声的 100 倍，允许 4 倍
下一步：查看 models/net.py:34 并修改，然后重新对齐"""


def example() -> Report:
    other = divergence("d", score=7.0, phase="backward")
    return report(divergence(), other, divergence("e", score=9.0, inherited=True))


def test_the_whole_text():
    assert example().text(language="zh") == DIFFERENT


def test_the_language_of_the_terminal(monkeypatch):
    monkeypatch.setenv("PARFOCAL_LANG", "zh_CN")
    assert str(example()) == DIFFERENT
    assert example().text(language="en").startswith("DIFFERENT: ")


def test_a_report_that_was_read_back_can_be_translated():
    left = LeftOut(phrase("parameters"), Reason.UNPAIRED, where=("a", ""))
    first = report(
        divergence(message=phrase("the model"), what=phrase("gradients")),
        coverage=Coverage((*COVERAGE.compared, Compared("batches", 1)), (left,)),
        unpaired_port=(site("x"),),
    )
    again = Report.from_json(json.loads(json.dumps(first.to_json())))
    assert again.text(language="zh", verbose=True) == first.text(language="zh", verbose=True)
    assert "首个差异：前向、blocks.1.norm：梯度，为噪声的 123 倍" in again.text(language="zh")
    assert again.text() == first.text()


def test_a_path_that_is_a_word_is_not_translated():
    first = report(divergence("loss", what=phrase("loss")))
    again = Report.from_json(json.loads(json.dumps(first.to_json())))
    assert "首个差异：前向、loss：损失" in again.text(language="zh")


@pytest.mark.parametrize("width", [40, 80])
def test_lines_are_broken_by_the_columns_they_take(width):
    text = "  原因       " + "参考模型中 epsilon 为 1e-05（blocks.1.norm），移植模型为 1e-06；" * 4
    lines = wrapped(text, width, 13)
    assert max(map(width_of, lines)) <= width
    assert "".join(line.strip() for line in lines).replace(" ", "") == text.replace(" ", "")
    assert all(line.startswith(" " * 13) for line in lines[1:])
    assert not any(line.strip()[0] in "，；：）" for line in lines)
    assert not any(line.endswith("（") for line in lines)
    assert all(width_of(line) > width - 20 for line in lines[:-1])  # filled


def test_a_word_that_is_longer_than_a_line():
    lines = wrapped("路径 " + "x" * 100, 40, 4)
    assert max(map(width_of, lines)) <= 40
    assert "".join(line.strip() for line in lines) == "路径" + "x" * 100


def test_the_columns_of_text():
    assert width_of("abc") == 3
    assert width_of("原因：") == 6
    assert width_of("e\u0301") == 1
