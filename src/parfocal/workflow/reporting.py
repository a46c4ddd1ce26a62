"""What an alignment found, as a report: divergences in order of cause, each with why it is there."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial

from parfocal.attribution.divergences import Questions, divergences
from parfocal.attribution.divisions import calls_of
from parfocal.attribution.observation import Observation, limits_of
from parfocal.attribution.refining import Excuses
from parfocal.attribution.sides import ModelSide
from parfocal.attribution.whole_model import WholeModelResult
from parfocal.brief import some
from parfocal.explain.allowance import THOROUGH, Allowance
from parfocal.explain.backward.parameters import ParameterExplainer
from parfocal.explain.describing import in_words
from parfocal.explain.explainer import Explainer
from parfocal.explain.layers.leftovers import explained_leftovers
from parfocal.explain.layers.unseen import unseen
from parfocal.judge.metrics import compare_arrays
from parfocal.judge.verdict import Divergence, Finding, InheritanceReason
from parfocal.phrases import phrase
from parfocal.report.report import Report
from parfocal.weights import views
from parfocal.weights.plan import Entry
from parfocal.workflow import align_findings
from parfocal.workflow.align_coverage import coverage_of
from parfocal.workflow.alignment import Alignment
from parfocal.workflow.computed import ComputedBuffers
from parfocal.workflow.dropping import Dropping
from parfocal.workflow.pictures import with_few_pictures
from parfocal.workflow.state import buffer_results
from parfocal.workflow.state_scripts import wrong_statistics, wrong_weights
from parfocal.workflow.updates import explained_updates
from parfocal.workflow.weight_verdicts import crossed_weights, idle_weights, weight_divergences


def report_of(
    alignment: Alignment,
    observation: Observation,
    differing: list[Divergence],
    dropping: Dropping,
    explain: bool | str,
    *,
    reproducing: bool,
    made: ComputedBuffers,
) -> Report:
    fixed = alignment.tolerance is not None  # then nothing is kept that could be repeated
    limits = limits_of(fixed)
    explainer = Explainer(
        observation.precise,
        observation.pairing,
        observation.measures,
        limits[0],
        doubtful=[target for doubt in alignment.plan.ambiguous for target in doubt.targets],
        buffers=(alignment.reference.buffers_before, alignment.port.buffers_before),
        entries=alignment.plan.entries,
        divided=calls_of(observation.divided),
        reproducing=reproducing,
        attempts=alignment.attempts,
        thorough=explain == THOROUGH,
    )
    buffers: list[Divergence] = []
    conventions: list[Finding] = []
    if alignment.mode != "eval":
        buffers, conventions, names = buffer_results(alignment, observation)
        if explain and not fixed:
            buffers = explained_updates(alignment, explainer, list(zip(buffers, names, strict=True)))
    questions = Questions(describe=partial(_described_gradient, alignment) if explain else None)
    if (differing or made.entries) and not fixed:
        questions = replace(questions, excused=_excuses(alignment, observation, made.entries).of_weights)
    if explain and not fixed:
        questions = replace(
            questions,
            explain=explainer.explain,
            further=explainer.further,
            explain_parameter=partial(_explained_parameter, alignment, observation, explainer.allowance),
        )
    traces = alignment.reference.trace, alignment.port.trace
    found = divergences(observation, traces, limits, _owners(differing), questions, fixed=fixed)
    mattering, harmless = made.that_matter(found)
    leftovers, found = _leftovers(alignment, found, explain)
    crossed, perhaps_crossed = crossed_weights(alignment.plan)
    dropped, worth_knowing = dropping.differences(
        observation.pairing, alignment.reference.trace, alignment.port.trace
    )
    guilty = {each.port.path for each in found if each.port is not None and not each.inherited}
    weights, statistics = None, None
    if reproducing:
        with alignment.attempts.attempt(phrase("a script"), ""):
            weights = wrong_weights(alignment, differing)
    if reproducing and not fixed:
        with alignment.attempts.attempt(phrase("a script"), ""):
            statistics = wrong_statistics(alignment, observation, buffers)
    told = {each.port.path for each in (*found, *buffers) if each.port is not None}
    told |= dropping.ours.keys() | dropping.theirs.keys()
    reference, port = alignment.reference, alignment.port
    return Report(
        reference_name=_name(reference),
        port_name=_name(port),
        divergences=with_few_pictures(
            (
                *leftovers,
                *crossed,
                *differing,
                *mattering,
                *(each for each in found if not each.inherited),
                *(
                    each
                    for each in dropped
                    if each.port is not None
                    and each.port.path not in guilty
                    and not alignment.ignored().path(each.port.path)
                ),
                *(each for each in found if each.inherited),
                # what a guilty layer keeps count of follows from what it does
                *(
                    replace(each, inherited=True, reason=InheritanceReason.GUILTY_CALL)
                    if not each.inherited and each.port is not None and each.port.path in guilty
                    else each
                    for each in buffers
                    if each.port is None or not alignment.ignored().path(each.port.path)
                ),
            )
        ),
        findings=(
            *align_findings.findings(alignment, observation),
            *perhaps_crossed,
            *harmless,
            *conventions,
            *worth_knowing,
            *(_settings_unseen(alignment, observation, told) if explain and not fixed else ()),
            *(
                Finding("explain.problem", phrase("could not be asked: {each}", each=each))
                for each in alignment.attempts.failures
            ),
            *_cut_off(explainer.allowance),
        ),
        pairs=tuple(align_findings.pair_results(alignment, observation)),
        unpaired_reference=align_findings.unpaired(reference.trace, observation.pairing.unpaired_reference),
        unpaired_port=align_findings.unpaired(port.trace, observation.pairing.unpaired_port),
        transfer=alignment.plan,
        coverage=coverage_of(alignment, observation),
        along=tuple(align_findings.steps_along(alignment, observation)),
        limit=limits[0],
        tolerance=alignment.tolerance,
        reproduction=lambda: weights or explainer.reproduction or statistics,
    )


def _settings_unseen(
    alignment: Alignment, observation: Observation, told: Collection[str]
) -> Sequence[Finding]:
    with alignment.attempts.attempt(phrase("settings without effect"), ""):
        return tuple(unseen(observation.precise, observation.pairing, told))
    return ()


def _excuses(alignment: Alignment, observation: Observation, made: Sequence[Entry]) -> Excuses:
    sides = alignment.reference, alignment.port
    return Excuses(observation.precise, sides, (*alignment.plan.entries, *made))


def _leftovers(
    alignment: Alignment, found: list[Divergence], explain: bool | str
) -> tuple[list[Divergence], list[Divergence]]:
    """Weights without a counterpart, and why; what was found besides, inherited where it follows from it."""
    left = list(_following(weight_divergences(alignment.plan, idle_weights(alignment)), found))
    if not explain or not left:
        return left, found
    ours, theirs = (
        (side.backend, side.backend.modules(side.model)) for side in (alignment.reference, alignment.port)
    )
    explained, owners = left, frozenset[str]()
    with alignment.attempts.attempt(phrase("weights left over"), ""):
        doubted = {doubt.targets[0] for doubt in alignment.plan.ambiguous}
        explained, owners = explained_leftovers(left, ours, theirs, alignment.plan.entries, doubted)
    inside = [
        replace(each, inherited=True, reason=InheritanceReason.MADE_OTHERWISE)
        if each.port is not None and any(f"{each.port.path}.".startswith(f"{owner}.") for owner in owners)
        else each
        for each in found
    ]
    return explained, sorted(inside, key=lambda each: each.inherited)


def _following(weights: list[Divergence], found: list[Divergence]) -> Iterable[Divergence]:
    """Weights without a counterpart, but for those that a layer has for a reason known by now.

    A convolution with another number of groups has other weights: that is one mistake, not three.
    """
    known = [each for each in found if each.cause is not None and not each.inherited]
    paths = {site.path for each in known for site in (each.reference, each.port) if site is not None}
    return (
        each
        for each in weights
        if not any(f"{owner}.".startswith(f"{path}.") for owner in _owners([each]) for path in paths)
    )


def _explained_parameter(
    alignment: Alignment,
    observation: Observation,
    allowance: Allowance,
    divergence: Divergence,
    end: WholeModelResult,
    known: Collection[str],
) -> Divergence:
    if not allowance.begin(end.port):
        return divergence
    partners = {pair.port: pair.reference for pair in observation.pairing.pairs}
    entry = next(e for e in alignment.plan.entries if (e.source, e.target) == (end.reference, end.port))
    explainer = ParameterExplainer(
        observation.precise,
        partners,
        alignment.plan.entries,
        observation.gradients,
        limits_of(False)[0],
        alignment.attempts,
    )
    return explainer.explain(divergence, entry, end.measure.floor, known)


def _described_gradient(alignment: Alignment, end: WholeModelResult) -> str:
    """What the two gradients of a parameter, each as its model gave it, are to one another."""
    entry = next(e for e in alignment.plan.entries if (e.source, e.target) == (end.reference, end.port))
    ours = alignment.reference.natural.gradients.get(entry.source)
    theirs = alignment.port.natural.gradients.get(entry.target)
    if ours is None or theirs is None:
        return ""
    observed, expected = views.apply(entry.target_view, theirs), views.apply(entry.source_view, ours)
    shape = compare_arrays(observed, expected, shape=True).error_shape
    return "" if shape is None else in_words(shape, observed.size)


def _cut_off(allowance: Allowance) -> Iterator[Finding]:
    """What was not looked into any more, and how it is."""
    if allowance.left:
        places = some([path or phrase("the model") for path in allowance.left])
        message = phrase(
            "the search for causes stopped after {share} times the work of the alignment, with "
            '{places} left; explain="{thorough}" goes on',
            share=f"{allowance.share:.1f}",
            places=places,
            thorough=THOROUGH,
        )
        yield Finding("explain.budget", message)


def _owners(differing: Iterable[Divergence]) -> set[str]:
    sites = (each.port or each.reference for each in differing)
    return {site.path.rpartition(".")[0] for site in sites if site is not None}


def _name(model_side: ModelSide) -> str:
    model, backend = model_side.model, model_side.backend
    return f"{type(model).__name__} ({backend.name} {backend.framework_version})"
