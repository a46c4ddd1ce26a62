"""Trials: run a module of the port again with other options until it reproduces its twin's output.

A module is tried when something inside it is open: a choice, or a tie of units that take the same
input. The search stops at the first combination that fits, and then looks whether another one fits
as well, because on some inputs several do and none is proven.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from parfocal.inputs import Arguments, convert
from parfocal.weights.book import Book
from parfocal.weights.choices import Choice, same_effect
from parfocal.weights.fingerprint import Fingerprint, distances, noise_of
from parfocal.weights.linking import Link
from parfocal.weights.observe import Seen, prints

MOST_TRIALS = 400  # in one scope
ALL_TRIALS = 2000  # in one pass over the port
CHECKED = 24  # alternatives tried to a choice that fits
MOST_TIED = 4
CLEARLY = 30.0  # times nearer than another: that is no longer as good
ROUNDING = 1e-5  # what is nearer than this differs by rounding alone


@dataclass(frozen=True, slots=True)
class Tie:
    """Reference units with equal keys and equal inputs: values alone cannot tell them apart."""

    references: tuple[str, ...]


Subject = Choice | Tie


@dataclass(frozen=True, slots=True)
class Scope:
    """A module of the port that stands for a module of the reference, and what is open inside."""

    module: Any
    kept: Arguments  # what the module is called with
    subjects: tuple[Subject, ...]
    twins: tuple[Seen, ...]
    inside: frozenset[str]  # paths of the modules below

    @property
    def noise(self) -> float:
        return noise_of(*(twin.outputs for twin in self.twins))

    @property
    def live(self) -> bool:
        return any(each.live for twin in self.twins for each in twin.outputs)

    def off(self, outputs: Sequence[Fingerprint]) -> float:
        """How far the outputs are from the twin's."""
        return min(distances(twin.outputs, outputs) for twin in self.twins)


@dataclass(frozen=True, slots=True)
class Trial:
    """A combination of options, how far the output was off, and how many units got the right input."""

    picks: tuple[int, ...]
    off: float
    agreeing: int = 0

    @property
    def merit(self) -> tuple[int, float]:
        return self.agreeing, -self.off


class Trials:
    """All trials of one pass; ``trying`` and ``pinned`` tell the follower to leave things alone."""

    def __init__(self, book: Book) -> None:
        self.book = book
        self.trying = False
        self.pinned: frozenset[str] = frozenset()
        self.agreeing = 0  # counted by the follower while a trial runs
        self.settled: set[Tie] = set()
        self._budget = ALL_TRIALS
        self._proven: set[str] = set()

    def settle(self, scope: Scope, off: float, most: int = MOST_TRIALS) -> Any:
        """Find what reproduces the twin's output; returns the new output, or None when nothing changed."""
        for subject in scope.subjects:
            if isinstance(subject, Choice):
                subject.tried = True
        start = Trial(tuple(_current(subject) for subject in scope.subjects), off)
        found = start if off <= scope.noise else self._search(scope, start, most)
        if found is None or not scope.live:
            return None
        found = self._look_for_rivals(scope, found)
        output = None if found is start else self._run(scope, found.picks)
        self._accept(scope)
        return output

    def _search(self, scope: Scope, start: Trial, most: int) -> Trial | None:
        """The usual combinations first, then one subject after the other in order of execution."""
        left = iter(range(most))
        for picks in _uniform(scope.subjects):
            if picks != start.picks and self._may(left):
                trial = self._try(scope, picks)
                if trial.off <= scope.noise:
                    return trial
        best = self._try(scope, start.picks)
        for number, subject in enumerate(scope.subjects):
            for pick in range(_size(subject)):
                picks = (*best.picks[:number], pick, *best.picks[number + 1 :])
                if picks == best.picks or not self._may(left):
                    continue
                trial = self._try(scope, picks)
                if trial.off <= scope.noise:
                    return trial
                best = max(best, trial, key=lambda each: each.merit)
        return None

    def _may(self, left: Iterator[int]) -> bool:
        self._budget -= 1
        return self._budget >= 0 and next(left, None) is not None

    def _look_for_rivals(self, scope: Scope, found: Trial) -> Trial:
        """Other options of each choice that fit as well, or clearly better: then that is what was found.

        Names break the tie between equals, nothing else does.
        """
        for number, subject in enumerate(scope.subjects):
            if not isinstance(subject, Choice) or _pattern(subject, found.picks[number]) in self._proven:
                continue
            others = self._others(scope, subject, found, number)
            nearest = min(others, key=lambda trial: trial.off, default=found)
            if nearest.off * CLEARLY < found.off:
                others, found = [found, *(trial for trial in others if trial is not nearest)], nearest
            enough = min(scope.noise, max(CLEARLY * found.off, ROUNDING))
            subject.rivals = [trial.picks[number] for trial in others if trial.off <= enough]
            if not subject.rivals:
                self._proven.add(_pattern(subject, found.picks[number]))
        return found

    def _others(self, scope: Scope, subject: Choice, found: Trial, number: int) -> list[Trial]:
        """Trials of the other options of a choice that do something else."""
        chosen = found.picks[number]
        near = sorted(range(len(subject.options)), key=lambda pick: (abs(pick - chosen), pick))
        picks = [pick for pick in {*near[:CHECKED], *range(CHECKED)} if pick < len(subject.options)]
        return [
            self._try(scope, (*found.picks[:number], pick, *found.picks[number + 1 :]))
            for pick in picks
            if pick != chosen and not same_effect(subject.options[pick], subject.options[chosen])
        ]

    def _accept(self, scope: Scope) -> None:
        for subject in scope.subjects:
            if isinstance(subject, Tie):
                self.settled.add(subject)
                continue
            named = [pick for pick in subject.rivals if subject.options[pick].named]
            if named:  # what fits as well is what the names ask for
                subject.rivals = [subject.current, *(pick for pick in subject.rivals if pick != named[0])]
                subject.current = named[0]
            subject.evidence = (
                *subject.evidence,
                f"reproduces the output of {scope.twins[0].path or 'the model'}",
            )
            subject.confidence = 0.7 if subject.rivals else 0.99
            subject.open = False
        self.book.sync()

    def _try(self, scope: Scope, picks: tuple[int, ...]) -> Trial:
        before = self.book.state()
        try:
            output = self._run(scope, picks)
            return Trial(picks, scope.off(prints(self.book.port.backend, output)), self.agreeing)
        finally:
            self.book.back_to(before)

    def _run(self, scope: Scope, picks: tuple[int, ...]) -> Any:
        """Run the module with the given options; units behind a permuted tie are identified anew."""
        pinned: set[str] = set()
        for subject, pick in zip(scope.subjects, picks, strict=True):
            if isinstance(subject, Choice):
                subject.current = pick
            else:
                pinned |= self._permute(subject, pick)
        if pinned:
            links = self.book.draft.links
            self.book.confirmed = {
                path: reference
                for path, reference in self.book.confirmed.items()
                if links[path].port.module not in scope.inside
            }
        self.book.sync()
        self.trying, self.pinned, self.agreeing = True, frozenset(pinned), 0
        try:
            args, kwargs = convert(scope.kept, self.book.port.backend)
            return scope.module(*args, **kwargs)
        finally:
            self.trying, self.pinned = False, frozenset()

    def _permute(self, tie: Tie, pick: int) -> set[str]:
        """Hand the tied reference units out in another order."""
        links = [
            self.book.draft.links[self.book.holders[path]]
            for path in tie.references
            if path in self.book.holders
        ]
        order = next(itertools.islice(itertools.permutations(range(len(links))), pick, None))
        if pick:
            for link, place in zip(links, order, strict=True):
                chosen = Link(links[place].reference, link.port, ("tried on the inputs",), 0.9)
                self.book.relink(link.port.path, chosen)
        return {link.port.path for link in links}


def _current(subject: Subject) -> int:
    return subject.current if isinstance(subject, Choice) else 0


def _size(subject: Subject) -> int:
    if isinstance(subject, Choice):
        return len(subject.options)
    count = len(subject.references)
    return len(list(itertools.permutations(range(count)))) if count <= MOST_TIED else 1


def _uniform(subjects: Sequence[Subject]) -> Iterator[tuple[int, ...]]:
    """The same option everywhere: the layers of a model are written by one hand."""
    for pick in range(max(_size(subject) for subject in subjects)):
        yield tuple(pick if pick < _size(subject) else _current(subject) for subject in subjects)


def _pattern(choice: Choice, pick: int) -> str:
    """What an option does, without the names: the same in every layer of a model."""
    entries = choice.options[pick].entries
    return repr([choice.subject, *((e.source_view, e.target_view, e.target_shape) for e in entries)])
