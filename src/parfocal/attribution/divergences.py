"""From measures to divergences: who is to blame, in which order, and what merely follows.

A call's own error blames the call; an error at its input (or of the gradient at its output) was
made by the code around it and blames the call that encloses it. The whole model's results count for
themselves only when no single call explains them.

Why a difference is inherited is a ladder of reasons for which a call is not to blame. The rungs are tried in
order for every measure above the limit, in order of execution; the first that holds is the reason. A measure
for which none holds is the call's own.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol

from parfocal.attribution.divisions import pieces_of
from parfocal.attribution.measures import (
    Measure,
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
from parfocal.attribution.observation import Observation
from parfocal.attribution.whole_model import WholeModelResult
from parfocal.judge import limits
from parfocal.judge.verdict import Divergence, InheritanceReason, made_by_the_code_of, tensor_words
from parfocal.matching.spans import starts_of_runs
from parfocal.phrases import phrase
from parfocal.replay.trace import Node, Trace

MISTAKES = limits.verdicts.MISTAKES.value
PLACES = limits.verdicts.PLACES.value

_GIVEN = {
    "forward": phrase("the two sides were given different inputs"),
    "backward": phrase("what comes back from the loss differs"),
}
_UNEXPLAINED = {
    "forward": phrase("no paired call explains it: look at what was not paired"),
    "loss": phrase("the outputs agree and the losses do not: the two loss functions differ"),
}


Excused = Callable[[Measure], bool]


class Further(Protocol):
    """Says whether a difference in code that has a mistake already is another mistake; None: it follows."""

    def __call__(
        self, divergence: Divergence, seen: Measure, *, may_explain: bool, needs_proof: bool
    ) -> Divergence | None: ...


@dataclass(frozen=True, slots=True)
class Questions:
    """Whom to ask about a divergence; None: nobody.

    ``explain`` is asked about every difference that follows from no other, ``further`` whether one in the
    code of a call that is guilty already is another mistake; ``excused`` says whether one follows from
    weights. ``describe`` says what the gradient of a parameter looks like beside the reference's.
    """

    explain: Callable[[Divergence, Measure], Divergence] | None = None
    excused: Excused | None = None
    explain_parameter: Callable[[Divergence, WholeModelResult, Collection[str]], Divergence] | None = None
    further: Further | None = None
    describe: Callable[[WholeModelResult], str] | None = None


def divergences(
    observation: Observation,
    traces: tuple[Trace, Trace],
    limits: tuple[float, float],
    guilty_weights: Collection[str] = (),
    questions: Questions | None = None,
    *,
    fixed: bool = False,
) -> list[Divergence]:
    """All differences above the noise: the causes in order of execution, then what follows from them.

    ``traces``: of the reference and of the port. ``guilty_weights``: modules of the port whose weights are
    known to differ. ``fixed``: natural runs were compared by a fixed tolerance.
    """
    questions = questions or Questions()
    ladder = Ladder(observation, traces, limits, guilty_weights, questions.excused)
    attribution = _Attribution(observation, traces, questions, ladder, fixed)
    found: list[Divergence] = []
    for step in (attribution.of_call, attribution.of_parameter, attribution.of_result):
        step(found, limits)
    if fixed:  # of natural runs only the first difference is sure to be made there
        found = [
            _inherited(each, InheritanceReason.NATURAL_RUN if index else None)
            for index, each in enumerate(found)
        ]
    return sorted(found, key=lambda divergence: divergence.inherited)


class _Attribution:
    """Makes the divergences of one observation, and asks about those that follow from no other."""

    def __init__(
        self,
        observation: Observation,
        traces: tuple[Trace, Trace],
        questions: Questions,
        ladder: Ladder,
        fixed: bool,
    ) -> None:
        self.observation = observation
        self.traces = traces
        self.questions = questions
        self.ladder = ladder
        self.fixed = fixed
        self.budget = _QuestionBudget()

    @cached_property
    def _first_calls(self) -> list[dict[str, Node]]:
        """Of every module, by its path: there may be as many results as there are calls."""
        return [{node.path: node for node in reversed(trace.nodes)} for trace in self.traces]

    def of_call(self, found: list[Divergence], limits: tuple[float, float]) -> None:
        """Differences of calls, forward and then backward."""
        ladder, nodes = self.ladder, self.traces[1].nodes
        for measure in _in_order(self.observation.measures, limits[0], nodes):
            guilty, reason = ladder.guilty(measure), ladder.reason(measure)
            divergence = _inherited(_divergence(measure, *self.traces), reason)
            if measure.port in ladder.starts:
                divergence = self._of_run(divergence, measure)
            divergence = self._asked(divergence, measure, found)
            found.append(divergence)
            ladder.paths |= {guilty, divergence.port.path if divergence.port is not None else guilty}
        ladder.paths |= {nodes[order].path for order in ladder.starved}

    def _of_run(self, divergence: Divergence, measure: Measure) -> Divergence:
        """Of several calls that do together what the reference does in one: the first of them."""
        nodes = self.traces[1].nodes
        start, last = nodes[self.ladder.starts[measure.port]], nodes[measure.port]
        done = phrase(
            "what the reference does in one call is done here by {path} to {last_path}",
            path=start.path,
            last_path=last.path,
        )
        return replace(divergence, port=start.site, message=done)

    def _asked(self, divergence: Divergence, measure: Measure, found: list[Divergence]) -> Divergence:
        explain, further = self.questions.explain, self.questions.further
        if explain is not None and not (divergence.inherited or measure.given):
            return (
                _once(self.budget.answered(explain(divergence, measure)), found)
                if self.budget.may_ask
                else divergence
            )
        if further is None or not divergence.inherited or measure.direction != "forward":
            return divergence
        needs_proof = self.ladder.needs_proof(measure, divergence.reason)
        another = further(divergence, measure, may_explain=self.budget.may_ask, needs_proof=needs_proof)
        if another is None or (another.cause is None and not needs_proof):
            return divergence
        return self.budget.answered(another)

    def of_parameter(self, found: list[Divergence], limits: tuple[float, float]) -> None:
        """Gradients of parameters, each that of its layer."""
        ladder, port = self.ladder, self.traces[1]
        paired = {port.nodes[pair.port].path for pair in self.observation.pairing.pairs if pair.whole}
        sources: set[str] = set()
        for end in self.observation.parameters:
            if end.measure.score <= limits[0]:
                continue
            owner = end.port.rpartition(".")[0]
            reason = self._parameter_reason(end, owner in paired, sources)
            divergence = self._parameter(end, reason)
            guilty = divergence.port.path if divergence.port is not None else owner
            if reason is None and guilty in ladder.paths:
                reason = InheritanceReason.GUILTY_CALL
            found.append(_inherited(divergence, reason))
            ladder.paths |= {owner, guilty}
            sources.add(end.reference)

    def _parameter_reason(
        self, end: WholeModelResult, paired: bool, sources: Collection[str]
    ) -> InheritanceReason | None:
        paths = self.ladder.paths
        if end.follows or end.port.rpartition(".")[0] in paths:
            return InheritanceReason.GUILTY_CALL
        # a layer that is not paired gets its gradient through the code around it, guilty or not
        if not paired and paths:
            return InheritanceReason.UNPAIRED
        # nor do several of the port that are one in the reference make several mistakes
        return InheritanceReason.SAME_PARAMETER if end.reference in sources else None

    def _parameter(self, end: WholeModelResult, reason: InheritanceReason | None) -> Divergence:
        divergence = _end_divergence(end, self.traces, self._first_calls, "gradient", reason)
        asked = self.questions
        if asked.explain_parameter is not None and reason is None and self.budget.may_ask:
            return self.budget.answered(asked.explain_parameter(divergence, end, self.ladder.paths))
        if asked.describe is not None and self.fixed and self.budget.may_ask:
            message = divergence.message or asked.describe(end)
            return self.budget.answered(replace(divergence, message=message))
        return divergence

    def of_result(self, found: list[Divergence], limits: tuple[float, float]) -> None:
        """What comes out of the whole model: outputs, the loss, gradients."""
        caused, first_phase = bool(found) and not self.ladder.by_the_loss, ""
        describe = self.questions.describe
        for end in self.observation.ends:
            if end.measure.score <= limits[1]:
                continue
            first_phase = first_phase or end.phase  # gradients follow from a loss, a loss from outputs
            reason = (
                InheritanceReason.CALLS
                if caused
                else InheritanceReason.EARLIER_PHASE
                if end.phase != first_phase
                else None
            )
            divergence = _end_divergence(end, self.traces, self._first_calls, end.phase, reason)
            own = not (divergence.inherited or divergence.message)
            if describe is not None and end.phase == "gradient" and own:
                divergence = replace(divergence, message=describe(end))
            found.append(divergence)


class _QuestionBudget:
    """How many divergences were put to the hypotheses, and how many different answers came back."""

    def __init__(self) -> None:
        self._mistakes: set[object] = set()
        self._places = 0

    @property
    def may_ask(self) -> bool:
        return len(self._mistakes) < MISTAKES and self._places < PLACES

    def answered(self, divergence: Divergence) -> Divergence:
        self._places += 1
        self._mistakes.add(self._places if divergence.cause is None else divergence.cause.mistake)
        return divergence


def _in_order(measures: Collection[Measure], limit: float, nodes: Sequence[Node]) -> Iterator[Measure]:
    """Those above the limit: forward in order of execution, then as gradients come back."""
    forward = (m for m in measures if m.direction == "forward" and m.score > limit)
    yield from sorted(forward, key=lambda measure: moment(measure, nodes))
    yield from in_backward_order(measures, limit, nodes)


def _inherited(divergence: Divergence, reason: InheritanceReason | None) -> Divergence:
    return replace(divergence, inherited=reason is not None, reason=reason)


def _once(divergence: Divergence, found: Iterable[Divergence]) -> Divergence:
    """Inherited where the same line of the same module was told for the same reason already."""
    if divergence.cause is None or divergence.port is None or divergence.port.line is None:
        return divergence
    known = [
        each.port
        for each in found
        if each.cause is not None and each.cause.mistake == divergence.cause.mistake and not each.inherited
    ]
    if divergence.inherited or not any(site == divergence.port for site in known):
        return divergence
    return _inherited(divergence, InheritanceReason.SAME_LINE)


def _divergence(measure: Measure, ours: Trace, theirs: Trace) -> Divergence:
    guilty = theirs.nodes[theirs.around(measure.port, measure.levels)]
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
    )


def _end_divergence(
    end: WholeModelResult,
    traces: tuple[Trace, Trace],
    by_path: Sequence[Mapping[str, Node]],
    phase: str,
    reason: InheritanceReason | None,
) -> Divergence:
    """``by_path``: the first call of every module, of either side."""
    sites = []
    for trace, first_calls, path in zip(traces, by_path, (end.reference, end.port), strict=True):
        owner = path.rpartition(".")[0] if phase == "gradient" else ""
        node = first_calls.get(owner, trace.nodes[0])
        sites.append(replace(node.site, path=owner))
    what = {
        "gradient": phrase("gradient of the parameter {port}", port=end.port),
        "loss": phrase("the loss"),
        "forward": phrase("output {port} of the whole model", port=end.port),
    }[phase]
    measure = end.measure
    message = measure.message or ("" if reason is not None else _UNEXPLAINED.get(phase, ""))
    found = Divergence(
        phase, sites[0], sites[1], what, measure.comparison, measure.floor, measure.score, message
    )
    return _inherited(found, reason)


class Ladder:
    """What is known to be wrong so far (``paths``: modules of the port), and what follows from it."""

    def __init__(
        self,
        observation: Observation,
        traces: tuple[Trace, Trace],
        limits: tuple[float, float],
        guilty: Iterable[str],
        excused: Excused | None,
    ) -> None:
        """``excused`` says whether a difference follows from weights that differ."""
        reference, port = traces
        measures = observation.measures
        self.port = port
        self.paths = set(guilty)
        self._by_weights = frozenset(guilty)
        self.starts = starts_of_runs(observation.pairing)
        self.starved = starved_calls(measures)
        self.by_the_loss = loss_differs_first(observation, limits)
        self._unfed = observation.unfed
        self._silent = silent_calls(measures)
        self._idle = idle_calls(measures, reference)
        self._pieces = pieces_of(observation.divided)
        self._users = TensorUsers(port)
        self._paired = {pair.port for pair in observation.pairing.pairs}
        wrong = (m for m in measures if m.direction == "forward" and m.score > limits[0])
        self._unlike = set(_unlike_layers(wrong, reference, port))
        self._excused = excused

    def guilty(self, measure: Measure) -> str:
        """The port's module that made the error; of a run of calls that do one work the first."""
        maker = self.port.around(measure.port, measure.levels)
        return self.port.nodes[self.starts.get(measure.port, maker)].path

    def reason(self, measure: Measure) -> InheritanceReason | None:
        """Why the difference is inherited; None for the call's own."""
        return next((reason for reason, holds in RUNGS if holds(self, measure)), None)

    def was_told(self, measure: Measure) -> bool:
        """The module that makes it is guilty already."""
        return self.guilty(measure) in self.paths

    def needs_proof(self, measure: Measure, reason: InheritanceReason | None) -> bool:
        """That it follows must be shown: by running the code with what was told mended."""
        by_code = self.guilty(measure) not in self._by_weights
        return reason is InheritanceReason.GUILTY_CALL and not measure.given and by_code

    def is_doubtful(self, measure: Measure) -> bool:
        """Without the reference's inputs a call cannot be told from what came before it."""
        return measure.own and measure.port in self._unfed and bool(self.paths)

    def is_cut_off(self, measure: Measure) -> bool:
        """A gradient, or a part of it, is missing because another call sends none."""
        return (
            (measure.absent and comes_before(measure, self.starved, self.port.nodes))
            or lacks_a_part(measure, self._silent, self.port.nodes)
            or (measure.own and measure.unwanted and measure.port in self._idle)
        )

    def comes_from_users(self, measure: Measure) -> bool:
        """A gradient comes from the code that uses the tensor, and that code is guilty."""
        if measure.direction != "backward" or measure.own:
            return False
        users = self._users.of(measure) | code_that_uses(measure, self.port, self._paired)
        return bool(users & self.paths) or (measure.port, measure.slot) in self._unlike

    def is_of_one_piece(self, measure: Measure) -> bool:
        """Going backward, code that is one piece is guilty as one, whichever part of it is wrong."""
        if measure.direction != "backward":
            return False
        piece = _piece_around(self.port.around(measure.port, measure.levels), self._pieces, self.port)
        return bool({self.port.nodes[order].path for order in piece} & self.paths)

    def is_of_weights(self, measure: Measure) -> bool:
        """The call is right once its weights are the reference's."""
        return self._excused is not None and self._excused(measure)

    def is_of_the_loss(self, measure: Measure) -> bool:
        """Only the losses differ: so does what comes back from them."""
        return self.by_the_loss and measure.direction == "backward" and measure.given


RUNGS: tuple[tuple[InheritanceReason, Callable[[Ladder, Measure], bool]], ...] = (
    (InheritanceReason.GUILTY_CALL, Ladder.was_told),
    (InheritanceReason.NOT_FED, Ladder.is_doubtful),
    (InheritanceReason.CUT_OFF, Ladder.is_cut_off),
    (InheritanceReason.USED_BY_GUILTY, Ladder.comes_from_users),
    (InheritanceReason.ONE_PIECE, Ladder.is_of_one_piece),
    (InheritanceReason.WEIGHTS, Ladder.is_of_weights),
    (InheritanceReason.LOSS, Ladder.is_of_the_loss),
)


def loss_differs_first(observation: Observation, limits: tuple[float, float]) -> bool:
    """The outputs agree and the losses do not: what comes back from them differs for that reason."""
    limit, end_limit = limits
    off = {end.phase for end in observation.ends if end.measure.score > end_limit}
    return (
        "loss" in off
        and "forward" not in off
        and not any(m.direction == "forward" and m.score > limit for m in observation.measures)
    )


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
