"""A plan: saved, read, edited, printed; a bad file is refused with the place of the mistake."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from parfocal.errors import FileFormatError, StorageError
from parfocal.judge.verdict import SettingDifference
from parfocal.weights.plan import Ambiguity, Entry, Leftover, Plan, PlanNote
from parfocal.weights.views import index, reshape, transpose

PLAN = Plan(
    entries=(
        Entry(
            "a.weight", "b.weight", (), (transpose(1, 0),), "transposed", (3, 4), (4, 3), ("same name",), 1.0
        ),
        Entry("q", "p", (reshape(2, 3), index(0, 1)), (), "interleaved", (6,), (3,), ("tried",), 0.9),
    ),
    unmatched_reference=(Leftover("x.bias", (3,), "no layer left", ("y.bias",)),),
    unmatched_port=(Leftover("z", (1,), "extra"),),
    ambiguous=(Ambiguity(("c", "d"), ("e", "f"), "same shapes"),),
    noted=(
        PlanNote("a note"),
        PlanNote("n epsilon", SettingDifference("epsilon", "1e-05", "1e-06")),
        PlanNote("first difference: n", is_first_difference=True),
    ),
    verified=False,
)


def test_there_and_back(tmp_path: Path) -> None:
    PLAN.save(tmp_path / "plan.json")
    assert Plan.load(tmp_path / "plan.json") == PLAN
    assert Plan.load(str(tmp_path / "plan.json")).complete is False


def test_only_source_and_target_are_needed(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    path.write_text(
        json.dumps({"format": "parfocal.plan", "version": 1, "entries": [{"source": "a", "target": "b"}]})
    )
    plan = Plan.load(path)
    assert plan.entries == (Entry("a", "b", rule="by hand"),)
    assert plan.complete


def test_notes_that_are_only_a_text_are_written_as_one(tmp_path: Path) -> None:
    PLAN.save(tmp_path / "plan.json")
    assert json.loads((tmp_path / "plan.json").read_text())["notes"] == [
        "a note",
        {
            "message": "n epsilon",
            "setting": {"name": "epsilon", "reference": "1e-05", "port": "1e-06"},
            "is_first_difference": False,
        },
        {"message": "first difference: n", "setting": None, "is_first_difference": True},
    ]


def test_a_file_that_names_the_first_difference_by_its_sentence_is_read(tmp_path: Path) -> None:
    (tmp_path / "plan.json").write_text(
        """{
 "format": "parfocal.plan",
 "version": 1,
 "entries": [],
 "notes": [
  "a note",
  "n LayerNorm epsilon: 1e-05 in the reference, 1e-06 in the port",
  "first difference: outside of all linked modules"
 ],
 "verified": false,
 "first_difference": "first difference: outside of all linked modules",
 "settings": [
  {
   "difference": "epsilon: 1e-05 in the reference, 1e-06 in the port",
   "message": "n LayerNorm epsilon: 1e-05 in the reference, 1e-06 in the port"
  }
 ]
}
"""
    )
    plan = Plan.load(tmp_path / "plan.json")
    assert [each.is_first_difference for each in plan.noted] == [False, False, True]
    assert str(plan).splitlines()[-3:] == [
        "note: a note",
        "note: n LayerNorm epsilon: 1e-05 in the reference, 1e-06 in the port",
        "note: first difference: outside of all linked modules",
    ]


def edited(tmp_path: Path, change: Any) -> Path:
    path = tmp_path / "plan.json"
    PLAN.save(path)
    document = json.loads(path.read_text())
    changed = change(document)
    path.write_text(json.dumps(changed if changed == [1] else document))
    return path


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: [1], r"expected an object, found \[1\]"),
        (lambda d: d.update(format="x"), "its format is 'x', expected 'parfocal.plan'"),
        (lambda d: d.update(version=2), "its version is 2, this release reads version 1"),
        (lambda d: d.pop("entries"), "the field 'entries' is missing"),
        (lambda d: d.update(entries={}), "the field 'entries' is {}, expected a list"),
        (lambda d: d.update(entries=["a"]), r"entries\[0\]: expected an object, found 'a'"),
        (lambda d: d["entries"][1].pop("target"), r"entries\[1\]: the field 'target' is missing"),
        (
            lambda d: d["entries"][1].update(targte="a"),
            r"entries\[1\]: there is no field 'targte'; the fields are",
        ),
        (
            lambda d: d["entries"][0].update(target_view=[["flip", 1]]),
            r"entries\[0\]: the field 'target_view': \['flip', 1\] is not a view step",
        ),
        (
            lambda d: d["entries"][0].update(confidence="high"),
            "'confidence' is 'high', expected a int or float",
        ),
        (lambda d: d["entries"][0].update(source_shape=[-1]), "'source_shape' must be a list of sizes"),
        (lambda d: d["entries"][0].update(evidence=[1]), "'evidence' must be a list of strings"),
        (lambda d: d.update(notes=[1]), r"notes\[0\]: expected an object, found 1"),
        (lambda d: d["notes"][1]["setting"].pop("port"), r"notes\[1\]\.setting: the field 'port' is missing"),
        (lambda d: d.update(verified="yes"), "'verified' is 'yes', expected a bool or NoneType"),
    ],
)
def test_mistakes_are_placed(tmp_path: Path, change: Any, message: str) -> None:
    with pytest.raises(FileFormatError, match=message):
        Plan.load(edited(tmp_path, change))


def test_files_that_are_no_plans(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    with pytest.raises(StorageError, match="cannot read the plan"):
        Plan.load(path)
    path.write_text('{"format": "parfocal.plan",}')
    with pytest.raises(FileFormatError, match=r"is not valid JSON: .* at line 1, column"):
        Plan.load(path)
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(FileFormatError, match="not UTF-8"):
        Plan.load(path)
    with pytest.raises(StorageError, match="cannot write the plan"):
        PLAN.save(tmp_path / "missing" / "plan.json")


def test_words() -> None:
    text = str(PLAN)
    assert "a.weight   [3, 4]  b.weight  [4, 3]  transposed   same name" in text
    assert "2 copies, incomplete; the outputs differ on the inputs" in text
    assert "unmatched in the reference: x.bias [3]: no layer left (nearest: y.bias)" in text
    assert "ambiguous: port c, d: same shapes; candidates in the reference: e, f" in text
    more = replace(PLAN, ambiguous=(*PLAN.ambiguous, Ambiguity(("g",), ("h",), "same shapes")))
    assert "ambiguous: port c, d; g: same shapes; candidates in the reference: e, f; h" in str(more)
    whole = replace(PLAN, unmatched_port=(Leftover("z", (1,), "extra", ("",)),))
    assert "unmatched in the port: z [1]: extra\n" in str(whole)
    assert "note: a note" in text
    assert "interleaved [whole <- reshape(2, 3), index(axis 0, 1)]" in PLAN.details()
    assert str(Plan()) == "nothing to copy\n0 copies, complete; not verified by running"


def test_hundreds_of_entries_are_summed_up() -> None:
    entries = tuple(
        Entry(f"blocks.{n // 10}.fc{n % 10}.weight", f"layers.{n // 10}.w{n % 10}.weight") for n in range(200)
    )
    text = str(Plan(entries))
    assert len(text.splitlines()) < 30
    assert "blocks.3.*" in text
    assert len(Plan(entries).details().splitlines()) > 200
