"""Lets the values decide: the port runs, and every unit is known by what goes into it.

When a unit of the port is entered, everything before it has its right weights already, so its
input equals the recorded input of exactly the reference unit it stands for, whatever the names,
the nesting, and the order of definition or of parallel branches. Where several ways are open
(fused layers, square weights, units fed the same input) the smallest module around them that has a
twin in the reference is run again with each option (``trials.py``).
"""

from __future__ import annotations

import inspect
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from parfocal.backends.protocol import Call
from parfocal.inputs import Arguments, convert
from parfocal.weights.book import Book
from parfocal.weights.choices import Choice, alike, exchange
from parfocal.weights.draft import Draft
from parfocal.weights.fingerprint import Fingerprint, distances, noise_of, shared_distance
from parfocal.weights.linking import Link
from parfocal.weights.names import likeness
from parfocal.weights.observe import Observation, Seen, capture, prints, quiet
from parfocal.weights.relayout import part_counts, relayout_choice
from parfocal.weights.scopes import Scopes, all_inside, inside
from parfocal.weights.trials import MOST_TRIALS, Scope, Subject, Tie, Trials
from parfocal.weights.units import Key, Unit
from parfocal.weights.writer import Side

NEAR = 0.05  # inputs this close are the same tensor after a small difference upstream
ALONE = 5.0  # how much farther the next best must be
MOST_LAYOUTS = 12  # layers fused on both sides that are tried at once
LAYOUT_CALLS = 4000  # of modules in all trials of layouts: many of a block, few of a whole model
BY_VALUES = "same input values"
NUMBER = re.compile(r"(?<![^.])\d+(?![^.])")


class Follower:
    """One pass over the port."""

    def __init__(self, reference: Side, port: Side, draft: Draft, seen: Observation) -> None:
        self.port = port
        self.draft = draft
        self.seen = seen
        self.book = Book(draft, reference, port)
        self.trials = Trials(self.book)
        self.unsettled_runs = False  # a unit ran with weights that were replaced later
        self._units = {unit.module: unit for unit in _called(draft.ports)}
        self._references = _by_key(draft.references, seen)
        self._scopes = Scopes(draft, seen)
        self._ties = [*_ties(draft.references, seen), *_ties_of_uncalled(draft)]
        self._maybe_fused = [path for path, link in draft.links.items() if part_counts(link)]
        self._counts: dict[str, int] = {}
        self._differing: list[str] = []  # what gave another output on the right input, for good

    def run(self, arguments: Arguments) -> None:
        """Write the draft, run the port, and let values correct it on the way."""
        self.book.sync()
        args, kwargs = arguments
        with quiet(self.port), self.port.backend.watch(self.port.model, self._enter, self._exit):
            self.port.model(*args, **kwargs)

    # Units: known by their inputs.

    def _enter(self, call: Call) -> None:
        inputs = prints(self.port.backend, (call.args, call.kwargs))
        if not self.trials.trying:
            call.note["inputs"] = inputs
            call.note["occurrence"] = self._counts.get(call.path, 0)
            self._counts[call.path] = call.note["occurrence"] + 1
            if not call.path or self._subjects(call.path) or self._latent(call.path):
                call.note["kept"] = convert((call.args, call.kwargs), self.port.backend)
        unit = self._units.get(call.path)
        if unit and not self.trials.trying and self.book.in_choice(unit.path):
            self._identify_choice(unit, inputs)
        elif unit and not self.book.in_choice(unit.path):
            if unit.path not in self.book.confirmed:
                self._identify(unit, inputs)
            self._count_agreeing(unit, inputs)

    def _count_agreeing(self, unit: Unit, inputs: Sequence[Fingerprint]) -> None:
        link = self.draft.links.get(unit.path)
        if self.trials.trying and link and self._agrees(link.reference, inputs):
            self.trials.agreeing += 1

    def _identify(self, unit: Unit, inputs: Sequence[Fingerprint]) -> None:
        link = self.draft.links.get(unit.path)
        if unit.path in self.trials.pinned and link:
            self.book.confirmed[unit.path] = link.reference.path
            return
        if link and self._agrees(link.reference, inputs):
            self._confirm(unit, link)
            return
        found = self._find(unit, inputs, link)
        if found is None:
            return
        holder = self.book.holders.get(found.path)
        ran = holder is not None and self._counts.get(self.draft.links[holder].port.module)
        if ran and not self.trials.trying:
            self.unsettled_runs = True
        self._confirm(unit, Link(found, unit, (BY_VALUES,), 0.95))
        self.book.sync([path for path in (unit.path, holder) if path])

    def _identify_choice(self, unit: Unit, inputs: Sequence[Fingerprint]) -> None:
        """Several against one: are these the right ones? Else they change places with others alike."""
        choice = self.draft.choice_of(unit.path)
        if choice is None or choice.subject != "fused" or self._takes_its_own(choice, inputs):
            return
        for other in self.draft.choices:
            if alike(choice, other) and not other.tried and self._takes_its_own(other, inputs):
                exchange(choice, other)
                self.book.sync()
                return

    def _takes_its_own(self, choice: Choice, inputs: Sequence[Fingerprint]) -> bool:
        return any(self._agrees(reference, inputs) for reference in choice.references)

    def _confirm(self, unit: Unit, link: Link) -> None:
        evidence = link.evidence if BY_VALUES in link.evidence else (*link.evidence, BY_VALUES)
        confidence = max(link.confidence, 0.95)
        self.book.relink(unit.path, replace(link, evidence=evidence, confidence=confidence, decided=True))
        self.book.confirmed[unit.path] = link.reference.path

    def _agrees(self, reference: Unit, inputs: Sequence[Fingerprint]) -> bool:
        seen = self.seen.first(reference.module)
        return seen is not None and distances(seen.inputs, inputs) <= noise_of(seen.inputs, inputs)

    def _find(self, unit: Unit, inputs: Sequence[Fingerprint], link: Link | None) -> Unit | None:
        """The free reference unit with the same input; a merely near one must be the only one near."""
        taken = set(self.book.confirmed.values())
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
        alone = len(scored) == 1 or scored[1][0] > ALONE * best[0]
        return best[3] if best[0] < NEAR and alone and best[3].path != current else None

    # Scopes: where something is open, try.

    def _exit(self, call: Call, output: Any) -> Any:
        if self.trials.trying:
            return None
        if "kept" not in call.note:
            if self._differs(call, output):
                self._differing.append(call.path)
            return None
        scope = self._scope(call.path, call.module, call.note["kept"], call.note["occurrence"])
        if scope is None or not scope.live:
            return None
        if not any(shared_distance(twin.inputs, call.note["inputs"]) <= scope.noise for twin in scope.twins):
            return None
        off = scope.off(prints(self.port.backend, output))
        if off <= scope.noise:
            self._decide(call.path, scope.twins[0].path)
        replaced = self.trials.settle(scope, off) if scope.subjects else None
        if off <= scope.noise or replaced is not None:
            return replaced
        if any(inside(path, call.path) for path in self._differing):
            return None  # no order of rows makes up for that
        replaced = self._try_layouts(scope, self._latent(call.path), off)
        if replaced is None:
            self._differing.append(call.path)
        return replaced

    def _differs(self, call: Call, output: Any) -> bool:
        """Whether a unit gives on the same input what no call of the reference gives."""
        link = self.draft.links.get(call.path)
        if link is None or self.book.in_choice(call.path) or call.path in self._maybe_fused:
            return False
        twin = self.seen.at(link.reference.module, call.note["occurrence"])
        if twin is None or distances(twin.inputs, call.note["inputs"]) > noise_of(twin.inputs):
            return False
        outputs = prints(self.port.backend, output)
        return not any(
            distances(each.outputs, outputs) <= noise_of(each.outputs) for each in (twin, *self.seen.calls)
        )

    def _decide(self, path: str, twin: str) -> None:
        """Guesses inside a module that reproduces its twin's output were right."""
        for port_path, link in self.draft.links.items():
            if not link.decided and inside(port_path, path) and self._counts.get(link.port.module):
                evidence = (*link.evidence, f"reproduces the output of {twin or 'the model'}")
                self.draft.links[port_path] = replace(link, evidence=evidence, confidence=0.9, decided=True)

    def _latent(self, path: str) -> list[Link]:
        """Links inside a module whose rows may lie in another order, though nothing shows it."""
        return [
            self.draft.links[port_path]
            for port_path in self._maybe_fused
            if inside(port_path, path)
            and port_path in self.draft.links
            and not self.book.in_choice(port_path)
        ]

    def _try_layouts(self, scope: Scope, links: Sequence[Link], off: float) -> Any:
        """The last resort: the rows of layers that are fused on both sides."""
        found = [choice for link in links if (choice := relayout_choice(link))]
        if not found or len(found) > MOST_LAYOUTS:
            return None
        for choice in found:
            self.book.adopt(choice)
        most = min(MOST_TRIALS, LAYOUT_CALLS // (1 + len(scope.inside)))
        output = self.trials.settle(replace(scope, subjects=tuple(found)), off, most)
        for choice in found:
            if choice.current == 0:
                self.book.drop(choice)
        self.book.sync()
        return output

    def settle_twins(self) -> None:
        """What values say of one layer holds for its twins in the other blocks, where names say otherwise."""
        shown: dict[str, set[str]] = {}
        for path, reference in self.book.confirmed.items():
            shown.setdefault(_pattern(path), set()).add(_pattern(reference))
        known = {unit.path: unit for unit in self.draft.references}
        taken = set(self.book.confirmed.values())
        for path, link in list(self.draft.links.items()):
            patterns = shown.get(_pattern(path), set())
            if path in self.book.confirmed or len(patterns) != 1 or _pattern(link.reference.path) in patterns:
                continue
            twin = known.get(_numbered(next(iter(patterns)), link.reference.path))
            if twin is not None and twin.key == link.port.key and twin.path not in taken:
                self.book.relink(path, Link(twin, link.port, ("like its twins",), 0.9))

    def settle_the_rest(self, reference: Side, arguments: Arguments) -> None:
        """Choices behind a real difference of the port: try them on the reference's own inputs."""
        modules = self.port.backend.modules(self.port.model)
        for path in sorted(self._counts, key=lambda each: -len(each)):
            if not any(isinstance(subject, Choice) for subject in self._subjects(path)):
                continue
            scope = self._scope(path, modules[path], ((), {}), 0)
            kept = capture(reference, arguments, scope.twins[0].path, self.port.backend) if scope else None
            if scope and kept and _same_signature(modules[path], kept):
                with quiet(self.port):
                    args, kwargs = convert(kept, self.port.backend)
                    output = prints(self.port.backend, modules[path](*args, **kwargs))
                    self.trials.settle(replace(scope, kept=kept), scope.off(output))

    def _scope(self, path: str, module: Any, kept: Arguments, occurrence: int) -> Scope | None:
        subjects = self._subjects(path)
        twins = self._scopes.twins(path, occurrence)
        if not twins:
            return None
        below = frozenset(each for each in self._counts if inside(each, path))
        return Scope(module, kept, tuple(subjects), tuple(twins), below)

    def _subjects(self, path: str) -> list[Subject]:
        """Open choices that lie wholly inside a module, and what of the ties does."""
        found: list[Subject] = [
            choice for choice in self.draft.choices if choice.open and all_inside(choice.modules, path)
        ]
        for tie in (self._part_inside(tie, path) for tie in self._ties):
            if len(tie.references) > 1 and tie not in self.trials.settled:
                found.append(tie)
        return found

    def _part_inside(self, tie: Tie, path: str) -> Tie:
        """What of a tie the layers inside a module have: blocks may all take the same memory, say."""
        holders = {each: self.book.holders.get(each) for each in tie.references}
        return Tie(
            tuple(
                each
                for each, port in holders.items()
                if port is not None and port != path and inside(port, path) and not self.book.in_choice(port)
            )
        )


def _pattern(path: str) -> str:
    """A path without its numbers: the same for the same layer of every block."""
    return NUMBER.sub("#", path)


def _numbered(pattern: str, path: str) -> str:
    """A pattern with the numbers of a path put in."""
    for number in NUMBER.findall(path):
        pattern = pattern.replace("#", number, 1)
    return pattern


def _same_signature(module: Any, kept: Arguments) -> bool:
    """Whether the module can be called like its twin."""
    try:
        inspect.signature(module.forward).bind(*kept[0], **kept[1])
    except TypeError:
        return False
    return True


def _by_key(references: Sequence[Unit], seen: Observation) -> dict[Key, list[tuple[Unit, Seen]]]:
    found: dict[Key, list[tuple[Unit, Seen]]] = {}
    for unit in _called(references):
        call = seen.first(unit.module)
        if call:
            found.setdefault(unit.key, []).append((unit, call))
    return found


def _called(units: Sequence[Unit]) -> list[Unit]:
    """Units that are known by a call of their own: whole modules, and the only parameter of a module."""
    owned = Counter(unit.module for unit in units if unit.required)
    return [unit for unit in units if unit.path == unit.module or (unit.required and owned[unit.module] == 1)]


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
    tied = [*(members for _, members in groups), *_uncalled(references)]
    return [Tie(tuple(members)) for members in tied if len(members) > 1]


def _ties_of_uncalled(draft: Draft) -> list[Tie]:
    """What is linked with raw parameters of one module of the port: no call tells which is which."""
    groups = [[draft.links.get(path) for path in paths] for paths in _uncalled(draft.ports)]
    tied = [tuple(link.reference.path for link in group if link) for group in groups]
    return [Tie(paths) for paths, group in zip(tied, groups, strict=True) if len(paths) == len(group) > 1]


def _uncalled(units: Sequence[Unit]) -> list[list[str]]:
    """Units of one module that are used without a call of their own: raw parameters, parts of composites."""
    found: dict[object, list[str]] = {}
    for unit in units:
        if unit.path != unit.module and unit.required:
            found.setdefault((unit.module, unit.key), []).append(unit.path)
    return list(found.values())
