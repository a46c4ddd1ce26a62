"""Trials: run a module of the port again with other options until it reproduces its twin's output.

A module is tried when something inside it is open: a choice, or a tie of units that take the same
input. What names and the order of definition suggest comes first, then what fitted elsewhere in the
model. The search stops at the first combination that fits, and then looks whether another one fits
as well, because on some inputs several do and none is proven. Where none fits, the code of the port
computes something else: the search ends after a stated number of trials, and the options with the best
evidence stay.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from parfocal.inputs import Arguments, convert
from parfocal.judge import limits
from parfocal.phrases import phrase
from parfocal.weights.choices import Choice, same_effect
from parfocal.weights.fingerprint import WeightFingerprint, distances, noise_of, resemblance
from parfocal.weights.link_state import LinkState
from parfocal.weights.linking import Link
from parfocal.weights.observe import FinishedCall, prints
from parfocal.weights.scopes import UnitsByModule

MOST_TRIALS = limits.transfer.TRIALS.value
AGAIN = limits.transfer.TRIALS_AGAIN.value
ALL_TRIALS = limits.transfer.ALL_TRIALS.value
CHECKED = limits.transfer.CHECKED.value
MOST_TIED = limits.transfer.TIED.value
CLEARLY = limits.transfer.CLEARLY_NEARER.value
ROUNDING = limits.transfer.ROUNDED.value
NEARER = limits.transfer.BETTER_GUESS.value
ALIKE = limits.transfer.ALIKE.value


@dataclass(frozen=True, slots=True)
class EqualUnits:
    """Reference units with equal keys and equal inputs: values alone cannot tell them apart."""

    references: tuple[str, ...]


Subject = Choice | EqualUnits


@dataclass(frozen=True, slots=True)
class Scope:
    """A module of the port that stands for a module of the reference, and what is open inside."""

    path: str
    module: Any
    kept: Arguments  # what the module is called with
    subjects: tuple[Subject, ...]
    twins: tuple[FinishedCall, ...]

    @property
    def noise(self) -> float:
        return noise_of(*(twin.outputs for twin in self.twins))

    @property
    def live(self) -> bool:
        return any(each.live for twin in self.twins for each in twin.outputs)

    def off(self, outputs: Sequence[WeightFingerprint]) -> float:
        """How far the outputs are from the twin's."""
        return min(distances(twin.outputs, outputs) for twin in self.twins)

    def alike(self, outputs: Sequence[WeightFingerprint]) -> float:
        """How much the outputs resemble the twin's."""
        return max(resemblance(twin.outputs, outputs) for twin in self.twins)


@dataclass(frozen=True, slots=True)
class Trial:
    """A combination of options, how far the output was off, and how many units got the right input."""

    picks: tuple[int, ...]
    off: float
    agreeing: int = 0
    alike: float = 0.0  # how much the output resembles the twin's, whatever its scale

    @property
    def merit(self) -> tuple[int, float]:
        return self.agreeing, -self.off


@dataclass(slots=True)
class TrialResults:
    """What the trials of one transfer have shown so far, all passes together."""

    left: int = ALL_TRIALS
    proven: set[str] = field(default_factory=set)  # what options do that fit, and nothing else fits as well
    likely: set[str] = field(default_factory=set)  # what options do that do not fit, and come nearest by far
    failed: Counter[str] = field(default_factory=Counter)  # kinds of subjects for which nothing fitted
    searched: set[tuple[str, frozenset[object]]] = field(default_factory=set)  # scopes and what was open


class Trials:
    """The trials of one pass; ``trying`` and ``pinned`` tell the follower to leave things alone."""

    def __init__(self, book: LinkState, under: UnitsByModule, experience: TrialResults) -> None:
        self.book = book
        self.trying = False
        self.pinned: frozenset[str] = frozenset()
        self.agreeing = 0  # counted by the follower while a trial runs
        self.settled: set[EqualUnits] = set()
        self._under = under
        self._known = experience

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
        """The likeliest combinations first, then one subject after the other in order of execution."""
        kinds = [self._kind(subject) for subject in scope.subjects]
        search = scope.path, frozenset(map(_identity, scope.subjects))
        if search in self._known.searched:
            return None
        self._known.searched.add(search)
        left = iter(range(AGAIN if any(self._known.failed[kind] for kind in kinds) else most))
        tried: dict[tuple[int, ...], Trial] = {}
        for picks in itertools.chain(self._as_elsewhere(scope.subjects), _uniform(scope.subjects)):
            if picks not in tried and self._may(left):
                trial = tried[picks] = self._try(scope, picks)
                if trial.off <= scope.noise:
                    return trial
        found = self._one_by_one(scope, tried.get(start.picks, start), left)
        if found.off <= scope.noise:
            return found
        self._known.failed.update(kinds)
        choices = [subject for subject in scope.subjects if isinstance(subject, Choice)]
        if any(choice.refuted for choice in choices):
            return None  # the mistake is further inside: what comes out here says less than what did there
        if start.picks in tried:
            best = max((found, *tried.values()), key=lambda each: each.alike)
            self._keep_the_likeliest(scope, tried[start.picks], best)
        for choice in choices:
            choice.refuted = True
        return None

    def _one_by_one(self, scope: Scope, start: Trial, left: Iterator[int]) -> Trial:
        """The first that fits, or the best."""
        if sum(_size(subject) > 1 for subject in scope.subjects) < 2:
            return start  # all of its options were tried
        best = start
        for number, subject in enumerate(scope.subjects):
            for pick in range(_size(subject)):
                picks = (*best.picks[:number], pick, *best.picks[number + 1 :])
                if picks == best.picks or not self._may(left):
                    continue
                trial = self._try(scope, picks)
                if trial.off <= scope.noise:
                    return trial
                best = max(best, trial, key=lambda each: each.merit)
        return best

    def _as_elsewhere(self, subjects: Sequence[Subject]) -> Iterator[tuple[int, ...]]:
        """What fitted in other parts of the model."""
        for patterns in (self._known.proven, self._known.likely):
            yield tuple(
                next((n for n in range(_size(each)) if _pattern(each, n) in patterns), each.current)
                if isinstance(each, Choice) and patterns
                else _current(each)
                for each in subjects
            )

    def _keep_the_likeliest(self, scope: Scope, start: Trial, best: Trial) -> None:
        """No option fits: one that is clearly more like the twin than the usual one, unless names speak.

        Tied units stay in the order in which they run.
        """
        if best.alike < ALIKE or 1.0 - best.alike > NEARER * (1.0 - start.alike):
            return
        for subject, pick in zip(scope.subjects, best.picks, strict=True):
            if isinstance(subject, EqualUnits) or subject.options[subject.current].named:
                continue
            if pick != subject.current:
                subject.nearest = True
                self.book.pick(subject, pick)
                self._known.likely.add(_pattern(subject, pick))
        self.book.sync()

    def _may(self, left: Iterator[int]) -> bool:
        if self._known.left <= 0 or next(left, None) is None:
            return False
        self._known.left -= 1
        return True

    def _kind(self, subject: Subject) -> str:
        """The same for the same subject in every block of a model."""
        if isinstance(subject, Choice):
            shapes = [(unit.family, [slot.shape for slot in unit.required]) for unit in subject.ports]
            return repr([subject.subject, len(subject.options), shapes])
        units = [self.book.draft.links[self.book.holders[path]].port for path in subject.references]
        return repr([unit.key for unit in units])

    def _look_for_rivals(self, scope: Scope, found: Trial) -> Trial:
        """Other options of each choice that fit as well, or clearly better: then that is what was found.

        Names break the tie between equals, nothing else does. What names ask for and fits but for rounding
        has no rivals.
        """
        for number, subject in enumerate(scope.subjects):
            if (
                not isinstance(subject, Choice)
                or _pattern(subject, found.picks[number]) in self._known.proven
            ):
                continue
            if subject.options[found.picks[number]].named and found.off <= ROUNDING:
                self._known.proven.add(_pattern(subject, found.picks[number]))
                continue
            others = self._others(scope, subject, found, number)
            nearest = min(others, key=lambda trial: trial.off, default=found)
            if nearest.off * CLEARLY < found.off:
                others, found = [found, *(trial for trial in others if trial is not nearest)], nearest
            enough = min(scope.noise, max(CLEARLY * found.off, ROUNDING))
            subject.rivals = [trial.picks[number] for trial in others if trial.off <= enough]
            if not subject.rivals:
                self._known.proven.add(_pattern(subject, found.picks[number]))
        return found

    def _others(self, scope: Scope, subject: Choice, found: Trial, number: int) -> list[Trial]:
        """Trials of the other options of a choice that do something else."""
        chosen = found.picks[number]
        near = sorted(range(len(subject.options)), key=lambda pick: (abs(pick - chosen), pick))
        checked = AGAIN if subject.refuted else CHECKED
        picks = [pick for pick in {*near[:checked], *range(checked)} if pick < len(subject.options)]
        return [
            self._try(scope, (*found.picks[:number], pick, *found.picks[number + 1 :]))
            for pick in picks
            if pick != chosen and not same_effect(subject.options[pick], subject.options[chosen])
        ]

    def _accept(self, scope: Scope) -> None:
        for subject in scope.subjects:
            if isinstance(subject, EqualUnits):
                self.settled.add(subject)
                continue
            if subject.rivals and subject.refuted:  # what is around drowns the difference: no evidence
                subject.rivals = []
                continue
            named = [pick for pick in subject.rivals if subject.options[pick].named]
            if named:  # what fits as well is what the names ask for
                subject.rivals = [subject.current, *(pick for pick in subject.rivals if pick != named[0])]
                self.book.pick(subject, named[0])
            subject.evidence = (
                *subject.evidence,
                phrase("reproduces the output of {path}", path=scope.twins[0].path or phrase("the model")),
            )
            subject.confidence = 0.7 if subject.rivals else 0.99
            subject.open = False
        self.book.sync()

    def _try(self, scope: Scope, picks: tuple[int, ...]) -> Trial:
        before = self.book.state()
        try:
            output = self._run(scope, picks)
            seen = prints(self.book.port.backend, output)
            return Trial(picks, scope.off(seen), self.agreeing, scope.alike(seen))
        finally:
            self.book.back_to(before)

    def _run(self, scope: Scope, picks: tuple[int, ...]) -> Any:
        """Run the module with the given options; units behind a permuted tie are identified anew."""
        pinned: set[str] = set()
        for subject, pick in zip(scope.subjects, picks, strict=True):
            if isinstance(subject, Choice):
                self.book.pick(subject, pick)
            else:
                pinned |= self._permute(subject, pick)
        if pinned:
            for unit in self._under[scope.path]:
                self.book.confirmed.pop(unit.path, None)
        self.book.sync()
        self.trying, self.pinned, self.agreeing = True, frozenset(pinned), 0
        try:
            args, kwargs = convert(scope.kept, self.book.port.backend)
            return scope.module(*args, **kwargs)
        finally:
            self.trying, self.pinned = False, frozenset()

    def _permute(self, tie: EqualUnits, pick: int) -> set[str]:
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


def _identity(subject: Subject) -> object:
    """A tie is known by its members; a choice is one object in all passes."""
    return subject if isinstance(subject, EqualUnits) else id(subject)


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
