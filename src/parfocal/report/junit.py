"""Reports as JUnit XML: what continuous integration shows as passed, failed and left out."""

from __future__ import annotations

import re
from collections.abc import Mapping
from xml.etree import ElementTree

from parfocal.judge.verdict import Divergence
from parfocal.report.coverage import words_of
from parfocal.report.mistakes import own_mistakes
from parfocal.report.report import Report
from parfocal.report.wording import amount, cause_label, in_one_line, place_of, proof_label, proof_words

# XML 1.0 has no way to write these, escaped or not.
_IMPOSSIBLE = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")

_COUNTED = {
    "tests": "testcase",
    "failures": "testcase/failure",
    "errors": "testcase/error",
    "skipped": "testcase/skipped",
}


def to_junit(reports: Mapping[str, Report]) -> str:
    """One suite for each report: a failed case for each mistake, a passed one for each kind compared."""
    root = ElementTree.Element("testsuites", name="parfocal")
    for name, report in reports.items():
        root.append(_suite(name, report))
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _suite(name: str, report: Report) -> ElementTree.Element:
    suite = ElementTree.Element("testsuite", name=_clean(name))
    classname = _clean(f"parfocal.{report.port_name}")
    for group in own_mistakes(report.divergences):
        case = ElementTree.SubElement(suite, "testcase", classname=classname, name=_name(group[0]))
        failure = ElementTree.SubElement(case, "failure", message=_clean(in_one_line(group[0], report)))
        failure.text = _clean(_details(group))
    for compared in report.coverage.compared:
        ElementTree.SubElement(
            suite, "testcase", classname=classname, name=_clean(f"compared {amount(compared)}")
        )
    for left in report.coverage.left_out:
        case = ElementTree.SubElement(
            suite, "testcase", classname=classname, name=_clean(f"not compared: {left.what}")
        )
        ElementTree.SubElement(case, "skipped", message=_clean(words_of(left)))
    ElementTree.SubElement(suite, "system-out").text = _clean(report.text(language="en"))
    for name, pattern in _COUNTED.items():
        suite.set(name, str(len(suite.findall(pattern))))
    return suite


def _name(first: Divergence) -> str:
    return _clean(f"{first.phase}: {place_of(first)}: {first.what}")


def _details(group: list[Divergence]) -> str:
    first = group[0]
    lines = [
        f"{side}: {site.path} ({site.kind}) {site.file or ''}:{site.line or ''}".rstrip(" :")
        for side, site in (("reference", first.reference), ("port", first.port))
        if site is not None
    ]
    if first.message:
        lines.append(first.message)
    if first.cause is not None:
        label, proof = cause_label(first.cause), f"{proof_label(first.cause)}: {proof_words(first.cause)}"
        lines += [f"{label}: {first.cause.code}: {first.cause.message}", proof, f"fix: {first.cause.fix}"]
    elsewhere = sorted({place_of(each) for each in group[1:]} - {place_of(first)})
    return "\n".join([*lines, *(f"the same in {place}" for place in elsewhere)])


def _clean(text: str) -> str:
    return _IMPOSSIBLE.sub("?", text)
