"""The code that makes a call: that of the enclosing module."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from parfocal.explain.case import Case
from parfocal.explain.fixes.frames import UserFrame
from parfocal.explain.ops.log import Op
from parfocal.explain.ops.op_comparison import OpComparison
from parfocal.explain.ops.writing import writing_comparison


def caller(case: Case) -> tuple[OpComparison | None, Op | None]:
    """The code that makes the call, on both sides, and the call in it."""
    node, other = case.node, case.reference_node
    if node.parent is None or other is None or other.parent is None:
        return None, None
    if "caller" not in case.looked_up:
        case.looked_up["caller"] = replace(
            case, call=node.parent, counterpart=other.parent, looked_up={}, _baseline=None
        )
    comparison = writing_comparison(case.looked_up["caller"])
    return comparison, None if comparison is None else call_in(comparison.port.ops, case.call)


def call_in(ops: Sequence[Op], call: int | None) -> Op | None:
    return next((op for op in ops if op.call == call), None)


def frames_around(case: Case) -> tuple[UserFrame, ...]:
    """Where the code stands that makes the call, the innermost first."""
    _, op = caller(case)
    return () if op is None else op.frames
