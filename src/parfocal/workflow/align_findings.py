"""What an alignment says besides its divergences: results by pair, the error along the depth, findings."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

from parfocal.attribution.divisions import Division
from parfocal.attribution.measures import Measure, Remark
from parfocal.attribution.observation import Observation
from parfocal.brief import some
from parfocal.explain.causes import line as line_name
from parfocal.judge.tolerance import Tolerance
from parfocal.judge.verdict import SIDES, Finding, PairResult, RelativeError, Site, side_name, tensor_words
from parfocal.matching.values import distance
from parfocal.phrases import phrase
from parfocal.replay.trace import Trace
from parfocal.report.report import DepthPoint
from parfocal.weights.plan import Plan, presumptions
from parfocal.workflow.alignment import Alignment
from parfocal.workflow.weight_verdicts import idle_findings

SHOWN = 3  # modules that are named


def pair_results(alignment: Alignment, observation: Observation) -> Iterator[PairResult]:
    largest: dict[tuple[int, str], Measure] = {}
    for measure in observation.measures:
        key = (measure.port, measure.direction)
        if key not in largest or measure.score > largest[key].score:
            largest[key] = measure
    for pair in observation.pairing.pairs:
        forward, backward = (largest.get((pair.port, direction)) for direction in ("forward", "backward"))
        yield PairResult(
            alignment.reference.trace.nodes[pair.reference].site,
            alignment.port.trace.nodes[pair.port].site,
            pair.why.words,
            None if forward is None else forward.score,
            None if backward is None else backward.score,
            _relative_error(forward, alignment.tolerance),
            _relative_error(backward, alignment.tolerance),
        )


def _relative_error(measure: Measure | None, tolerance: Tolerance | None) -> RelativeError | None:
    """None where there is no floor, or nothing to hold it against."""
    if measure is None or measure.relative is None or tolerance is not None:
        return None
    error, floor = measure.error.rms, measure.floor.rms
    if not math.isfinite(measure.relative) or not 0 < error < math.inf:
        return None
    return RelativeError(measure.relative, measure.relative * floor / error)


def steps_along(alignment: Alignment, observation: Observation) -> Iterator[DepthPoint]:
    """The paired leaves in order of execution: own error, and the difference carried so far.

    What the code of a block makes of its layers' outputs shows at the last of these.
    """
    trace = alignment.port.trace
    leaves = {pair.port for pair in observation.pairing.pairs if trace.nodes[pair.port].is_leaf}
    own: dict[int, float] = {}
    beyond: dict[int, float] = {}  # relative differences of natural runs, where those were compared
    for measure in observation.measures:
        if measure.direction == "forward":
            inside = (node.order for node in trace.subtree(measure.port) if node.order in leaves)
            last = max(inside, default=measure.port) if measure.own else measure.port
            own[last] = max(own.get(last, 0.0), measure.score)
            if alignment.tolerance is not None and measure.relative is not None:
                beyond[measure.port] = measure.relative
    for pair in observation.pairing.pairs:
        node = trace.nodes[pair.port]
        if not node.is_leaf or pair.gives is None:
            continue
        given = alignment.reference.trace.nodes[pair.gives].outputs
        carried = [
            distance(a.data.fingerprint, b.data.fingerprint)
            for a, b in zip(node.outputs.values(), given.values(), strict=False)
        ]
        drift = beyond.get(pair.port, max(carried, default=0.0))
        yield DepthPoint(node.path, own.get(pair.port, 0.0), min(drift, 1e9))


def _transfer_findings(plan: Plan) -> Iterator[Finding]:
    for note in plan.noted:
        if not note.is_first_difference:  # found from fingerprints; here it is known from the values
            yield Finding("transfer", note.message, setting=note.setting)


def findings(alignment: Alignment, observation: Observation) -> Iterator[Finding]:
    """Worth knowing also when all is well."""
    nodes = alignment.port.trace.nodes
    yield from idle_findings(alignment)
    for line in presumptions(alignment.plan.presumed):
        yield Finding("transfer", line)
    yield from _transfer_findings(alignment.plan)
    for problem in observation.precise.problems:
        yield Finding(
            "floor.imprecise",
            phrase("no float64 floor for {problem}; the other floors were used", problem=problem),
        )
    for path in dict.fromkeys(
        nodes[alignment.port.trace.around(measure.port, measure.levels)].path
        for measure in observation.overlooked
    ):
        message = phrase(
            "{path} differs and is ignored: what the whole model gives is not judged",
            path=path or phrase("the model"),
        )
        yield Finding("ignored", message)
    for pattern in alignment.ignored().unmatched():
        yield Finding(
            "ignored.nothing",
            phrase("ignore={pattern} matches the path of no call on either side", pattern=repr(pattern)),
        )
    for measure in observation.measures:
        if measure.remark is Remark.SPELLING:
            other, own = alignment.reference.trace.nodes[measure.reference], nodes[measure.port]
            message = phrase(
                "input {slot} of {path} {spelling}",
                slot=measure.slot,
                path=own.path or phrase("the model"),
                spelling=measure.message,
            )
            yield Finding("input.spelling", message, other.site, own.site)
    yield from _divided(observation.divided, alignment.reference.trace, alignment.port.trace)
    extra = len(alignment.port.natural.outputs) - len(alignment.reference.natural.outputs)
    if extra > 0:
        words = phrase("1 more output") if extra == 1 else phrase("{extra} more outputs", extra=extra)
        yield Finding(
            "output.extra", phrase("{outputs} in the port than in the reference; not compared", outputs=words)
        )
    count, left = leaves(alignment, observation)
    if left > 0.2 * count:
        message = phrase(
            "{left} of the port's {count} calls have no partner: what lies between is judged as one",
            left=left,
            count=count,
        )
        yield Finding("pairing.low", message)


def leaves(alignment: Alignment, observation: Observation) -> tuple[int, int]:
    """The port's innermost calls, and how many of them have no partner."""
    nodes = alignment.port.trace.nodes
    without = sum(nodes[order].is_leaf for order in observation.pairing.unpaired_port)
    return sum(node.is_leaf for node in nodes), without


def unpaired(trace: Trace, orders: Iterable[int]) -> tuple[Site, ...]:
    return tuple(trace.nodes[order].site for order in orders)


def _divided(divided: Iterable[Division], reference: Trace, port: Trace) -> Iterator[Finding]:
    """One for every line of code that does what the other side's module does, with all such modules."""
    groups: dict[tuple[object, ...], list[Division]] = {}
    for each in divided:
        known = each.meeting
        line = None if known is None else (known.op, known.file, known.line)
        groups.setdefault((each.is_given, each.made_by_port, line), []).append(each)
    for group in groups.values():
        first = group[0]
        own, other = port.nodes[first.spots[0][0]], reference.nodes[first.references[0]]
        yield Finding("work.divided", _division_message(group, port), other.site, own.site)


def _division_message(group: list[Division], port: Trace) -> str:
    first = group[0]
    _, side, slot = next(spot for spot in first.spots if (spot[1] == "output") == first.is_given)
    paths = list(dict.fromkeys(port.nodes[each[0]].path for division in group for each in division.spots))
    what = phrase("{tensor} of {whose}", tensor=tensor_words(side, slot), whose=some(paths, SHOWN))
    if first.meeting is None:
        return phrase(
            "{what} differs, and the code behind it makes up for it: compared where the two meet again",
            what=what,
        )
    has, across = SIDES if first.made_by_port else SIDES[::-1]
    known = first.meeting
    line = "" if known.file is None else f" ({line_name(known)})"
    return phrase(
        "{what}: what the {has} has there the {across} has after {op}{line}; compared behind it",
        what=what,
        has=side_name(has),
        across=side_name(across),
        op=known.op,
        line=line,
    )
