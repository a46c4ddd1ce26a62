"""The draft of a plan as plain state: what is linked, what is open, what is left on both sides."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from parfocal.judge import limits
from parfocal.weights.choices import Choice
from parfocal.weights.linking import Link, entries_of
from parfocal.weights.observe import ObservedRun
from parfocal.weights.plan import Entry
from parfocal.weights.units import Unit

Regions = tuple[Mapping[str, str], Mapping[str, str]]
Runs = tuple[ObservedRun, ObservedRun]
STEALABLE = limits.transfer.STEALABLE.value


@dataclass(slots=True)
class Draft:
    """Links by port path, open and closed choices, and what is left on both sides."""

    references: list[Unit]
    ports: list[Unit]
    links: dict[str, Link] = field(default_factory=dict)
    choices: list[Choice] = field(default_factory=list)  # changed by ``adopt`` and ``drop`` only
    left_references: list[Unit] = field(default_factory=list)
    left_ports: list[Unit] = field(default_factory=list)
    regions: Regions = ({}, {})  # unit path -> the pair of the layers argument it belongs to, on each side
    _held: dict[str, Choice] = field(default_factory=dict)  # port path -> the choice that speaks for it

    def choice_of(self, port_path: str) -> Choice | None:
        return self._held.get(port_path)

    def adopt(self, choice: Choice) -> None:
        """Let a choice speak for its units from now on."""
        self.choices.append(choice)
        self._held.update({unit.path: choice for unit in choice.ports})

    def drop(self, choice: Choice) -> None:
        """Take an adopted choice back; the links of its units count again."""
        self.choices.remove(choice)
        for unit in choice.ports:
            del self._held[unit.path]

    def entries(self) -> list[Entry]:
        """All copies as things stand; a choice speaks for its units."""
        chosen = {unit.path for choice in self.choices for unit in choice.ports}
        found = [
            entry for path, link in self.links.items() if path not in chosen for entry in entries_of(link)
        ]
        for choice in self.choices:
            found += [
                replace(
                    entry,
                    evidence=(*choice.evidence, choice.options[choice.current].words),
                    confidence=choice.confidence,
                )
                for entry in choice.entries
            ]
        return found
