"""Choices: where several ways to copy are possible, the options in order of plausibility.

Which option is right shows when the port runs: the one that reproduces the reference's output
(``follow.py``). Without inputs a choice with more than one option stays open.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from parfocal.phrases import phrase
from parfocal.weights import views
from parfocal.weights.linking import Link, entries_of, entry, raw_views
from parfocal.weights.plan import AS_IT_IS, Entry, Exchange
from parfocal.weights.units import Unit


@dataclass(frozen=True, slots=True)
class Option:
    """One way: its copies, and what it means in words."""

    entries: tuple[Entry, ...]
    words: str
    named: bool = False  # the names of the tensors ask for exactly this
    crossed: Exchange | None = None  # what it exchanges against the names of both sides
    reordered: bool = False  # parts of a tensor that both sides fuse, in another order


@dataclass(slots=True)
class Choice:
    """Units that hang together and the options for them."""

    references: tuple[Unit, ...]
    ports: tuple[Unit, ...]
    options: list[Option]
    subject: str  # "fused", "orientation": what the options differ in
    current: int = 0
    evidence: tuple[str, ...] = ()
    confidence: float = 0.5
    open: bool = True
    tried: bool = False  # the options were run against the reference
    refuted: bool = False  # a module with the right input gave another output with each of them
    nearest: bool = False  # no option fits, and the current one comes clearly nearest
    rivals: list[int] = field(default_factory=list)  # options that fit as well

    @property
    def entries(self) -> tuple[Entry, ...]:
        return self.options[self.current].entries

    @property
    def modules(self) -> tuple[str, ...]:
        """Paths of the port's modules that are touched."""
        return tuple(unit.module for unit in self.ports)


def same_effect(first: Option, second: Option) -> bool:
    """Whether two options put the same elements in the same places, by other views."""
    sources = {entry.source: math.prod(entry.source_shape) for entry in (*first.entries, *second.entries)}
    starts = dict(zip(sources, itertools.accumulate(sources.values(), initial=0), strict=False))
    return _effect(first, starts) == _effect(second, starts)


def _effect(option: Option, starts: Mapping[str, int]) -> dict[str, bytes]:
    """Which element of the sources every element of the targets gets, counted through all sources."""
    targets = {entry.target: np.full(entry.target_shape, -1) for entry in option.entries}
    for each in option.entries:
        size = math.prod(each.source_shape)
        numbers = np.arange(starts[each.source], starts[each.source] + size).reshape(each.source_shape)
        views.apply(each.target_view, targets[each.target])[...] = views.apply(each.source_view, numbers)
    return {path: target.tobytes() for path, target in targets.items()}


def alike(first: Choice, second: Choice) -> bool:
    """Whether two choices are about the same kind of units, so that either could have the other's."""
    return first is not second and all(
        [unit.key for unit in mine] == [unit.key for unit in yours]
        for mine, yours in ((first.references, second.references), (first.ports, second.ports))
    )


def exchange(first: Choice, second: Choice) -> None:
    """Give each of two choices that are alike the other's units of the reference."""
    memories = [[slot.memory for unit in each.references for slot in unit.slots] for each in (first, second)]
    for choice, (own, others) in ((first, memories), (second, memories[::-1])):
        renamed = dict(zip(own, others, strict=True))
        choice.options = [
            replace(option, entries=tuple(replace(e, source=renamed[e.source]) for e in option.entries))
            for option in choice.options
        ]
    first.references, second.references = second.references, first.references


def orientation(link: Link) -> Choice | None:
    """The choice behind a square weight of which nobody knows how it lies; None where all is clear."""
    if not (link.reference.flexible or link.port.flexible):
        return None
    options = [
        Option(
            tuple(entries_of(Link(link.reference, link.port, link.evidence, link.confidence, turned=turned))),
            words,
        )
        for turned, words in ((False, AS_IT_IS), (True, phrase("transposed")))
    ]
    return Choice((link.reference,), (link.port,), options, "orientation", evidence=link.evidence)


def raw(link: Link) -> Choice | None:
    """The ways to see one single tensor as another; None when the shapes cannot meet."""
    source, target = link.reference.slots[0], link.port.slots[0]
    options = []
    for view in raw_views(source.shape, target.shape):
        made = entry(source, target, link.evidence, link.confidence, source_view=view)
        options.append(Option((made,), made.rule))
    if not options:
        return None
    choice = Choice((link.reference,), (link.port,), options, "orientation", evidence=link.evidence)
    choice.confidence = link.confidence
    # More than two axes in the same shape: nobody transposes those on the way.
    choice.open = len(options) > 1 and (len(target.shape) == 2 or source.shape != target.shape)
    return choice


def is_plain(choice: Choice) -> bool:
    """Whether there is but one way, and that is to copy the whole as it is."""
    return len(choice.options) == 1 and not any(e.source_view or e.target_view for e in choice.entries)


def take_as_they_are(found: Sequence[Choice], *, ran: bool) -> None:
    """Of two models of one framework: a tensor of the same name and shape lies the same way.

    If there were runs, values may say otherwise; they cannot behind a mistake.
    """
    for choice in found:
        if choice.subject != "orientation" or [u.path for u in choice.references] != [
            u.path for u in choice.ports
        ]:
            continue
        first = choice.options[0]
        if all(each.source_view == each.target_view for each in first.entries):
            choice.options[0] = replace(first, named=True)
            choice.open = choice.open and ran
