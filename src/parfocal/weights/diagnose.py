"""Says why a tensor has no counterpart, by a second, relaxed matching of what is left.

Two left units of the same family are taken for the same layer when their names or their places
say so; then the difference has a name: another width, a bias on one side only. What remains is a
layer too many or one missing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from parfocal.judge.verdict import side_name
from parfocal.phrases import phrase
from parfocal.weights.assignment import definition_order, match
from parfocal.weights.linking import Link
from parfocal.weights.names import likeness
from parfocal.weights.plan import Leftover
from parfocal.weights.units import Key, Slot, Unit

NEAREST = 3
COMPARED = 64  # units of a side that are told what is nearest to them: nobody reads more


@dataclass(slots=True)
class Diagnosis:
    """Reasons by tensor, and links that hold for a part of the slots only."""

    reference: list[Leftover] = field(default_factory=list)
    port: list[Leftover] = field(default_factory=list)
    partial: list[Link] = field(default_factory=list)


def diagnose(
    left_references: Sequence[Unit],
    left_ports: Sequence[Unit],
    all_references: Sequence[Unit],
    all_ports: Sequence[Unit],
) -> Diagnosis:
    """Explain everything that is left."""
    found = Diagnosis()
    orders = [definition_order(all_references, all_ports)]
    links = match(left_references, left_ports, orders, key=_same_weight).links
    paired = {link.port.path for link in links} | {link.reference.path for link in links}
    rest = [[u for u in units if u.path not in paired] for units in (left_references, left_ports)]
    links += [link for link in match(rest[0], rest[1], orders, key=_same_family).links if _plausible(link)]
    for link in links:
        _explain_pair(link, found)
    paired = {link.port.path for link in links} | {link.reference.path for link in links}
    for number, unit in enumerate(unit for unit in left_references if unit.path not in paired):
        found.reference += _alone(unit, phrase("the port"), all_ports if number < COMPARED else ())
    for number, unit in enumerate(unit for unit in left_ports if unit.path not in paired):
        found.port += _alone(unit, phrase("the reference"), all_references if number < COMPARED else ())
    return found


def _same_weight(unit: Unit) -> Key:
    slot = _main(unit)
    return unit.family, ((slot.role, slot.shape),)


def _same_family(unit: Unit) -> Key:
    return unit.family, (("axes", (len(_main(unit).shape),)),)


def _main(unit: Unit) -> Slot:
    return unit.slot("weight") or unit.slot("weight_v") or unit.slot("weight_orig") or unit.slots[0]


def _plausible(link: Link) -> bool:
    """Other shapes are the same layer only if the names agree or nothing else is in question."""
    return link.decided


def _explain_pair(link: Link, found: Diagnosis) -> None:
    reference, port = link.reference, link.port
    shared = []
    for slot in reference.required:
        other = port.slot(slot.role)
        if other is None:
            found.reference.append(_missing_slot(slot, reference, port, "reference", "port"))
        elif other.shape != slot.shape:
            there = port.path or phrase("it")
            reason = phrase(
                "{kind} {width} here, {there} is {port} in the port",
                kind=reference.kind,
                width=_width(slot),
                there=there,
                port=_width(other),
            )
            found.reference.append(
                Leftover(slot.stored.path, slot.stored.shape, reason, (other.stored.path,))
            )
            there = reference.path or phrase("it")
            reason = phrase(
                "{kind} {width} here, {there} is {reference} in the reference",
                kind=port.kind,
                width=_width(other),
                there=there,
                reference=_width(slot),
            )
            found.port.append(Leftover(other.stored.path, other.stored.shape, reason, (slot.stored.path,)))
        else:
            shared.append(slot.role)
    for slot in port.required:
        if reference.slot(slot.role) is None:
            found.port.append(_missing_slot(slot, port, reference, "port", "reference"))
    if shared and all(reference.slot(role) for role in shared):
        found.partial.append(link)


def _missing_slot(slot: Slot, unit: Unit, other: Unit, here: str, there: str) -> Leftover:
    mine, yours = unit.path or phrase("the model"), other.path or phrase("the model")
    reason = phrase(
        "{mine} has a {role} in the {here} only; {yours} in the {there} has none",
        mine=mine,
        role=slot.role,
        here=side_name(here),
        yours=yours,
        there=side_name(there),
    )
    return Leftover(slot.stored.path, slot.stored.shape, reason, (other.path,))


def _width(slot: Slot) -> str:
    """64->128 for a layer's weight, the plain shape for anything else."""
    if slot.role in ("weight", "weight_v", "weight_orig") and len(slot.shape) >= 2:
        kernel = "x".join(map(str, slot.shape[2:]))
        return f"{slot.shape[1]}->{slot.shape[0]}" + (
            phrase(" (kernel {kernel})", kernel=kernel) if kernel else ""
        )
    return str(list(slot.shape))


def _alone(unit: Unit, there: str, others: Sequence[Unit]) -> list[Leftover]:
    alike = sorted(others, key=lambda other: (other.family != unit.family, -likeness(other.path, unit.path)))
    nearest = tuple(other.path for other in alike[:NEAREST] if other.family == unit.family)
    reason = phrase(
        "{there} has no {kind} of this shape left for it",
        there=there,
        kind=unit.kind or phrase("such tensor"),
    )
    return [Leftover(slot.stored.path, slot.stored.shape, reason, nearest) for slot in unit.required]
