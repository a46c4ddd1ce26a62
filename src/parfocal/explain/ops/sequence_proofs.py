"""Proofs that other ops are applied than in the reference, or the same ones in another order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from parfocal.explain.causes import OpLine, ProvenChange, line, spelled_path
from parfocal.explain.causes import said as words
from parfocal.explain.fixes import fixing
from parfocal.explain.fixes.literals import indexed
from parfocal.explain.fixes.splicing import Patch
from parfocal.explain.ops.argument_proofs import hides
from parfocal.explain.ops.arguments import said, told
from parfocal.explain.ops.log import Op
from parfocal.explain.ops.mending import missing_fix, moved_fix, split_fix
from parfocal.explain.ops.mismatches import Mismatch
from parfocal.explain.ops.names import DROPPING, POINTWISE, RANDOM, SCALING
from parfocal.explain.ops.op_comparison import OpComparison
from parfocal.explain.ops.op_words import chain, lines, listed
from parfocal.judge.verdict import Fix
from parfocal.phrases import joined, phrase

PRODUCTS = frozenset({"matmul", "einsum", "scaled_dot_product_attention"})
ROOTS = {"rsqrt": "sqrt"}  # but for what is divided by


def extra_proof(
    comparison: OpComparison, ops: Sequence[Op], score: float, right: tuple[Op, str] | None = None
) -> ProvenChange:
    """For one extra op, or several in sequence; ``right``: the op and slot that take the right value."""
    codes = {"cast": "dtype.precision"}
    op = next((op for op in ops if op.name in RANDOM), ops[0])
    tensors = {key for each in ops for key in each.inputs.values()}
    code = codes.get(op.name, "op.extra")
    if len(ops) == 1 and op.name in SCALING and len(tensors) == 1:
        code = "op.scale"
    message = phrase(
        "the port applies {chain} in {line}, the reference does not", chain=chain(ops), line=line(op)
    )
    fix = fixing.dropped(
        ops[-1],
        *(right or (ops[0], "0")),
        phrase("take {chain} out of {line}", chain=chain(ops), line=line(op)),
    )
    if op.name in DROPPING and not op.is_module:
        code = "random.dropout"
        rate = said(op, comparison.case.backend.is_tensor).get("p")
        message = phrase(
            "dropout{rate} is on in {line}: ",
            rate="" if rate is None else phrase(" with p = {words}", words=words(rate.value)),
            line=line(op),
        )
        message += phrase("the reference drops nothing")
        fix = fixing.not_dropping(op, phrase("dropout(..., training=self.training) in {line}", line=line(op)))
    elif op.name in RANDOM:
        code = "random.source"
        message = phrase(
            "the port adds random numbers of its own ({chain} in {line}), the reference none",
            chain=chain(ops),
            line=line(op),
        )
    return ProvenChange(code, message, fix, score, op.where)


def missing_proof(
    comparison: OpComparison,
    ops: Sequence[Op],
    where: OpLine | None,
    score: float,
    mismatch: Mismatch | None = None,
) -> ProvenChange:
    """For one missing op of the reference, or several in sequence."""
    op = ops[-1]
    scalar = said(op, comparison.case.reference_backend.is_tensor).get("scalar")
    value = phrase(" with {words}", words=words(scalar.value)) if scalar is not None and len(ops) == 1 else ""
    if op.name == "setitem" and (index := indexed(op.args[1])) is not None:
        value = phrase(" at [{index}]", index=index)
    code = "op.missing"
    if any(hides(comparison.reference, each) for each in ops):
        code = "op.mask"
    elif len(ops) == 1 and op.name in SCALING and scalar is not None:
        code = "op.scale"
    place = "" if where is None else phrase(" in {line}", line=line(where))
    message = phrase(
        "the reference applies {chain}{value} ({line}), the port does not{place}",
        chain=chain(ops),
        value=value,
        line=line(op),
        place=place,
    )
    fix = missing_fix(
        comparison,
        ops,
        mismatch,
        phrase("apply {chain}{value}{place}", chain=chain(ops), value=value, place=place),
    )
    if isinstance(fix, Patch):
        where = where or OpLine(op.name, fix.file, fix.line)
        if fix.file == where.file:
            where = replace(where, line=min(fix.line, where.line or 0))  # where the value is made
    return ProvenChange(code, message, fix, score, where, op.where)


def order_proof(
    op: Op,
    other: Op | None,
    order: tuple[int, ...],
    where: OpLine | None,
    score: float,
    names: tuple[list[str], list[str]] | None = None,
) -> ProvenChange:
    """``order``: of the tensors that one op takes; ``names``: of the ops in the port and in the reference, or
    of what is taken from them.
    """
    place = where or op.where
    if names is None:
        message = phrase(
            "{name} takes its tensors in another order: {reference} in the reference",
            name=op.name,
            reference=listed(order),
        )
        fix: Fix = phrase(
            "in {line} pass the tensors to {name} in the order {order}",
            line=line(place),
            name=op.name,
            order=listed(order),
        )
        fix = fixing.ordered(op, list(op.inputs), order, fix)
    elif len(names[0]) > 1:
        message = phrase(
            "{port} in the port, {reference} in the reference",
            port=joined(", ", names[0]),
            reference=joined(", ", names[1]),
        )
        fix = phrase("in {line} apply {names} in this order", line=line(place), names=joined(", ", names[1]))
    else:
        message = phrase(
            "{spelled} takes {port}; in the reference {reference}",
            spelled=op.spelled,
            port=names[0][0],
            reference=names[1][0],
        )
        fix = phrase(
            "in {line} pass to {spelled} {names}", line=line(place), spelled=op.spelled, names=names[1][0]
        )
    return ProvenChange("op.order", message, fix, score, place, None if other is None else other.where)


def early_proof(mine: Op, theirs: Op, where: OpLine, score: float) -> ProvenChange:
    """For an op that both sides have, at different points."""
    message = phrase(
        "{spelled} is applied at another point in the port ({line}) than in the reference ({there})",
        spelled=mine.spelled,
        line=line(mine),
        there=line(theirs),
    )
    fix = phrase(
        "apply {name} where the reference does: {line} has it in another order",
        name=theirs.name,
        line=line(where),
    )
    return ProvenChange("op.order", message, fix, score, where, theirs.where)


def replaced_proof(comparison: OpComparison, mine: Op, theirs: Op, score: float) -> ProvenChange:
    code = "op.activation" if {mine.name, theirs.name} <= POINTWISE else "op.kind"
    if {mine.name, theirs.name} in ({"sum", "mean"}, SCALING):
        code = "op.scale"
    message = phrase(
        "{port} in the port ({line}), {reference} in the reference ({there})",
        port=mine.spelled,
        line=line(mine),
        reference=theirs.spelled,
        there=line(theirs),
    )
    fix: Fix = phrase(
        "apply {name} instead of {mine_name} in {line}",
        name=theirs.name,
        mine_name=mine.name,
        line=line(mine),
    )
    arguments = told(theirs, comparison.case.reference_backend.is_tensor)
    owner = spelled_path(comparison.case.node.path), comparison.case.module
    fix = fixing.called(mine, comparison.case.backend.name, theirs.name, arguments, fix, owner)
    return ProvenChange(code, message, fix, score, mine.where, theirs.where)


def formula_proof(own: Sequence[Op], others: Sequence[Op], score: float) -> ProvenChange:
    """Another function of the same value, written by hand."""
    message = phrase(
        "another function of the same value: {port} in the port ({line}), {reference} in the "
        "reference ({there})",
        port=chain(own),
        line=line(own[-1]),
        reference=chain(others),
        there=line(others[-1]),
    )
    fix = phrase("compute {chain} instead in {line}", chain=chain(others), line=line(own[-1]))
    names, wanted = ([ROOTS.get(op.name, op.name) for op in ops] for ops in (own, others))
    code = "op.order" if names != wanted and sorted(names) == sorted(wanted) else "op.activation"
    return ProvenChange(code, message, fix, score, own[0].where, others[-1].where)


def moved_proof(
    comparison: OpComparison,
    mismatch: Mismatch,
    own: list[Op],
    others: list[Op],
    where: OpLine | None,
    score: float,
) -> ProvenChange:
    """The same values in other places."""
    joining = next((op for op in reversed(own) if op.name in ("concat", "stack")), None)
    place = joining.where if joining is not None else where or (own or others)[-1].where
    there = None if not others else others[-1].where
    mine, theirs = chain(own) or phrase("nothing"), chain(others) or phrase("nothing")
    message = phrase(
        "the right values in wrong places: {port} in the port, {reference} in the reference",
        port=mine,
        reference=theirs,
    )
    fix = moved_fix(
        comparison,
        mismatch,
        own,
        phrase("arrange the values in {line} as the reference does", line=line(place)),
    )
    if isinstance(fix, Patch):
        place = replace(place, file=fix.file, line=fix.line)
    names, wanted = {op.name for op in own}, {op.name for op in others}
    if (names - wanted) & {"flip", "roll"}:
        op = next(op for op in own if op.name in {"flip", "roll"} - wanted)
        return extra_proof(comparison, [op], score)
    if (wanted - names) & {"flip", "roll"}:
        op = next(op for op in others if op.name in {"flip", "roll"} - names)
        return missing_proof(comparison, [op], place, score)
    if {"concat", "stack"} & (names | wanted):
        code = "op.order"
    else:
        code = "layout.permuted"
    return ProvenChange(code, message, fix, score, place, there)


def taken_proof(own: list[Op], others: list[Op], moved: bool, score: float) -> ProvenChange:
    """Parts of the same values, taken and joined otherwise; ``moved``: the same parts in other places."""
    message = phrase(
        "the same values taken apart and joined otherwise: {port} in the port ({lines}), "
        "{reference} in the reference ({there})",
        port=chain(own),
        lines=lines(own),
        reference=chain(others),
        there=lines(others),
    )
    fix = phrase(
        "take and join the values in {lines} as the reference does: {chain}",
        lines=lines(own),
        chain=chain(others),
    )
    are_joined = {"concat", "stack"} & {op.name for op in (*own, *others)}
    code = "op.order" if are_joined else "layout.permuted" if moved else "op.kind"
    return ProvenChange(code, message, fix, score, own[0].where, others[0].where)


def split_proof(comparison: OpComparison, mine: Op, theirs: Op, score: float) -> ProvenChange:
    """An axis that is split into parts of another size."""
    shape = comparison.port.values[next(iter(mine.outputs.values()))].shape
    right = comparison.reference.values[next(iter(theirs.outputs.values()))].shape
    multiplied = any(each.name in PRODUCTS for each in comparison.suspects)
    code = "config.heads" if multiplied else "config.groups"
    message = phrase(
        "{name} makes {port} in the port, {reference} in the reference",
        name=mine.name,
        port=list(shape),
        reference=list(right),
    )
    fix = split_fix(
        mine, shape, right, phrase("reshape to {right} in {line}", right=list(right), line=line(mine))
    )
    return ProvenChange(code, message, fix, score, mine.where, theirs.where)
