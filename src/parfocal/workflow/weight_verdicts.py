"""Weights that have no counterpart, that had no part in the run, or that fit against their names only."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace

from parfocal.attribution.sides import ModelSide
from parfocal.judge.floors import NOTHING
from parfocal.judge.verdict import Claim, Divergence, Finding, Grounds, Site, side_name
from parfocal.phrases import joined, phrase
from parfocal.weights.plan import Leftover, Plan, crossed_words
from parfocal.workflow.alignment import Alignment


def weight_divergences(plan: Plan, idle: Collection[tuple[str, str]] = ()) -> list[Divergence]:
    """Tensors without a counterpart: named, one divergence each; but for the idle, which changed nothing."""
    found = []
    for ours, items in ((True, _without_counterpart(plan)[0]), (False, _without_counterpart(plan)[1])):
        for item in items:
            if ("reference" if ours else "port", item.path) in idle:
                continue
            place = Site(item.path, "parameter")
            what = phrase(
                "{path} {shape} has no counterpart in the {which}",
                path=item.path,
                shape=list(item.shape),
                which=phrase("port") if ours else phrase("reference"),
            )
            found.append(_weights(place if ours else None, None if ours else place, what, item.reason))
    for doubt in plan.ambiguous:
        what = phrase(
            "{targets} could be any of {candidates}",
            targets=joined(", ", doubt.targets),
            candidates=joined(", ", doubt.candidates),
        )
        found.append(_weights(None, Site(doubt.targets[0], "parameter"), what, doubt.reason))
    return found


def _without_counterpart(plan: Plan) -> tuple[tuple[Leftover, ...], tuple[Leftover, ...]]:
    """Of the reference and of the port; what was idle in the transfer's run may not be in this one."""
    return (
        (*plan.unmatched_reference, *plan.idle_reference),
        (*plan.unmatched_port, *plan.idle_port),
    )


def crossed_weights(plan: Plan) -> tuple[list[Divergence], list[Finding]]:
    """Weights that fit against what names say: a divergence where the names use the same words."""
    certain, uncertain = [], []
    for item in plan.permuted:
        reference, port = Site(item.fitting[0], "parameter"), Site(item.targets[0], "parameter")
        message = crossed_words(item)
        if not item.certain:
            uncertain.append(Finding("weight.permuted", message, reference, port))
            continue
        fix = phrase(
            "exchange what the port's code does with {targets}", targets=joined(" and ", item.targets)
        )
        what = phrase("the weights of {targets}", targets=joined(", ", item.targets))
        facts = tuple(path.rpartition(".")[2] for path in (*item.targets, *item.fitting))
        certain.append(
            replace(
                _weights(reference, port, what, phrase("copied crosswise, against their names")),
                cause=Claim("weight.permuted", message, fix, facts).likely(Grounds.VALUES),
            )
        )
    return certain, uncertain


def _weights(reference: Site | None, port: Site | None, what: str, reason: str) -> Divergence:
    return Divergence("weights", reference, port, what, None, NOTHING, float("inf"), reason)


def idle_weights(alignment: Alignment) -> list[tuple[str, str]]:
    """Side and path of weights without a counterpart that had no part in what their model computed."""
    sides = alignment.reference, alignment.port
    return [
        (model_side.side, item.path)
        for model_side, items in zip(sides, _without_counterpart(alignment.plan), strict=True)
        for item in items
        if _is_idle(alignment, model_side, item)
    ]


def _is_idle(alignment: Alignment, model_side: ModelSide, item: Leftover) -> bool:
    """What no gradient reached, what is in a module that was not called, or what transfer saw to be idle."""
    if alignment.backward and item.path in model_side.trainable():
        return item.path not in model_side.natural.gradients
    if alignment.mode == "eval" and item in (*alignment.plan.idle_reference, *alignment.plan.idle_port):
        return True
    owner = item.path.rpartition(".")[0]
    return bool(owner) and not any(node.path == owner for node in model_side.trace.nodes)


def idle_findings(alignment: Alignment) -> Iterator[Finding]:
    """One for each module that was not called, or for a single tensor of one that was."""
    for model_side, across in ((alignment.reference, "port"), (alignment.port, "reference")):
        called = {node.path for node in model_side.trace.nodes}
        groups: dict[str, list[str]] = {}
        for side, path in idle_weights(alignment):
            if side == model_side.side:
                parts = path.split(".")[:-1]
                around = (".".join(parts[:count]) for count in range(1, len(parts) + 1))
                groups.setdefault(next((each for each in around if each not in called), path), []).append(
                    path
                )
        for owner, paths in groups.items():
            count = (
                ""
                if paths == [owner]
                else phrase(" (1 tensor)")
                if len(paths) == 1
                else phrase(" ({count} tensors)", count=len(paths))
            )
            message = phrase(
                "{owner}{count} of the {side} has no counterpart in the {across}: nothing used it in "
                "this run",
                owner=owner,
                count=count,
                side=side_name(model_side.side),
                across=side_name(across),
            )
            site = Site(owner, "parameter" if paths == [owner] else "module")
            sites = (site, None) if model_side is alignment.reference else (None, site)
            yield Finding("weight.idle", message, *sites)
