"""Stage: running statistics and other buffers of paired layers after a step.

What a buffer was before the step is each side's own: only what the step adds to it is judged.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from parfocal.backends.protocol import Array
from parfocal.judge.floors import EPSILON, NOTHING, Size
from parfocal.judge.verdict import Claim, Divergence, Finding, Grounds, side_name
from parfocal.phrases import phrase
from parfocal.report.coverage import Compared, LeftOut, Reason
from parfocal.workflow.recorded_runs.call_errors import GIVEN, JUMP, CallErrors
from parfocal.workflow.recorded_runs.forward import inherited_from
from parfocal.workflow.recorded_runs.gathering import DerivedTensors
from parfocal.workflow.recorded_runs.pair import NOTHING_FOUND, StageOutcome, StepPair
from parfocal.workflow.recorded_runs.steps import BeforeAndAfter, RecordedStep
from parfocal.workflow.recorded_runs.weights import COPY, DIFFERENT
from parfocal.workflow.statistics import Statistic, judged

# One framework's name for a statistic -> the common one.
NAMES = {"_mean": "running_mean", "_variance": "running_var"}


def compare_buffers(pair: StepPair, diverged: bool) -> StageOutcome:
    if pair.tolerance is not None:
        left = LeftOut(phrase("buffers"), Reason.NOT_ASKED, phrase("not judged by a fixed tolerance"))
        return StageOutcome(left_out=(left,) if pair.reference.buffers or pair.port.buffers else ())
    if bool(pair.reference.buffers) != bool(pair.port.buffers):
        reason = Reason.ONLY_REFERENCE if pair.reference.buffers else Reason.ONLY_PORT
        return StageOutcome(left_out=(LeftOut(phrase("buffers"), reason),))
    statistics = list(_statistics(pair))
    divergences, findings, _ = judged(statistics, None, JUMP)
    broadcast = _broadcast(pair) if divergences else None
    if broadcast is not None:
        divergences, findings = broadcast
    placed = [replace(each, step=pair.step, rank=pair.rank) for each in divergences]
    compared = (Compared("buffers", len(statistics)),) if statistics else ()
    return StageOutcome(inherited_from(placed, diverged), tuple(findings), compared)


def _broadcast(pair: StepPair) -> tuple[list[Divergence], list[Finding]] | None:
    """What is left when one side's ranks begin the step with the buffers of rank 0; None: nothing changes.

    A wrapper that gives rank 0's buffers to all ranks leaves training as it is, and what rank 0 saves.
    """
    for side, name in ((pair.reference, "reference"), (pair.port, "port")):
        if side.ranks < 2 or side.rank == 0:
            continue
        given = _with_first_buffers(side)
        sides = (given, pair.port) if name == "reference" else (pair.reference, given)
        pairs = replace(pair, reference=sides[0], port=sides[1])
        divergences, findings, _ = judged(list(_statistics(pairs)), None, JUMP)
        if not divergences:
            message = phrase(
                "at every step all ranks of the {side} begin with the buffers of rank 0, those of the "
                "other side "
                "with their own: the running statistics of rank {rank} differ, not those of rank 0",
                side=side_name(name),
                rank=side.rank,
            )
            return [], [*findings, Finding("dist.rank", message)]
    return None


def _with_first_buffers(side: RecordedStep) -> RecordedStep:
    first = side.launch[0]
    buffers = {
        path: BeforeAndAfter(first.buffers[path].before, moments.after) if path in first.buffers else moments
        for path, moments in side.buffers.items()
    }
    return replace(side, buffers=buffers, tensors=DerivedTensors(side.launch))


def _statistics(pair: StepPair) -> Iterator[Statistic]:
    """Those of layers that both runs have; a layer that is called again is one all the same."""
    layers: dict[tuple[str, str], list[CallErrors]] = {}
    ours, theirs = pair.reference.trace.nodes, pair.port.trace.nodes
    for each in pair.errors:
        paths = ours[each.pair.reference].path, theirs[each.pair.port].path
        layers.setdefault(paths, []).append(each)
    for (source, target), calls in layers.items():
        node, other = ours[calls[0].pair.reference], theirs[calls[0].pair.port]
        left, right = _of(pair.reference, source), _of(pair.port, target)
        for name in left.keys() & right.keys() if node.inputs else ():
            arrays = _arrays(pair, left[name][1], right[name][1])
            if arrays is None:
                continue
            before, expected, port_before, observed = arrays
            momentum = node.settings.get("momentum")
            if isinstance(momentum, float):
                kept = (1.0 - momentum) ** len(calls)
                observed = observed - kept * (port_before - before)
            elif not np.array_equal(port_before, before):
                continue  # how much of the past is left is not known
            given = max(GIVEN * EPSILON["float32"], *(each.given for each in calls))
            yield Statistic(
                right[name][0],
                before,
                expected,
                observed,
                node,
                other,
                len(calls),
                given,
                channels=_size(left[name][1]),
                ranks=pair.reference.ranks if pair.reference.ranks == pair.port.ranks else 1,
            )


def compare_initial_buffers(pair: StepPair, diverged: bool) -> StageOutcome:
    """What the two runs begin with: training may not show it, and evaluation uses it."""
    if not pair.first or pair.tolerance is not None:
        return NOTHING_FOUND
    found, count = [], 0
    ours, theirs = pair.reference.trace.nodes, pair.port.trace.nodes
    layers = {(ours[e.pair.reference].path, theirs[e.pair.port].path): e.pair for e in pair.errors}
    for (source, target), calls in layers.items():
        left, right = _of(pair.reference, source), _of(pair.port, target)
        for name in sorted(left.keys() & right.keys()):
            (reference, before), (port, other) = left[name], right[name]
            if before.before is None or other.before is None or before.before.shape != other.before.shape:
                continue
            count += 1
            apart = pair.distances.between(other.before, before.before)
            if apart.error > DIFFERENT:
                message = phrase(
                    "{port} begins with other values than {reference} of the reference",
                    port=port,
                    reference=reference,
                )
                found.append(
                    Divergence(
                        "buffer",
                        ours[calls.reference].site,
                        theirs[calls.port].site,
                        phrase("buffer {path}, before the first step", path=port),
                        apart.comparison,
                        Size(DIFFERENT, DIFFERENT) if apart.comparison is not None else NOTHING,
                        apart.error / DIFFERENT,
                        cause=Claim("weight.mismatched", message, COPY).likely(Grounds.VALUES),
                        step=pair.step,
                        rank=pair.rank,
                    )
                )
    compared = (Compared("buffers at the start", count),) if count else ()
    return StageOutcome(tuple(found), compared=compared)


def _of(side: RecordedStep, owner: str) -> dict[str, tuple[str, BeforeAndAfter]]:
    """Common name -> path and values, of a module's own floating buffers."""
    found = {}
    for path, moments in side.buffers.items():
        module, _, name = path.rpartition(".")
        if module == owner and moments.before is not None and moments.before.dtype in EPSILON:
            found[NAMES.get(name, name)] = path, moments
    return found


def _size(moments: BeforeAndAfter) -> int:
    """Of the buffer itself, also where only a projection of it was kept."""
    return 0 if moments.before is None else math.prod(moments.before.shape)


def _arrays(
    pair: StepPair, ours: BeforeAndAfter, theirs: BeforeAndAfter
) -> tuple[Array, Array, Array, Array] | None:
    """Before and after in the reference, then in the port: values, or projections where that is all."""
    sides = ((pair.reference, ours.before), (pair.reference, ours.after))
    others = ((pair.port, theirs.before), (pair.port, theirs.after))
    found = [(side, data) for side, data in (*sides, *others) if data is not None]
    if len(found) < 4 or len({data.shape for _, data in found}) > 1:
        return None
    arrays = [side.tensors.array(data) for side, data in found]
    if any(array is None for array in arrays):
        arrays = [np.array(side.tensors.sketch(data).projection) for side, data in found]
    kept = [array for array in arrays if array is not None]
    return kept[0], kept[1], kept[2], kept[3]
