"""A report read back from its JSON: the same report, or an error that names the place."""

from __future__ import annotations

import dataclasses
import json
import math
from dataclasses import fields, is_dataclass
from typing import Any, get_args, get_origin, get_type_hints

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parfocal.errors import FileFormatError, StorageError
from parfocal.judge.tolerance import Tolerance
from parfocal.judge.verdict import Cause, Grounds, Proof, ProvenBy, SettingDifference, Site
from parfocal.report.coverage import Compared, Coverage, LeftOut, Reason
from parfocal.report.json_reader import load_report
from parfocal.report.report import NOT_IN_JSON, Curve, DepthPoint, Report
from parfocal.weights.plan import Basis, Entry, Plan, PlanNote, Presumption
from parfocal.weights.views import transpose
from tests.unit.report.reports import CAUSE, NOTE, divergence, report


def through_json(original: Report) -> Report:
    return Report.from_json(json.loads(json.dumps(original.to_json(), allow_nan=False)))


PLAN = Plan(
    entries=(
        Entry("a.weight", "b.weight", (transpose(1, 0),), (), "transposed", (3, 4), (4, 3), ("name",), 0.5),
    ),
    presumed=(Presumption(("b.weight",), ("a.weight",), "the first", Basis.NEAREST),),
    noted=(
        PlanNote("a note"),
        PlanNote("n epsilon", SettingDifference("epsilon", "1e-05", "1e-06")),
        PlanNote("first difference: n", is_first_difference=True),
    ),
    verified=False,
)
WHOLE = report(
    divergence(score=math.inf, cause=CAUSE, step=3, rank=1),
    divergence("d", inherited=True, error=None, reference=None),
    findings=(NOTE, dataclasses.replace(NOTE, setting=SettingDifference("stride", "1", "2"))),
    transfer=PLAN,
    tolerance=Tolerance(1e-3, 1e-5),
    curves=(Curve("loss", (1.0, math.inf), (1.0, 0.5)),),
    scale="growth",
    unpaired_port=(Site("x", "ReLU", "relu", "net.py", 3, {"pads": (1, (2, 3)), "mode": "same"}),),
    coverage=Coverage(
        (Compared("calls", 4, 4),), (LeftOut("state", Reason.UNSEEN, "", ("a",)),), ("forward",), "eval"
    ),
)


def test_a_report_survives_its_json():
    again = through_json(WHOLE)
    assert again == WHOLE
    assert again.text(verbose=True) == WHOLE.text(verbose=True)
    assert through_json(report()) == report()


TOLD, UNTOLD = (f"epsilon: 1e-05 in the reference, {value} in the port" for value in ("1e-06", "0.1"))
FORMER = f"""
"findings": [
 {{"code": "transfer", "message": "d {UNTOLD}", "setting": "{UNTOLD}", "diverged": false}},
 {{"code": "transfer", "message": "blocks.1.norm {TOLD}", "setting": "{TOLD}", "diverged": false}},
 {{"code": "transfer", "message": "another", "setting": "", "diverged": false}}
],
"transfer": {{
 "entries": [], "unmatched_reference": [], "unmatched_port": [], "ambiguous": [], "presumed": [],
 "permuted": [], "idle_reference": [], "idle_port": [],
 "notes": ["blocks.1.norm {TOLD}", "first difference: outside of all linked modules"],
 "verified": false,
 "first_difference": "first difference: outside of all linked modules",
 "settings": [{{"difference": "{TOLD}", "message": "blocks.1.norm {TOLD}"}}]
}},
"phrases": {{
 "{TOLD}": {{
  "template": "{{name}}: {{reference}} in the reference, {{port}} in the port",
  "values": {{"name": "epsilon", "reference": "1e-05", "port": "1e-06"}}
 }},
 "{UNTOLD}": {{
  "template": "{{name}}: {{reference}} in the reference, {{port}} in the port",
  "values": {{"name": "epsilon", "reference": "1e-05", "port": "0.1"}}
 }}
}}
"""  # as they were written when a note was found by its sentence


def test_a_report_with_sentences_for_facts_is_read():
    read = Report.from_json({**report(divergence()).to_json(), **json.loads(f"{{{FORMER}}}")})
    assert [each.setting for each in read.findings] == [
        SettingDifference("epsilon", "1e-05", "0.1"),
        SettingDifference("epsilon", "1e-05", "1e-06"),
        None,
    ]
    assert [line for line in str(read).splitlines() if line.startswith("note")] == [
        f"note: d {UNTOLD}",
        "note: another",
    ]
    assert read.transfer.noted == (
        PlanNote(f"blocks.1.norm {TOLD}"),
        PlanNote("first difference: outside of all linked modules", is_first_difference=True),
    )
    assert through_json(read) == read


def test_a_cause_of_a_version_that_wrote_a_score_alone_is_read_as_likely() -> None:
    plain = report(divergences=(divergence(cause=CAUSE),)).to_json()
    written = json.loads(json.dumps(plain))
    cause = written["divergences"][0]["cause"]
    del cause["proof"], cause["rests_on"]
    cause["score_after"] = 0.0
    read = Report.from_json(written).divergences[0].cause
    assert read == dataclasses.replace(CAUSE, proof=None, rests_on=Grounds.NOT_SAID)


names = st.text(max_size=12)
numbers = st.floats(allow_nan=False)
settings = st.dictionaries(
    names, st.one_of(st.none(), st.booleans(), st.integers(), names, st.tuples(st.integers()))
)
sites = st.builds(
    Site, names, names, st.none() | names, st.none() | names, st.none() | st.integers(0, 9999), settings
)
shown = st.one_of(
    st.tuples(st.builds(Proof, st.sampled_from(ProvenBy), numbers, numbers), st.none()),
    st.tuples(st.none(), st.sampled_from(Grounds)),
)
causes = st.builds(
    lambda code, message, fix, proof_or_basis: Cause(code, message, fix, *proof_or_basis, (CAUSE,)),
    st.sampled_from(["config.epsilon", "op.mask"]),
    names,
    names,
    shown,
)


@given(
    site=sites,
    cause=st.none() | causes,
    score=numbers,
    along=st.lists(st.builds(DepthPoint, names, numbers, numbers), max_size=3),
    curve=st.builds(Curve, names, st.tuples(numbers), st.tuples(numbers)),
)
def test_any_names_and_numbers_survive(site, cause, score, along, curve):
    made = report(
        divergence(reference=site, cause=cause, score=score),
        along=tuple(along),
        curves=(curve,),
        unpaired_port=(site,),
    )
    assert through_json(made) == made


def test_every_type_of_a_field_is_one_that_can_be_read():
    """A new field of a type that the reader does not know shows here and not in a user's file."""
    seen: set[Any] = set()
    _walk(Report, seen)
    assert {Site, Plan, Coverage, DepthPoint, Entry} <= seen


def _walk(kind: Any, seen: set[Any]) -> None:
    if kind in seen or kind in (Ellipsis, type(None), Any):
        return
    if is_dataclass(kind):
        seen.add(kind)
        hints = get_type_hints(kind)
        for item in fields(kind):
            if item.name not in NOT_IN_JSON:
                _walk(hints[item.name], seen)
        return
    for argument in get_args(kind) if get_origin(kind) is not None and "Literal" not in str(kind) else ():
        _walk(argument, seen)
    if isinstance(kind, type) and not get_args(kind):
        assert kind in (str, int, float, bool, complex) or hasattr(kind, "__members__"), kind


def changed(**changes: Any) -> dict[str, Any]:
    return {**json.loads(json.dumps(WHOLE.to_json())), **changes}


NO_SUCH = {"code": "no.such", "message": "", "fix": "", "proof": None, "rests_on": "settings"}
WRONG = {
    "a list": ([1], "it is [1], and should be an object with the fields of a report"),
    "no schema": ({"ok": True}, "is no report: it has no field 'schema' among ok"),
    "another schema": (changed(schema=7), "schema is 7, and this parfocal reads 1"),
    "a text for a number": (changed(limit="much"), "limit is 'much', and should be a number"),
    "true for a number": (changed(limit=True), "limit is True, and should be a number"),
    "another scale": (changed(scale="x"), "scale is 'x', and should be one of 'noise', 'growth'"),
    "no list": (changed(along={}), "along is {}, and should be a list"),
    "an unknown field": (changed(colour=1), "there is no field 'colour'"),
    "a missing field": (
        changed(along=[{"path": "a", "own": 1.0}]),
        "along[0]: the field 'carried' is missing",
    ),
    "notes that are no list": (
        changed(transfer={"notes": 1}),
        "transfer: there is no field 'notes'",
    ),
    "no reason": (
        changed(coverage={"left_out": [{"what": "x", "reason": "mood"}]}),
        "coverage.left_out[0].reason is 'mood', and should be one of 'only_reference', 'only_port'",
    ),
    "no cause code": (
        changed(divergences=[{**changed()["divergences"][0], "cause": NO_SUCH}]),
        "divergences[0].cause: there is no cause code 'no.such'",
    ),
    "a negative tolerance": (changed(tolerance={"rtol": -1.0}), "tolerance: Tolerance: rtol must be finite"),
    "a verdict that is not its own": (changed(ok=True), "ok is True, and there are 2 divergences"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_said_with_its_place(name):
    data, message = WRONG[name]
    with pytest.raises(FileFormatError) as caught:
        Report.from_json(data)
    assert message in str(caught.value)


def test_a_report_of_nothing_is_no_report():
    empty = {**report().to_json(), "coverage": {}}
    with pytest.raises(Exception, match="nothing of"):
        Report.from_json(empty)


def test_files(tmp_path):
    WHOLE.save(tmp_path)
    assert Report.load(tmp_path) == Report.load(tmp_path / "report.json") == WHOLE
    (tmp_path / "cut.json").write_text('{"schema": 1,')
    with pytest.raises(FileFormatError, match=r"cut.json is no JSON: line 1, column 14"):
        load_report(tmp_path / "cut.json")
    (tmp_path / "deep.json").write_text("[" * 100_000)
    with pytest.raises(FileFormatError, match=r"deep.json is no JSON"):
        load_report(tmp_path / "deep.json")
    (tmp_path / "bytes.json").write_bytes(b"\xff\xfe")
    with pytest.raises(FileFormatError, match=r"byte 0 is no UTF-8"):
        load_report(tmp_path / "bytes.json")
    with pytest.raises(StorageError, match="No such file"):
        load_report(tmp_path / "none.json")
