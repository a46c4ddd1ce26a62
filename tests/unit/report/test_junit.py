"""Reports as JUnit XML, read back by an XML parser."""

from __future__ import annotations

from xml.etree import ElementTree

from parfocal.report.coverage import Compared, Coverage, LeftOut, Reason
from parfocal.report.junit import to_junit
from tests.unit.report.reports import CAUSE, divergence, report


def test_mistakes_fail_and_what_was_compared_passes():
    left = Coverage((Compared("calls", 4, 4),), (LeftOut("buffers", Reason.NOT_ASKED),))
    bad = report(
        divergence(cause=CAUSE),
        divergence("other", cause=CAUSE),
        divergence("d", inherited=True),
        coverage=left,
    )
    root = ElementTree.fromstring(to_junit({"bad": bad, "good": report()}))
    first, second = root.findall("testsuite")
    assert dict(first.items()) == {
        "name": "bad", "tests": "3", "failures": "1", "errors": "0", "skipped": "1",
    }  # fmt: skip
    failure = first.find("testcase/failure")
    assert failure is not None
    assert failure.get("message") == "forward, blocks.1.norm: output 0, 123x the noise"
    assert CAUSE.fix in (failure.text or "")
    assert "the same in other" in (failure.text or "")
    skipped = first.find("testcase/skipped")
    assert skipped is not None
    assert skipped.get("message") == "buffers (not asked for)"
    assert (second.get("failures"), second.get("tests")) == ("0", "3")


def test_names_that_xml_cannot_hold():
    text = to_junit({"a\x00b\ud800": report(divergence("<script>\x1b[31m&", what="\x08"))})
    suite = ElementTree.fromstring(text.encode()).find("testsuite")
    assert suite is not None
    assert suite.get("name") == "a?b?"
    case = suite.find("testcase")
    assert case is not None
    assert case.get("name") == "forward: <script>?[31m&: ?"
