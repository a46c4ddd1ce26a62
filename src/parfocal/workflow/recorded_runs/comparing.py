"""``compare``: two recorded runs, step by step, stage by stage, rank by rank.

Nothing can be run again here, so a call's own error cannot be measured: it is told from what the
call inherits by how much larger the relative error is at its outputs than at its inputs. Where
tensors were kept as sketches, errors are estimated from those. The stages stand in the order in
which a training step goes, so that the first difference is the cause of the later ones.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from parfocal.brief import some
from parfocal.errors import EmptyComparisonError, InputError
from parfocal.judge.tolerance import Tolerance
from parfocal.judge.verdict import Divergence, Finding, PairResult, Site, side_name
from parfocal.phrases import phrase
from parfocal.report.coverage import Compared, Coverage, LeftOut, Reason
from parfocal.report.report import INCOMPLETE, OTHER_STEPS, DepthPoint, Report
from parfocal.run.reader import Run, load_run
from parfocal.workflow.pictures import with_few_pictures
from parfocal.workflow.recorded_runs.backward import compare_backward
from parfocal.workflow.recorded_runs.buffers import compare_buffers, compare_initial_buffers
from parfocal.workflow.recorded_runs.call_errors import CallErrors, jump
from parfocal.workflow.recorded_runs.chaos import explained, note_drift, note_outputs, silence
from parfocal.workflow.recorded_runs.data import compare_data
from parfocal.workflow.recorded_runs.division import refuse_divided
from parfocal.workflow.recorded_runs.followed import LIMIT, own_scores
from parfocal.workflow.recorded_runs.forward import compare_forward
from parfocal.workflow.recorded_runs.gradients import compare_gradients
from parfocal.workflow.recorded_runs.interruption import interruptions
from parfocal.workflow.recorded_runs.launches import Launches, Steps
from parfocal.workflow.recorded_runs.logs import compare_logs
from parfocal.workflow.recorded_runs.loss import compare_entering, compare_loss
from parfocal.workflow.recorded_runs.pair import StageMemory, StageOutcome, StepPair
from parfocal.workflow.recorded_runs.ranks import compare_ranks
from parfocal.workflow.recorded_runs.rate import compare_clipping, compare_rate
from parfocal.workflow.recorded_runs.reading import StepRecords
from parfocal.workflow.recorded_runs.settings import compare_settings
from parfocal.workflow.recorded_runs.slots import compare_slots
from parfocal.workflow.recorded_runs.steps import RecordedStep
from parfocal.workflow.recorded_runs.update import compare_updates
from parfocal.workflow.recorded_runs.weights import compare_weights

Stage = Callable[[StepPair, bool], StageOutcome]  # of one step; whether anything before it parted already

# In causal order: what a stage finds can follow from what those before it found, never the other way.
STAGES: tuple[Stage, ...] = (
    compare_settings,
    compare_weights,
    compare_initial_buffers,
    compare_ranks,
    compare_data,
    compare_forward,
    compare_loss,
    compare_entering,
    compare_backward,
    compare_gradients,
    compare_clipping,
    compare_rate,
    compare_updates,
    compare_slots,
    compare_buffers,
    compare_logs,
)
# What does not depend on weights: asked also where those say nothing any more.
WITHOUT_WEIGHTS: tuple[Stage, ...] = (compare_settings, compare_data, compare_rate)


def compare(
    run_a: Run | str | os.PathLike[str],
    run_b: Run | str | os.PathLike[str],
    *,
    tolerance: Tolerance | None = None,
    layers: Mapping[str, str] | None = None,
    rank: int | None = None,
) -> Report:
    """Compare a reference's run with a port's; works on a machine with neither framework.

    With ``tolerance`` every element of every paired tensor must be within it (full tensors only).
    ``layers`` says which module of the reference is which of the port; ``rank`` compares one rank only. Runs
    of several ranks are compared rank by rank; where the two have not equally many, as one process each.
    """
    reference, port = (run if isinstance(run, Run) else load_run(run) for run in (run_a, run_b))
    if reference.path.resolve() == port.path.resolve():
        raise InputError(
            phrase("{path} is compared with itself", path=reference.path), hint=phrase("give two runs")
        )
    gathered = _Gathered(tolerance)
    launches = Launches.of(reference, port, rank)
    gathered.add(StageOutcome(left_out=launches.left_out))
    for steps in _steps_of(launches, gathered):
        pairs = [gathered.pair(ours, theirs, dict(layers or {})) for ours, theirs in steps]
        for pair in pairs:
            note_drift(pair)
            gathered.stop_where_silent(pair)
        for stage in STAGES:
            if not gathered.chaotic or stage in WITHOUT_WEIGHTS:
                for pair in pairs:
                    gathered.add_unless_chaos(pair, stage(pair, gathered.diverged))
        for pair in pairs:
            if not gathered.chaotic:
                gathered.add_calls(pair)
                note_outputs(pair)
            gathered.add(StageOutcome(findings=tuple(interruptions(pair))))
    if not gathered.pairs:
        raise EmptyComparisonError(
            phrase(
                "no step with calls is in both runs: {reference} and {port}",
                reference=gathered.steps[0],
                port=gathered.steps[1],
            ),
            hint=phrase("record both sides with the same filters"),
        )
    findings = (*_left_incomplete(reference, port, gathered), *_other_steps(gathered))
    gathered.add(StageOutcome(findings=findings))
    return gathered.report(reference, port)


def _left_incomplete(reference: Run, port: Run, gathered: _Gathered) -> Iterator[Finding]:
    """Runs that were cut short between two steps, or in a step that the other run does not have."""
    told = {each.port is not None for each in gathered.findings.values() if each.code == INCOMPLETE}
    for is_port, name, run, steps in (
        (False, "reference", reference, gathered.steps[0]),
        (True, "port", port, gathered.steps[1]),
    ):
        if not run.complete and is_port not in told:
            last = phrase("after step {max}", max=max(steps)) if steps else phrase("before its first step")
            yield Finding(
                INCOMPLETE,
                phrase(
                    "the {name}'s run ends {last}, and was not closed: {path}",
                    name=side_name(name),
                    last=last,
                    path=run.path,
                ),
            )


def _steps_of(launches: Launches, gathered: _Gathered) -> Iterator[Steps]:
    """Step by step what is compared with each other, as far as both runs have it."""
    for ours, theirs in launches.steps():
        for rank in sorted({*(ours.ranks if ours else ()), *(theirs.ranks if theirs else ())}):
            gathered.note_step(
                None if ours is None else ours.ranks.get(rank),
                None if theirs is None else theirs.ranks.get(rank),
                launches.together,
            )
        if ours is None or theirs is None:
            continue
        found = launches.pairs(ours, theirs)
        if not gathered.memories:  # the first step that both have
            refuse_divided(found)
        if any(left.trace.nodes and right.trace.nodes for left, right in found):
            gathered.add(StageOutcome(left_out=launches.cannot_gather(ours, theirs)))
            yield found


def _other_steps(gathered: _Gathered) -> Iterator[Finding]:
    """Steps that only one run has: nothing is known of them."""
    ours, theirs = map(set, gathered.steps)
    if ours == theirs:
        return
    message = phrase(
        "the reference has {reference} steps, the port {port}: not compared are {steps}",
        reference=len(ours),
        port=len(theirs),
        steps=some([str(step) for step in sorted(ours ^ theirs)], 6),
    )
    yield Finding(OTHER_STEPS, message)


@dataclass(slots=True)
class _Gathered:
    """What the stages found so far."""

    tolerance: Tolerance | None
    divergences: list[Divergence] = field(default_factory=list)
    findings: dict[str, Finding] = field(default_factory=dict)  # by their words: each is told once
    compared: dict[str, Compared] = field(default_factory=dict)
    left_out: list[LeftOut] = field(default_factory=list)
    pairs: list[PairResult] = field(default_factory=list)
    unpaired: tuple[tuple[Site, ...], tuple[Site, ...]] = ((), ())
    directions: tuple[str, ...] = ()
    along: tuple[DepthPoint, ...] = ()
    limit: float = 0.0
    followed: bool = False
    memories: dict[int, StageMemory] = field(default_factory=dict)  # by rank
    chaotic: bool = False  # from the present step on: weights say nothing any more
    steps: tuple[list[int], list[int]] = field(default_factory=lambda: ([], []))

    def pair(self, ours: RecordedStep, theirs: RecordedStep, layers: Mapping[str, str]) -> StepPair:
        first = ours.rank not in self.memories
        memory = self.memories.setdefault(ours.rank, StageMemory())
        return StepPair(ours, theirs, self.tolerance, layers, self.diverged, first, memory)

    @property
    def diverged(self) -> bool:
        return bool(self.divergences)

    def add(self, outcome: StageOutcome) -> None:
        self.divergences += outcome.divergences
        for finding in outcome.findings:
            self.findings.setdefault(finding.message, finding)
        for each in outcome.compared:
            known = self.compared.get(each.what, Compared(each.what, 0))
            of = (known.of or 0) + (each.of or 0)
            self.compared[each.what] = Compared(each.what, known.count + each.count, of or None)
        self.left_out += [each for each in outcome.left_out if each not in self.left_out]

    def stop_where_silent(self, pair: StepPair) -> None:
        outcome = None if self.diverged or self.chaotic else silence(pair)
        if outcome is not None:
            self.chaotic = True
            self.add(outcome)

    def add_unless_chaos(self, pair: StepPair, outcome: StageOutcome) -> None:
        """Where the first differences are no more than chaos, no weights say anything any more."""
        chaos = None if self.diverged or self.chaotic else explained(pair, outcome)
        self.chaotic = self.chaotic or chaos is not None
        self.add(outcome if chaos is None else chaos.told())

    def note_step(self, ours: StepRecords | None, theirs: StepRecords | None, together: bool) -> None:
        """``together``: a rank that only one run has is no step that only one has."""
        for number, side in enumerate((ours, theirs)):
            if side is not None and side.calls:
                self.steps[number].append(side.step)
        if together and 0 not in (each.rank for side in (ours, theirs) if side for each in side.calls):
            return
        for reason, side, other in ((Reason.ONLY_REFERENCE, theirs, ours), (Reason.ONLY_PORT, ours, theirs)):
            left = (
                None
                if side is not None or other is None
                else LeftOut(phrase("step {step}", step=other.step), reason)
            )
            if left is not None and left not in self.left_out:
                self.left_out.append(left)

    def add_calls(self, pair: StepPair) -> None:
        ours, theirs = pair.reference.trace.nodes, pair.port.trace.nodes
        scores = own_scores(pair) if pair.followed else {}
        self.pairs += [_pair_result(errors, pair, scores) for errors in pair.errors]
        back = [errors for errors in pair.errors if errors.backward_made is not None]
        tensors = Compared("tensors", len(pair.errors) + len(back))
        self.add(StageOutcome(compared=(Compared("calls", len(pair.errors), len(theirs)), tensors)))
        self.limit = LIMIT if pair.followed else pair.limit
        self.followed = pair.followed
        if not self.along:
            self.directions = ("forward", "backward") if back else ("forward",)
            self.unpaired = (
                tuple(ours[order].site for order in pair.pairing.unpaired_reference),
                tuple(theirs[order].site for order in pair.pairing.unpaired_port),
            )
            self.along = tuple(
                DepthPoint(theirs[e.pair.port].path, _own(e, scores), min(e.made, 1e9))
                for e in pair.errors
                if theirs[e.pair.port].is_leaf
            )

    def report(self, reference: Run, port: Run) -> Report:
        names = [
            phrase(
                "{model} ({framework} run)",
                model=run.header.model_class or run.path.name,
                framework=run.header.framework,
            )
            for run in (reference, port)
        ]
        return Report(
            reference_name=names[0],
            port_name=names[1],
            divergences=with_few_pictures(self.divergences),
            findings=tuple(self.findings.values()),
            pairs=tuple(self.pairs),
            unpaired_reference=self.unpaired[0],
            unpaired_port=self.unpaired[1],
            coverage=Coverage(
                tuple(sorted(self.compared.values(), key=lambda each: each.what != "calls")),
                tuple(self.left_out),
                self.directions,
            ),
            along=self.along,
            limit=self.limit,
            scale="noise" if self.followed else "growth",
            tolerance=self.tolerance,
        )


def _own(errors: CallErrors, scores: Mapping[int, float]) -> float:
    """Its own error: in units of noise where that was measured, by its growth elsewhere."""
    return scores.get(errors.pair.port, jump(errors.given, errors.made))


def _pair_result(errors: CallErrors, pair: StepPair, scores: Mapping[int, float]) -> PairResult:
    backward = None
    if errors.backward_made is not None and not pair.followed:
        backward = jump(errors.backward_given, errors.backward_made)
    return PairResult(
        pair.reference.trace.nodes[errors.pair.reference].site,
        pair.port.trace.nodes[errors.pair.port].site,
        errors.pair.why.words,
        _own(errors, scores),
        backward,
    )
