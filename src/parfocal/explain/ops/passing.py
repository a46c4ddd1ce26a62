"""The line to write where a call has too many, too few or wrong arguments, in the caller's names."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from parfocal.explain.case import Case
from parfocal.explain.causes import spelled_from
from parfocal.explain.fixes import fixing
from parfocal.explain.fixes.calls import argument_text, leaving_out, passing, recalling
from parfocal.explain.fixes.literals import written
from parfocal.explain.fixes.scopes import has_self
from parfocal.explain.fixes.sources import SourceSpot
from parfocal.explain.fixes.splicing import Patch
from parfocal.explain.ops.calling import call_in, caller
from parfocal.explain.ops.op_comparison import OpComparison
from parfocal.explain.ops.rewriting import MENDED, WORSE, verdict
from parfocal.explain.ops.writing import EditPlace, Writer
from parfocal.judge.verdict import Fix


def without_arguments(case: Case, names: Collection[str], words: Fix) -> Fix:
    """The call without some of its arguments: positions or keywords."""
    comparison, op = caller(case)
    spot = None if op is None else fixing.spot_of(op)
    return (
        words if comparison is None or spot is None else _tried(comparison, leaving_out(spot, names), words)
    )


def with_arguments(case: Case, slots: Collection[str], words: Fix) -> Fix:
    """The call with tensors that the reference's has besides, at the same positions or keywords."""
    comparison, op = caller(case)
    spot = None if op is None else fixing.spot_of(op)
    theirs = None if comparison is None else call_in(comparison.reference.ops, case.counterpart)
    if comparison is None or op is None or spot is None or theirs is None:
        return words
    writer = Writer(comparison, EditPlace(spot, None, op.index))
    texts = {
        slot: writer.write(theirs.inputs[slot], comparison.reference.maker(theirs, slot))
        for slot in slots
        if slot in theirs.inputs
    }
    said = {slot: text for slot, text in texts.items() if text is not None}
    return _tried(comparison, passing(spot, said), words) if said.keys() == set(slots) else words


def calling(case: Case, order: int, path: str) -> Patch | None:
    """Another layer of the same code called instead, by its path in the port; None: no line that mends."""
    comparison, _ = caller(case)
    op = None if comparison is None else call_in(comparison.port.ops, order)
    spot = None if op is None else fixing.spot_of(op)
    own = "" if comparison is None else comparison.case.node.path
    if comparison is None or spot is None or (own and not path.startswith(f"{own}.")) or not has_self(spot):
        return None
    name = spelled_from(path, own)
    patch = recalling(spot, name)
    return None if patch is None or verdict(comparison, patch) != MENDED else patch


def in_order(case: Case, order: Mapping[str, str], words: Fix) -> Fix:
    """The call with its own arguments at other positions: ``order`` says whose goes where.

    It is not tried in the caller, where each tensor would be led to its old position; the call itself was
    tried with the new order.
    """
    _, op = caller(case)
    spot = None if op is None else fixing.spot_of(op)
    if spot is None:
        return words
    texts = {slot: argument_text(spot, owner) for slot, owner in order.items()}
    said = {slot: text for slot, text in texts.items() if text is not None}
    patch = passing(spot, said) if len(said) == len(texts) else None
    return patch or words


def as_the_reference(case: Case, slots: Mapping[str, str], values: Mapping[str, Any], words: Fix) -> Fix:
    """The call with the expressions of the reference's code for some arguments, or else with their values.

    ``slots``: where each is passed in the port. A value is written only if the whole call is right with it,
    since it may differ from run to run of the line.
    """
    comparison, op = caller(case)
    spot = None if op is None else fixing.spot_of(op)
    theirs = None if comparison is None else call_in(comparison.reference.ops, case.counterpart)
    beside = None if theirs is None else fixing.spot_of(theirs)
    if comparison is None or spot is None:
        return words
    spelled = {} if beside is None else {name: _theirs(beside, name, slot) for name, slot in slots.items()}
    texts = {slots[name]: text for name, text in spelled.items() if text is not None}
    if len(texts) == len(slots):
        line = _tried(comparison, passing(spot, texts), words)
        if isinstance(line, Patch):
            return line
    patch = passing(spot, {slots[name]: written(value) for name, value in values.items()})
    return words if patch is None or verdict(comparison, patch) != MENDED else patch


def _theirs(spot: SourceSpot, name: str, slot: str) -> str | None:
    """What the reference's code passes by the keyword, or at the same position."""
    return argument_text(spot, name) or argument_text(spot, slot)


def _tried(comparison: OpComparison, patch: Patch | None, words: Fix) -> Fix:
    return words if patch is None or verdict(comparison, patch) == WORSE else patch
