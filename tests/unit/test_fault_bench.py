"""The bookkeeping of the fault benchmark: right answers count, and every way of being wrong is seen."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest
from benchmarks.faults import running
from benchmarks.faults.fault import Fault, Guilt, layer, line, marked_lines
from benchmarks.faults.page import page
from benchmarks.faults.scoring import (
    CRASHED,
    DIFFERS,
    SAME,
    Answer,
    Blame,
    Case,
    Result,
    judge,
    record,
)

SETTING = Fault("net epsilon", layer("block.norm", "config.epsilon"))
CODE = Fault("net residual", line("block", "op.extra", "op.scale"))
BOTH = Fault("net both", (Guilt("block.norm", ("config.epsilon",)), Guilt("head", ("op.bias",))))
NOTE = Fault("net variance", layer("norm", "buffer.running_variance"), mode="train", finding=True)


def _lines(mark: str) -> list[tuple[str, int]]:
    assert mark == "net residual"
    return [("/somewhere/net.py", 7), ("/somewhere/net.py", 8)]


def _answer(*blames: Blame) -> Answer:
    return Answer(DIFFERS, blames)


def _told(fault: Fault, *blames: Blame) -> tuple[bool, bool, bool]:
    score = judge(fault, _answer(*blames), _lines)
    return score.detected, score.located, score.named


def test_the_right_layer_and_cause_count() -> None:
    assert _told(SETTING, Blame("block.norm", code="config.epsilon")) == (True, True, True)


@pytest.mark.parametrize("path", ["block", "block.norm.inner", "block.norm2", "", "norm"])
def test_another_layer_is_not_located(path: str) -> None:
    score = judge(SETTING, _answer(Blame(path, code="config.epsilon")), _lines)
    assert (score.detected, score.located, score.named) == (True, False, False)
    assert score.strays == (path,)


def test_the_guilty_layer_has_to_come_first() -> None:
    score = judge(SETTING, _answer(Blame("stem"), Blame("block.norm", code="config.epsilon")), _lines)
    assert (score.located, score.named, score.strays) == (False, True, ("stem",))


@pytest.mark.parametrize("code", ["", "config.momentum"])
def test_a_missing_or_wrong_cause_is_not_named(code: str) -> None:
    assert _told(SETTING, Blame("block.norm", code=code)) == (True, True, False)


def test_an_alternative_is_not_the_cause() -> None:
    blame = Blame("block.norm", code="op.scale", alternatives=("config.epsilon",))
    assert _told(SETTING, blame) == (True, True, False)


def test_a_line_has_to_be_the_marked_one() -> None:
    right = Blame("block", "/somewhere/net.py", 8, "op.scale")
    assert _told(CODE, right) == (True, True, True)
    assert _told(CODE, Blame("block", "/somewhere/net.py", 9, "op.scale")) == (True, False, True)
    assert _told(CODE, Blame("block", "/elsewhere/net.py", 8, "op.scale")) == (True, False, True)
    assert _told(CODE, Blame("block.norm", "/somewhere/net.py", 8, "op.scale")) == (True, False, False)


def test_of_several_mistakes_every_one_counts() -> None:
    first, second = Blame("block.norm", code="config.epsilon"), Blame("head", code="op.bias")
    assert _told(BOTH, first, second) == (True, True, True)
    assert _told(BOTH, second, first) == (True, True, True)
    assert _told(BOTH, first) == (True, False, False)
    assert _told(BOTH, first, Blame("head")) == (True, True, False)


def test_a_mistake_between_two_layers_is_either_one() -> None:
    fault = Fault("net tie", (Guilt("head", ("weight.tied",), other="embed"),))
    assert _told(fault, Blame("embed", code="weight.tied")) == (True, True, True)
    assert _told(fault, Blame("norm", code="weight.tied")) == (True, False, False)


def test_silence_and_crashes_are_misses() -> None:
    silent, crashed = judge(SETTING, Answer(SAME)), judge(SETTING, Answer(CRASHED, message="TypeError: no"))
    assert (silent.detected, silent.crashed, silent.missed) == (False, False, ["not detected"])
    assert (crashed.detected, crashed.crashed, crashed.missed) == (False, True, ["crashed"])


def test_a_convention_is_noted_without_an_alarm() -> None:
    assert judge(NOTE, Answer(SAME, findings=("buffer.running_variance",))).named
    assert not judge(NOTE, Answer(SAME)).detected
    alarm = Answer(DIFFERS, (Blame("norm", code="buffer.running_variance"),), ("buffer.running_variance",))
    assert not judge(NOTE, alarm).detected


def test_correct_cases_count_alarms_and_crashes_apart() -> None:
    result = Result("parfocal")
    assert record(result, Case("net"), None, Answer(SAME, seconds=0.5)) == ""
    assert "FALSE ALARM" in record(result, Case("net", seed=1), None, _answer(Blame("norm")))
    record(result, Case("net", seed=2), None, Answer(CRASHED, message="killed"))
    assert (result.correct, len(result.alarms), len(result.crashes)) == (3, 1, 1)
    assert result.alarms[0][0] == "net, correct, eval, seed 1"
    assert result.seconds == 0.5


def test_a_detected_fault_counts_for_more_when_its_twin_passes() -> None:
    result = Result("parfocal")
    found = _answer(Blame("block.norm"))
    for mode in ("eval", "keep", "train"):
        record(result, Case("net", mode, fault=SETTING.name), SETTING, found)
    record(result, Case("net", "eval", fault=SETTING.name), SETTING, Answer(SAME))
    record(result, Case("net", "eval", 1), None, Answer(SAME))
    assert result.told_apart == 0
    record(result, Case("net", "eval"), None, Answer(SAME))
    record(result, Case("net", "train"), None, found)
    assert result.told_apart == 2


def test_sums_by_code_and_misses_are_on_the_page() -> None:
    result = Result("parfocal")
    record(
        result, Case("net", fault=SETTING.name), SETTING, _answer(Blame("block.norm", code="config.epsilon"))
    )
    record(result, Case("net", fault="net other"), Fault("net other", SETTING.guilts), Answer(SAME))
    tally = result.by_code()["config.epsilon"]
    assert (tally.faults, tally.detected, tally.located, tally.named) == (2, 1, 1, 1)
    gone = Result("padiff", missing="pip install padiff==0.2.0: ERROR")
    text = page([result, gone], {"faults": 2, "pairs": 1, "twins": 0, "rewritings": 0})
    assert "| parfocal | 1 of 2 | 0 of 2 | 1 of 2 | 1 of 2 |" in text
    assert "- **net other** (`config.epsilon`): not detected. It says: same" in text
    assert "**net epsilon**" not in text
    assert "not run: pip install padiff==0.2.0: ERROR" in text


def test_what_a_wrong_pair_costs_is_on_the_page() -> None:
    result = Result("parfocal")
    for name, cost in (("net one", 1.5), ("net two", 4.25), ("net three", 0.0)):
        answer = replace(_answer(Blame("block.norm", code="config.epsilon")), cost=cost)
        record(result, Case("net", fault=name), Fault(name, SETTING.guilts), answer)
    text = page([result], {"faults": 3, "pairs": 1, "twins": 0, "rewritings": 0})
    assert "| `config.epsilon` | 3 | 3 | 3 | 3 | 2.9x | 4.2x |" in text
    assert "2.88x in the median, 4.25x at most" in text
    assert text.index("| net two | `config.epsilon` | 4.25x |") < text.index("| net one |")
    assert "| net three |" not in text  # was not measured


def test_answers_survive_their_file() -> None:
    answer = Answer(DIFFERS, (Blame("a", "b.py", 3, "op.scale", "x", ("op.bias",)),), ("note",), "m", 1.5)
    assert Answer.from_json(answer.to_json()) == answer


def test_marks_name_whole_statements(tmp_path: Path) -> None:
    source = (
        "def f(x):\n    # guilty: net one\n    y = sum(\n        x\n    )\n    return y  # guilty: net one\n"
    )
    (tmp_path / "net.py").write_text(source, encoding="utf-8")
    file = str(tmp_path / "net.py")
    assert marked_lines("net one", tmp_path) == ((file, 3), (file, 4), (file, 5))
    with pytest.raises(LookupError, match="net two"):
        marked_lines("net two", tmp_path)


def test_an_extreme_of_rounding_reaches_parfocal_and_no_other_tool(monkeypatch) -> None:
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(("/an/extreme", "/more")))
    assert running._environment("parfocal")["PYTHONPATH"].startswith("/an/extreme:/more:")
    assert "/an/extreme" not in running._environment("padiff")["PYTHONPATH"]
    monkeypatch.delenv("PYTHONPATH")
    assert not running._environment("parfocal")["PYTHONPATH"].startswith(":")
