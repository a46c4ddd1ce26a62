"""Stage: calls that make an error of their own going forward, and code between calls that does."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

from parfocal.judge.floors import EPSILON, NOTHING, Size
from parfocal.judge.metrics import Comparison
from parfocal.judge.verdict import Cause, Divergence, Site, made_by_the_code_of, side_name, tensor_words
from parfocal.phrases import joined, phrase
from parfocal.replay.trace import Node, Trace
from parfocal.workflow.recorded_runs.batch_statistics import statistics_cause
from parfocal.workflow.recorded_runs.call_errors import GIVEN, JUMP, CallErrors, WorstArrival, jump
from parfocal.workflow.recorded_runs.followed import enclosing, followed_divergences
from parfocal.workflow.recorded_runs.ops import at_its_op, stopping_cause
from parfocal.workflow.recorded_runs.pair import SMALLEST_UNIT, StageOutcome, StepPair
from parfocal.workflow.recorded_runs.recomputed import computes_the_same, sends_back_the_same
from parfocal.workflow.recorded_runs.settings import common_settings, explain_call


def compare_forward(pair: StepPair, diverged: bool) -> StageOutcome:
    if pair.followed:
        return StageOutcome(divergences=inherited_from(list(followed_divergences(pair)), pair.parted))
    ranked = [
        (errors.pair.port, each) for errors in pair.errors for each in own_errors(errors, pair, "forward")
    ]
    if pair.tolerance is None:
        ranked += [(errors.pair.port, each) for errors, each in _between(pair)]
    found = [each for _, each in sorted(ranked, key=lambda each: each[0])]
    return StageOutcome(divergences=inherited_from(found, pair.parted))


def own_errors(errors: CallErrors, pair: StepPair, phase: str) -> Iterator[Divergence]:
    """The call's own error in one direction, where it is larger than a correct call's can be."""
    own = pair.port.trace.nodes[errors.pair.port]
    other = pair.reference.trace.nodes[errors.pair.reference]
    epsilon = _epsilon(own)
    if phase == "forward":
        given, made, comparison = errors.given, errors.made, errors.comparison
        what, message = errors.what, joined("; ", errors.problems)
    else:
        given, made, comparison = (
            errors.backward_given,
            errors.backward_made or 0.0,
            errors.backward_comparison,
        )
        what, message = phrase("gradient of an input"), _backward_message(errors)
    given = max(given, errors.weights)
    grown = jump(given, made, epsilon)
    if grown > pair.limit and not _is_right(pair, other, own, phase):
        explain = phase == "forward"
        noise = NOTHING if math.isinf(made) else _size(max(given, GIVEN * epsilon), comparison)
        found = Divergence(
            phase,
            other.site,
            own.site,
            what,
            comparison,
            noise,
            grown,
            message,
            cause=_cause(pair, other, own) if explain else _stopped(errors, pair, other, own),
            step=pair.step,
            rank=pair.rank,
        )
        yield at_its_op(pair, found, other, own) if explain else found


def _is_right(pair: StepPair, other: Node, own: Node, phase: str) -> bool:
    """Whether both calls, computed again from what each was given, do what the reference's layer should.

    Then what they were given is apart, and the layer's own formula amplifies that.
    """
    if pair.tolerance is not None or own.kind != other.kind:
        return False
    right = {**common_settings(other), "training": other.training}
    same = computes_the_same if phase == "forward" else sends_back_the_same
    return same(pair.reference, other, right) and same(pair.port, own, right)


def _cause(pair: StepPair, other: Node, own: Node) -> Cause | None:
    return statistics_cause(pair, other, own) or explain_call(pair, other, own)


def _stopped(errors: CallErrors, pair: StepPair, other: Node, own: Node) -> Cause | None:
    return stopping_cause(pair, errors.stopped, other, own) if errors.stopped else None


def _epsilon(node: Node) -> float:
    dtype = next((value.data.dtype for value in node.outputs.values()), "float32")
    return EPSILON.get(dtype, SMALLEST_UNIT)


def _size(relative: float, comparison: Comparison | None) -> Size:
    """A relative error as that of the tensor that was compared."""
    size = 1.0 if comparison is None or not comparison.rel_l2 else comparison.rmse / comparison.rel_l2
    return Size(relative * size, relative * size)


def _backward_message(errors: CallErrors) -> str:
    if errors.stopped:
        return phrase(
            "no gradient goes on from here in the {side}: it is stopped here or further up",
            side=side_name(errors.stopped),
        )
    return phrase("what came back from every use of this tensor is one sum: look at the code around too")


def _between(pair: StepPair) -> Iterator[tuple[CallErrors, Divergence]]:
    """The call whose input is wrong, and whose output is wrong for it, with nothing wrong before."""
    nodes = pair.port.trace.nodes
    found = sorted(pair.errors, key=lambda errors: errors.pair.port)
    for each in found:
        own = nodes[each.pair.port]
        before = [other for other in found if other.pair.port < own.order]
        right = max(
            [
                GIVEN * EPSILON["float32"],
                *(finite(other.taken.error) for other in before),
                *(finite(other.made) for other in before if nodes[other.pair.port].finished <= own.order),
            ]
        )
        if own.parent is not None and min(each.made, finite(each.taken.error)) > JUMP * right:
            yield (
                each,
                blame_around(
                    pair, "forward", each, tensor_words("input", each.taken.slot), each.taken, right
                ),
            )
            return


def finite(error: float) -> float:
    """Shapes that cannot be compared say nothing here."""
    return error if math.isfinite(error) else 0.0


def blame_around(
    pair: StepPair, phase: str, errors: CallErrors, what: str, arrived: WorstArrival, right: float
) -> Divergence:
    """Blames the enclosing calls, at the lines that call the layer whose tensor is wrong."""
    inner = _nodes(pair, errors)
    outer = [enclosing(trace, node) for trace, node in zip(_traces(pair), inner, strict=True)]
    sites = [
        Site(around.path, around.kind, None, node.file, node.line)
        for around, node in zip(outer, inner, strict=True)
    ]
    found = Divergence(
        phase,
        sites[0],
        sites[1],
        phrase(
            "{what} of {path}, {made_by_the_code_of}",
            what=what,
            path=inner[1].path,
            made_by_the_code_of=made_by_the_code_of(outer[1].path),
        ),
        arrived.comparison,
        _size(right, arrived.comparison),
        arrived.error / right,
        cause=explain_call(pair, outer[0], outer[1]) if phase == "forward" else None,
        step=pair.step,
        rank=pair.rank,
    )
    return at_its_op(pair, found, outer[0], outer[1]) if phase == "forward" else found


def _traces(pair: StepPair) -> Sequence[Trace]:
    return pair.reference.trace, pair.port.trace


def _nodes(pair: StepPair, errors: CallErrors) -> Sequence[Node]:
    orders = errors.pair.reference, errors.pair.port
    return [trace.nodes[order] for trace, order in zip(_traces(pair), orders, strict=True)]


def inherited_from(found: Sequence[Divergence], diverged: bool) -> tuple[Divergence, ...]:
    """All of them as consequences, where something before them parted already."""
    return tuple(replace(each, inherited=True) for each in found) if diverged else tuple(found)
