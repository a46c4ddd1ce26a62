"""Turns a draft into a plan: copies, leftovers with their reasons, ambiguities and notes.

Tied tensors are settled here: a tensor that is written through its twin needs no counterpart of
its own, and one that would get two different values is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence, Set

from parfocal.judge.verdict import SIDES, side_name
from parfocal.phrases import joined, phrase
from parfocal.weights.choices import Choice
from parfocal.weights.crossing import exchanges
from parfocal.weights.diagnose import diagnose
from parfocal.weights.draft import Draft
from parfocal.weights.linking import entries_of
from parfocal.weights.plan import (
    Ambiguity,
    Basis,
    Entry,
    Exchange,
    Leftover,
    Plan,
    PlanNote,
    Presumption,
    shortened,
)
from parfocal.weights.state import SideContents
from parfocal.weights.tables import COUNTERS
from parfocal.weights.units import Unit

SHOWN = 4


def conclude(
    draft: Draft,
    contents: tuple[SideContents, SideContents],
    same_values: Callable[[Entry, Entry], bool],
    *,
    ran: bool = False,
) -> Plan:
    """The plan that follows from a draft. ``ran``: both models did, so that what could be tried was."""
    notes: list[str] = []
    entries = [*_useful(draft, notes)]
    left_references = _not_accounted(draft.left_references, {e.source for e in entries}, "reference", notes)
    left_ports = _not_accounted(draft.left_ports, {e.target for e in entries}, "port", notes)
    found = diagnose(left_references, left_ports, draft.references, draft.ports)
    entries += [entry for link in found.partial for entry in entries_of(link) if _same_shape(entry)]
    entries, conflicts = _once(entries, same_values)
    notes += _tied_notes(entries, contents)
    notes += _order_notes(draft.choices, {entry.target for entry in entries})
    notes += _counter_notes(contents)
    notes += _cast_notes(entries, contents)
    return Plan(
        entries=tuple(entries),
        unmatched_reference=tuple(found.reference),
        unmatched_port=(*found.port, *conflicts),
        ambiguous=(*_ambiguous_links(draft), *_ambiguous_choices(draft.choices, ran)),
        presumed=tuple(_presumed(choice) for choice in draft.choices if ran and _is_unproven(choice)),
        permuted=tuple(_exchanges(draft)) if ran else (),
        noted=tuple(map(PlanNote, notes)),
    )


def _useful(draft: Draft, notes: list[str]) -> list[Entry]:
    """All copies but those of buffers that are mere guesses."""
    guessed = {
        slot.memory
        for link in draft.links.values()
        if link.port.family == "buffer" and not link.decided
        for slot in link.port.slots
    }
    if guessed:
        notes.append(
            phrase(
                "buffers left alone, not clear what belongs to them: {paths}",
                paths=shortened(sorted(guessed)),
            )
        )
    return [entry for entry in draft.entries() if entry.target not in guessed]


def _not_accounted(units: Sequence[Unit], known: set[str], side: str, notes: list[str]) -> list[Unit]:
    """Units that really lack a counterpart: neither optional nor tied to something that has one."""
    left = []
    for unit in units:
        if not unit.required:
            notes.append(
                phrase(
                    "buffer without counterpart, left alone: {path} in the {side}",
                    path=unit.path,
                    side=side_name(side),
                )
            )
        elif all(slot.memory in known for slot in unit.required):
            ties = joined(", ", dict.fromkeys(slot.memory for slot in unit.required))
            notes.append(
                phrase(
                    "{path} in the {side} is tied to {ties} and needs no counterpart of its own",
                    path=unit.path,
                    side=side_name(side),
                    ties=ties,
                )
            )
        else:
            left.append(unit)
    return left


def _same_shape(entry: Entry) -> bool:
    from parfocal.weights.views import shape_of

    return shape_of(entry.source_view, entry.source_shape) == shape_of(entry.target_view, entry.target_shape)


def _once(
    entries: Sequence[Entry], same_values: Callable[[Entry, Entry], bool]
) -> tuple[list[Entry], list[Leftover]]:
    """Every part of a target once; two different sources for a tied target are a conflict."""
    kept: dict[tuple[object, ...], Entry] = {}
    conflicts = []
    for entry in entries:
        first = kept.setdefault((entry.target, entry.target_view), entry)
        if first is entry or (first.source, first.source_view) == (entry.source, entry.source_view):
            continue
        if not same_values(first, entry):
            reason = phrase(
                "it is one tied tensor in the port, and the reference has two different ones for it: "
                "{source} and {other}",
                source=first.source,
                other=entry.source,
            )
            conflicts.append(Leftover(entry.target, entry.target_shape, reason, (first.source, entry.source)))
    return list(kept.values()), conflicts


def _tied_notes(entries: Sequence[Entry], contents: tuple[SideContents, SideContents]) -> list[str]:
    targets: dict[tuple[object, ...], list[str]] = {}
    for entry in entries:
        targets.setdefault((entry.source, entry.source_view), []).append(entry.target)
    notes = []
    tied = {tensor.tied_to for tensor in contents[0].stored if tensor.tied_to}
    for (source, _), paths in targets.items():
        if source in tied and len(set(paths)) > 1:
            notes.append(
                phrase(
                    "{source} is tied in the reference and separate in the port: {paths}",
                    source=source,
                    paths=shortened(paths),
                )
            )
    return notes


def _order_notes(choices: Sequence[Choice], copied: Set[str]) -> list[str]:
    """Layers that are fused on both sides, with their rows in another order."""
    found: dict[str, list[str]] = {}
    for option in (choice.options[choice.current] for choice in choices):
        for entry in option.entries if option.reordered else ():
            if entry.target in copied:
                found.setdefault(option.words, []).append(entry.target.rpartition(".")[0])
    return [
        phrase(
            "the rows of {paths} lie otherwise in the port: {words}; weights copied as they are will not do",
            paths=shortened(list(dict.fromkeys(paths))),
            words=words,
        )
        for words, paths in found.items()
    ]


def _counter_notes(contents: tuple[SideContents, SideContents]) -> list[str]:
    notes = []
    for side, words in zip(contents, SIDES, strict=True):
        count = sum(tensor.name in COUNTERS for tensor in side.stored)
        if count:
            counters = phrase("1 counter") if count == 1 else phrase("{count} counters", count=count)
            notes.append(
                phrase(
                    "num_batches_tracked: {counters} of the {side} left out: used with momentum=None only",
                    counters=counters,
                    side=side_name(words),
                )
            )
    return notes


def _cast_notes(entries: Sequence[Entry], contents: tuple[SideContents, SideContents]) -> list[str]:
    dtypes = [{tensor.path: tensor.dtype for tensor in side.stored} for side in contents]
    casts: dict[tuple[str, str], list[str]] = {}
    for entry in entries:
        pair = dtypes[0][entry.source], dtypes[1][entry.target]
        if pair[0] != pair[1]:
            casts.setdefault(pair, []).append(entry.target)
    return [
        phrase("converted from {a} to {b}: {paths}", a=a, b=b, paths=shortened(paths))
        for (a, b), paths in casts.items()
    ]


def _ambiguous_links(draft: Draft) -> list[Ambiguity]:
    groups: dict[object, list[tuple[str, str]]] = {}
    chosen = {unit.path for choice in draft.choices for unit in choice.ports if not choice.open}
    for link in draft.links.values():
        if not link.decided and link.port.family != "buffer" and link.port.path not in chosen:
            groups.setdefault(link.port.key, []).append((link.port.path, link.reference.path))
    return [
        Ambiguity(
            tuple(port for port, _ in pairs),
            tuple(reference for _, reference in pairs),
            phrase("same shapes, and neither names nor order say which is which"),
        )
        for pairs in groups.values()
    ]


def _ambiguous_choices(choices: Sequence[Choice], ran: bool) -> list[Ambiguity]:
    return [
        Ambiguity(
            tuple(unit.path for unit in choice.ports),
            tuple(unit.path for unit in choice.references),
            _why(choice),
        )
        for choice in choices
        if _is_open(choice)
        and not (choice.tried and _is_named(choice))
        and not (ran and _is_unproven(choice))
    ]


def _is_open(choice: Choice) -> bool:
    return len(choice.options) > 1 and bool(choice.open or choice.rivals)


def _is_named(choice: Choice) -> bool:
    """Names decide between options that fit, and where none can: never instead of trying."""
    return choice.options[choice.current].named


def _is_unproven(choice: Choice) -> bool:
    """No option was shown to be right, for a mistake of the port there or before."""
    return len(choice.options) > 1 and choice.open and not choice.rivals


def _presumed(choice: Choice) -> Presumption:
    basis = Basis.NAMES if _is_named(choice) else Basis.NEAREST if choice.nearest else Basis.USUAL
    return Presumption(
        tuple(unit.path for unit in choice.ports),
        tuple(unit.path for unit in choice.references),
        choice.options[choice.current].words,
        basis,
    )


def _exchanges(draft: Draft) -> Iterator[Exchange]:
    """What fits against the names, in links and in choices."""
    yield from exchanges(link for path, link in draft.links.items() if draft.choice_of(path) is None)
    for choice in draft.choices:
        crossed = choice.options[choice.current].crossed
        if crossed is not None and not choice.open and not choice.rivals:
            yield crossed


def _why(choice: Choice) -> str:
    if choice.rivals:
        fitting = [choice.options[number].words for number in (choice.current, *choice.rivals)]
        return phrase(
            "several ways fit these inputs equally well ({fitting})", fitting=joined("; ", fitting[:SHOWN])
        )
    ways = joined("; ", (option.words for option in choice.options[:SHOWN]))
    more = phrase("; {count} more", count=len(choice.options) - SHOWN) if len(choice.options) > SHOWN else ""
    return phrase(
        "{count} ways to copy and none shown to be right ({ways}{more})",
        count=len(choice.options),
        ways=ways,
        more=more,
    )
