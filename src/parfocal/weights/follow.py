"""Lets the values decide: the port runs, and every unit is known by what goes into it.

When a unit of the port is entered, everything before it has its right weights already, so its
input equals the recorded input of exactly the reference unit it stands for, whatever the names,
the nesting, and the order of definition or of parallel branches. Where several ways are open
(fused layers, square weights, units fed the same input) the smallest module around them that has a
twin in the reference is run again with each option; the one that reproduces the twin's output wins.
"""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from parfocal.backends.protocol import Call
from parfocal.inputs import Arguments, convert
from parfocal.weights.book import Book
from parfocal.weights.choices import Choice
from parfocal.weights.drafting import Draft
from parfocal.weights.fingerprint import Fingerprint, distances, noise_of
from parfocal.weights.linking import Link
from parfocal.weights.names import likeness
from parfocal.weights.observe import Observation, Seen, capture, prints, quiet
from parfocal.weights.scopes import Scopes, all_inside
from parfocal.weights.units import Unit
from parfocal.weights.writer import Side

NEAR = 0.05  # inputs this close are the same tensor after a small difference upstream
CLEARLY = 20.0  # how much worse the next best must be
MOST_TRIALS = 170  # in one scope
ALL_TRIALS = 1500  # in one pass
MOST_TIED = 4
BY_VALUES = "same input values"


@dataclass(frozen=True, slots=True)
class Tie:
    """Reference units with equal keys and equal inputs: values alone cannot tell them apart."""

    references: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Trial:
    """One combination of options (or of permutations) and how far the output was off."""

    picks: tuple[int, ...]
    off: float


class Follower:
    """One pass over the port."""

    def __init__(self, reference: Side, port: Side, draft: Draft, seen: Observation) -> None:
        self.port = port
        self.draft = draft
        self.seen = seen
        self.book = Book(draft, reference, port)
        self.units = {unit.path: unit for unit in draft.ports if unit.path == unit.module}
        self.confirmed: dict[str, str] = {}  # port path -> reference path, by values
        self.budget = ALL_TRIALS
        self.unsettled_runs = False  # a unit ran with weights that were replaced later
        self._references = _by_key(draft.references, seen)
        self._scopes = Scopes(draft, seen)
        self._ties = _ties(draft.references, seen)
        self._settled_ties: set[Tie] = set()
        self._pinned: frozenset[str] = frozenset()
        self._trying = False
        self._counts: dict[str, int] = {}
        self._proven: set[str] = set()

    def run(self, arguments: Arguments) -> None:
        """Write the draft, run the port, and let values correct it on the way."""
        self.book.sync()
        args, kwargs = arguments
        with quiet(self.port), self.port.backend.watch(self.port.model, self._enter, self._exit):
            self.port.model(*args, **kwargs)

    # Units: known by their inputs.

    def _enter(self, call: Call) -> None:
        call.note["inputs"] = inputs = prints(self.port.backend, (call.args, call.kwargs))
        if not self._trying:
            call.note["occurrence"] = self._counts.get(call.path, 0)
            self._counts[call.path] = call.note["occurrence"] + 1
            if self._subjects(call.path):
                call.note["kept"] = convert((call.args, call.kwargs), self.port.backend)
        unit = self.units.get(call.path)
        if unit and call.path not in self.confirmed and not self.book.in_choice(call.path):
            self._identify(unit, inputs)

    def _identify(self, unit: Unit, inputs: Sequence[Fingerprint]) -> None:
        link = self.draft.links.get(unit.path)
        if unit.path in self._pinned and link:
            self.confirmed[unit.path] = link.reference.path
            return
        if link and self._agrees(link.reference, inputs):
            self._confirm(unit, link)
            return
        found = self._find(unit, inputs, link)
        if found is None:
            return
        holder = self.book.holders.get(found.path)
        if holder is not None and self._counts.get(holder):
            self.unsettled_runs = True
        self._confirm(unit, Link(found, unit, (BY_VALUES,), 0.95))
        self.book.sync([path for path in (unit.path, holder) if path])

    def _confirm(self, unit: Unit, link: Link) -> None:
        evidence = link.evidence if BY_VALUES in link.evidence else (*link.evidence, BY_VALUES)
        confidence = max(link.confidence, 0.95)
        self.book.relink(unit.path, replace(link, evidence=evidence, confidence=confidence, decided=True))
        self.confirmed[unit.path] = link.reference.path

    def _agrees(self, reference: Unit, inputs: Sequence[Fingerprint]) -> bool:
        seen = self.seen.first(reference.module)
        return seen is not None and distances(seen.inputs, inputs) <= noise_of(seen.inputs, inputs)

    def _find(self, unit: Unit, inputs: Sequence[Fingerprint], link: Link | None) -> Unit | None:
        """The free reference unit with the same input; a merely near one must be the only one near."""
        taken = set(self.confirmed.values())
        mine, yours = self.draft.regions
        scored = sorted(
            (
                (distances(seen.inputs, inputs), -likeness(other.path, unit.path), seen.order, other)
                for other, seen in self._references.get(unit.key, [])
                if other.path not in taken and mine.get(other.path) == yours.get(unit.path)
            ),
            key=lambda item: item[:3],
        )
        if not scored:
            return None
        equal = [item for item in scored if item[0] <= noise_of(inputs)]
        if equal:
            return min(equal, key=lambda item: item[1:3])[3]
        best = scored[0]
        current = link.reference.path if link else None
        alone = len(scored) == 1 or scored[1][0] > CLEARLY / 4 * best[0]
        return best[3] if best[0] < NEAR and alone and best[3].path != current else None

    # Scopes: where something is open, run again with each option.

    def _exit(self, call: Call, output: Any) -> Any:
        if self._trying:
            return None
        subjects = self._subjects(call.path)
        twins = self._scopes.twins(call.path, call.note["occurrence"]) if subjects else []
        agree = any(distances(twin.inputs, call.note["inputs"]) <= noise_of(twin.inputs) for twin in twins)
        if not agree or "kept" not in call.note:
            return None
        off = _off(twins, prints(self.port.backend, output))
        return self._settle(call.module, call.note["kept"], subjects, twins, off)

    def settle_the_rest(self, reference: Side, arguments: Arguments) -> None:
        """Choices behind a real difference of the port: try them on the reference's own inputs."""
        modules = self.port.backend.modules(self.port.model)
        for path in sorted(self._counts, key=lambda each: -len(each)):
            subjects: list[Choice | Tie] = [s for s in self._subjects(path) if isinstance(s, Choice)]
            twins = self._scopes.twins(path, 0) if subjects else []
            if not twins:
                continue
            kept = capture(reference, arguments, twins[0].path, self.port.backend)
            if kept is None or not _same_signature(modules[path], kept):
                continue
            with quiet(self.port):
                picks = tuple(self._current(subject) for subject in subjects)
                output = self._run_again(modules[path], kept, subjects, picks)
                off = _off(twins, prints(self.port.backend, output))
                self._settle(modules[path], kept, subjects, twins, off)

    def _subjects(self, path: str) -> list[Choice | Tie]:
        """Open choices and ties that lie wholly inside a module."""
        found: list[Choice | Tie] = [
            choice for choice in self.draft.choices if choice.open and all_inside(choice.modules, path)
        ]
        for tie in self._ties:
            holders = [self.book.holders.get(each) for each in tie.references]
            ports = [holder for holder in holders if holder is not None]
            if (
                tie not in self._settled_ties
                and len(ports) > 1
                and all_inside(ports, path)
                and path not in ports
            ):
                found.append(tie)
        return found

    def _settle(
        self, module: Any, kept: Arguments, subjects: list[Choice | Tie], twins: Sequence[Seen], off: float
    ) -> Any:
        noise = noise_of(*(twin.outputs for twin in twins))
        choices = [subject for subject in subjects if isinstance(subject, Choice)]
        live = any(print_.live for twin in twins for print_ in twin.outputs)
        if off <= noise and all(self._known(choice) for choice in choices):
            self._accept(subjects, twins[0], live)
            return None
        trials = [Trial(tuple(self._current(subject) for subject in subjects), off)]
        start = trials[0]
        for picks in itertools.islice(_combinations([self._size(s) for s in subjects]), MOST_TRIALS):
            if picks == start.picks or not self.budget:
                continue
            self.budget -= 1
            trials.append(Trial(picks, self._try(module, kept, subjects, picks, twins)))
            if trials[-1].off <= noise and not choices:
                break
        return self._judge(module, kept, subjects, twins, trials, noise, live)

    def _judge(
        self,
        module: Any,
        kept: Arguments,
        subjects: list[Choice | Tie],
        twins: Sequence[Seen],
        trials: list[Trial],
        noise: float,
        live: bool,
    ) -> Any:
        ranked = sorted(trials, key=lambda trial: trial.off)
        best = ranked[0]
        fitting = [trial for trial in ranked if trial.off <= max(noise, 2 * best.off)]
        if best.off > noise or not live:
            return None
        chosen = self._preferred(subjects, fitting)
        output = self._run_again(module, kept, subjects, chosen.picks)
        for number, subject in enumerate(subjects):
            if isinstance(subject, Choice):
                subject.rivals = sorted({trial.picks[number] for trial in fitting} - {chosen.picks[number]})
        self._accept(subjects, twins[0], live)
        return output

    def _preferred(self, subjects: list[Choice | Tie], fitting: list[Trial]) -> Trial:
        """Of options that fit equally: what the names ask for, else what stands now, else the first."""

        def unusual(trial: Trial) -> tuple[int, tuple[int, ...]]:
            named = sum(
                not subject.options[pick].named
                for subject, pick in zip(subjects, trial.picks, strict=True)
                if isinstance(subject, Choice)
            )
            return named, trial.picks

        return min(fitting, key=unusual)

    def _accept(self, subjects: list[Choice | Tie], twin: Seen, live: bool) -> None:
        for subject in subjects:
            if isinstance(subject, Tie):
                self._settled_ties.add(subject)
                continue
            if not live:
                continue
            where = f"reproduces the output of {twin.path or 'the model'}"
            subject.evidence = (*subject.evidence, where)
            subject.confidence = 0.99
            subject.open = False
            self._proven.add(_pattern(subject))

    def _known(self, choice: Choice) -> bool:
        """The same arrangement was shown elsewhere to be the only one that fits."""
        return _pattern(choice) in self._proven and not choice.rivals

    # Trials.

    def _size(self, subject: Choice | Tie) -> int:
        if isinstance(subject, Choice):
            return len(subject.options)
        count = len(subject.references)
        return len(list(itertools.permutations(range(count)))) if count <= MOST_TIED else 1

    def _current(self, subject: Choice | Tie) -> int:
        return subject.current if isinstance(subject, Choice) else 0

    def _try(
        self,
        module: Any,
        kept: Arguments,
        subjects: list[Choice | Tie],
        picks: tuple[int, ...],
        twins: Sequence[Seen],
    ) -> float:
        before = dict(self.draft.links), dict(self.book.holders), dict(self.confirmed)
        stood = [self._current(subject) for subject in subjects]
        left = list(self.draft.left_references), list(self.draft.left_ports)
        output = self._run_again(module, kept, subjects, picks)
        off = _off(twins, prints(self.port.backend, output))
        for subject, pick in zip(subjects, stood, strict=True):
            if isinstance(subject, Choice):
                subject.current = pick
        links, self.book.holders, self.confirmed = before
        self.draft.links.clear()
        self.draft.links.update(links)
        self.draft.left_references, self.draft.left_ports = left
        self.book.sync()
        return off

    def _run_again(
        self, module: Any, kept: Arguments, subjects: list[Choice | Tie], picks: tuple[int, ...]
    ) -> Any:
        """Run one module with the given options; units behind a permuted tie are identified anew."""
        pinned: set[str] = set()
        for subject, pick in zip(subjects, picks, strict=True):
            if isinstance(subject, Choice):
                subject.current = pick
            else:
                pinned |= self._permute(subject, pick)
        if pinned:
            inside = self._inside_of(module)
            self.confirmed = {path: r for path, r in self.confirmed.items() if path not in inside}
        self.book.sync()
        self._trying, self._pinned = True, frozenset(pinned)
        try:
            args, kwargs = convert(kept, self.port.backend)
            return module(*args, **kwargs)
        finally:
            self._trying, self._pinned = False, frozenset()

    def _permute(self, tie: Tie, pick: int) -> set[str]:
        """Hand the tied reference units out in another order."""
        references = [self.draft.links[self.book.holders[path]].reference for path in tie.references
                      if path in self.book.holders]  # fmt: skip
        ports = [self.draft.links[self.book.holders[unit.path]].port for unit in references]
        order = list(itertools.permutations(range(len(references))))[pick]
        if pick:
            for port, place in zip(ports, order, strict=True):
                self.book.relink(port.path, Link(references[place], port, ("tried on the inputs",), 0.9))
        return {port.path for port in ports}

    def _inside_of(self, module: Any) -> set[str]:
        below = {id(each) for each in self.port.backend.modules(module).values()}
        modules = self.port.backend.modules(self.port.model)
        return {path for path, each in modules.items() if id(each) in below}


def _same_signature(module: Any, kept: Arguments) -> bool:
    """Whether the module can be called like its twin."""
    try:
        inspect.signature(module.forward).bind(*kept[0], **kept[1])
    except TypeError:
        return False
    return True


def _off(twins: Sequence[Seen], outputs: Sequence[Fingerprint]) -> float:
    return min(distances(twin.outputs, outputs) for twin in twins)


def _pattern(choice: Choice) -> str:
    """What the chosen option does, without the names: the same in every layer of a model."""
    entries = choice.entries
    return repr([choice.subject, *((e.source_view, e.target_view, e.target_shape) for e in entries)])


def _combinations(sizes: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """All combinations of option numbers, those with small numbers first."""
    if _count(sizes) <= 20 * MOST_TRIALS:
        yield from sorted(
            itertools.product(*(range(size) for size in sizes)), key=lambda picks: (sum(picks), picks)
        )
        return
    for number, size in enumerate(sizes):  # too many: one at a time
        for pick in range(size):
            yield tuple(pick if place == number else 0 for place in range(len(sizes)))


def _count(sizes: Sequence[int]) -> int:
    total = 1
    for size in sizes:
        total *= size
    return total


def _by_key(references: Sequence[Unit], seen: Observation) -> dict[Any, list[tuple[Unit, Seen]]]:
    found: dict[Any, list[tuple[Unit, Seen]]] = {}
    for unit in references:
        call = seen.first(unit.module)
        if call and unit.path == unit.module:
            found.setdefault(unit.key, []).append((unit, call))
    return found


def _ties(references: Sequence[Unit], seen: Observation) -> list[Tie]:
    groups: list[tuple[Seen, list[str]]] = []
    for candidates in _by_key(references, seen).values():
        start = len(groups)
        for unit, call in candidates:
            for other, members in groups[start:]:
                if distances(call.inputs, other.inputs) <= noise_of(call.inputs):
                    members.append(unit.path)
                    break
            else:
                groups.append((call, [unit.path]))
    return [
        Tie(tuple(members))
        for members in [*(m for _, m in groups), *_uncalled(references)]
        if len(members) > 1
    ]


def _uncalled(references: Sequence[Unit]) -> list[list[str]]:
    """Units of one module that are used without a call of their own: raw parameters, parts of composites."""
    found: dict[Any, list[str]] = {}
    for unit in references:
        if unit.path != unit.module and unit.required:
            found.setdefault((unit.module, unit.key), []).append(unit.path)
    return list(found.values())
