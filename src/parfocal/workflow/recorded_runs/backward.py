"""Stage: gradients of the calls' tensors, from the model's output back to its input."""

from __future__ import annotations

import math
from collections.abc import Iterator

from parfocal.judge.floors import EPSILON
from parfocal.judge.verdict import Divergence
from parfocal.phrases import phrase
from parfocal.report.coverage import LeftOut, Reason
from parfocal.workflow.recorded_runs.call_errors import GIVEN, JUMP, CallErrors
from parfocal.workflow.recorded_runs.forward import blame_around, finite, inherited_from, own_errors
from parfocal.workflow.recorded_runs.gradients import ParameterError, parameter_errors
from parfocal.workflow.recorded_runs.pair import StageOutcome, StepPair


def compare_backward(pair: StepPair, diverged: bool) -> StageOutcome:
    missing = one_sided(pair)
    if missing:
        return StageOutcome(left_out=missing)
    parameters = parameter_errors(pair)
    ranked = [
        (errors, each)
        for errors in pair.errors
        for each in own_errors(errors, pair, "backward")
        if _arrives(errors.pair.port, parameters, pair)
    ]
    if pair.tolerance is None:
        ranked += [
            (errors, each) for errors, each in _between(pair) if _arrives(errors.pair.port, parameters, pair)
        ]
    ranked.sort(key=lambda each: -each[0].pair.port)  # going backward the last call is the first
    return StageOutcome(divergences=inherited_from([each for _, each in ranked], pair.parted))


def one_sided(pair: StepPair) -> tuple[LeftOut, ...]:
    """A run without gradients beside one that has them."""
    sides = (
        (Reason.ONLY_REFERENCE, pair.port, pair.reference),
        (Reason.ONLY_PORT, pair.reference, pair.port),
    )
    return tuple(
        LeftOut(phrase("gradients"), reason)
        for reason, own, other in sides
        if other.went_back and not own.went_back
    )


def _arrives(order: int, parameters: list[ParameterError], pair: StepPair) -> bool:
    """Whether an error going backward from a call shows in a parameter, or might, there being none.

    A tensor's gradient is the sum over its uses, and two models may use it otherwise for the same
    result: one takes a concatenation apart that the other makes anew.
    """
    before = [each for each in parameters if any(user.port.order <= order for user in each.tie.users)]
    allowed = pair.limit * math.sqrt(pair.drift)
    return not before or any(
        each.relative > allowed and each.error > pair.limit * each.unit for each in before
    )


def _between(pair: StepPair) -> Iterator[tuple[CallErrors, Divergence]]:
    """The call whose output's gradient is wrong, with nothing wrong in those that came back before."""
    nodes = pair.port.trace.nodes
    unit = max(GIVEN * EPSILON["float32"], math.sqrt(pair.drift))
    for each in sorted(pair.errors, key=lambda errors: -nodes[errors.pair.port].finished):
        own = nodes[each.pair.port]
        # the last call inside of this one gives the same tensor: what comes back to it is the same
        later = [
            other
            for other in pair.errors
            if nodes[other.pair.port].finished >= own.finished
            and not own.order <= other.pair.port < own.finished
        ]
        if any(math.isinf(other.returned.error) or other.stopped for other in later):
            return
        right = max(
            [
                unit,
                *(finite(other.returned.error) for other in later),
                *(finite(other.backward_made or 0.0) for other in later if other.pair.port >= own.finished),
            ]
        )
        if own.parent is not None and each.returned.error > JUMP * right:
            what = phrase("gradient of output {slot}", slot=each.returned.slot)
            yield each, blame_around(pair, "backward", each, what, each.returned, right)
            return
