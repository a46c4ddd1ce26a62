"""What an alignment compared, and what it did not and why."""

from __future__ import annotations

from collections.abc import Iterator

from parfocal.attribution.observation import Observation
from parfocal.phrases import phrase
from parfocal.report.coverage import Compared, Coverage, LeftOut, Reason
from parfocal.workflow.align_findings import leaves
from parfocal.workflow.alignment import Alignment
from parfocal.workflow.state import statistics_of


def coverage_of(alignment: Alignment, observation: Observation) -> Coverage:
    count, without = leaves(alignment, observation)
    compared = [
        Compared("calls", count - without, count),
        Compared("tensors", len(observation.measures)),
    ]
    if alignment.backward:
        compared.append(Compared("parameter gradients", len(observation.parameters)))
    if alignment.mode != "eval":
        compared.append(Compared("buffers", sum(1 for _ in statistics_of(alignment, observation.buffers))))
    return Coverage(
        tuple(each for each in compared if each.count or each.of),
        tuple(_left_out(alignment, observation)),
        ("forward", "backward") if alignment.backward else ("forward",),
        alignment.mode,
    )


def _left_out(alignment: Alignment, observation: Observation) -> Iterator[LeftOut]:
    if not alignment.backward:
        yield LeftOut(phrase("gradients"), Reason.NOT_ASKED, "backward=False")
    else:
        yield from _without_gradient(alignment, observation)
        yield from _hidden_gradients(alignment, observation)
    if alignment.mode == "eval":
        yield LeftOut(phrase("what only training does"), Reason.NOT_ASKED, 'mode="eval"')
    ignored = alignment.ignored()
    calls = sum(ignored.path(node.path) for node in alignment.port.trace.nodes)
    if calls:
        words = phrase("1 call") if calls == 1 else phrase("{calls} calls", calls=calls)
        yield LeftOut(words, Reason.IGNORED, f"ignore={list(alignment.ignore)}")
    nodes = alignment.port.trace.nodes
    if observation.unfed:
        paths = tuple(nodes[order].path or phrase("the model") for order in sorted(observation.unfed))
        detail = phrase("not all of the reference's inputs could be given to them")
        yield LeftOut(phrase("the own error"), Reason.UNSEEN, detail, paths)


def _hidden_gradients(alignment: Alignment, observation: Observation) -> Iterator[LeftOut]:
    """Gradients at tensors of paired calls that one side computes out of sight."""
    ours, theirs = alignment.reference.trace.nodes, alignment.port.trace.nodes
    hidden = set(observation.hidden)
    for pair in observation.pairing.pairs:
        gives = {} if pair.gives is None else ours[pair.gives].outputs
        values = (*ours[pair.reference].inputs.values(), *gives.values(), *theirs[pair.port].outputs.values())
        if any(value.hidden for value in values):
            hidden.add(pair.port)
    if hidden:
        paths = dict.fromkeys(theirs[order].path or phrase("the model") for order in sorted(hidden))
        detail = phrase("the tensor was overwritten in place: its gradient could not be observed")
        yield LeftOut(phrase("gradients at tensors"), Reason.UNSEEN, detail, tuple(paths))


def _without_gradient(alignment: Alignment, observation: Observation) -> Iterator[LeftOut]:
    """Parameters of both sides that nothing sends a gradient to, or that only one side trains."""
    judged = {end.port for end in observation.parameters} | {
        end.port for end in observation.ends if end.phase == "gradient"
    }
    sides = {True: alignment.reference.trainable(), False: alignment.port.trainable()}
    entries = [entry for entry in alignment.plan.entries if entry.target not in judged]
    groups = {
        (phrase("gradients"), Reason.NO_VALUES, phrase("none on either side")): [
            e.target for e in entries if e.source in sides[True] and e.target in sides[False]
        ],
        (phrase("gradients"), Reason.ONLY_REFERENCE, phrase("frozen in the port")): [
            e.target for e in entries if e.source in sides[True] and e.target not in sides[False]
        ],
        (phrase("gradients"), Reason.ONLY_PORT, phrase("frozen in the reference")): [
            e.target for e in entries if e.source not in sides[True] and e.target in sides[False]
        ],
    }
    for (what, reason, detail), paths in groups.items():
        if paths:
            yield LeftOut(what, reason, detail, tuple(dict.fromkeys(paths)))
