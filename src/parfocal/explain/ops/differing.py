"""Rules that name the smallest difference between two computations, each with its proof.

Every rule looks at one mismatch: the ops of both sides between the last values that they share and the two
values that should be equal. A rule yields a proof only if the port's call is right when repeated with its
change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from parfocal.brief import brief
from parfocal.explain.causes import OpLine, ProvenChange, line
from parfocal.explain.fixes.joining import joined as joined_fixes
from parfocal.explain.ops.argument_proofs import argument_proof, lacking_proof
from parfocal.explain.ops.arguments import PassedArgument, default_of, left_out, said, told, unsaid
from parfocal.explain.ops.fitting import number_further_back
from parfocal.explain.ops.locating import line_beside, line_of_use
from parfocal.explain.ops.masking import are_masks, masked_otherwise, other_mask
from parfocal.explain.ops.mismatches import Mismatch, narrowed, paired_inputs
from parfocal.explain.ops.modules import layer_extra, layer_missing, other_layer
from parfocal.explain.ops.names import ARITHMETIC, MASKING, POINTWISE, SCALING
from parfocal.explain.ops.op_comparison import OpComparison
from parfocal.explain.ops.op_sequences import way_proof
from parfocal.explain.ops.ordering import (
    another_value,
    ops_in_another_order,
    other_order_of_tensors,
    split_otherwise,
    taken_otherwise,
    values_moved,
)
from parfocal.explain.ops.queries import equal
from parfocal.explain.ops.remakes import again, bridging, giving, handing, picking, retelling, retelling_all
from parfocal.explain.ops.rewriting import mended
from parfocal.explain.ops.sequence_proofs import (
    early_proof,
    extra_proof,
    formula_proof,
    missing_proof,
    replaced_proof,
)
from parfocal.explain.ops.solving import is_number, other_constant, other_number
from parfocal.explain.ops.subgraphs import (
    apart,
    between,
    elsewhere,
    is_one_of,
    moved_op,
    same_sources,
    starts_alike,
    transplanted,
)
from parfocal.explain.ops.values import rearranged
from parfocal.judge import limits
from parfocal.phrases import joined, phrase

Rule = Callable[[OpComparison, Mismatch], Iterator[ProvenChange]]
MOST_OPS = limits.searches.OPS_IN_A_ROW.value


def differences(comparison: OpComparison) -> Iterator[ProvenChange]:
    """The rules in order of the size of their edit; the innermost mismatches first."""
    yield from _by(RULES, comparison)


def otherwise(comparison: OpComparison) -> Iterator[ProvenChange]:
    """The rules of last resort, where no single op is wrong."""
    yield from _by(LAST_RULES, comparison)


def other_ways(comparison: OpComparison) -> Iterator[ProvenChange]:
    """How the two computations differ, where no setting explains it either."""
    yield from _by(WAYS, comparison)


def _by(ranks: tuple[tuple[Rule, ...], ...], comparison: OpComparison) -> Iterator[ProvenChange]:
    mismatches = narrowed(comparison)
    for rules in ranks:
        for mismatch in mismatches:
            for rule in rules:
                for proof in rule(comparison, mismatch):
                    yield mended(comparison, mismatch, proof)


def other_arguments(comparison: OpComparison, mismatch: Mismatch) -> Iterator[ProvenChange]:
    """The same op with other arguments."""
    mine, theirs = mismatch.producers
    known = comparison.knows(mismatch.port) and not comparison.matches.are_one(
        mismatch.port, mismatch.reference
    )
    if mine is None or mine.function is None or known:
        return
    if theirs is None or theirs.name != mine.name:  # what it was told may make no difference in the reference
        theirs = next(comparison.like(mine), None)
    if theirs is None or (are_masks(comparison, mismatch) and theirs.name in MASKING):
        return
    own = said(mine, comparison.case.backend.is_tensor)
    others = told(theirs, comparison.case.reference_backend.is_tensor)
    wanted = {name: others.get(name, default_of(mine, argument)) for name, argument in own.items()}
    differing = [
        name
        for name, value in wanted.items()
        if value is not None and not equal(name, own[name].value, value, comparison, mine)
    ]
    silent = left_out(mine).items()
    besides = {name: each for name, each in silent if name not in own and others.get(name) is not None}
    own |= besides
    wanted |= {name: others[name] for name in besides}
    # what only one side says at all is said instead of something else, if it is about numbers
    alone = [name for name in own if besides and wanted[name] is None and is_number(own[name].value)]
    choices = [(name,) for name in (*differing, *besides)]
    together = (*differing, *besides, *alone)
    for names in (*choices, *([together] if len(together) > 1 else [])):
        changes = {name: (own[name], wanted[name]) for name in names}
        score = comparison.try_remade(mine, retelling_all(mine, changes))
        if score <= comparison.case.limit:
            proofs = [
                argument_proof(
                    comparison, mine, theirs, own[name], replace(own[name], value=wanted[name]), score
                )
                for name in names
            ]
            message = joined("; ", (proof.message for proof in proofs))
            words = phrase(
                "tell {name} {names} in {line}",
                name=mine.name,
                names=joined(", ", (f"{n}={brief(wanted[n])}" for n in names)),
                line=line(mine),
            )
            fix = (
                proofs[0].fix if len(proofs) == 1 else joined_fixes([proof.fix for proof in proofs]) or words
            )
            yield replace(proofs[0], message=message, fix=fix)
            return


def made_for_others(comparison: OpComparison, mismatch: Mismatch) -> Iterator[ProvenChange]:
    """A value that is right for other users: the same op with other arguments gives the one needed here."""
    mine, theirs = mismatch.producers
    if mine is None or theirs is None or mine.name != theirs.name or not comparison.knows(mismatch.port):
        return
    if (
        mine.function is None
        or mismatch.user is None
        or mismatch.user.function is None
        or mismatch.slot is None
    ):
        return
    pairs = paired_inputs(comparison, mine, theirs)
    if not all(comparison.matches.are_one(mine.inputs[a], theirs.inputs[b]) for a, b in pairs):
        return
    others = told(theirs, comparison.case.reference_backend.is_tensor)
    for name, argument in said(mine, comparison.case.backend.is_tensor).items():
        value = others.get(name)
        if value is None or equal(name, argument.value, value, comparison, mine):
            continue
        score = comparison.try_fed(mismatch.user, mismatch.slot, again(mine, argument, value))
        if score <= comparison.case.limit:
            wanted = replace(argument, value=value)
            yield argument_proof(comparison, mine, theirs, argument, wanted, score)
            return


def tensor_missing(comparison: OpComparison, mismatch: Mismatch) -> Iterator[ProvenChange]:
    """The reference passes one more tensor to the same op: a bias, for example."""
    mine, theirs = mismatch.producers
    if mine is None or theirs is None or mine.name != theirs.name or comparison.knows(mismatch.port):
        return
    left = list(theirs.inputs.values())
    for key in mine.inputs.values():
        same = next((other for other in left if comparison.matches.are_one(key, other)), None)
        if same is None:
            return
        left.remove(same)
    if len(left) != 1:
        return
    for word in unsaid(mine):
        score = comparison.try_remade(
            mine, handing(comparison.case.backend, word, comparison.reference.values[left[0]])
        )
        if score <= comparison.case.limit:
            yield lacking_proof(comparison, mine, theirs, left[0], score)
            return


def other_factor(comparison: OpComparison, mismatch: Mismatch) -> Iterator[ProvenChange]:
    """A factor or divisor that is another number in the reference."""
    mine, theirs = mismatch.producers
    if mine is None or theirs is None or mine.function is None:
        return
    if mine.name not in SCALING or theirs.name not in SCALING or len(mine.inputs) != 1:
        return
    own = said(mine, comparison.case.backend.is_tensor).get("scalar")
    other = said(theirs, comparison.case.reference_backend.is_tensor).get("scalar")
    if own is None or other is None or not other.value:
        return
    if mine.name != theirs.name and equal("scalar", own.value, other.value, comparison, mine):
        return  # another op
    value = float(other.value) if mine.name == theirs.name else 1.0 / float(other.value)
    if equal("scalar", own.value, value, comparison, mine):
        return
    score = comparison.try_remade(mine, retelling(mine, own, value))
    if score <= comparison.case.limit:
        yield argument_proof(
            comparison, mine, theirs, own, PassedArgument("scalar", value, own.native, own.back), score
        )


def op_missing(comparison: OpComparison, mismatch: Mismatch) -> Iterator[ProvenChange]:
    """The reference applies one more op to a value that the port uses directly."""
    if len(between(comparison, mismatch)[1]) == 1:
        yield from ops_missing(comparison, mismatch)


def op_extra(comparison: OpComparison, mismatch: Mismatch) -> Iterator[ProvenChange]:
    """The port applies one more op to a value that the reference uses directly."""
    if len(between(comparison, mismatch)[0]) == 1:
        yield from ops_extra(comparison, mismatch)


def _only_rearranged(comparison: OpComparison, mismatch: Mismatch) -> bool:
    """Whether both values hold the same numbers in another arrangement."""
    port, reference = comparison.port.values, comparison.reference.values
    return rearranged(port[mismatch.port], reference[mismatch.reference])


def ops_missing(comparison: OpComparison, mismatch: Mismatch) -> Iterator[ProvenChange]:
    """The reference applies several more ops to a value that the port uses directly."""
    own, others = between(comparison, mismatch)
    if own or not others or _only_rearranged(comparison, mismatch):
        return
    if not any(is_one_of(comparison, mismatch.port, op.inputs.values()) for op in others):
        return
    score = transplanted(comparison, mismatch)
    if score > comparison.case.limit:
        return
    beside = line_beside(comparison, mismatch)
    where = beside or line_of_use(comparison, mismatch)
    moved = [op for op in others if op.is_module] if len(others) > 1 else others
    for op in moved:
        if (
            found := elsewhere(comparison, op, missing=False) or moved_op(comparison, op, missing=True)
        ) is not None:
            yield early_proof(found, op, min(where or found.where, found.where, key=_line), score)
            return
    proof = missing_proof(comparison, others, where, score, mismatch)
    yield proof if beside is None else replace(proof, port=beside)


def ops_extra(comparison: OpComparison, mismatch: Mismatch) -> Iterator[ProvenChange]:
    """The port applies several more ops to a value that the reference uses directly."""
    own, others = between(comparison, mismatch)
    if others or not own or _only_rearranged(comparison, mismatch):
        return
    if not any(
        comparison.matches.are_one(key, mismatch.reference) for op in own for key in op.inputs.values()
    ):
        return
    last = own[-1]
    score = float("inf")
    are_one = comparison.matches.are_one
    right = [(op, slot) for op in own for slot, key in op.inputs.items() if are_one(key, mismatch.reference)]
    first, slot = right[-1]
    kept = comparison.port.values[first.inputs[slot]]
    if (
        len(own) > 1
        and last.function is not None
        and kept.shape == comparison.port.values[mismatch.port].shape
    ):
        # as if the row were not there: what the reference has in its place would prove less
        score = comparison.try_edits({last.index: giving(comparison.case.backend, kept)})
    else:
        if last.function is not None and len(own) == 1:
            score = comparison.try_remade(last, picking(slot))
        score = score if score <= comparison.case.limit else transplanted(comparison, mismatch)
    if score > comparison.case.limit:
        return
    found = elsewhere(comparison, last, missing=True) or moved_op(comparison, last, missing=False)
    if len(own) == 1 and found is not None:
        yield early_proof(last, found, last.where, score)
        return
    yield extra_proof(comparison, own, score, right[-1])


def _line(where: OpLine) -> int:
    return where.line or 0


def another_op(comparison: OpComparison, mismatch: Mismatch) -> Iterator[ProvenChange]:
    """One op in place of another, on the same values."""
    own, others = between(comparison, mismatch)
    if len(own) != 1 or len(others) != 1 or own[0].name == others[0].name:
        return
    mine, theirs = own[0], others[0]
    pairs = paired_inputs(comparison, mine, theirs)
    if not pairs or not all(comparison.matches.are_one(mine.inputs[a], theirs.inputs[b]) for a, b in pairs):
        return
    score = float("inf")
    if mine.function is not None and theirs.function is not None:
        score = comparison.try_remade(
            mine, bridging(comparison.case.backend, comparison.case.reference_backend, theirs)
        )
    if score > comparison.case.limit:
        score = transplanted(comparison, mismatch)
    if score <= comparison.case.limit:
        yield replaced_proof(comparison, mine, theirs, score)


def another_formula(comparison: OpComparison, mismatch: Mismatch) -> Iterator[ProvenChange]:
    """Two different functions of the same value, each written by hand."""
    own, others = between(comparison, mismatch)
    if not own or not others or len(own) + len(others) < 3:
        return
    if [op.name for op in own] == [op.name for op in others]:
        return  # told otherwise, or of other values
    if not all(op.name in POINTWISE | ARITHMETIC and not op.is_module for op in (*own, *others)):
        return
    known = {key for op in own for key in op.inputs.values() if comparison.knows(key)}
    if len(known) != 1 or not same_sources(comparison, own, others):
        return
    if comparison.port.values[mismatch.port].shape != comparison.reference.values[mismatch.reference].shape:
        return
    score = transplanted(comparison, mismatch)
    if score <= comparison.case.limit:
        yield formula_proof(own, others, score)


def another_way(comparison: OpComparison, mismatch: Mismatch) -> Iterator[ProvenChange]:
    """One op on one side and several on the other, of the same values; or other arguments of the same ops."""
    own, others = between(comparison, mismatch)
    if not own or not others or max(len(own), len(others)) > MOST_OPS or min(apart(own, others)) > 1:
        return
    if any(op.is_module for op in (*own, *others)) or not starts_alike(comparison, own, others):
        return
    score = transplanted(comparison, mismatch)
    proof = way_proof(comparison, own, others, score) if score <= comparison.case.limit else None
    if proof is not None:
        yield proof


# The smallest edits first: one word of one op, one op, several ops, another value altogether.
RULES: tuple[tuple[Rule, ...], ...] = (
    (other_layer, other_arguments, made_for_others, other_factor, other_mask, other_order_of_tensors),
    (
        split_otherwise,
        values_moved,
        layer_extra,
        layer_missing,
        op_missing,
        op_extra,
        another_op,
        tensor_missing,
        other_constant,
    ),
    (other_number,),
    (ops_missing, ops_extra, ops_in_another_order),
)
# Tried only if nothing else fits.
LAST_RULES: tuple[tuple[Rule, ...], ...] = (
    (number_further_back,),
    (another_formula,),
    (masked_otherwise,),
    (another_value, taken_otherwise),
)
# These show where the two sides part rather than why.
WAYS: tuple[tuple[Rule, ...], ...] = ((another_way,),)
