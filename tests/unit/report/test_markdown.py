"""A report as Markdown: what a pull request shows, whatever names its models have."""

from __future__ import annotations

from dataclasses import replace

from parfocal.report.markdown import SHOWN, escaped, to_markdown
from tests.unit.report.reports import CAUSE, divergence, report

RUDE = "a|b`c`<script>alert(1)</script>\n# @everyone *x*"


def test_the_verdict_the_mistake_and_the_fix():
    text = to_markdown(report(divergence(cause=CAUSE), divergence("d", inherited=True)))
    assert text.startswith("### parfocal: DIFFERENT\n\nNet (paddle 3.3.1) against Net (torch 2.13.0)\n")
    assert (
        "| `blocks.1.norm` | forward, blocks.1.norm: output 0, 123x the noise | `config.epsilon` epsilon"
        in text
    )
    assert f"```python\n{CAUSE.fix}\n```" in text
    assert "Further differences that follow from these: 1." in text
    assert "**Compared** 4 of 4 calls (100%), 20 tensors" in text


def test_a_pair_that_is_the_same():
    text = to_markdown(report())
    assert text.startswith("### parfocal: SAME\n")
    assert "| where |" not in text
    assert "What to write" not in text


def test_nothing_that_users_name_becomes_markup():
    cause = replace(CAUSE, message=RUDE, fix="```\n<b>")
    text = to_markdown(report(divergence(RUDE, cause=cause, what=RUDE), reference_name=RUDE))
    head, _, rest = text.partition("What to write")
    assert "<script>" not in head.replace("``", "`").replace("\\<script\\>", "").replace(_code_of(RUDE), "")
    (row,) = [line for line in head.splitlines() if line.startswith("| ``")]
    bare = row.replace("\\|", "")
    assert bare.count("|") == 4  # three cells
    assert "\n# @everyone" not in head
    assert "\\@everyone" in head
    assert "````python\n```\n<b>\n````" in rest


def _code_of(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def test_escaping_keeps_every_word():
    assert escaped("a_b [c](d) <e>") == "a\\_b \\[c\\](d) \\<e\\>"


def test_a_long_list_is_cut_where_a_comment_ends():
    many = [divergence(f"layer.{index}", what=f"output {index}") for index in range(SHOWN + 5)]
    text = to_markdown(report(*many))
    assert "| ... | 5 more | |" in text
