"""Reports and plans between the cells of a notebook."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from xml.etree import ElementTree

from parfocal.weights.plan import Entry, Leftover, Plan
from parfocal.workflow.progress import telling_progress
from tests.unit.report.reports import CAUSE, divergence, report

RUDE = "<script>alert(1)</script>"


def read(html: str) -> ElementTree.Element:
    """Well-formed, whatever is in it."""
    return ElementTree.fromstring(html.replace("<br>", "<br/>"))


def test_a_report(monkeypatch):
    bad = report(divergence(cause=CAUSE), divergence("x", what=RUDE), divergence("y", inherited=True))
    words = "".join(read(bad._repr_html_()).itertext())
    for each in ("DIFFERENT", "blocks.1.norm", CAUSE.code, CAUSE.message, CAUSE.fix, RUDE, str(bad)):
        assert each in words
    assert "SAME" in "".join(read(report()._repr_html_()).itertext())
    monkeypatch.setenv("PARFOCAL_LANG", "zh")
    assert "不一致" in "".join(read(bad._repr_html_()).itertext())


def test_a_plan():
    plan = Plan(
        (Entry("a.weight", RUDE, (), (), "transposed", (3, 8), (8, 3), ("same name",)),),
        (Leftover("extra", (2,), "nothing is left for it"),),
    )
    element = read(plan._repr_html_())
    assert [cell.text for cell in element.iter("td")] == [
        "a.weight",
        "3×8",
        RUDE,
        "8×3",
        "transposed",
        "same name",
    ]
    assert "unmatched in the reference: extra [2]: nothing is left for it" in "".join(element.itertext())
    many = Plan(tuple(Entry(f"a{n}", f"b{n}") for n in range(300)))
    assert "... and 100 more" in many._repr_html_()


def test_progress_below_a_cell(monkeypatch):
    told: list[str] = []
    shell = SimpleNamespace(kernel=object())
    shown = SimpleNamespace(update=lambda data, raw: told.append(data["text/plain"]))
    display = SimpleNamespace(display=lambda data, raw, display_id: shown)
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    with telling_progress(None) as tell:
        tell("pairing")
    assert told == ["pairing ...", ""]
    with telling_progress(False) as tell:
        tell("pairing")
    assert len(told) == 2
