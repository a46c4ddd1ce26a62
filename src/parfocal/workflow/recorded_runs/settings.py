"""Stage: what paired modules say of themselves. A difference is a finding; where an error is, its cause."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from parfocal.backends import registry
from parfocal.backends.vocabulary import kinds_of_layers
from parfocal.backends.vocabulary.settings import common_name
from parfocal.explain.causes import code_of, number, spelled_path
from parfocal.explain.fixes.recorded_constructors import with_line
from parfocal.judge.verdict import Cause, Claim, Finding, Grounds
from parfocal.phrases import joined, phrase
from parfocal.replay.trace import Node
from parfocal.report.coverage import Compared
from parfocal.weights.settings import IGNORED, differing_names, told_once
from parfocal.workflow.recorded_runs.pair import StageOutcome, StepPair
from parfocal.workflow.recorded_runs.recomputed import setting_proof

RANDOM = ("Dropout", "AlphaDropout", "FeatureAlphaDropout")  # prefixes of kinds that draw when they train


def compare_settings(pair: StepPair, diverged: bool) -> StageOutcome:
    """What that changes may be too little to be seen here, so it is told in any case."""
    paired = list(_pairs(pair))
    layers = (
        (theirs.kind, theirs.path, common_settings(ours), common_settings(theirs)) for ours, theirs in paired
    )
    findings = tuple(
        Finding("run.settings", each.message, setting=each.setting) for each in told_once(layers)
    )
    return StageOutcome(findings=findings, compared=(Compared("settings of modules", len(paired)),))


def _pairs(pair: StepPair) -> Iterator[tuple[Node, Node]]:
    ours, theirs = pair.reference.trace.nodes, pair.port.trace.nodes
    for each in pair.errors:
        sides = ours[each.pair.reference], theirs[each.pair.port]
        # layers of two kinds of the frameworks may mean two things by one word
        if each.pair.whole and (
            sides[0].kind == sides[1].kind or not all(s.kind in kinds_of_layers() for s in sides)
        ):
            yield sides


def common_settings(node: Node) -> dict[str, Any]:
    """What a module says of itself, by common names; one that was read under it counts, not an attribute.

    A layer derived from one of the framework's has both: ``momentum`` as read and ``_momentum`` as kept.
    """
    found = {common_name(name): value for name, value in node.settings.items()}
    return found | {name: value for name, value in node.settings.items() if common_name(name) == name}


def explain_call(pair: StepPair, ours: Node, theirs: Node) -> Cause | None:
    """Why two calls differ that were given the same: set otherwise, in another mode, or drawing."""
    causes = [*_drawn(ours, theirs), *_precision(ours, theirs), *_set_otherwise(pair, ours, theirs)]
    if not causes:
        return None
    first = causes[0]
    return replace(first, alternatives=tuple(causes[1:]))


def _set_otherwise(pair: StepPair, ours: Node, theirs: Node) -> Iterator[Cause]:
    left, right = common_settings(ours), common_settings(theirs)
    path = spelled_path(theirs.path)
    names = sorted(differing_names(left, right, IGNORED))
    proof = (
        setting_proof(pair, ours, theirs, {**right, **{name: left[name] for name in names}}, right)
        if names
        else None
    )
    for name in names:
        message = phrase(
            "{name} is {reference} in the reference and {port} in the port",
            name=name,
            reference=_told(left[name]),
            port=_told(right[name]),
        )
        fix = with_line(f"{path}: {_spelled(pair, name, left[name])}", theirs)
        claim = Claim(code_of(name, theirs.kind), message, fix)
        if proof is not None and len(names) == 1:
            yield claim.proven(proof.way, proof.before, proof.after)
        else:
            yield claim.likely(Grounds.SETTINGS)


def _spelled(pair: StepPair, name: str, value: Any) -> str:
    """A setting of a common name as the port's framework calls it."""
    dialect = registry.dialect(pair.port.run.header.framework)
    said = dialect.values[name](value) if name in dialect.values else value
    return f"{dialect.words.get(name, name)} = {_told(said)}"


def _told(value: Any) -> str:
    return number(value) if isinstance(value, float) else repr(value)


def _drawn(ours: Node, theirs: Node) -> Iterator[Cause]:
    path = spelled_path(theirs.path)
    if ours.training != theirs.training:
        modes = [phrase("training") if node.training else phrase("evaluation") for node in (ours, theirs)]
        message = phrase(
            "{path} is in {port} mode in the port, in {reference} mode in the reference",
            path=path,
            port=modes[1],
            reference=modes[0],
        )
        fix = phrase("set the mode of {path} as in the reference", path=path)
        yield Claim("mode.training", message, fix, tuple(modes)).likely(Grounds.SETTINGS)
    elif theirs.training and theirs.kind.startswith(RANDOM) and theirs.settings.get("p"):
        message = phrase(
            "{path} drops at random with p = {rate}: no two runs draw the same",
            path=path,
            rate=theirs.settings["p"],
        )
        facts = (theirs.kind, str(theirs.settings["p"]))
        fix = phrase("record both runs with dropout off")
        yield Claim("random.dropout", message, fix, facts).likely(Grounds.SETTINGS)


def _precision(ours: Node, theirs: Node) -> Iterator[Cause]:
    dtypes = [sorted({value.data.dtype for value in node.outputs.values()}) for node in (ours, theirs)]
    if dtypes[0] != dtypes[1] and dtypes[0] and dtypes[1]:
        told = [joined(", ", each) for each in dtypes]
        message = phrase(
            "{spelled_path} gives {port} in the port, {reference} in the reference",
            spelled_path=spelled_path(theirs.path),
            port=told[1],
            reference=told[0],
        )
        fix = phrase("compute it in {dtype}", dtype=told[0])
        yield Claim("dtype.precision", message, fix, tuple(told)).likely(Grounds.SETTINGS)
