"""What can be wrong with an op, or with one that is missing or too many.

Every hypothesis takes the comparison, runs the port's call with one op changed, and yields a proof
only if the wrong value becomes right.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations

import numpy as np

from parfocal.explain.causes import ProvenChange, line, number
from parfocal.explain.fixes import fixing
from parfocal.explain.ops.argument_proofs import argument_proof
from parfocal.explain.ops.arguments import PassedArgument, said
from parfocal.explain.ops.names import LAYOUT, SCALING
from parfocal.explain.ops.op_comparison import OpComparison
from parfocal.explain.ops.queries import can_take, equal, natural_factors, output_shape
from parfocal.explain.ops.remakes import feeding, picking, reordering, retelling, scaling
from parfocal.explain.ops.sequence_proofs import extra_proof, order_proof
from parfocal.explain.ops.solving import is_number
from parfocal.phrases import phrase

AXIS_OPS = frozenset(
    {"softmax", "log_softmax", "mean", "sum", "cumsum", "logsumexp", "amax", "amin", "var", "std"}
)
NUMBERS = ("scalar", "epsilon", "negative_slope")
SCALAR_OPS = frozenset({"add", "sub", "rsub", "mul", "div", "rdiv", "pow"})


def other_arguments(comparison: OpComparison) -> Iterator[ProvenChange]:
    """An op on the same values as one of the reference, with other arguments."""
    backend, reference_backend = comparison.case.backend, comparison.case.reference_backend
    for op in comparison.suspects:
        told = said(op, backend.is_tensor)
        for other in comparison.like(op):
            for name, theirs in said(other, reference_backend.is_tensor).items():
                mine = told.get(name)
                if mine is None or equal(name, mine.value, theirs.value, comparison, op):
                    continue
                score = comparison.try_remade(op, retelling(op, mine, theirs.value))
                if score <= comparison.case.limit:
                    yield argument_proof(comparison, op, other, mine, theirs, score)


def another_order(comparison: OpComparison) -> Iterator[ProvenChange]:
    """The same tensors joined in another order."""
    for op in comparison.suspects:
        slots = list(op.inputs)
        if op.name not in ("concat", "stack", "sub", "div", "matmul", "where") or not 2 <= len(slots) <= 4:
            continue
        for order in permutations(range(len(slots))):
            if order == tuple(range(len(slots))) or not can_take(comparison, op, order):
                continue
            score = comparison.try_remade(op, reordering(slots, order))
            if score <= comparison.case.limit:
                yield order_proof(op, None, order, None, score)
                return


def extra_op(comparison: OpComparison) -> Iterator[ProvenChange]:
    """The port does something that the reference does not."""
    for op in comparison.suspects:
        if op.name in LAYOUT or not _is_one_more(comparison, op.name):
            continue
        shape = output_shape(comparison, op)
        for slot, key in op.inputs.items():
            if comparison.port.values[key].shape != shape:
                continue
            score = comparison.try_remade(op, picking(slot))
            if score <= comparison.case.limit:
                yield extra_proof(comparison, [op], score, (op, slot))
                return


def _is_one_more(comparison: OpComparison, name: str) -> bool:
    """Whether the port has an op more often: else it is not too many, whatever it does."""
    mine, theirs = (
        [op.name for op in ops].count(name) for ops in (comparison.suspects, comparison.counterparts)
    )
    return mine > theirs


def another_axis(comparison: OpComparison) -> Iterator[ProvenChange]:
    """A reduction along another axis, where the reference's ops do not show which."""
    for op in comparison.suspects:
        argument = said(op, comparison.case.backend.is_tensor).get("axis")
        if (
            op.name not in AXIS_OPS
            or argument is None
            or not isinstance(argument.value, int)
            or not op.inputs
        ):
            continue
        count = comparison.port.values[next(iter(op.inputs.values()))].ndim
        for axis in range(count):
            if axis == argument.value % count:
                continue
            score = comparison.try_remade(op, retelling(op, argument, axis - count))
            if score <= comparison.case.limit:
                message = phrase(
                    "{name} runs along axis {reference} in the reference, {port} in the port",
                    name=op.name,
                    reference=axis - count,
                    port=argument.value,
                )
                fix = fixing.told(
                    op,
                    argument,
                    axis - count,
                    phrase(
                        "{name}(..., axis={axis}) in {line}", name=op.name, axis=axis - count, line=line(op)
                    ),
                )
                yield ProvenChange("op.axis", message, fix, score, op.where)
                return


def missing_scale(comparison: OpComparison) -> Iterator[ProvenChange]:
    """A product that the reference scales by the size of an axis or its root."""
    for op in comparison.with_sources():
        if op.name not in ("matmul", "einsum") or not op.inputs:
            continue
        length = comparison.port.values[next(iter(op.inputs.values()))].shape[-1]
        for factor, spelt in ((length**-0.5, f"1 / sqrt({length})"), (length**0.5, f"sqrt({length})")):
            score = comparison.try_remade(op, scaling(factor))
            if score <= comparison.case.limit:
                message = phrase(
                    "the reference has what {name} gives times {spelt} = {factor}, the port as it is",
                    name=op.name,
                    spelt=spelt,
                    factor=number(factor),
                )
                fix = fixing.scaled(
                    op,
                    factor,
                    phrase(
                        "multiply what {name} gives in {line} by {spelt}",
                        name=op.name,
                        line=line(op),
                        spelt=spelt,
                    ),
                )
                yield ProvenChange("op.scale", message, fix, score, op.where)
                return


def inverted_mask(comparison: OpComparison) -> Iterator[ProvenChange]:
    """A mask of true and false that means the opposite."""
    for op in comparison.suspects:
        for slot, key in op.inputs.items():
            mask = comparison.port.values[key]
            if mask.dtype != np.bool_:
                continue
            score = comparison.try_remade(op, feeding(comparison.case.backend, slot, ~mask))
            if score <= comparison.case.limit:
                message = phrase(
                    "the mask of {name} means the opposite: True at {sum} of {size} places in the port, at "
                    "the other {reference} in the reference",
                    name=op.name,
                    sum=int(mask.sum()),
                    size=mask.size,
                    reference=int((~mask).sum()),
                )
                fix = fixing.inverted(
                    op, slot, phrase("invert the mask of {name} in {line}", name=op.name, line=line(op))
                )
                yield ProvenChange("op.mask", message, fix, score, op.where)
                return


def other_approximation(comparison: OpComparison) -> Iterator[ProvenChange]:
    """GELU by the other formula."""
    for op in comparison.suspects:
        argument = said(op, comparison.case.backend.is_tensor).get("approximate")
        if op.name != "gelu" or argument is None:
            continue
        other = "none" if argument.value == "tanh" else "tanh"
        score = comparison.try_remade(op, retelling(op, argument, other))
        if score <= comparison.case.limit:
            message = phrase(
                "gelu has approximate '{other}' in the reference, '{value}' in the port",
                other=other,
                value=argument.value,
            )
            fix = fixing.told(
                op,
                argument,
                other,
                phrase("gelu(..., approximate={value}) in {line}", value=other == "tanh", line=line(op)),
            )
            yield ProvenChange("op.approximation", message, fix, score, op.where)


def flipped_argument(comparison: OpComparison) -> Iterator[ProvenChange]:
    """A boolean argument that should be negated, where the reference uses another op for the same."""
    for op in comparison.suspects:
        for name, argument in said(op, comparison.case.backend.is_tensor).items():
            if not isinstance(argument.value, bool):
                continue
            score = comparison.try_remade(op, retelling(op, argument, not argument.value))
            if score <= comparison.case.limit:
                theirs = PassedArgument(name, not argument.value, argument.native, argument.back)
                yield argument_proof(comparison, op, None, argument, theirs, score)
                return


def other_scalar(comparison: OpComparison) -> Iterator[ProvenChange]:
    """A number in the port's code that is another one in the reference's code or settings."""
    case = comparison.case
    node = case.reference_node
    settings = (
        []
        if node is None
        else [node.settings[n] for n in ("epsilon", "negative_slope") if n in node.settings]
    )
    numbers = [
        argument.value
        for op in comparison.counterparts
        for argument in said(op, case.reference_backend.is_tensor).values()
        if op.name in SCALAR_OPS
    ]
    for op in comparison.with_sources():
        told = said(op, case.backend.is_tensor)
        argument = next((told[name] for name in NUMBERS if name in told), None)
        if argument is None or not is_number(argument.value):
            continue
        candidates = {float(v) for v in (*numbers, *settings) if is_number(v)}
        if op.name in SCALING:
            candidates |= {1.0 / value for value in candidates if value}
            candidates |= set(natural_factors(comparison, op))
        for value in sorted(candidates - {float(argument.value)}):
            score = comparison.try_remade(op, retelling(op, argument, value))
            if score <= case.limit:
                theirs = PassedArgument(argument.name, value, argument.native, argument.back)
                yield argument_proof(comparison, op, None, argument, theirs, score)
                return


# In order: what can be read off both sides' code, then guesses, those with few candidates first.
HYPOTHESES = (
    other_arguments,
    other_approximation,
    flipped_argument,
    inverted_mask,
    another_axis,
    extra_op,
    another_order,
    other_scalar,
    missing_scale,
)
