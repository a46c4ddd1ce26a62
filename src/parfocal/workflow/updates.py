"""Buffers that a module's own code moves on: which line does it wrongly, found like a wrong output."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from parfocal.explain.case import Case
from parfocal.explain.case_facts import Check
from parfocal.explain.explainer import Explainer
from parfocal.explain.fixes.constructing import in_the_constructor
from parfocal.explain.kept import kept_place
from parfocal.judge.floors import Size
from parfocal.judge.verdict import Divergence
from parfocal.replay.trace import Node
from parfocal.workflow.alignment import Alignment


def explained_updates(
    alignment: Alignment, explainer: Explainer, found: Sequence[tuple[Divergence, tuple[str, ...]]]
) -> list[Divergence]:
    """The divergences of buffers, each with its cause where the user's own code keeps them.

    ``found``: each with the buffers it is of, by their paths in the port.
    """
    left = alignment.reference.natural.buffers
    explained: list[Divergence] = []
    for path in dict.fromkeys(each.port.path for each, _ in found if each.port is not None):
        named = [(each, names) for each, names in found if each.port is not None and each.port.path == path]
        here = [each for each, _ in named]
        nodes = _called_once(alignment, here[0])
        if nodes is None or any(each.cause is not None for each in here):
            explained += [_in_the_source(alignment, explainer, each) for each in here]
            continue
        checks = dict(_checks(alignment, *nodes, here[0].noise))
        updates = [(each, checks[name]) for each, names in named for name in names if name in checks]
        wrong = [check for _, check in updates]
        right = [check for check in checks.values() if check not in wrong]
        explained += explainer.explain_updates(updates, right, left) if len(updates) == len(here) else here
    return explained


def _in_the_source(alignment: Alignment, explainer: Explainer, divergence: Divergence) -> Divergence:
    """With the line of the user's source that makes the layer, where it is known."""
    cause, sites = divergence.cause, (divergence.reference, divergence.port)
    traces = alignment.reference.trace, alignment.port.trace
    orders = [
        next((node.order for node in trace.nodes if site is not None and node.path == site.path), None)
        for site, trace in zip(sites, traces, strict=True)
    ]
    if cause is None or orders[1] is None:
        return divergence
    case = Case(divergence, explainer.precise, orders[1], orders[0], (), explainer.limit)
    return replace(divergence, cause=cause.with_fix(in_the_constructor(case, cause.edit or cause.fix)))


def _called_once(alignment: Alignment, divergence: Divergence) -> tuple[Node, Node] | None:
    """The two calls after which a buffer differs, if there are no others and the code is the user's."""
    sites = (divergence.reference, alignment.reference.trace), (divergence.port, alignment.port.trace)
    found = [
        [node for node in trace.nodes if site is not None and node.path == site.path] for site, trace in sites
    ]
    if any(len(calls) != 1 for calls in found) or found[1][0].framework_layer:
        return None
    return found[0][0], found[1][0]


def _checks(alignment: Alignment, ours: Node, theirs: Node, floor: Size) -> Iterator[tuple[str, Check]]:
    """Of every buffer of a module, by its path in the port."""
    for entry in alignment.plan.entries:
        (owner, _, name), (other, _, port_name) = (
            path.rpartition(".") for path in (entry.source, entry.target)
        )
        if (owner, other) == (ours.path, theirs.path) and entry.source in alignment.reference.natural.buffers:
            places = kept_place(theirs.order, port_name), kept_place(ours.order, name)
            yield entry.target, Check(*places, floor)
