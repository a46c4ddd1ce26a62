"""Runs the port with its new weights and compares; checks that a plan given by hand is whole."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from parfocal.errors import InputError
from parfocal.inputs import Arguments
from parfocal.judge.verdict import side_name
from parfocal.phrases import phrase
from parfocal.weights import views
from parfocal.weights.differences import first_difference
from parfocal.weights.draft import Draft
from parfocal.weights.fingerprint import WeightFingerprint, distances, noise_of
from parfocal.weights.observe import ObservedRun, observe
from parfocal.weights.plan import Entry, Leftover, Plan, PlanNote
from parfocal.weights.state import SideContents
from parfocal.weights.units import read_units
from parfocal.weights.writer import WritableModel

CONSTANT = phrase("not verified: the reference's outputs are constant on these inputs")


def verify(
    plan: Plan,
    draft: Draft,
    contents: tuple[SideContents, SideContents],
    port: WritableModel,
    seen: ObservedRun,
    arguments: Arguments,
    outputs: tuple[WeightFingerprint, ...] | None = None,
) -> Plan:
    """The plan with ``verified`` set, and the first module whose own output differs named.

    ``outputs``: what the port gives with these weights, where that is known already.
    """
    expected = seen.first("")
    if expected is None:
        return plan
    if outputs is not None and agree(expected.outputs, outputs):
        return replace(plan, verified=True)
    run = observe(port, arguments)
    got = run.first("")
    if got is None:
        return plan
    if not _is_live(expected.outputs):
        return replace(
            plan,
            noted=(*plan.noted, PlanNote(CONSTANT)),
        )
    if agree(expected.outputs, got.outputs):
        return replace(plan, verified=True)
    parted = first_difference(draft, contents, seen, run)
    return replace(plan, verified=False, noted=(*plan.noted, PlanNote(parted, is_first_difference=True)))


def _is_live(outputs: tuple[WeightFingerprint, ...]) -> bool:
    return any(each.live for each in outputs)


def agree(expected: tuple[WeightFingerprint, ...], got: tuple[WeightFingerprint, ...]) -> bool:
    """Whether two models give the same; values that say nothing never agree."""
    return _is_live(expected) and distances(expected, got) <= noise_of(expected, got)


def check_entries(
    entries: Sequence[Entry], contents: tuple[SideContents, SideContents], words: tuple[str, str], hint: str
) -> None:
    """Refuse entries that name unknown tensors or whose two views differ in shape.

    ``words`` is what the sides are called, ``hint`` what their paths are.
    """
    shapes = [{tensor.path: tensor.shape for tensor in side.stored} for side in contents]
    for number, entry in enumerate(entries):
        place = f"entry {number} ({entry.source} -> {entry.target})"
        for side, name, path in zip(shapes, words, (entry.source, entry.target), strict=True):
            if path not in side:
                raise InputError(
                    phrase(
                        "{place}: the {words} has no tensor {path}",
                        place=place,
                        words=side_name(name),
                        path=repr(path),
                    ),
                    hint=hint,
                )
        source = views.shape_of(entry.source_view, shapes[0][entry.source])
        target = views.shape_of(entry.target_view, shapes[1][entry.target])
        if source != target:
            raise InputError(
                phrase(
                    "{place}: the source view has shape {source}, the target view {target}",
                    place=place,
                    source=list(source),
                    target=list(target),
                ),
                hint=phrase("change source_view or target_view so that the two agree"),
            )


def check_coverage(plan: Plan, contents: tuple[SideContents, SideContents]) -> Plan:
    """A plan from outside: every tensor of the port that matters must be written, and written once."""
    stored = {tensor.path: tensor for tensor in contents[1].stored}
    written: dict[str, int] = {}
    for entry in plan.entries:
        tensor = stored[entry.target]
        home = tensor.tied_to or tensor.path
        written[home] = written.get(home, 0) + math.prod(views.shape_of(entry.target_view, tensor.shape))
        if written[home] > math.prod(tensor.shape):
            raise InputError(
                phrase(
                    "the plan writes parts of {target} more than once ({written} of {total} elements)",
                    target=entry.target,
                    written=written[home],
                    total=math.prod(tensor.shape),
                ),
                hint=phrase("remove one of the entries for it, or give them views of different parts"),
            )
    missing = []
    for unit in read_units(contents[1]):
        for slot in unit.required:
            size = math.prod(slot.stored.shape)
            if written.get(slot.memory, 0) < size:
                reason = phrase(
                    "the plan writes {written} of its {size} elements",
                    written=written.get(slot.memory, 0),
                    size=size,
                )
                missing.append(Leftover(slot.stored.path, slot.stored.shape, reason))
    unique = tuple({item.path: item for item in missing}.values())
    noted = tuple(each for each in plan.noted if not each.is_first_difference)  # of another run
    return replace(
        plan, unmatched_reference=(), unmatched_port=unique, ambiguous=(), noted=noted, verified=None
    )
