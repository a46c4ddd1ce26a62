"""How two sequences of ops on the same values differ: by other ops, or by other arguments of the same ops."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from parfocal.backends.protocol import Backend
from parfocal.explain.causes import ProvenChange, code_of, line
from parfocal.explain.causes import said as words
from parfocal.explain.fixes.literals import indexed
from parfocal.explain.ops.arguments import place_name, told
from parfocal.explain.ops.log import Op
from parfocal.explain.ops.op_comparison import OpComparison
from parfocal.explain.ops.op_words import lines
from parfocal.explain.ops.queries import equal
from parfocal.phrases import joined, phrase


def way_proof(
    comparison: OpComparison, own: Sequence[Op], others: Sequence[Op], score: float
) -> ProvenChange | None:
    """Other ops on the same values, or the same ops with other arguments; None: neither."""
    backends = comparison.case.backend, comparison.case.reference_backend
    while min(len(own), len(others)) > 1 and own[-1].name == others[-1].name:
        if told(own[-1], backends[0].is_tensor) != told(others[-1], backends[1].is_tensor):
            break
        own, others = own[:-1], others[:-1]  # what both do in the end is not what differs
    mine, theirs = (
        joined(", ", (_with_words(op, backend) for op in ops))
        for ops, backend in zip((own, others), backends, strict=True)
    )
    alike = [op.name for op in own] == [op.name for op in others]
    code = next(_codes_of_words(comparison, own, others), None if alike else "op.kind")
    if code is None:
        return next(_shaped_otherwise(comparison, own, others, score), None)
    message = phrase(
        "{port} in the port ({lines}), {reference} in the reference ({there})",
        port=mine,
        lines=lines(own),
        reference=theirs,
        there=lines(others),
    )
    fix = phrase("compute {theirs} in {lines}", theirs=theirs, lines=lines(own))
    return ProvenChange(code, message, fix, score, own[0].where, others[0].where)


def _shaped_otherwise(
    comparison: OpComparison, own: Sequence[Op], others: Sequence[Op], score: float
) -> Iterator[ProvenChange]:
    """For the first op with the same arguments that takes the same numbers in another shape."""
    for mine, theirs in zip(own, others, strict=True):
        for key, other in zip(mine.inputs.values(), theirs.inputs.values(), strict=False):
            shape, right = (
                list(log.values[k].shape)
                for log, k in ((comparison.port, key), (comparison.reference, other))
            )
            if shape != right and comparison.matches.are_one(key, other):
                code = (
                    "op.axis"
                    if "axis" in told(mine, comparison.case.backend.is_tensor)
                    else "layout.permuted"
                )
                message = phrase(
                    "{name} takes {port} in the port ({line}), the same values as {reference} in the "
                    "reference ({there})",
                    name=mine.name,
                    port=shape,
                    line=line(mine),
                    reference=right,
                    there=line(theirs),
                )
                fix = phrase("give {name} {right} in {line}", name=mine.name, right=right, line=line(mine))
                yield ProvenChange(code, message, fix, score, mine.where, theirs.where)


def _codes_of_words(comparison: OpComparison, own: Sequence[Op], others: Sequence[Op]) -> Iterator[str]:
    """The codes of arguments in which ops of the same name differ."""
    left = list(others)
    for mine in own:
        theirs = next((op for op in left if op.name == mine.name), None)
        if theirs is None:
            continue
        left.remove(theirs)
        ours = told(mine, comparison.case.backend.is_tensor)
        wanted = told(theirs, comparison.case.reference_backend.is_tensor)
        for name in ours:
            if name in wanted and not equal(name, ours[name], wanted[name], comparison, mine):
                yield code_of(name, mine.name)


def _with_words(op: Op, backend: Backend) -> str:
    """An op with its arguments, as a call."""
    parts, unnamed = [], {place_name(index) for index in range(len(op.args))}
    for name, value in told(op, backend.is_tensor).items():
        text = indexed(value) if name == "index" else words(value)
        if name == "index":
            parts.append(f"[{text}]")
        else:
            parts.append(str(text) if name in unnamed else f"{name}={text}")
    return f"{op.name}({', '.join(parts)})" if parts else op.name
