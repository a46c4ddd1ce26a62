"""Which op of a module's own code makes an error that the module was blamed for.

Ops give no verdict of their own: two models may compute the same by other ops. Inside two calls that
part, an op is named that takes what the reference has and gives what it does not, while the reference's
op of the same name takes the same and gives something else. Where no op of the same name does, one of another
name may: the port applies it instead, if nothing on either side gives what the other's gives.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from parfocal.explain.ops.names import POINTWISE
from parfocal.judge.verdict import Cause, Claim, Divergence, Grounds, Site, side_name
from parfocal.matching.values import SAME, distance
from parfocal.phrases import phrase
from parfocal.replay.trace import Node, TensorData
from parfocal.run.records import CallRecord, Leaf, Structure, TensorValue
from parfocal.workflow.recorded_runs.call_errors import JUMP
from parfocal.workflow.recorded_runs.op_causes import line_of, op_cause
from parfocal.workflow.recorded_runs.pair import StepPair
from parfocal.workflow.recorded_runs.steps import RecordedStep
from parfocal.workflow.recorded_runs.tensors import TensorTable

DETACH = "detach"


def at_its_op(pair: StepPair, divergence: Divergence, ours: Node, theirs: Node) -> Divergence:
    """The divergence with the op and the line that make it, where both runs have ops and one stands out."""
    left, right = pair.reference.ops.get(ours.order, ()), pair.port.ops.get(theirs.order, ())
    if not left or not right or divergence.reference is None or divergence.port is None:
        return divergence
    limit = JUMP * max(pair.unit, _right_before(pair, theirs))
    for own in right:
        other = _counterpart(pair, own, left, limit)
        if other is not None:

            def same(mine: TensorValue, yours: TensorValue) -> bool:
                return _same(pair, pair.port.tensors.data(mine), pair.reference.tensors.data(yours), limit)

            return replace(
                divergence,
                cause=divergence.cause or op_cause(other, own, same),
                reference=_site(divergence.reference, other),
                port=_site(divergence.port, own),
                what=phrase("{what}, by {op}", what=divergence.what, op=own.op),
            )
    replaced = list(_replaced(pair, left, right, limit))
    if len(replaced) != 1:
        return divergence
    other, own = replaced[0]
    return replace(
        divergence,
        reference=_site(divergence.reference, other),
        port=_site(divergence.port, own),
        cause=divergence.cause or _replaced_cause(other, own),
    )


def _replaced(
    pair: StepPair, left: Sequence[CallRecord], right: Sequence[CallRecord], limit: float
) -> Iterator[tuple[CallRecord, CallRecord]]:
    """Ops of other names that take the same, of which neither gives what any op of the other side gives."""
    sides = pair.reference.tensors, pair.port.tensors
    ours, theirs = (
        [(op, list(_tensors(op.inputs, table)), list(_tensors(op.outputs, table))) for op in ops]
        for ops, table in zip((left, right), sides, strict=True)
    )
    for own, taken, given in theirs:
        if not taken or not given or any(_same_all(pair, given, made, limit) for _, _, made in ours):
            continue
        for other, others_taken, made in ours:
            if other.op == own.op or not _same_all(pair, taken, others_taken, limit):
                continue
            if made and not any(_same_all(pair, each, made, limit) for _, _, each in theirs):
                yield other, own


def _replaced_cause(other: CallRecord, own: CallRecord) -> Cause:
    message = phrase(
        "{port} in the port ({line}), {reference} in the reference ({there})",
        port=own.op,
        line=line_of(own),
        reference=other.op,
        there=line_of(other),
    )
    fix = phrase(
        "apply {name} instead of {mine_name} in {line}", name=other.op, mine_name=own.op, line=line_of(own)
    )
    code = "op.activation" if {own.op, other.op} <= POINTWISE else "op.kind"
    return Claim(code, message, fix, (str(own.op), str(other.op))).likely(Grounds.CODE)


def stopping_cause(pair: StepPair, side: str, ours: Node, theirs: Node) -> Cause | None:
    """The op before a call with which one side stops the gradient, where the other has none."""
    stops = [_stops_before(step, node) for step, node in ((pair.reference, ours), (pair.port, theirs))]
    own, others = reversed(stops) if side == "port" else stops
    if len(own) <= len(others):
        return None
    line = line_of(own[-1])
    message = phrase(
        "the {subject} {what}, the {other} lets it through",
        subject=side_name(side),
        what=phrase("stops the gradient with detach in {line}", line=line),
        other=side_name("reference" if side == "port" else "port"),
    )
    if side == "port":
        fix = phrase("take detach out of {line}", line=line)
    else:
        fix = phrase("stop the gradient in the port as the reference does in {line}", line=line)
    return Claim("grad.detached", message, fix).likely(Grounds.CODE)


def _stops_before(step: RecordedStep, node: Node) -> list[CallRecord]:
    """The ops around a call that stop a gradient, and whose values lead to what the call takes."""
    ops = step.ops.get(node.parent, ()) if node.parent is not None else ()
    taken = {value.data.fingerprint for value in node.inputs.values()}
    found = []
    for number, op in enumerate(ops):
        if op.op != DETACH:
            continue
        reached = {each.fingerprint for each in _tensors(op.outputs, step.tensors)}
        for later in ops[number + 1 :]:
            if any(each.fingerprint in reached for each in _tensors(later.inputs, step.tensors)):
                reached |= {each.fingerprint for each in _tensors(later.outputs, step.tensors)}
        if reached & taken:
            found.append(op)
    return found


def _right_before(pair: StepPair, theirs: Node) -> float:
    """The error of what the call was given."""
    return next((each.taken.error for each in pair.errors if each.pair.port == theirs.order), 0.0)


def _counterpart(
    pair: StepPair, own: CallRecord, others: Sequence[CallRecord], limit: float
) -> CallRecord | None:
    """The reference's op of the same name that takes the same, where the two give something else."""
    given = list(_tensors(own.outputs, pair.port.tensors))
    taken = list(_tensors(own.inputs, pair.port.tensors))
    if not given or not taken:
        return None
    alike = [
        other
        for other in others
        if other.op == own.op
        and _same_all(pair, taken, list(_tensors(other.inputs, pair.reference.tensors)), limit)
    ]
    differing = [
        other
        for other in alike
        if not _same_all(pair, given, list(_tensors(other.outputs, pair.reference.tensors)), limit)
        or _numbers(own) != _numbers(other)
    ]
    same_output = any(
        _same_all(pair, given, list(_tensors(other.outputs, pair.reference.tensors)), limit)
        for other in others
    )
    return differing[0] if differing and not same_output else None


def _same_all(pair: StepPair, own: Sequence[TensorData], other: Sequence[TensorData], limit: float) -> bool:
    return len(own) == len(other) and all(
        any(_same(pair, mine, yours, limit) for yours in other) for mine in own
    )


def _same(pair: StepPair, own: TensorData, other: TensorData, limit: float) -> bool:
    if distance(own.fingerprint, other.fingerprint) > SAME:
        return False
    return pair.distances.between(own, other).error <= limit


def _tensors(structure: Structure, tensors: TensorTable) -> Iterator[TensorData]:
    for leaf in structure.leaves.values():
        if isinstance(leaf, TensorValue):
            yield tensors.data(leaf)


def _numbers(op: CallRecord) -> list[Leaf]:
    return [leaf for leaf in op.inputs.leaves.values() if isinstance(leaf, (int, float))]


def _site(site: Site, op: CallRecord) -> Site:
    return replace(site, op=op.op, file=op.file, line=op.line)
