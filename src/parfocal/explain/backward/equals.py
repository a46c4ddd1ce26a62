"""Gradients that differ only at ties: where values are equal, frameworks choose different gradients."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from parfocal.backends.protocol import Array
from parfocal.explain.backward.kinks import written_at_ties
from parfocal.explain.case import Case
from parfocal.explain.case_facts import Check
from parfocal.explain.causes import OpLine, ProvenChange, spelled_path
from parfocal.explain.ops.log import Op
from parfocal.explain.ops.names import name_of_kind
from parfocal.explain.ops.writing import writing_comparison
from parfocal.judge import limits
from parfocal.judge.verdict import Fix, ProvenBy
from parfocal.phrases import phrase

FEW = limits.pairing.AGREE_BY_CHANCE.value
# Ops whose gradient is not unique: at a kink, or between equal values.
KINKED = frozenset(
    {
        *("relu", "relu6", "leaky_relu", "prelu", "rrelu", "hardtanh", "hardsigmoid", "hardswish", "abs"),
        *("clamp", "maximum", "minimum", "fmax", "fmin", "max", "min", "amax", "amin", "sort", "topk"),
        *("take_along_axis", "gather", "index_select", "index_sample", "getitem", "median", "nanmedian"),
        *("kthvalue", "mode", "quantile", "cummax", "cummin", "norm", "normalize", "sqrt", "where", "dist"),
        *("hardshrink", "softshrink", "thresholded_relu", "elu", "celu", "selu", "l1_loss", "smooth_l1_loss"),
        *(f"{kind}max_pool{axes}d" for kind in ("", "adaptive_") for axes in (1, 2, 3)),
    }
)


def ties(case: Case) -> Iterator[ProvenChange]:
    """The gradient differs only at elements whose value occurs more than once, or lies at a kink."""
    for check in case.checks:
        if check.port[3] != "backward":
            continue
        observed = case.observed(check)
        expected = None if observed is None else case.expected(check, observed)
        if observed is None or expected is None or case.judge(observed, expected, check) <= case.limit:
            continue
        values = _values(case, check)
        if values.shape != observed.shape:
            return
        apart = ~(np.abs(observed - expected) <= case.limit * check.floor.peak)
        single = _single(values, apart)
        if np.count_nonzero(single) < FEW or single.all():
            return
        score = case.judge(np.where(single, observed, expected), expected, check)
        if score <= case.limit:
            yield from _proofs(case, check, values, apart, score)
        return


def _values(case: Case, check: Check) -> Array:
    """The tensor whose gradient it is, as the port's call has it."""
    order, side, slot, _ = check.reference
    recorded = case.recorded((order, side, slot, "forward"))
    layout = case.precise.port.script.layouts.get(check.port[:3])
    return recorded if layout is None else layout.apply(recorded)


def _single(values: Array, apart: Array) -> Array:
    """Elements whose value is unique and at no kink: not zero, and not the one value where all errors are."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    single: Array = (counts == 1)[inverse].reshape(values.shape) & (values != 0)
    where = np.unique(values[apart])
    return single & (values != where[0]) if len(where) == 1 else single


def _proofs(case: Case, check: Check, values: Array, apart: Array, score: float) -> Iterator[ProvenChange]:
    """None where no op of either side has a choice at ties: then something else acts on equal values."""
    kinks = np.unique(values[apart])
    one = (
        phrase("is exactly {value}", value=f"{kinks[0]:g}")
        if len(kinks) == 1
        else phrase("has the same value more than once")
    )
    where = _op_on(case, values, own=True)
    theirs = _op_on(case, values, own=False) if where is None else None
    chosen = where or theirs
    if chosen is None:
        return
    doing = phrase("{op} sends the gradient another way there", op=chosen.op)
    doing += "" if theirs is None else phrase(" in the reference")
    message = phrase(
        "the {what} differs at {count} of {size} places, all where the tensor {one}: {doing}",
        what=case.what,
        count=int(np.count_nonzero(apart)),
        size=apart.size,
        one=one,
        doing=doing,
    )
    fix: Fix = phrase(
        "write it as the reference does in {spelled_path}, if gradients at ties matter; without "
        "ties both are the same",
        spelled_path=spelled_path(case.node.path),
    )
    if where is not None and where.op is not None:
        fix = written_at_ties(case, where.op, where.file, where.line, fix)
    yield ProvenChange("grad.tie", message, fix, score, where, theirs, way=ProvenBy.RELATED)


def _op_on(case: Case, values: Array, *, own: bool) -> OpLine | None:
    """The first op of the call's code with a choice at ties that takes this tensor or a view of it."""
    node = case.node if own else case.reference_node
    if node is not None and node.framework_layer and name_of_kind(node.kind) in KINKED:
        return OpLine(name_of_kind(node.kind), node.file, node.line)
    comparison = writing_comparison(case)
    if comparison is None:
        return None
    log, wanted = comparison.port if own else comparison.reference, np.sort(values, axis=None)

    def takes(op: Op) -> bool:
        arrays = (log.values[key] for key in op.inputs.values())
        return any(
            array.size == wanted.size and np.array_equal(np.sort(array, axis=None), wanted)
            for array in arrays
        )

    return next((op.where for op in log.ops if not op.is_module and op.name in KINKED and takes(op)), None)
