"""Gradients that are wrong though the forward result is right: a detach, a hook, a factor, a clip, a tie."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from parfocal.backends.protocol import Array, Backend
from parfocal.explain.backward.stopping import (
    HOOK,
    HookListener,
    Stop,
    StopFinder,
    StopRemover,
    by_line,
    owner_of,
)
from parfocal.explain.case import Case
from parfocal.explain.case_facts import Check
from parfocal.explain.causes import OpLine, ProvenChange, number, rounded, spelled_path
from parfocal.explain.fixes import fixing
from parfocal.explain.layers.relations import factor_between
from parfocal.judge import limits
from parfocal.judge.verdict import ProvenBy
from parfocal.phrases import phrase

TRIALS = limits.searches.GRADIENT_LINES.value
Told = Callable[[str], str]
STOPPED: dict[str, tuple[Told, Told]] = {  # how: what is said of it, and what to write
    "detach": (
        lambda line: phrase("stops the gradient with detach in {line}", line=line),
        lambda line: phrase("take detach out of {line}", line=line),
    ),
    "copy": (
        lambda line: phrase("makes a new tensor of another's numbers in {line}", line=line),
        lambda line: phrase("use the tensor itself in {line}", line=line),
    ),
    "no_grad": (
        lambda line: phrase("computes {line} without gradients (no_grad)", line=line),
        lambda line: phrase("take {line} out of the no_grad block", line=line),
    ),
    "flag": (
        lambda line: phrase("switches a tensor's gradient off before {line}", line=line),
        lambda line: phrase(
            "leave the tensor used in {line} its gradient (stop_gradient, requires_grad)", line=line
        ),
    ),
}


@dataclass(frozen=True, slots=True)
class GradientTrials:
    """How to run the call under investigation, on either side, and how wrong its gradient is then.

    Both take a watcher (see ``stopping``) and return a score. ``run`` changes the port's call and compares
    it with the unchanged reference; ``run_reference`` changes the reference's call instead.
    """

    backend: Backend
    reference_backend: Backend
    owns: Callable[[int | None], bool]
    reference_owns: Callable[[int | None], bool]
    run: Callable[[Any], float]
    run_reference: Callable[[Any], float]
    limit: float
    path: str  # of the port's call that is run: what is found inside is named from there
    reference_path: str


def trials_of(case: Case) -> GradientTrials:
    def run_reference(watcher: Any) -> float:
        repeated = case.run_reference(on_op=watcher, listener=watcher)
        scores = []
        for check in case.checks:
            observed = case.observed(check)
            if check.port[3] != "backward" or repeated is None:
                continue
            other = repeated.places.get(check.reference)
            if observed is None or other is None:
                absent = observed is None and (other is None or not np.any(other))
                scores.append(0.0 if absent else math.inf)
                continue
            layout = case.precise.port.script.layouts.get(check.port[:3])
            scores.append(case.judge(observed, other if layout is None else layout.apply(other), check))
        return max(scores, default=math.inf)

    return GradientTrials(
        case.backend,
        case.reference_backend,
        owner_of(case, own=True),
        owner_of(case, own=False),
        lambda watcher: case.tried(on_op=watcher, listener=watcher),
        run_reference,
        case.limit,
        case.precise.port.trace.nodes[case.start].path,
        "" if case.reference_node is None else case.reference_node.path,
    )


def stopped(case: Case) -> Iterator[ProvenChange]:
    """One side's code stops or changes the gradient where the other's does not."""
    proof = next(stops(trials_of(case)), None)
    if proof is None:
        return
    more = next(gradient_factor(case), None)
    if proof.code == "grad.detached" and more is not None and abs(_factor(case)) > 1.0:
        # a detach that is subtracted again multiplies the gradient instead of stopping it
        line = f"{proof.port.file}:{proof.port.line}".rpartition("/")[2] if proof.port else "?"
        message = phrase(
            "{message}: {op} in {line} makes it so",
            message=more.message,
            op=proof.port.op if proof.port else "detach",
            line=line,
        )
        proof = replace(proof, code=more.code, message=message)
    yield proof


def stops(trials: GradientTrials) -> Iterator[ProvenChange]:
    """What is tried: the port without each of its stops, then the reference without each of its own."""
    for own in (True, False):
        backend, run, owns = (
            (trials.backend, trials.run, trials.owns)
            if own
            else (trials.reference_backend, trials.run_reference, trials.reference_owns)
        )
        finder = StopFinder(backend, owns)
        run(finder)
        found = [stop for stop in finder.stops if stop.how != "function"]
        for group in list(by_line(found))[-TRIALS:]:
            score = run(StopRemover(backend, [stop.order for stop in group]))
            if score <= trials.limit:
                yield _proof(trials, group, score, own=own)
                return


def _proof(trials: GradientTrials, group: tuple[Stop, ...], score: float, *, own: bool) -> ProvenChange:
    first = group[0]
    where = _placed(first.where, trials.path if own else trials.reference_path)
    sites = (where, None) if own else (None, where)
    sides = phrase("port"), phrase("reference")
    subject, other = sides if own else sides[::-1]
    if first.how == "hook":
        backend, run = (
            (trials.backend, trials.run) if own else (trials.reference_backend, trials.run_reference)
        )
        listening = HookListener(backend, first.order)
        run(listening)
        code, what = changed_by_hook(listening.before, listening.after)
        message = phrase(
            "a hook of the {subject} in {line} {what}, the {other} has none",
            subject=subject,
            line=first.line,
            what=what,
            other=other,
        )
        taken = fixing.without(
            HOOK, first.where.file, first.where.line, phrase("take the hook out of {line}", line=first.line)
        )
        fix = taken if own else phrase("set the hook of {line} in the port too", line=first.line)
        return ProvenChange(code, message, fix, score, *sites)
    what, passing = (words(first.line) for words in STOPPED[first.how])
    message = phrase(
        "the {subject} {what}, the {other} lets it through", subject=subject, what=what, other=other
    )
    fix = passing
    if not own:
        fix = phrase("stop the gradient in the port as the reference does in {line}", line=first.line)
    elif first.how == "detach":
        fix = fixing.without("detach", first.where.file, first.where.line, passing)
    return ProvenChange("grad.detached", message, fix, score, *sites)


def _placed(where: OpLine, path: str) -> OpLine:
    """The stop with the full path of the module whose code it is, where that is known."""
    if where.module is None:
        return where
    return replace(where, module=".".join(part for part in (path, where.module) if part))


def changed_by_hook(before: Array | None, after: Array | None) -> tuple[str, str]:
    """The code and the words for what a hook made of a gradient."""
    if before is None or after is None or before.shape != after.shape:
        return "grad.scale", phrase("changes the gradient")
    if not np.any(after):
        return "grad.detached", phrase("makes the gradient zero")
    bounds = clip_bounds(after, before)
    if bounds is not None:
        return "grad.clip", phrase("clips the gradient to {bounds}", bounds=bounds)
    factor = factor_between(after, before)
    if factor is not None and np.allclose(after, before * factor, rtol=1e-4, atol=0):
        norm = rounded(float(np.linalg.norm(after.astype(np.float64))))
        if abs(factor) < 1 and len(number(norm)) <= 4:
            return "grad.clip", phrase("scales the gradient down to the norm {norm}", norm=number(norm))
        return "grad.scale", phrase("multiplies the gradient by {factor}", factor=number(rounded(factor)))
    return "grad.scale", phrase("changes the gradient in no known way")


def clip_bounds(clipped: Array, whole: Array) -> str | None:
    """The interval to which one gradient is the other clipped, in words; None if it is not."""
    low, high = float(clipped.min()), float(clipped.max())
    if not (low < high or (low == high and low != 0)):
        return None
    cut = (whole < low) | (whole > high)
    share = np.count_nonzero((clipped == low) | (clipped == high)) / clipped.size
    if (
        not cut.any()
        or share * clipped.size < 2
        or not np.allclose(clipped, np.clip(whole, low, high), 1e-4, 0)
    ):
        return None
    if not (whole > high).any():
        return phrase("at least {bound}", bound=number(rounded(low)))
    if not (whole < low).any():
        return phrase("at most {bound}", bound=number(rounded(high)))
    return f"[{number(rounded(low))}, {number(rounded(high))}]"


def _factor(case: Case) -> float:
    pairs = list(_pairs(case))
    return (factor_between(*pairs[0][1:]) or 1.0) if pairs else 1.0


def gradient_factor(case: Case) -> Iterator[ProvenChange]:
    """Every gradient is the same multiple of the reference's."""
    pairs = list(_pairs(case))
    if not pairs:
        return
    factor = factor_between(*pairs[0][1:])
    if factor is None:
        return
    factor = rounded(factor)
    scores = [
        case.judge(observed / observed.dtype.type(factor), expected, check)
        for check, observed, expected in pairs
    ]
    if max(scores) <= case.limit:
        message = phrase(
            "{what} is {factor} times the reference's, the forward result is right",
            what=case.what,
            factor=number(factor),
        )
        fix = phrase(
            "find what multiplies the gradient of {spelled_path} by {factor}",
            spelled_path=spelled_path(case.node.path),
            factor=number(factor),
        )
        facts = (case.node.kind, number(factor))
        yield ProvenChange(
            "grad.scale", message, fix, max(scores), function_of(case), facts=facts, way=ProvenBy.RELATED
        )


def clipped(case: Case) -> Iterator[ProvenChange]:
    """One side's gradient is the other's, clipped at a bound."""
    for check, observed, expected in _pairs(case):
        for own, whole, cut in ((True, expected, observed), (False, observed, expected)):
            bounds = clip_bounds(cut, whole)
            if bounds is None:
                continue
            score = case.judge(np.clip(whole, cut.min(), cut.max()), cut, check)
            if score <= case.limit:
                sides = phrase("port"), phrase("reference")
                side, other = sides if own else sides[::-1]
                message = phrase(
                    "the {side} clips the {what} to {bounds}, the {other} does not",
                    side=side,
                    what=case.what,
                    bounds=bounds,
                    other=other,
                )
                fix = phrase(
                    "look in {spelled_path} for what clips gradients",
                    spelled_path=spelled_path(case.node.path),
                )
                if not own:
                    fix = phrase(
                        "clip the gradient in {spelled_path} as the reference does",
                        spelled_path=spelled_path(case.node.path),
                    )
                where, facts = function_of(case) if own else None, (side, case.node.kind, str(bounds))
                yield ProvenChange("grad.clip", message, fix, score, where, facts=facts, way=ProvenBy.RELATED)
        return


def function_of(case: Case) -> OpLine | None:
    """The line that applies a function with its own backward, if the call's code has just one."""
    finder = StopFinder(case.backend, owner_of(case, own=True))
    case.run(on_op=finder, listener=finder)
    lines = {
        (stop.where.file, stop.where.line): stop.where for stop in finder.stops if stop.how == "function"
    }
    path = case.precise.port.trace.nodes[case.start].path
    return _placed(next(iter(lines.values())), path) if len(lines) == 1 else None


def _pairs(case: Case) -> Iterator[tuple[Check, Array, Array]]:
    for check in case.checks:
        if check.port[3] != "backward":
            continue
        observed = case.observed(check)
        expected = None if observed is None else case.expected(check, observed)
        if observed is None or expected is None or not np.isfinite(observed).all():
            continue
        if case.judge(observed, expected, check) > case.limit:
            yield check, observed, expected
