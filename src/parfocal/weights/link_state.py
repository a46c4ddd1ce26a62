"""Keeps the port's memory in step with the draft while links and choices change.

Every port unit has the copies that its link or its choice asks for; ``sync`` writes those that
changed since the last time, and nothing else. ``state`` and ``back_to`` undo what a trial changed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from parfocal.weights.choices import Choice, exchange
from parfocal.weights.draft import Draft
from parfocal.weights.linking import Link, entries_of
from parfocal.weights.plan import Entry
from parfocal.weights.units import Unit
from parfocal.weights.writer import WritableModel, write

Copies = tuple[tuple[object, ...], ...]


@dataclass(frozen=True, slots=True)
class TrialSnapshot:
    """Everything that a trial may change, as it was."""

    links: dict[str, Link]
    holders: dict[str, str]
    confirmed: dict[str, str]
    left_references: list[Unit]
    left_ports: list[Unit]
    picks: list[tuple[Choice, int]]


class LinkState:
    """The draft, the two models, and what is written already."""

    def __init__(self, draft: Draft, reference: WritableModel, port: WritableModel) -> None:
        self.draft = draft
        self.reference = reference
        self.port = port
        self.holders = {link.reference.path: path for path, link in draft.links.items()}
        self.confirmed: dict[str, str] = {}  # port path -> reference path, by values
        self.changes = 0  # how often anything was written that another link or choice had asked for
        self._written: dict[str, Copies] = {}
        self._stale = {
            **dict.fromkeys(draft.links),
            **{unit.path: None for choice in draft.choices for unit in choice.ports},
        }

    @property
    def behind(self) -> bool:
        """Whether something is still to be written."""
        return bool(self._stale)

    def in_choice(self, port_path: str) -> bool:
        return self.draft.choice_of(port_path) is not None

    def adopt(self, choice: Choice) -> None:
        """Let a choice speak for its units from now on."""
        self.draft.adopt(choice)
        self._stale.update((unit.path, None) for unit in choice.ports)

    def drop(self, choice: Choice) -> None:
        """Take an adopted choice back; the links of its units count again."""
        self.draft.drop(choice)
        self._stale.update((unit.path, None) for unit in choice.ports)

    def pick(self, choice: Choice, number: int) -> None:
        """Take another option of a choice."""
        choice.current = number
        self._stale.update((unit.path, None) for unit in choice.ports)

    def exchange(self, first: Choice, second: Choice) -> None:
        """Give each of two choices the other's units of the reference."""
        exchange(first, second)
        self._stale.update((unit.path, None) for choice in (first, second) for unit in choice.ports)

    def sync(self) -> None:
        """Write what changed."""
        entries: dict[tuple[object, ...], Entry] = {}  # units of one choice want the same copies
        for path in self._stale:
            wanted = self._wanted(path)
            copies = tuple((e.source, e.source_view, e.target, e.target_view) for e in wanted)
            if self._written.get(path) != copies:
                self.changes += path in self._written
                self._written[path] = copies
                entries.update(zip(copies, wanted, strict=True))
        self._stale.clear()
        write(list(entries.values()), self.reference, self.port)

    def relink(self, port_path: str, link: Link) -> None:
        """Give a port unit another partner; the partner's former holder takes what was free."""
        before = self.draft.links.get(port_path)
        holder = self.holders.get(link.reference.path)
        self.draft.links[port_path] = link
        self.holders[link.reference.path] = port_path
        if before is None or (before.reference, before.turned) != (link.reference, link.turned):
            self._stale[port_path] = None
        if before and before.reference.path == link.reference.path:
            return
        if before and self.holders.get(before.reference.path) == port_path:
            del self.holders[before.reference.path]
        if holder is not None and holder != port_path:
            self._evict(holder, before)
        else:
            self.draft.left_references = [
                u for u in self.draft.left_references if u.path != link.reference.path
            ]
            if before:
                self.draft.left_references.append(before.reference)
        self.draft.left_ports = [unit for unit in self.draft.left_ports if unit.path != port_path]

    def state(self) -> TrialSnapshot:
        """What there is to undo."""
        draft = self.draft
        return TrialSnapshot(
            dict(draft.links),
            dict(self.holders),
            dict(self.confirmed),
            list(draft.left_references),
            list(draft.left_ports),
            [(choice, choice.current) for choice in draft.choices],
        )

    def back_to(self, state: TrialSnapshot) -> None:
        """Undo everything since, in the port's memory too."""
        links = self.draft.links
        self._stale.update(
            (path, None)
            for path in links.keys() | state.links
            if links.get(path) is not state.links.get(path)
        )
        links.clear()
        links.update(state.links)
        self.holders = dict(state.holders)
        self.confirmed = dict(state.confirmed)
        self.draft.left_references = list(state.left_references)
        self.draft.left_ports = list(state.left_ports)
        for choice, number in state.picks:
            if choice.current != number:
                self.pick(choice, number)
        self.sync()

    def _evict(self, holder: str, freed: Link | None) -> None:
        self._stale[holder] = None
        evicted = self.draft.links[holder]
        if freed is None:
            del self.draft.links[holder]
            self.draft.left_ports.append(evicted.port)
            return
        self.draft.links[holder] = Link(freed.reference, evicted.port, ("what was left",), 0.3, decided=False)
        self.holders[freed.reference.path] = holder

    def _wanted(self, path: str) -> Sequence[Entry]:
        choice = self.draft.choice_of(path)
        if choice is not None:
            return choice.entries
        link = self.draft.links.get(path)
        return entries_of(link) if link else ()
