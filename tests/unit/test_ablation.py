"""The harness that switches entries of tables off, one at a time, and scales deciding numbers."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest
from benchmarks.ablation import __main__ as ablation
from benchmarks.ablation import switches

from parfocal.explain import rates
from parfocal.judge.limits import Limit

ROOT = Path(__file__).parents[2]
PROGRAM = """
from parfocal.explain import explainer
from parfocal.explain.layers import settings
from parfocal.judge import limits
rounds = [each for each in explainer.ROUNDS["forward"]]
print(rounds[0][0] is settings.differing_settings, list(rounds[0][0](None)) if rounds[0][0] is not
      settings.differing_settings else "", limits.verdicts.CALL.value)
"""


def run(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "benchmarks.ablation", *words, "--", sys.executable, "-c", PROGRAM]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def test_an_entry_is_off_in_a_command_and_what_it_starts() -> None:
    assert run("off", "settings.differing_settings").stdout.split() == ["False", "[]", "4.0"]
    assert run("off", "mirror.solved_setting").stdout.split() == ["True", "4.0"]


def test_a_number_is_scaled() -> None:
    assert run("off", "verdicts.CALL/4").stdout.split() == ["True", "1.0"]


def test_what_is_not_there_is_refused() -> None:
    done = run("off", "settings.no_such_rule")
    assert done.returncode == 1
    assert "no such entry or number: settings.no_such_rule" in done.stderr


def test_entries_have_names_of_their_own_and_tables_are_there() -> None:
    names = ablation.entry_names()
    assert {"settings.differing_settings", "differing.another_op", "divergences.was_told"} <= set(names)
    assert not [name for name in names if name.startswith("switches.")]
    assert len(names) > 90
    assert {"verdicts.CALL*4", "verdicts.CALL/4"} <= set(ablation.number_names())


@pytest.mark.parametrize(
    ("value", "by", "scaled"),
    [(8.0, "*4", 32.0), (8.0, "/4", 2.0), (3, "/4", 1), (3, "*2", 6), ((2.0, 8.0), "/2", (1.0, 4.0))],
)
def test_numbers_stay_of_their_kind(value, by: str, scaled) -> None:
    module = ModuleType("parfocal.judge.limits.verdicts")
    module.CALL = Limit(value)
    switches.switched(module, f"off:verdicts.CALL{by}")
    assert module.CALL.value == scaled
    assert type(module.CALL.value) is type(scaled)


def test_what_speaks_is_counted(tmp_path) -> None:
    def speaks(count: int):
        yield from range(count)

    module = SimpleNamespace(__name__=rates.__name__, HYPOTHESES=(speaks,))
    switches.switched(module, f"count:{tmp_path}")
    for count in (2, 0, 1):
        assert list(module.HYPOTHESES[0](count)) == list(range(count))
    (asked, spoke) = [*ablation._read(tmp_path)][1]
    assert spoke == {"test_ablation.speaks": 2}
    assert asked["test_ablation.speaks"] == 3


def test_times_are_no_difference() -> None:
    lines = ["a wrong pair costs 1.85x its twin; 63 s", "a wrong pair costs 2.1x its twin; 7 s"]
    assert len({ablation.TIMES.sub("", each) for each in lines}) == 1
