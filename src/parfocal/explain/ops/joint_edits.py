"""Mistakes that no single change puts right: one line that runs several times, or two tensors exchanged.

Every place where the two sides part is explained separately, judged at the value that is wrong there.
The explanations count only if all changes together make the port's call right; those that are not needed
for that are dropped.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from parfocal.explain.causes import ProvenChange
from parfocal.explain.fixes.joining import SeveralFixes
from parfocal.explain.fixes.joining import joined as joined_fixes
from parfocal.explain.ops.argument_proofs import argument_proof, exchanged_proof
from parfocal.explain.ops.arguments import said, told
from parfocal.explain.ops.differing import LAST_RULES, RULES
from parfocal.explain.ops.mismatches import Mismatch, innermost, ways_through
from parfocal.explain.ops.names import LAYOUT
from parfocal.explain.ops.op_comparison import Edits, OpComparison
from parfocal.explain.ops.queries import equal
from parfocal.explain.ops.remakes import bridging, merged, retelling
from parfocal.explain.ops.rewriting import mended
from parfocal.explain.ops.sequence_proofs import replaced_proof
from parfocal.judge import limits
from parfocal.phrases import joined, phrase

MOST_PLACES = limits.searches.JOINT_PLACES.value
MOST_MISTAKES = limits.searches.JOINT_MISTAKES.value
MOST_BEHIND = limits.searches.JOINT_BEHIND.value


@dataclass(frozen=True, slots=True)
class JointEdit:
    """One explanation, with the candidate changes for every place it explains."""

    mismatch: Mismatch
    proof: ProvenChange
    choices: list[list[Edits]]


def at_several_places(comparison: OpComparison) -> Iterator[ProvenChange]:
    """The mistakes of all places together, one explanation per line."""
    for parts in _explanations(comparison):
        if len(parts) > MOST_MISTAKES or sum(len(part.choices) for part in parts) < 2:
            continue
        for some in _choices(parts):
            score = _score(comparison, some)
            if score <= comparison.case.limit:
                yield _needed(comparison, some, score)
                return


def _explanations(comparison: OpComparison) -> Iterator[list[JointEdit]]:
    """Of the innermost mismatches; then with layouts; then with ops on the way that differ by themselves."""
    for moved in (False, True):
        mismatches = innermost(comparison, moved=moved)
        yield _parts(comparison, mismatches) if 2 <= len(mismatches) <= MOST_PLACES else []
    inner, outer = ways_through(comparison)
    behind = [part for mismatch in outer for part in _in_itself(comparison, mismatch)]
    found = [*_parts(comparison, inner[:MOST_PLACES]), *behind] if behind else []
    # with more ops exchanged for others it is another computation altogether
    yield found if len(found) == MOST_BEHIND else []


def _in_itself(comparison: OpComparison, mismatch: Mismatch) -> Iterator[JointEdit]:
    """An op whose input is wrong and which itself is another op, or has other arguments."""
    mine, theirs = mismatch.producers
    if mine is None or theirs is None or mine.function is None or mine.is_module or theirs.is_module:
        return
    if mine.name != theirs.name and theirs.function is not None:
        change = bridging(comparison.case.backend, comparison.case.reference_backend, theirs)
        yield JointEdit(mismatch, replaced_proof(comparison, mine, theirs, 0.0), [[{mine.index: change}]])
    elif mine.name == theirs.name and mine.name not in LAYOUT:
        others = told(theirs, comparison.case.reference_backend.is_tensor)
        for name, own in said(mine, comparison.case.backend.is_tensor).items():
            if name in others and not equal(name, own.value, others[name], comparison, mine):
                right = replace(own, value=others[name])
                proof = argument_proof(comparison, mine, theirs, own, right, 0.0)
                yield JointEdit(mismatch, proof, [[{mine.index: retelling(mine, own, right.value)}]])


def _choices(parts: list[JointEdit]) -> list[list[JointEdit]]:
    """All; if that is too much, all but one; or one that holds for several places."""
    fewer = [[each for each in parts if each is not part] for part in parts] if len(parts) > 2 else []
    return [parts, *fewer, *([part] for part in parts if len(part.choices) > 1 and len(parts) > 1)]


def _needed(comparison: OpComparison, parts: list[JointEdit], score: float) -> ProvenChange:
    """The explanations that are all needed."""
    for part in tuple(parts):  # what is not needed is no mistake
        without = [each for each in parts if each is not part]
        if without and (less := _score(comparison, without)) <= comparison.case.limit:
            parts, score = without, less
    exchanged = _exchanged(comparison, parts, score) if len(parts) == 2 else None
    proof = exchanged or _joined([part.proof for part in parts], score)
    return mended(comparison, parts[0].mismatch, proof)


def _exchanged(comparison: OpComparison, parts: Sequence[JointEdit], score: float) -> ProvenChange | None:
    """The proof for two ops of which each takes the other's input."""
    one, other = parts[0].mismatch, parts[1].mismatch
    are_one = comparison.matches.are_one
    if one.user is None or other.user is None or not are_one(one.port, other.reference):
        return None
    if not are_one(other.port, one.reference):
        return None
    return exchanged_proof(comparison, (one, one.user), (other, other.user), score)


def _parts(comparison: OpComparison, mismatches: Sequence[Mismatch]) -> list[JointEdit]:
    found: dict[tuple[object, ...], JointEdit] = {}
    for mismatch in mismatches:
        view = comparison.seen_at(mismatch.port, mismatch.reference, mismatch.made, mismatch.other_made)
        rules = (rule for rank in (*RULES, *LAST_RULES) for rule in rank)
        proof = next((proof for rule in rules for proof in rule(view, mismatch)), None)
        if proof is None or not view.accepted:
            continue
        line = None if proof.port is None else (proof.port.file, proof.port.line)
        part = found.setdefault((proof.code, line, proof.message), JointEdit(mismatch, proof, []))
        part.choices.append(view.accepted)
    return list(found.values())


def _score(comparison: OpComparison, parts: Sequence[JointEdit]) -> float:
    """The better score: with the first choices, which also cover repeated lines, or with the last ones."""
    everywhere, here = (
        merged(choices[which] for part in parts for choices in part.choices) for which in (0, -1)
    )
    return comparison.try_edits(everywhere, here)


def _joined(proofs: Sequence[ProvenChange], score: float) -> ProvenChange:
    first = replace(proofs[0], score=score)
    if len(proofs) == 1:
        return first
    codes = {proof.code for proof in proofs}
    # here too much and there too little is in the wrong place
    code = "op.order" if codes == {"op.missing", "op.extra"} else first.code
    fixes = list(dict.fromkeys(proof.fix for proof in proofs))
    lines = {(proof.port.file, proof.port.line) for proof in proofs if proof.port is not None}
    # two lines to write in one place would undo each other
    apart = len(lines) == len(proofs)
    words = joined("; ", (proof.message for proof in proofs))
    fix = joined_fixes(fixes) or (
        SeveralFixes(tuple(fixes)) if apart else phrase("all of: {words}", words=words)
    )
    also = tuple(proof.port for proof in proofs[1:] if proof.port is not None)
    return replace(first, code=code, message=words, fix=fix, also=also)
