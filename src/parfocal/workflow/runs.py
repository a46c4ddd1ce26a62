"""``compare``: two recorded runs, with no framework and no model at hand.

Nothing can be run again here, so a call's own error cannot be measured: it is told from what the
call inherits by how much larger the relative error is at its outputs than at its inputs. Where
tensors were kept as sketches, errors are estimated from those. Each step is compared by itself.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping
from dataclasses import replace

from parfocal.errors import EmptyComparisonError, InputError
from parfocal.judge.floors import EPSILON, NOTHING, Size
from parfocal.judge.tolerance import Tolerance
from parfocal.judge.verdict import Divergence, Finding, PairResult
from parfocal.matching.anchors import Anchor
from parfocal.matching.pairing import pair_calls
from parfocal.replay.trace import Trace
from parfocal.report.coverage import Compared, Coverage, joined
from parfocal.report.report import INCOMPLETE, Report, Step
from parfocal.run.reader import Run, load_run
from parfocal.weights.settings import told_once
from parfocal.workflow import run_between, run_state
from parfocal.workflow.recorded import Recorded, relative_error, steps_of
from parfocal.workflow.run_between import Passage
from parfocal.workflow.run_errors import GIVEN, JUMP, Errors, errors_of, give_what_is_inside, jump, likely
from parfocal.workflow.run_gradients import Judged, User, judge
from parfocal.workflow.statistics import judged

_EXACT_DTYPE = 2.0**-52


def compare(
    run_a: Run | str | os.PathLike[str],
    run_b: Run | str | os.PathLike[str],
    *,
    tolerance: Tolerance | None = None,
    layers: Mapping[str, str] | None = None,
) -> Report:
    """Compare a reference's run with a port's; works on a machine with neither framework.

    With ``tolerance`` every element of every paired tensor must be within it (full tensors only).
    """
    runs = [run if isinstance(run, Run) else load_run(run) for run in (run_a, run_b)]
    if runs[0].path.resolve() == runs[1].path.resolve():
        raise InputError(f"{runs[0].path} is compared with itself", hint="give two runs")
    steps = [steps_of(run) for run in runs]
    common = sorted(steps[0].keys() & steps[1].keys())
    if not common:
        raise EmptyComparisonError(
            f"no step with calls is in both runs: {sorted(steps[0])} and {sorted(steps[1])}",
            hint="record both sides with the same filters",
        )
    reports = [_compare_step(steps[0][step], steps[1][step], step, tolerance, layers) for step in common]
    return _joined(runs, reports, _run_findings(runs, steps), tolerance)


def _compare_step(
    reference: Recorded,
    port: Recorded,
    step: int,
    tolerance: Tolerance | None,
    layers: Mapping[str, str] | None,
) -> Report:
    ours, theirs = reference.trace, port.trace
    same = {node.path for node in ours.nodes} & {node.path for node in theirs.nodes}
    pairing = pair_calls(ours, theirs, [Anchor((path,), (path,)) for path in same], layers)
    found = likely([errors_of(pair, reference, port, tolerance) for pair in pairing.pairs], ours, theirs)
    give_what_is_inside(found, theirs)
    limit = 1.0 if tolerance else JUMP
    buffers, conventions = _buffers(found, reference, port) if tolerance is None else ([], [])
    parameters = _parameters(found, reference, port, tolerance)
    drift = max((errors.given for errors in found if math.isfinite(errors.given)), default=0.0)
    ranked = [
        (errors.pair.port, each)
        for errors in found
        for each in _divergences(errors, ours, theirs, step, limit)
        if each.phase == "forward" or _arrives(errors.pair.port, parameters, drift, limit)
    ]
    ranked += _between(found, parameters, drift, (ours, theirs), step) if tolerance is None else []
    divergences = [each for _, each in sorted(ranked, key=_moment)]
    guilty = {each.port.path for each in divergences if each.port is not None}
    wrong = [p for p in parameters if p.error > limit * p.given and p.user.port.path not in guilty]
    return Report(
        reference_name="",
        port_name="",
        divergences=(
            *divergences,
            *(replace(each.as_divergence(), step=step) for each in wrong),
            *(replace(each, step=step) for each in buffers),
        ),
        findings=(*conventions, *run_state.findings(reference, port)),
        pairs=tuple(_pair_result(errors, ours, theirs) for errors in found),
        unpaired_reference=tuple(ours.nodes[order].site for order in pairing.unpaired_reference),
        unpaired_port=tuple(theirs.nodes[order].site for order in pairing.unpaired_port),
        coverage=Coverage(
            (
                Compared("calls", len(found), len(theirs.nodes)),
                Compared("tensors", sum(1 + (errors.backward_made is not None) for errors in found)),
                Compared("parameter gradients", len(parameters)),
            ),
            directions=("forward", "backward")
            if any(errors.backward_made is not None for errors in found)
            else ("forward",),
        ),
        along=tuple(
            Step(theirs.nodes[e.pair.port].path, jump(e.given, e.made), min(e.made, 1e9))
            for e in found
            if theirs.nodes[e.pair.port].is_leaf
        ),
        limit=limit,
    )


def _buffers(
    found: list[Errors], reference: Recorded, port: Recorded
) -> tuple[list[Divergence], list[Finding]]:
    """Running statistics of paired layers; none is held against a layer that was given something else."""
    layers = [
        (
            reference.trace.nodes[each.pair.reference],
            port.trace.nodes[each.pair.port],
            max(each.given, GIVEN * EPSILON["float32"]),
        )
        for each in found
    ]
    return judged(run_state.statistics(layers, reference, port), None, JUMP)


def _between(
    found: list[Errors], parameters: list[Judged], drift: float, traces: tuple[Trace, Trace], step: int
) -> list[tuple[int, Divergence]]:
    """What the code between the calls made, where no call is blamed for it."""
    passages = [
        Passage(
            traces[0].nodes[each.pair.reference],
            traces[1].nodes[each.pair.port],
            each.taken,
            each.made,
            each.returned,
            each.backward_made or 0.0,
        )
        for each in found
    ]
    unit = GIVEN * EPSILON["float32"]
    made = list(run_between.forward(passages, traces, unit, JUMP))
    made += [
        (passage, divergence)
        for passage, divergence in run_between.backward(passages, traces, max(unit, math.sqrt(drift)), JUMP)
        if _arrives(passage.port.order, parameters, drift, JUMP)
    ]
    return [(passage.port.order, replace(each, step=step)) for passage, each in made]


def _moment(ranked: tuple[int, Divergence]) -> tuple[bool, int]:
    """In order of execution: going backward the last call is the first."""
    order, divergence = ranked
    return (True, -order) if divergence.phase == "backward" else (False, order)


def _parameters(
    found: list[Errors], reference: Recorded, port: Recorded, tolerance: Tolerance | None
) -> list[Judged]:
    """Where both sides recorded gradients: those of the paired layers' parameters."""
    if not (reference.gradients and port.gradients):
        return []
    sides = [
        (reference.trace.nodes[each.pair.reference], port.trace.nodes[each.pair.port], each) for each in found
    ]
    users = [
        User(other, own, each.given, each.backward_given)
        for other, own, each in sides
        if other.is_leaf and own.is_leaf and each.pair.whole
    ]
    return list(
        judge(
            reference.gradients,
            port.gradients,
            users,
            lambda own, other: relative_error(own, other, reference, port, tolerance),
            lambda dtype: GIVEN * EPSILON.get(dtype, _EXACT_DTYPE),
        )
    )


def _arrives(order: int, parameters: list[Judged], drift: float, limit: float) -> bool:
    """Whether an error going backward from a call shows in a parameter, or might, there being none.

    A tensor's gradient is the sum over its uses, and two models may use it otherwise for the same
    result: one takes a concatenation apart that the other makes anew.
    """
    before = [each for each in parameters if each.user.port.order <= order]
    return not before or any(
        each.relative > limit * math.sqrt(drift) and each.error > limit * each.unit for each in before
    )


def _divergences(errors: Errors, ours: Trace, theirs: Trace, step: int, limit: float) -> Iterator[Divergence]:
    own, other = theirs.nodes[errors.pair.port], ours.nodes[errors.pair.reference]
    dtype = next((value.data.dtype for value in own.outputs.values()), "float32")
    epsilon = EPSILON.get(dtype, _EXACT_DTYPE)
    for phase, given, made, comparison in (
        ("forward", errors.given, errors.made, errors.comparison),
        ("backward", errors.backward_given, errors.backward_made or 0.0, errors.backward_comparison),
    ):
        grown = jump(given, made, epsilon)
        if grown > limit:
            allowed = max(given, GIVEN * epsilon)
            size = 1.0 if comparison is None or not comparison.rel_l2 else comparison.rmse / comparison.rel_l2
            yield Divergence(
                phase,
                other.site,
                own.site,
                errors.what if phase == "forward" else "gradient of an input",
                comparison,
                NOTHING if math.isinf(made) else Size(allowed * size, allowed * size),
                grown,
                "; ".join(errors.problems) if phase == "forward" else _backward_message(errors),
                step=step,
            )


def _backward_message(errors: Errors) -> str:
    if errors.stopped:
        return f"no gradient goes on from here in the {errors.stopped}: it is stopped here or further up"
    return "what came back from every use of this tensor is one sum: look at the code around too"


def _pair_result(errors: Errors, ours: Trace, theirs: Trace) -> PairResult:
    backward = None
    if errors.backward_made is not None:
        backward = jump(errors.backward_given, errors.backward_made)
    return PairResult(
        ours.nodes[errors.pair.reference].site,
        theirs.nodes[errors.pair.port].site,
        errors.pair.why,
        jump(errors.given, errors.made),
        backward,
    )


def _run_findings(runs: list[Run], steps: list[dict[int, Recorded]]) -> Iterator[Finding]:
    for run in runs:
        if not run.complete:
            yield Finding(INCOMPLETE, f"{run.path} is incomplete: only finished calls were compared")
    for step in sorted(steps[0].keys() ^ steps[1].keys()):
        yield Finding("run.steps", f"step {step} is in one of the runs only")
    losses = [{step.step: step.loss for step in run.steps() if step.loss is not None} for run in runs]
    for step in sorted(losses[0].keys() & losses[1].keys()):
        ours, theirs = losses[0][step], losses[1][step]
        yield Finding(
            "run.loss", f"loss at step {step}: {ours:.9g} in the reference, {theirs:.9g} in the port"
        )


def _settings(reports: list[Report]) -> Iterator[Finding]:
    """Layers that are set otherwise: what that changes may be too little to be seen here."""
    sites = [(pair.reference, pair.port) for report in reports for pair in report.pairs]
    layers = ((o.kind, p.path, o.settings, p.settings) for o, p in sites if o.kind == p.kind)
    return (Finding("run.settings", message) for message in told_once(layers))


def _told_once(reports: list[Report]) -> list[Finding]:
    """What is worth knowing of a step is often so of every other."""
    return list({each.message: each for report in reports for each in report.findings}.values())


def _joined(
    runs: list[Run], reports: list[Report], findings: Iterator[Finding], tolerance: Tolerance | None
) -> Report:
    first = reports[0]
    names = [f"{run.header.model_class or run.path.name} ({run.header.framework} run)" for run in runs]
    return Report(
        reference_name=names[0],
        port_name=names[1],
        divergences=tuple(each for report in reports for each in report.divergences),
        findings=(*findings, *_settings(reports), *_told_once(reports)),
        pairs=tuple(pair for report in reports for pair in report.pairs),
        unpaired_reference=first.unpaired_reference,
        unpaired_port=first.unpaired_port,
        coverage=joined(tuple(report.coverage for report in reports)),
        along=first.along,
        limit=first.limit,
        scale="growth",
        tolerance=tolerance,
    )
