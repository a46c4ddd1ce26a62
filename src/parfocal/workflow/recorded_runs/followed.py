"""Calls of a run that followed the other: each call's own error, in units of its noise.

Every call was given what the reference's was given, so what differs is its own doing. The noise was
measured while the run was recorded; it is at least what one unit in the last place of the output is.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from parfocal.judge import limits
from parfocal.judge.floors import NOTHING, Size, coarser, error_of, score
from parfocal.judge.metrics import Comparison
from parfocal.judge.verdict import Divergence, Site, made_by_the_code_of, tensor_words
from parfocal.phrases import phrase
from parfocal.replay.trace import Node, Trace
from parfocal.workflow.recorded_runs.call_errors import CallErrors
from parfocal.workflow.recorded_runs.ops import at_its_op
from parfocal.workflow.recorded_runs.pair import StepPair
from parfocal.workflow.recorded_runs.settings import explain_call
from parfocal.workflow.recorded_runs.tensors import tie_values

LIMIT = limits.verdicts.CALL.value


@dataclass(frozen=True, slots=True)
class OwnError:
    """One tensor of a call: what the call gives, or what the code around made for it."""

    score: float
    side: str  # "input" or "output"
    slot: str
    noise: Size
    comparison: Comparison | None


def own_scores(pair: StepPair) -> dict[int, float]:
    """The largest score of each of the port's calls, forward."""
    return {
        errors.pair.port: max((each.score for each in _measured(pair, errors)), default=0.0)
        for errors in pair.errors
    }


def followed_divergences(pair: StepPair) -> Iterator[Divergence]:
    """Calls, and code between calls, whose own error is above its noise, in the order of the port."""
    for errors in pair.errors:
        for side in ("input", "output"):
            measured = [each for each in _measured(pair, errors) if each.side == side]
            worst = max(measured, key=lambda each: each.score, default=None)
            if worst is not None and worst.score > LIMIT:
                yield _divergence(pair, errors, worst)


def _divergence(pair: StepPair, errors: CallErrors, found: OwnError) -> Divergence:
    ours, theirs = inner = _nodes(pair, errors)
    what = tensor_words(found.side, found.slot)
    sites = ours.site, theirs.site
    if found.side == "input":  # the enclosing calls, at the lines that call this one
        ours, theirs = enclosing(pair.reference.trace, ours), enclosing(pair.port.trace, theirs)
        what = phrase(
            "{what} of {path}, {made_by_the_code_of}",
            what=what,
            path=inner[1].path,
            made_by_the_code_of=made_by_the_code_of(theirs.path),
        )
        sites = (
            Site(ours.path, ours.kind, None, inner[0].file, inner[0].line),
            Site(theirs.path, theirs.kind, None, inner[1].file, inner[1].line),
        )
    divergence = Divergence(
        "forward",
        *sites,
        what,
        found.comparison,
        found.noise,
        found.score,
        cause=explain_call(pair, ours, theirs),
        step=pair.step,
        rank=pair.rank,
    )
    return at_its_op(pair, divergence, ours, theirs)


def enclosing(trace: Trace, node: Node) -> Node:
    return trace.nodes[trace.around(node.order, 1)]


def _nodes(pair: StepPair, errors: CallErrors) -> tuple[Node, Node]:
    nodes = pair.reference.trace.nodes, pair.port.trace.nodes
    return nodes[0][errors.pair.reference], nodes[1][errors.pair.port]


def _measured(pair: StepPair, errors: CallErrors) -> Iterator[OwnError]:
    ours, theirs = _nodes(pair, errors)
    given = [] if theirs.parent is None else [("input", theirs.inputs, ours.inputs)]  # else it is data
    for side, own, other in (*given, ("output", theirs.outputs, ours.outputs)):
        for slot, value in tie_values(own, other).items():
            apart = pair.distances.between(own[slot].data, value.data)
            if apart.comparison is not None:
                error = error_of(apart.comparison)
            else:
                error = Size(apart.error * value.data.size.rms, 0.0)
            measured = pair.port.noise.get((theirs.order, side, slot), NOTHING)
            least = value.data.size * coarser(own[slot].data.dtype, value.data.dtype)
            noise = measured | least
            yield OwnError(score(error, noise), side, slot, noise, apart.comparison)
