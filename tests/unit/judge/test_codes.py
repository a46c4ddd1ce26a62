"""The register of cause codes: complete, used, and the source of its page."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from parfocal.judge.codes import codes, proofs
from parfocal.judge.verdict import PHASES, Cause, Grounds, Proof, ProvenBy
from parfocal.report.codes_page import TITLES, page

ROOT = Path(__file__).parents[3]
SOURCES = ROOT / "src" / "parfocal"
FINDINGS_ALONE = {"weight.idle", "weight.computed"}  # registered, and told as notes only
FILES = ("data.pkl", "data.safetensors")  # names of files that look like codes
FINDINGS = ("input.spelling", "loss.unseen", "data.dtype", "data.sorted")  # worth knowing, never a cause
WRITTEN = re.compile(rf'"((?:{"|".join(TITLES)})\.[a-z_]+)"')


def test_every_code_in_the_source_is_in_the_register() -> None:
    used = {
        code
        for file in (ROOT / "src" / "parfocal").rglob("*.py")
        for code in WRITTEN.findall(file.read_text(encoding="utf-8"))
    }
    assert used - codes().keys() - {*FILES, *FINDINGS} == set()
    assert len(used) > 60  # the pattern finds them


def test_every_code_says_what_it_means_and_where_it_occurs() -> None:
    for name, code in codes().items():
        assert re.fullmatch(r"[a-z]+\.[a-z_]+", name)
        assert code.meaning.english.endswith("."), name
        assert code.phases, name
        assert set(code.phases) <= set(PHASES), name


def test_a_cause_cannot_have_another_code() -> None:
    proof = Proof(ProvenBy.REPLAYED, 9.0, 0.0)
    assert Cause("op.mask", "", "", proof).code == "op.mask"
    with pytest.raises(ValueError, match=r"there is no cause code 'op\.masc'"):
        Cause("op.masc", "", "", proof)


def test_a_cause_states_how_it_was_proven_or_what_it_rests_on() -> None:
    proof = Proof(ProvenBy.REPLAYED, 9.0, 0.5)
    assert Cause("op.mask", "", "", proof).score_after == 0.5
    assert Cause("op.mask", "", "", None, Grounds.SETTINGS).score_after is None
    with pytest.raises(TypeError, match="proof"):
        Cause("op.mask", "", "")  # type: ignore[call-arg]
    for proof_and_basis in ((None, None), (proof, Grounds.SETTINGS)):
        with pytest.raises(TypeError, match=r"op\.mask: state either how the cause was proven or what it"):
            Cause("op.mask", "", "", *proof_and_basis)


def test_every_code_has_a_symptom_a_proof_and_a_fix() -> None:
    assert {code.proof for code in codes().values()} == proofs().keys()
    assert all(text.english.endswith(".") for text in proofs().values())
    for name, code in codes().items():
        assert all(text.english.endswith(".") for text in (code.symptom, code.fix)), name
    assert len({code.fix for code in codes().values()}) > 70  # each its own


@pytest.mark.parametrize(("language", "file"), [("en", "codes.md"), ("zh", "codes.zh.md")])
def test_the_page_is_made_from_the_register(language: str, file: str) -> None:
    text = page(language)
    assert (ROOT / "docs" / file).read_text(encoding="utf-8") == text, "run `make docs`"
    assert all(f"### `{name}`" in text for name in codes())


def test_every_code_says_how_it_is_proven_or_what_it_rests_on() -> None:
    alone = {name for name, code in codes().items() if not (code.proven or code.likely)}
    assert alone == FINDINGS_ALONE
    assert all(Grounds.NOT_SAID not in code.likely for code in codes().values())


def test_no_figure_of_a_proof_is_written_into_the_code() -> None:
    """A score before or after is measured: no call that makes a proof is given a number as it stands."""
    written, made = [], 0
    for file in SOURCES.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call):
                continue
            name = getattr(node.func, "attr", getattr(node.func, "id", ""))
            if name in ("proven", "Proof", "judged_updates") or (name == "judged" and len(node.args) == 5):
                made += 1
                figures = node.args[1:3]
                if any(isinstance(each, ast.Constant) for each in figures):
                    written.append(f"{file.name}:{node.lineno}")
    assert written == []
    assert made > 40  # the search finds them


def test_the_search_for_written_figures_can_fail() -> None:
    (call,) = ast.parse("claim.proven(ProvenBy.REPLAYED, 9.0, 0.0)").body
    assert isinstance(call, ast.Expr)
    assert isinstance(call.value, ast.Call)
    assert all(isinstance(each, ast.Constant) for each in call.value.args[1:3])
