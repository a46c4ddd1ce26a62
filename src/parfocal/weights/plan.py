"""The plan of a transfer: which tensor goes where, by which view, and why.

Plain frozen data. A plan is printed as a table, saved as JSON that a person can edit, and handed
back to ``transfer``; ``plan_file.py`` reads and writes the file.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from parfocal.brief import some
from parfocal.columns import padded, width_of
from parfocal.judge.verdict import SettingDifference
from parfocal.locale import ENGLISH
from parfocal.phrases import joined, phrase, translate
from parfocal.weights.views import Shape, View, describe

AS_IT_IS = phrase("as it is")
REFERENCE, PORT = phrase("reference"), phrase("port")
LISTED = 4  # paths in one line
SHOWN = 60  # rows of a printed plan; more are summed up by module


@dataclass(frozen=True, slots=True)
class Entry:
    """One copy: a view of a reference tensor onto a view of a port tensor."""

    source: str
    target: str
    source_view: View = ()
    target_view: View = ()
    rule: str = AS_IT_IS  # in words
    source_shape: Shape = ()
    target_shape: Shape = ()
    evidence: tuple[str, ...] = ()
    confidence: float = 1.0  # 0 to 1


def rearranged(entries: Iterable[Entry]) -> set[str]:
    """Modules of the port with a tensor that gets several parts of one of the reference, in another order."""
    copies = Counter((entry.source, entry.target) for entry in entries)
    return {target.rpartition(".")[0] for (_, target), count in copies.items() if count > 1}


@dataclass(frozen=True, slots=True)
class Leftover:
    """A tensor that has no counterpart, why, and what comes nearest on the other side."""

    path: str
    shape: Shape
    reason: str
    nearest: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Ambiguity:
    """Tensors of the port that fit several of the reference equally well."""

    targets: tuple[str, ...]
    candidates: tuple[str, ...]
    reason: str


class Basis(Enum):
    """What speaks for a way to copy that no run has shown to be right."""

    NAMES = "as names say"
    NEAREST = "which comes nearest"
    USUAL = "the usual way"


@dataclass(frozen=True, slots=True)
class Presumption:
    """Tensors copied in the way with the best evidence, though no way reproduces the reference."""

    targets: tuple[str, ...]
    candidates: tuple[str, ...]
    taken: str  # in words
    basis: Basis


@dataclass(frozen=True, slots=True)
class Exchange:
    """Units of the port that fit with other units of the reference than those that names say."""

    targets: tuple[str, ...]
    fitting: tuple[str, ...]  # whose weights each of the targets has now
    named: tuple[str, ...]  # whose weights it would have by name
    certain: bool  # the same words on both sides, not only words of one meaning


@dataclass(frozen=True, slots=True)
class PlanNote:
    """Something worth knowing about a transfer, and what it is about."""

    message: str
    setting: SettingDifference | None = None
    is_first_difference: bool = False  # it says where the outputs begin to differ


@dataclass(frozen=True, slots=True)
class Plan:
    """What ``transfer`` found out and did.

    ``verified`` says that the outputs agree closely enough to prove that every layer has its own
    weights (to about 0.2% in float32); how exact the port computes is for an alignment to judge.
    """

    entries: tuple[Entry, ...] = ()
    unmatched_reference: tuple[Leftover, ...] = ()
    unmatched_port: tuple[Leftover, ...] = ()
    ambiguous: tuple[Ambiguity, ...] = ()
    presumed: tuple[Presumption, ...] = ()  # copied, and not shown to be right
    permuted: tuple[Exchange, ...] = ()  # copied against what names say
    idle_reference: tuple[Leftover, ...] = ()  # without a counterpart, and without a part in the run
    idle_port: tuple[Leftover, ...] = ()
    noted: tuple[PlanNote, ...] = ()
    verified: bool | None = None  # outputs agree on the inputs; None: not tried

    @property
    def notes(self) -> tuple[str, ...]:
        """What is worth knowing, in words."""
        return tuple(each.message for each in self.noted)

    @property
    def complete(self) -> bool:
        """Every tensor that matters has its counterpart."""
        return not (self.unmatched_reference or self.unmatched_port or self.ambiguous)

    def save(self, path: str | Path) -> None:
        """Write the plan as JSON, to be read, edited and handed back."""
        from parfocal.weights.plan_file import save

        save(self, Path(path))

    @staticmethod
    def load(path: str | Path) -> Plan:
        """Read a plan that ``save`` wrote or a person edited."""
        from parfocal.weights.plan_file import load

        return load(Path(path))

    def details(self) -> str:
        """Every entry in full: views, evidence and confidence."""
        return "\n".join([*_table(self.entries, detailed=True), *self.summary()])

    def __str__(self) -> str:
        return self.text()

    def text(self, language: str = ENGLISH) -> str:
        """The table and what is to be said about it: in English (``en``) or in Chinese (``zh``)."""
        make = _table if len(self.entries) <= SHOWN else _summary
        lines = [translate(line, language) for line in self.summary()]
        return "\n".join([*make(self.entries, language=language), *lines])

    def _repr_html_(self) -> str:
        """As a notebook shows it."""
        from parfocal.weights.plan_cell import to_cell

        return to_cell(self)

    def summary(self) -> list[str]:
        """How complete it is, and every line that is no copy."""
        lines = [self._verdict()]
        lines += problems(self)
        lines += [phrase("presumed: {line}", line=line) for line in presumptions(self.presumed)]
        lines += [phrase("crossed: {line}", line=crossed_words(item)) for item in self.permuted]
        for side, items in ((REFERENCE, self.idle_reference), (PORT, self.idle_port)):
            lines += [
                phrase(
                    "idle in the {side}, not copied: {path} {shape}",
                    side=side,
                    path=item.path,
                    shape=_size(item.shape),
                )
                for item in items
            ]
        lines += [phrase("note: {note}", note=note) for note in self.notes]
        return lines

    def _verdict(self) -> str:
        outputs = {
            True: phrase("the outputs agree on the inputs"),
            False: phrase("the outputs differ on the inputs"),
            None: phrase("not verified by running"),
        }[self.verified]
        return phrase(
            "{count} copies, {state}; {outputs}",
            count=len(self.entries),
            state=phrase("complete") if self.complete else phrase("incomplete"),
            outputs=outputs,
        )


def problems(plan: Plan) -> list[str]:
    """Every tensor without a counterpart, one line each, and what is ambiguous, one line for each reason."""
    lines = [_leftover(REFERENCE, item) for item in plan.unmatched_reference]
    lines += [_leftover(PORT, item) for item in plan.unmatched_port]
    alike: dict[str, list[Ambiguity]] = {}
    for item in plan.ambiguous:
        alike.setdefault(item.reason, []).append(item)
    lines += [
        phrase(
            "ambiguous: port {targets}: {reason}; candidates in the reference: {candidates}",
            targets=joined("; ", (", ".join(item.targets) for item in items)),
            reason=reason,
            candidates=joined("; ", (", ".join(item.candidates) for item in items)),
        )
        for reason, items in alike.items()
    ]
    return lines


_BASES = {
    Basis.NAMES: phrase("as names say"),
    Basis.NEAREST: phrase("which comes nearest"),
    Basis.USUAL: phrase("the usual way"),
}


def presumptions(items: Sequence[Presumption]) -> list[str]:
    """One line each; the same in several blocks is said once."""
    owners: dict[tuple[str, str, Basis], list[str]] = {}
    for item in items:
        above = {path.rpartition(".")[0] for path in item.targets}
        owner = above.pop() if len(above) == 1 else ""
        names = shortened([path[len(owner) :].lstrip(".") for path in item.targets])
        owners.setdefault((names, item.taken, item.basis), []).append(owner)
    return [
        phrase(
            "{names}{owners}: taken for {taken}, {basis}; what the port computes there or before "
            "differs, so that values cannot tell",
            names=names,
            owners=phrase(" of {places}", places=shortened(paths)) if any(paths) else "",
            taken=taken,
            basis=_BASES[basis],
        )
        for (names, taken, basis), paths in owners.items()
    ]


def crossed_words(item: Exchange) -> str:
    """Which weights had to cross, and what the names say."""
    fitting, named = (
        joined(
            ", ",
            (
                phrase("{port} with {own}", port=port, own=own)
                for port, own in zip(item.targets, owners, strict=True)
            ),
        )
        for owners in (item.fitting, item.named)
    )
    return phrase(
        "what fits is {fitting}; the names say {named}: a checkpoint converted by name is wrong "
        "for this port",
        fitting=fitting,
        named=named,
    )


def shortened(paths: Sequence[str]) -> str:
    """The first few."""
    return some(paths, LISTED)


def refusal(plan: Plan) -> str:
    """Why a plan is not carried out."""
    count = len(plan.unmatched_reference) + len(plan.unmatched_port) + len(plan.ambiguous)
    told = (
        phrase("1 problem; nothing was written")
        if count == 1
        else phrase("{count} problems; nothing was written", count=count)
    )
    return joined("\n  ", [told, *problems(plan)])


def _leftover(side: str, item: Leftover) -> str:
    named = [path for path in item.nearest if path]  # the whole model says nothing
    return phrase(
        "unmatched in the {side}: {path} {shape}: {reason}{nearest}",
        side=side,
        path=item.path,
        shape=_size(item.shape),
        reason=item.reason,
        nearest=phrase(" (nearest: {paths})", paths=joined(", ", named)) if named else "",
    )


def _table(entries: Sequence[Entry], detailed: bool = False, language: str = ENGLISH) -> list[str]:
    if not entries:
        return [translate(phrase("nothing to copy"), language)]
    rows = [(REFERENCE, "", PORT, "", phrase("rule"), phrase("because"))]
    for entry in entries:
        rule = entry.rule
        because = joined(", ", entry.evidence)
        if detailed:
            views = " <- ".join(describe(view) or "whole" for view in (entry.target_view, entry.source_view))
            rule, because = f"{rule} [{views}]", f"{because} ({entry.confidence:.2f})"
        rows.append(
            (entry.source, _size(entry.source_shape), entry.target, _size(entry.target_shape), rule, because)
        )
    return _aligned(rows, language)


def _summary(entries: Sequence[Entry], language: str = ENGLISH) -> list[str]:
    """One line for each pair of first-level modules."""
    groups: dict[tuple[str, str], list[Entry]] = {}
    for entry in entries:
        groups.setdefault((_head(entry.source), _head(entry.target)), []).append(entry)
    rows = [(REFERENCE, PORT, phrase("copies"), phrase("rules"))]
    for (source, target), group in groups.items():
        rules = joined(", ", dict.fromkeys(entry.rule for entry in group))
        rows.append((f"{source}.*", f"{target}.*", str(len(group)), rules))
    if len(groups) > SHOWN:
        rules = joined(", ", dict.fromkeys(entry.rule for entry in entries))
        rows = [rows[0], ("*", "*", str(len(entries)), rules)]
    return _aligned(rows, language)


def _head(path: str) -> str:
    parts = path.split(".")
    return ".".join(parts[: 2 if len(parts) > 3 else 1])


def _size(shape: Shape) -> str:
    return str(list(shape))


def _aligned(rows: Iterable[tuple[str, ...]], language: str) -> list[str]:
    table = [[translate(cell, language) for cell in row] for row in rows]
    widths = [max(width_of(row[column]) for row in table) for column in range(len(table[0]))]
    return [
        "  ".join(padded(cell, width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in table
    ]
