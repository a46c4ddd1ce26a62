"""Which op of a module's own code makes an error that the module was blamed for.

Ops give no verdict of their own: two models may compute the same by other ops. Inside two calls that
part, an op is named that takes what the reference has and gives what it does not, while the reference's
op of the same name takes the same and gives something else.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from parfocal.judge.verdict import Divergence, Site
from parfocal.matching.values import SAME, distance
from parfocal.phrases import phrase
from parfocal.replay.trace import Node, TensorData
from parfocal.run.records import CallRecord, Leaf, Structure, TensorValue
from parfocal.workflow.recorded_runs.call_errors import JUMP
from parfocal.workflow.recorded_runs.pair import StepPair
from parfocal.workflow.recorded_runs.tensors import TensorTable


def at_its_op(pair: StepPair, divergence: Divergence, ours: Node, theirs: Node) -> Divergence:
    """The divergence with the op and the line that make it, where both runs have ops and one stands out."""
    left, right = pair.reference.ops.get(ours.order, ()), pair.port.ops.get(theirs.order, ())
    if not left or not right or divergence.reference is None or divergence.port is None:
        return divergence
    limit = JUMP * max(pair.unit, _right_before(pair, theirs))
    for own in right:
        other = _counterpart(pair, own, left, limit)
        if other is not None:
            return replace(
                divergence,
                reference=_site(divergence.reference, other),
                port=_site(divergence.port, own),
                what=phrase("{what}, by {op}", what=divergence.what, op=own.op),
            )
    return divergence


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
