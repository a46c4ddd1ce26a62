"""Ops whose axes have fixed roles, called on tensors with these axes in another order."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

from parfocal.explain.causes import ProvenChange, line
from parfocal.explain.fixes import fixing
from parfocal.explain.ops.log import Op
from parfocal.explain.ops.op_comparison import OpComparison
from parfocal.explain.ops.remakes import turning
from parfocal.judge import limits
from parfocal.judge.verdict import Fix
from parfocal.phrases import phrase

# All inputs with as many axes as the first, and the result, share one order of axes.
ALL_ALIKE = frozenset({"scaled_dot_product_attention", "flash_attention", "memory_efficient_attention"})
# Only the first input and the result do.
FIRST_ALONE = frozenset(
    {
        *("linear", "layer_norm", "rms_norm", "batch_norm", "group_norm", "instance_norm", "interpolate"),
        *("local_response_norm", "pixel_shuffle", "pixel_unshuffle", "prelu", "glu"),
        *(f"conv{rank}d" for rank in (1, 2, 3)),
        *(
            f"{how}{kind}_pool{rank}d"
            for how in ("", "adaptive_")
            for kind in ("avg", "max")
            for rank in (1, 2, 3)
        ),
    }
)
FEWEST, MOST = limits.searches.AXES_WITH_ROLES.value


def other_axes(comparison: OpComparison) -> Iterator[ProvenChange]:
    """The op is right if two axes of its inputs and of its result are exchanged."""
    for op in comparison.suspects:
        if op.function is None or op.name not in ALL_ALIKE | FIRST_ALONE or not op.inputs:
            continue
        shapes = {slot: comparison.port.values[key].shape for slot, key in op.inputs.items()}
        first = next(iter(shapes))
        rank = len(shapes[first])
        given = [comparison.port.values[key].ndim for key in op.outputs.values()]
        if not FEWEST <= rank <= MOST or given[:1] != [rank]:
            continue
        slots = [s for s, shape in shapes.items() if len(shape) == rank] if op.name in ALL_ALIKE else [first]
        for pair in combinations(range(rank), 2):
            order = list(range(rank))
            order[pair[0]], order[pair[1]] = pair[1], pair[0]
            score = comparison.try_remade(op, turning(comparison.case.backend, slots, tuple(order)))
            if score <= comparison.case.limit:
                yield _proof(comparison, op, slots, tuple(order), score)
                return


def _proof(
    comparison: OpComparison, op: Op, slots: list[str], order: tuple[int, ...], score: float
) -> ProvenChange:
    shape = comparison.port.values[op.inputs[slots[0]]].shape
    right = [shape[axis] for axis in order]
    first, second = (axis for axis, other in enumerate(order) if axis != other)
    message = phrase(
        "{name} takes {port} in the port ({line}), as if {reference} in the reference: axes "
        "{first} and {second} have each other's places",
        name=op.name,
        port=list(shape),
        line=line(op),
        reference=right,
        first=first,
        second=second,
    )
    fix: Fix = phrase(
        "exchange axes {first} and {second} of what {name} takes and gives in {line}",
        first=first,
        second=second,
        name=op.name,
        line=line(op),
    )
    fix = fixing.turned(op, slots, order, comparison.case.backend.name, fix)
    return ProvenChange("layout.permuted", message, fix, score, op.where)
