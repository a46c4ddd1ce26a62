"""Questions about the ops and values of a comparison."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from parfocal.explain.ops.log import Op
from parfocal.explain.ops.op_comparison import OpComparison


def output_shape(comparison: OpComparison, op: Op) -> tuple[int, ...] | None:
    keys = list(op.outputs.values())
    return comparison.port.values[keys[0]].shape if len(keys) == 1 else None


def can_take(comparison: OpComparison, op: Op, order: tuple[int, ...]) -> bool:
    """Whether the op can take its tensors in this order: a concatenation always, others if alike."""
    shapes = [comparison.port.values[key].shape for key in op.inputs.values()]
    return op.name == "concat" or all(
        shapes[index] == shape for index, shape in zip(order, shapes, strict=True)
    )


def natural_factors(comparison: OpComparison, op: Op) -> Iterator[float]:
    """Roots of the last axis' length: what attention is scaled by."""
    for key in op.inputs.values():
        shape = comparison.port.values[key].shape
        if shape and shape[-1] > 1:
            yield from (shape[-1] ** -0.5, shape[-1] ** 0.5)


def equal(name: str, mine: Any, theirs: Any, comparison: OpComparison, op: Op) -> bool:
    if name == "axis" and op.inputs:
        count = comparison.port.values[next(iter(op.inputs.values()))].ndim
        return bool(_axes(mine, count) == _axes(theirs, count))
    if isinstance(mine, (int, float)) and isinstance(theirs, (int, float)):
        return abs(mine - theirs) <= 1e-7 * max(abs(mine), abs(theirs))
    return bool(_plain(mine) == _plain(theirs))


def _plain(value: Any) -> Any:
    """A value in one spelling: frameworks write 2, (2,) or (2, 2) for the same."""
    if isinstance(value, (list, tuple)) and value and all(item == value[0] for item in value):
        return value[0]
    return tuple(value) if isinstance(value, list) else value


def _axes(value: Any, count: int) -> Any:
    if isinstance(value, (list, tuple)):
        return tuple(sorted(axis % count for axis in value))
    return (value % count,) if isinstance(value, int) and count else value
