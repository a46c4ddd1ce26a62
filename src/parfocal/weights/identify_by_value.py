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
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from parfocal.backends.protocol import Call
from parfocal.inputs import Arguments, convert
from parfocal.judge import limits
from parfocal.phrases import phrase
from parfocal.weights.choices import Choice, alike
from parfocal.weights.draft import Draft
from parfocal.weights.fingerprint import WeightFingerprint, distances, noise_of, shared_distance
from parfocal.weights.link_state import LinkState
from parfocal.weights.linking import Link
from parfocal.weights.names import likeness
from parfocal.weights.observe import FinishedCall, ObservedRun, prints, quiet
from parfocal.weights.print_index import PrintIndex
from parfocal.weights.relayout import part_counts, relayout_choice
from parfocal.weights.scopes import Scopes, UnitsByModule, around, inside
from parfocal.weights.ties import by_key, called, ties, ties_of_uncalled
from parfocal.weights.trials import MOST_TRIALS, EqualUnits, Scope, Subject, TrialResults, Trials
from parfocal.weights.units import Unit
from parfocal.weights.writer import WritableModel

NEAR = limits.transfer.SAME_TENSOR.value
ALONE = limits.transfer.NEXT_BEST.value
MOST_LAYOUTS = limits.transfer.FUSED_LAYERS.value
LAYOUT_CALLS = limits.transfer.LAYOUT_CALLS.value
NEIGHBOURS = limits.transfer.NEIGHBOURS.value
BY_VALUES = phrase("same input values")
NUMBER = re.compile(r"(?<![^.])\d+(?![^.])")


class ValueFollower:
    """One pass over the port."""

    def __init__(
        self,
        reference: WritableModel,
        port: WritableModel,
        draft: Draft,
        seen: ObservedRun,
        known: TrialResults,
    ) -> None:
        self.port = port
        self.draft = draft
        self.seen = seen
        self.book = LinkState(draft, reference, port)
        self.unsettled_runs = False  # a unit ran with weights that were replaced later
        self.outputs: tuple[WeightFingerprint, ...] | None = (
            None  # of the whole port, if nothing changed on the way
        )
        self._units = {unit.module: unit for unit in called(draft.ports)}
        self._references = {
            key: PrintIndex(((unit, call), call.inputs) for unit, call in calls)
            for key, calls in by_key(draft.references, seen).items()
        }
        self._outputs = PrintIndex((call, call.outputs) for call in seen.calls)
        self._scopes = Scopes(draft, seen)
        self._under = UnitsByModule(draft.ports)
        self._open = _choices_inside(draft.choices)
        self._fused = _FusedChoices(draft.choices, seen)
        self._ties: dict[str, list[EqualUnits]] = {}  # by reference path
        for tie in (*ties(draft.references, seen), *ties_of_uncalled(draft)):
            for path in tie.references:
                self._ties.setdefault(path, []).append(tie)
        self._maybe_fused = {path for path, link in draft.links.items() if part_counts(link)}
        self._counts: dict[str, int] = {}
        self._differing: list[str] = []  # what gave another output on the right input, for good
        self.trials = Trials(self.book, self._under, known)

    def run(self, arguments: Arguments) -> None:
        """Write the draft, run the port, and let values correct it on the way."""
        self.book.sync()
        args, kwargs = arguments
        with quiet(self.port), self.port.backend.watch(self.port.model, self._enter, self._exit):
            output = self.port.model(*args, **kwargs)
        if not self.book.changes:
            self.outputs = prints(self.port.backend, output)

    # Units: known by their inputs.

    def _enter(self, call: Call) -> None:
        unit = self._units.get(call.path)
        if self.trials.trying:
            if unit and not self.book.in_choice(unit.path):
                self._enter_again(unit, call)
            return
        call.note["occurrence"] = self._counts.get(call.path, 0)
        self._counts[call.path] = call.note["occurrence"] + 1
        tried = not call.path or self._latent(call.path) or self._subjects(call.path)
        if tried:
            call.note["kept"] = convert((call.args, call.kwargs), self.port.backend)
        if not (unit or tried):
            return
        inputs = call.note["inputs"] = prints(self.port.backend, (call.args, call.kwargs))
        if unit and self.book.in_choice(unit.path):
            self._identify_choice(unit, inputs)
        elif unit and unit.path not in self.book.confirmed:
            self._identify(unit, inputs)

    def _enter_again(self, unit: Unit, call: Call) -> None:
        """In a trial: what is confirmed stays, unless a tie was permuted; what now agrees is counted."""
        if unit.path in self.book.confirmed and not self.trials.pinned:
            return
        inputs = prints(self.port.backend, (call.args, call.kwargs))
        if unit.path not in self.book.confirmed:
            self._identify(unit, inputs)
        link = self.draft.links.get(unit.path)
        if link and self._agrees(link.reference, inputs):
            self.trials.agreeing += 1

    def _identify(self, unit: Unit, inputs: Sequence[WeightFingerprint]) -> None:
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
        self.book.sync()

    def _identify_choice(self, unit: Unit, inputs: Sequence[WeightFingerprint]) -> None:
        """Several against one: are these the right ones? Else they change places with others alike."""
        choice = self.draft.choice_of(unit.path)
        if choice is None or choice.subject != "fused" or self._takes_its_own(choice, inputs):
            return
        for other in self._fused.taking(inputs):
            if alike(choice, other) and not other.tried and self._takes_its_own(other, inputs):
                self.book.exchange(choice, other)
                self._fused.note(choice, other)
                self.book.sync()
                return

    def _takes_its_own(self, choice: Choice, inputs: Sequence[WeightFingerprint]) -> bool:
        return any(self._agrees(reference, inputs) for reference in choice.references)

    def _confirm(self, unit: Unit, link: Link) -> None:
        evidence = tuple(dict.fromkeys((*link.evidence, BY_VALUES)))
        confidence = max(link.confidence, 0.95)
        self.book.relink(unit.path, replace(link, evidence=evidence, confidence=confidence, decided=True))
        self.book.confirmed[unit.path] = link.reference.path

    def _agrees(self, reference: Unit, inputs: Sequence[WeightFingerprint]) -> bool:
        seen = self.seen.first(reference.module)
        return seen is not None and distances(seen.inputs, inputs) <= noise_of(seen.inputs, inputs)

    def _find(self, unit: Unit, inputs: Sequence[WeightFingerprint], link: Link | None) -> Unit | None:
        """The free reference unit with the same input; a merely near one must be the only one near."""
        index = self._references.get(unit.key)
        if index is None:
            return None
        noise = noise_of(inputs)
        equal = [item for item in self._scored(unit, index.near(inputs, noise), inputs) if item[0] <= noise]
        if equal:
            return min(equal, key=lambda item: item[1:3])[3]
        scored = self._scored(unit, index.nearest(inputs, NEIGHBOURS), inputs)
        if not scored:
            return None
        best = scored[0]
        current = link.reference.path if link else None
        alone = len(scored) == 1 or scored[1][0] > ALONE * best[0]
        return best[3] if best[0] < NEAR and alone and best[3].path != current else None

    def _scored(
        self, unit: Unit, candidates: Sequence[tuple[Unit, FinishedCall]], inputs: Sequence[WeightFingerprint]
    ) -> list[tuple[float, float, int, Unit]]:
        """Free reference units: how far, how unlike by name, and when they run; the nearest first."""
        mine, yours = self.draft.regions
        found = (
            (distances(seen.inputs, inputs), -likeness(other.path, unit.path), seen.order, other)
            for other, seen in candidates
            if not self._is_taken(other.path) and mine.get(other.path) == yours.get(unit.path)
        )
        return sorted(found, key=lambda item: item[:3])

    def _is_taken(self, reference: str) -> bool:
        """Whether values gave it to a unit of the port already."""
        holder = self.book.holders.get(reference)
        return holder is not None and self.book.confirmed.get(holder) == reference

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
        if not self._maybe_fused or link is None or self.book.in_choice(call.path):
            return False  # only layouts that might be tried ask for it
        if call.path in self._maybe_fused or "inputs" not in call.note:
            return False
        twin = self.seen.at(link.reference.module, call.note["occurrence"])
        if twin is None or distances(twin.inputs, call.note["inputs"]) > noise_of(twin.inputs):
            return False
        outputs = prints(self.port.backend, output)
        if distances(twin.outputs, outputs) <= noise_of(twin.outputs):
            return False
        noise = noise_of(outputs)
        return not any(
            distances(each.outputs, outputs) <= noise_of(each.outputs)
            for each in self._outputs.near(outputs, noise)
        )

    def _decide(self, path: str, twin: str) -> None:
        """Guesses inside a module that reproduces its twin's output were right."""
        for unit in self._under[path]:
            link = self.draft.links.get(unit.path)
            if link and not link.decided and self._counts.get(unit.module):
                evidence = (
                    *link.evidence,
                    phrase("reproduces the output of {path}", path=twin or phrase("the model")),
                )
                self.draft.links[unit.path] = replace(link, evidence=evidence, confidence=0.9, decided=True)

    def _latent(self, path: str) -> list[Link]:
        """Links inside a module whose rows may lie in another order, though nothing shows it."""
        return [
            self.draft.links[unit.path]
            for unit in (self._under[path] if self._maybe_fused else ())
            if unit.path in self._maybe_fused
            and unit.path in self.draft.links
            and not self.book.in_choice(unit.path)
        ]

    def _try_layouts(self, scope: Scope, links: Sequence[Link], off: float) -> Any:
        """The last resort: the rows of layers that are fused on both sides."""
        found = [choice for link in links if (choice := relayout_choice(link))]
        if not found or len(found) > MOST_LAYOUTS:
            return None
        for choice in found:
            self.book.adopt(choice)
        below = sum(inside(path, scope.path) for path in self._counts)
        most = min(MOST_TRIALS, LAYOUT_CALLS // (1 + below))
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

    def settle_the_rest(self, reference: WritableModel, arguments: Arguments) -> None:
        """Choices behind a real difference of the port: try them on the reference's own inputs.

        The reference runs once more, and whatever is open is tried when its twin has returned.
        """
        modules = self.port.backend.modules(self.port.model)
        wanted = {
            scope.twins[0].path: scope
            for path in self._counts
            if any(isinstance(subject, Choice) for subject in self._subjects(path))
            and (scope := self._scope(path, modules[path], ((), {}), 0))
        }

        def enter(call: Call) -> None:
            if call.path in wanted:
                call.note["kept"] = convert((call.args, call.kwargs), self.port.backend)

        def leave(call: Call, output: Any) -> None:
            scope = wanted.pop(call.path, None)
            if scope is not None and "kept" in call.note and _same_signature(scope.module, call.note["kept"]):
                self._settle_apart(replace(scope, kept=call.note["kept"]))

        args, kwargs = arguments
        with quiet(reference), reference.backend.watch(reference.model, enter, leave), quiet(self.port):
            reference.model(*args, **kwargs)

    def _settle_apart(self, scope: Scope) -> None:
        """Try what is still open in a module, called as its twin was."""
        subjects = tuple(self._subjects(scope.path))
        if any(isinstance(subject, Choice) for subject in subjects):
            args, kwargs = convert(scope.kept, self.port.backend)
            output = prints(self.port.backend, scope.module(*args, **kwargs))
            self.trials.settle(replace(scope, subjects=subjects), scope.off(output))

    def _scope(self, path: str, module: Any, kept: Arguments, occurrence: int) -> Scope | None:
        twins = self._scopes.twins(path, occurrence)
        return Scope(path, module, kept, tuple(self._subjects(path)), tuple(twins)) if twins else None

    def _subjects(self, path: str) -> list[Subject]:
        """Open choices that lie wholly inside a module, and what of the ties does.

        Of a tie, the layers inside a module may have a part only: blocks may all take the same memory, say.
        """
        found: list[Subject] = [choice for choice in self._open.get(path, ()) if choice.open]
        parts: dict[EqualUnits, set[str]] = {}
        for unit in self._under[path] if self._ties else ():
            link = self.draft.links.get(unit.path)
            if link is None or unit.path == path or self.book.in_choice(unit.path):
                continue
            if self.book.holders.get(link.reference.path) == unit.path:
                for tie in self._ties.get(link.reference.path, ()):
                    parts.setdefault(tie, set()).add(link.reference.path)
        for tie, members in parts.items():
            part = EqualUnits(tuple(each for each in tie.references if each in members))
            if len(members) > 1 and part not in self.trials.settled:
                found.append(part)
        return found


class _FusedChoices:
    """Which fused choice has the reference units that take given inputs."""

    def __init__(self, choices: Sequence[Choice], seen: ObservedRun) -> None:
        fused = [choice for choice in choices if choice.subject == "fused"]
        units = {unit.path: unit for choice in fused for unit in choice.references}
        self._index = PrintIndex(
            (path, call.inputs) for path, unit in units.items() if (call := seen.first(unit.module))
        )
        self._owner: dict[str, Choice] = {}
        self.note(*fused)

    def note(self, *choices: Choice) -> None:
        """Which units these have now."""
        self._owner.update({unit.path: choice for choice in choices for unit in choice.references})

    def taking(self, inputs: Sequence[WeightFingerprint]) -> list[Choice]:
        found = (self._owner[path] for path in self._index.near(inputs, noise_of(inputs)))
        return list({id(choice): choice for choice in found}.values())


def _choices_inside(choices: Sequence[Choice]) -> dict[str, list[Choice]]:
    """Module of the port -> the choices that lie wholly inside it."""
    found: dict[str, list[Choice]] = {}
    for choice in choices:
        first, *others = dict.fromkeys(choice.modules)
        for path in around(first):
            if all(inside(other, path) for other in others):
                found.setdefault(path, []).append(choice)
    return found


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
