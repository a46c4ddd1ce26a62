"""Backward differences of calls whose forward result is right: a factor, a cut, a tie."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from parfocal.backends.protocol import Array, OpCall
from parfocal.explain.case import Case, Check
from parfocal.explain.causes import Proof, number, place, rounded, spelled_path
from parfocal.explain.ops.log import Op
from parfocal.explain.ops.scene import watched
from parfocal.explain.ops.telling import line
from parfocal.explain.relations import factor_between

FEW = 8  # single values that must agree before the others count as ties


def detached(case: Case) -> Iterator[Proof]:
    """The port's code cuts the graph where the reference's does not."""
    log = watched(case, case.backend, own=True)
    if log is None:
        return
    for op in log.ops:
        if op.name != "detach":
            continue

        def keep(call: OpCall, order: int = op.order) -> Any:
            return call.args[0] if call.order == order else None

        score = case.score(case.run(on_op=keep))
        if score <= case.limit:
            yield _detach_proof(case, op, score)
            return


def _detach_proof(case: Case, op: Op, score: float) -> Proof:
    """A detach that is subtracted again multiplies the gradient instead of stopping it."""
    fix = f"take detach out of {line(op)}"
    more = next(gradient_factor(case), None)
    if more is not None and abs(_factor(case)) > 1.0:
        return replace(
            more, message=f"{more.message}: detach in {line(op)} makes it so", fix=fix, port=op.where
        )
    message = f"the port stops the gradient with detach in {line(op)}, the reference lets it through"
    return Proof("grad.detached", message, fix, score, op.where)


def _factor(case: Case) -> float:
    pairs = list(_pairs(case))
    return (factor_between(*pairs[0][1:]) or 1.0) if pairs else 1.0


def gradient_factor(case: Case) -> Iterator[Proof]:
    """Every gradient is the same multiple of the reference's."""
    pairs = list(_pairs(case))
    if not pairs:
        return
    factor = factor_between(*pairs[0][1:])
    if factor is None:
        return
    factor = rounded(factor)
    scores = [
        case.judge(observed / observed.dtype.type(factor), expected, check)
        for check, observed, expected in pairs
    ]
    if max(scores) <= case.limit:
        message = f"{case.what} is {number(factor)} times the reference's, the forward result is right"
        fix = f"find what multiplies the gradient of {spelled_path(case.node.path)} by {number(factor)}"
        yield Proof("grad.scale", message, fix, max(scores))


def ties(case: Case) -> Iterator[Proof]:
    """Gradients that differ only where the input has a value more than once: a maximum, a kink."""
    for check, observed, expected in _pairs(case):
        order, side, slot, _ = check.port
        if order != case.call or side != "input":
            return
        values = case.input(slot)
        if values.shape != observed.shape:
            return
        _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
        single = (counts == 1)[inverse].reshape(values.shape) & (values != 0)
        if np.count_nonzero(single) < FEW or single.all():
            return
        score = case.judge(np.where(single, observed, expected), expected, check)
        apart = int(np.count_nonzero(observed != expected))
        if score <= case.limit:
            zeros = bool((values[~single] == 0).all())
            where = "is exactly 0" if zeros else "has the same value more than once"
            message = (
                f"the gradient of {place(case.node)} differs at {apart} of {observed.size} places, all where "
                f"its input {where}: the frameworks choose differently there"
            )
            fix = f"compare on inputs of {spelled_path(case.node.path)} without exact ties: the port is right"
            yield Proof("grad.tie", message, fix, score)


HYPOTHESES = (detached, gradient_factor, ties)


def _pairs(case: Case) -> Iterator[tuple[Check, Array, Array]]:
    for check in case.checks:
        if check.port[3] != "backward":
            continue
        observed = case.observed(check)
        expected = None if observed is None else case.expected(check, observed)
        if (
            observed is None
            or expected is None
            or not math.isfinite(float(np.abs(observed).max(initial=0.0)))
        ):
            continue
        if case.judge(observed, expected, check) > case.limit:
            yield check, observed, expected
