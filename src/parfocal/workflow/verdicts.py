"""From measures to a verdict: who is to blame, in which order, and what merely follows.

A call's own error blames the call; an error at its input (or of the gradient at its output) was
made by the code around it and blames the call that encloses it. Backward errors of a call that is
already guilty forward follow from that. The whole model's results count for themselves only when
no single call explains them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import replace

from parfocal.attribution.backward_order import (
    TensorUsers,
    code_that_uses,
    comes_before,
    idle_calls,
    in_backward_order,
    lacks_a_part,
    moment,
    silent_calls,
    starved_calls,
)
from parfocal.attribution.divisions import pieces_of
from parfocal.attribution.measures import END_LIMIT, LIMIT, Measure, Remark
from parfocal.attribution.whole_model import WholeModelResult
from parfocal.judge import limits
from parfocal.judge.tolerance import Tolerance
from parfocal.judge.verdict import (
    Divergence,
    Finding,
    PairResult,
    RelativeError,
    Site,
    made_by_the_code_of,
    tensor_words,
)
from parfocal.matching.spans import starts_of_runs
from parfocal.matching.values import distance
from parfocal.phrases import phrase
from parfocal.replay.trace import Trace
from parfocal.report.report import DepthPoint
from parfocal.weights.plan import Plan, presumptions
from parfocal.workflow.alignment import Alignment, Observation
from parfocal.workflow.division_findings import division_findings
from parfocal.workflow.weight_verdicts import idle_findings

MISTAKES = limits.verdicts.MISTAKES.value
PLACES = limits.verdicts.PLACES.value


def divergences(
    alignment: Alignment,
    observation: Observation,
    limits: tuple[float, float],
    guilty_weights: set[str],
    explain: Callable[[Divergence, Measure], Divergence] | None = None,
    excused: Callable[[Measure], bool] | None = None,
    explain_parameter: Callable[[Divergence, WholeModelResult, Collection[str]], Divergence] | None = None,
    further: Callable[[Divergence, Measure], Divergence | None] | None = None,
    describe: Callable[[WholeModelResult], str] | None = None,
) -> list[Divergence]:
    """All differences above the noise: the causes in order of execution, then what follows from them.

    ``guilty_weights``: modules of the port whose weights are known to differ. ``explain`` is asked
    about every difference that follows from no other, ``further`` whether one in the code of a call
    that is guilty already is another mistake; ``excused`` says whether one follows from weights.
    ``describe`` says what the gradient of a parameter looks like beside the reference's.
    """
    limit, end_limit = limits
    ours, theirs = alignment.reference.trace, alignment.port.trace
    forward = [m for m in observation.measures if m.direction == "forward" and m.score > limit]
    forward.sort(key=lambda measure: moment(measure, theirs))
    backward = in_backward_order(observation.measures, limit, theirs)
    starved, silent = starved_calls(observation.measures), silent_calls(observation.measures)
    idle = idle_calls(observation.measures, ours)
    starts = starts_of_runs(observation.pairing)
    pieces = pieces_of(observation.divided)
    by_the_loss = _loss_differs_first(observation, limits)
    users = TensorUsers(theirs)
    calls = {pair.port for pair in observation.pairing.pairs}
    unlike = set(_unlike_layers(forward, ours, theirs))
    paths = set(guilty_weights)
    found: list[Divergence] = []
    asked = _Asked()
    for measure in (*forward, *backward):
        guilty = theirs.nodes[starts.get(measure.port, _blame(measure, theirs))].path
        # without the reference's inputs a call cannot be told from what came before it
        doubtful = measure.own and measure.port in observation.unfed and bool(paths)
        arrives = measure.direction == "backward" and not measure.own
        follows = arrives and bool(
            (users.of(measure) | code_that_uses(measure, theirs, calls)) & paths
            or (measure.port, measure.slot) in unlike
        )
        cut_off = measure.absent and comes_before(measure, starved, theirs)
        cut_off = cut_off or lacks_a_part(measure, silent, theirs)
        cut_off = cut_off or (measure.own and measure.unwanted and measure.port in idle)
        if measure.direction == "backward":  # of code that is one piece, whichever part of it is wrong
            piece = _piece_around(_blame(measure, theirs), pieces, theirs)
            follows = follows or bool({theirs.nodes[order].path for order in piece} & paths)
        inherited = guilty in paths or doubtful or cut_off or follows
        inherited = inherited or (excused is not None and excused(measure))
        inherited = inherited or (by_the_loss and measure.direction == "backward" and measure.given)
        divergence = _divergence(measure, ours, theirs, inherited=inherited)
        if measure.port in starts:
            start, last = theirs.nodes[starts[measure.port]], theirs.nodes[measure.port]
            done = phrase(
                "what the reference does in one call is done here by {path} to {last_path}",
                path=start.path,
                last_path=last.path,
            )
            divergence = replace(divergence, port=start.site, message=done)
        if explain is not None and not (divergence.inherited or measure.given) and asked.may_ask:
            divergence = _once(asked.answered(explain(divergence, measure)), found)
        elif further is not None and inherited and measure.direction == "forward" and asked.may_ask:
            another = further(divergence, measure)
            divergence = divergence if another is None else asked.answered(another)
        found.append(divergence)
        paths |= {guilty, divergence.port.path if divergence.port is not None else guilty}
    paths |= {theirs.nodes[order].path for order in starved}
    paired = {theirs.nodes[pair.port].path for pair in observation.pairing.pairs if pair.whole}
    sources: set[str] = set()
    for end in observation.parameters:
        if end.measure.score > limit:
            owner = end.port.rpartition(".")[0]
            # a layer that is not paired gets its gradient through the code around it, guilty or not
            # nor do several of the port that are one in the reference make several mistakes
            unsure = owner not in paired and bool(paths)
            inherited = end.follows or owner in paths or unsure or end.reference in sources
            divergence = _end_divergence(end, alignment, "gradient", inherited=inherited)
            if explain_parameter is not None and not inherited and asked.may_ask:
                divergence = asked.answered(explain_parameter(divergence, end, paths))
            elif describe is not None and alignment.tolerance is not None and asked.may_ask:
                message = divergence.message or describe(end)
                divergence = asked.answered(replace(divergence, message=message))
            guilty = divergence.port.path if divergence.port is not None else owner
            found.append(replace(divergence, inherited=inherited or guilty in paths))
            paths |= {owner, guilty}
            sources.add(end.reference)
    caused, first_phase = bool(found) and not by_the_loss, ""
    for end in observation.ends:
        if end.measure.score > end_limit:
            first_phase = first_phase or end.phase  # gradients follow from a loss, a loss from outputs
            inherited = caused or end.phase != first_phase
            divergence = _end_divergence(end, alignment, end.phase, inherited=inherited)
            if describe is not None and end.phase == "gradient" and not (inherited or divergence.message):
                divergence = replace(divergence, message=describe(end))
            found.append(divergence)
    if alignment.tolerance is not None:  # of natural runs only the first difference is sure to be made there
        found = [replace(each, inherited=index > 0) for index, each in enumerate(found)]
    return sorted(found, key=lambda divergence: divergence.inherited)


def _piece_around(order: int, pieces: Mapping[int, frozenset[int]], port: Trace) -> set[int]:
    """The calls whose code is one piece with a call or with one around it.

    What comes back to those comes through a border that is not compared.
    """
    found: set[int] = set()
    at: int | None = order
    while at is not None and port.nodes[at].parent is not None:  # the whole model is around everything
        found |= pieces.get(at, frozenset())
        at = port.nodes[at].parent
    return found or set(pieces.get(order, ()))


def _unlike_layers(wrong: Iterable[Measure], ours: Trace, theirs: Trace) -> Iterator[tuple[int, str]]:
    """What calls give that are no plain layers on both sides: one may do more than the other.

    What comes back to such a value is of another value then.
    """
    for measure in wrong:
        plain = all(
            node.framework_layer and node.is_leaf
            for node in (theirs.nodes[measure.port], ours.nodes[measure.reference])
        )
        if measure.side == "output" and measure.own and not plain:
            yield measure.port, measure.slot


def _once(divergence: Divergence, found: Iterable[Divergence]) -> Divergence:
    """Inherited where the same line of the same module was told for the same reason already."""
    if divergence.mistake is None or divergence.port is None or divergence.port.line is None:
        return divergence
    known = [each.port for each in found if each.mistake == divergence.mistake and not each.inherited]
    told = any(site == divergence.port for site in known)
    return replace(divergence, inherited=divergence.inherited or told)


class _Asked:
    """How many divergences were put to the hypotheses, and how many different answers came back."""

    def __init__(self) -> None:
        self._mistakes: set[object] = set()
        self._places = 0

    @property
    def may_ask(self) -> bool:
        return len(self._mistakes) < MISTAKES and self._places < PLACES

    def answered(self, divergence: Divergence) -> Divergence:
        self._places += 1
        self._mistakes.add(divergence.mistake or self._places)
        return divergence


def _loss_differs_first(observation: Observation, limits: tuple[float, float]) -> bool:
    """The outputs agree and the losses do not: what comes back from them differs for that reason."""
    limit, end_limit = limits
    off = {end.phase for end in observation.ends if end.measure.score > end_limit}
    return (
        "loss" in off
        and "forward" not in off
        and not any(m.direction == "forward" and m.score > limit for m in observation.measures)
    )


def _blame(measure: Measure, port: Trace) -> int:
    """The port's call that made the error."""
    return port.around(measure.port, measure.levels)


def _divergence(measure: Measure, ours: Trace, theirs: Trace, *, inherited: bool) -> Divergence:
    guilty = theirs.nodes[_blame(measure, theirs)]
    own, other = theirs.nodes[measure.port], ours.nodes[measure.reference]
    what = tensor_words(measure.side, measure.slot)
    port_site, reference_site = guilty.site, other.site
    if measure.given:
        what = phrase("{what} of the whole model", what=what)
    elif not measure.own:
        what = phrase(
            "{what} of {path}, {made_by_the_code_of}",
            what=what,
            path=own.path or phrase("the model"),
            made_by_the_code_of=made_by_the_code_of(guilty.path),
        )
        reference_site = ours.nodes[ours.around(other.order, measure.levels)].site
        # the line that calls the layer whose input is wrong is nearer to the mistake
        port_site = replace(port_site, file=own.file, line=own.line)
        reference_site = replace(reference_site, file=other.file, line=other.line)
    if measure.direction == "backward":
        what = phrase("gradient of {tensor}", tensor=what)
    return Divergence(
        phase=measure.direction,
        reference=reference_site,
        port=port_site,
        what=what,
        error=measure.comparison,
        noise=measure.floor,
        score=measure.score,
        message=measure.message or (_GIVEN[measure.direction] if measure.given else ""),
        inherited=inherited,
    )


_GIVEN = {
    "forward": phrase("the two sides were given different inputs"),
    "backward": phrase("what comes back from the loss differs"),
}
_UNEXPLAINED = {
    "forward": phrase("no paired call explains it: look at what was not paired"),
    "loss": phrase("the outputs agree and the losses do not: the two loss functions differ"),
}


def _end_divergence(
    end: WholeModelResult, alignment: Alignment, phase: str, *, inherited: bool
) -> Divergence:
    sites = []
    for player, path in ((alignment.reference, end.reference), (alignment.port, end.port)):
        owner = path.rpartition(".")[0] if phase == "gradient" else ""
        node = next((n for n in player.trace.nodes if n.path == owner), player.trace.nodes[0])
        sites.append(replace(node.site, path=owner))
    what = {
        "gradient": phrase("gradient of the parameter {port}", port=end.port),
        "loss": phrase("the loss"),
        "forward": phrase("output {port} of the whole model", port=end.port),
    }[phase]
    measure = end.measure
    message = measure.message or ("" if inherited else _UNEXPLAINED.get(phase, ""))
    return Divergence(
        phase, sites[0], sites[1], what, measure.comparison, measure.floor, measure.score, message, inherited
    )


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
            pair.why,
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
    settings = {each.message: each.difference for each in plan.settings}
    for note in plan.notes:
        if note != plan.first_difference:  # found from fingerprints; here it is known from the values
            yield Finding("transfer", note, setting=settings.get(note, ""))


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
        nodes[_blame(measure, alignment.port.trace)].path for measure in observation.overlooked
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
    yield from division_findings(observation.divided, alignment.reference.trace, alignment.port.trace)
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


def limits_of(fixed: bool) -> tuple[float, float]:
    """What a score may be at most: for single calls, and for the whole model."""
    return (1.0, 1.0) if fixed else (LIMIT, END_LIMIT)


def unpaired(trace: Trace, orders: Iterable[int]) -> tuple[Site, ...]:
    return tuple(trace.nodes[order].site for order in orders)
