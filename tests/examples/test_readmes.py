"""Every command of the examples' READMEs runs and prints what they show, on less data."""

from __future__ import annotations

import pytest

from parfocal.workflow.guide.steps import STEPS
from tests.examples.walkthrough import (
    BLOCK,
    EXAMPLES,
    Command,
    Finished,
    assert_shown,
    change_values,
    commands,
    copy_example,
    run,
)

LABELS = tuple(step.label for step in STEPS)  # how a line of the table begins
# Smaller than in the README: what the scripts make, and what the plans ask for.
SMALLER = {
    "alexnet": (
        {"make_pictures.py": {"default=64": "default=8", "default=25": "default=4"}},
        {"epochs": "1", "lockstep": "2", "seeds": "3", "updates": "3", "within": "1.0"},
    ),
    "action_recognition": (
        {"train_reference.py": {"default=8": "default=2"}, "make_clips.py": {"default=32": "default=8"}},
        {"seeds": "2"},
    ),
}
FAILING = "parfocal check --project mistaken.toml"
DIAGNOSES = {
    "alexnet": (
        "    cause optim.momentum: momentum is 0.9 in the reference and 0 in the port",
        "    fix   write paddle.optimizer.Momentum(..., momentum=0.9)",
    ),
    "action_recognition": (
        "    fix   later = paddle.concat([nothing, x[:, :-1, 2:4]], axis=1)  # network_paddle_mistaken.py:43",
        "    fix   later = paddle.concat([nothing, x[:, :-1, 4:8]], axis=1)  # network_paddle_mistaken.py:43",
    ),
}


@pytest.mark.parametrize("name", SMALLER)
def test_the_commands_of_the_readme_print_what_it_shows(tmp_path, name):
    folder = copy_example(name, tmp_path / name)
    scripts, values = SMALLER[name]
    for script, changes in scripts.items():
        text = (folder / script).read_text()
        for old, new in changes.items():
            assert text.count(old) == 1
            text = text.replace(old, new)
        (folder / script).write_text(text)
    for plan in ("parfocal.toml", "mistaken.toml"):
        change_values(folder / plan, **values)

    found = list(commands(folder / "README.md"))
    assert [each.line for each in found].count(FAILING) == 1
    for command in found:
        finished = run(command.line, folder)
        assert finished.status == (1 if command.line == FAILING else 0), "\n".join(finished.printed)
        assert_shown(command, finished, LABELS)
        if command.line == FAILING:
            assert set(DIAGNOSES[name]) <= set(finished.printed)


@pytest.mark.parametrize("name", SMALLER)
def test_the_chinese_readme_has_the_same_commands_and_output(name):
    english, chinese = (
        (EXAMPLES / name / file).read_text(encoding="utf-8") for file in ("README.md", "README.zh.md")
    )
    assert BLOCK.findall(english)
    assert BLOCK.findall(chinese) == BLOCK.findall(english)


@pytest.mark.parametrize("name", SMALLER)
def test_both_plans_differ_in_one_line_of_the_port(name):
    right, wrong = (
        [line for line in (EXAMPLES / name / plan).read_text().splitlines() if not line.startswith("#")]
        for plan in ("parfocal.toml", "mistaken.toml")
    )
    (changed,) = (pair for pair in zip(right, wrong, strict=True) if pair[0] != pair[1])
    assert "port_side.py:" in changed[0]
    assert "mistaken_side.py:" in changed[1]


def test_a_line_that_is_not_printed_is_noticed():
    printed = Finished("parfocal check", 0, ("checkpoint forward     green", "checkpoint metric      red"))
    assert_shown(Command("parfocal check", ("checkpoint metric red",)), printed, LABELS)
    with pytest.raises(AssertionError, match="does not print 'checkpoint metric green'"):
        assert_shown(Command("parfocal check", ("checkpoint metric green",)), printed, LABELS)
    with pytest.raises(AssertionError, match="does not print"):
        assert_shown(
            Command("parfocal check", ("checkpoint metric red", "checkpoint forward green")), printed, LABELS
        )
