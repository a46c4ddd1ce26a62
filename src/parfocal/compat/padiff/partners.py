"""Which modules of two models hold the same weights, known from the plan by which these were copied.

Weights are copied by their names first, so two models may define their layers in another order.
Calls and weights are then paired as the weights were. Every tensor of the plan gets a label, the same
on both sides; a module's labels are those of all tensors in it and below it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from parfocal.weights.plan import Entry, Plan
from parfocal.weights.units import Slot, Unit

Labels = frozenset[int]
NO_LABELS: Labels = frozenset()


@dataclass(frozen=True, slots=True)
class Partners:
    """Path of a module or tensor -> its labels, for the base and the raw model."""

    base: Mapping[str, Labels]
    raw: Mapping[str, Labels]
    renamed: Mapping[str, str] = field(default_factory=dict)  # base path -> raw path where these differ

    @classmethod
    def of(cls, plan: Plan) -> Partners:
        """Tensors that share a copy have one label: a packed weight and its parts, say."""
        labels = _labels(plan.entries)
        return cls(
            _by_path({entry.source: labels[0, entry.source] for entry in plan.entries}),
            _by_path({entry.target: labels[1, entry.target] for entry in plan.entries}),
            _renamed(plan.entries),
        )

    def labels(self, units: Sequence[Unit], *, raw: bool = False) -> list[Labels]:
        """The labels of each unit of one model."""
        side = self.raw if raw else self.base
        return [side.get(unit.path, NO_LABELS) for unit in units]

    def routed(self, base: Callable[[str], str], raw: Callable[[str], str]) -> Partners:
        """The same under other paths: those of a dump begin with the model's name."""
        return Partners(
            {base(path): labels for path, labels in self.base.items()},
            {raw(path): labels for path, labels in self.raw.items()},
        )


def _renamed(entries: Iterable[Entry]) -> dict[str, str]:
    """Modules whose weights all went into one module of another path, and which are alone in it."""
    pairs = {(entry.source.rpartition(".")[0], entry.target.rpartition(".")[0]) for entry in entries}
    sources, targets = (Counter(pair[side] for pair in pairs) for side in range(2))
    return {
        source: target
        for source, target in sorted(pairs)
        if source != target and source and target and sources[source] == targets[target] == 1
    }


def _labels(entries: Iterable[Entry]) -> dict[tuple[int, str], int]:
    """(side, tensor path) -> label; entries that share a tensor are one group."""
    found: dict[tuple[int, str], int] = {}
    members: dict[int, list[tuple[int, str]]] = {}
    for number, entry in enumerate(entries):
        ends = ((0, entry.source), (1, entry.target))
        members[number] = list(ends)
        for known in {found[end] for end in ends if end in found}:
            members[number] += members.pop(known)
        found.update(dict.fromkeys(members[number], number))
    return found


def _by_path(labels: Mapping[str, int]) -> dict[str, Labels]:
    found: dict[str, set[int]] = defaultdict(set)
    for path, label in labels.items():
        while path:
            found[path].add(label)
            path = path.rpartition(".")[0]
        found[""].add(label)
    return {path: frozenset(labels) for path, labels in found.items()}


def pair_units(
    base: Sequence[Unit],
    raw: Sequence[Unit],
    partners: Partners | None = None,
    path_of: Callable[[Unit], str] = lambda unit: unit.path,
) -> list[tuple[Unit, Unit]] | None:
    """Every unit of the base with its partner in the raw model, or None where one has none.

    As their weights were copied if that is known, else by path, else by definition order.
    """
    if len(base) != len(raw):
        return None
    if partners is not None:
        found = _paired(base, raw, partners.labels(base), partners.labels(raw, raw=True))
        if found is not None:
            return found
    paths = [[path_of(unit) for unit in units] for units in (base, raw)]
    return _paired(base, raw, *paths) or list(zip(base, raw, strict=True))


def _paired(
    base: Sequence[Unit], raw: Sequence[Unit], first: Sequence[object], second: Sequence[object]
) -> list[tuple[Unit, Unit]] | None:
    """Units of equal keys, if the keys are one to one."""
    by_key = dict(zip(second, raw, strict=True))
    if len(by_key) < len(raw) or set(first) != set(second):
        return None
    return [(unit, by_key[key]) for unit, key in zip(base, first, strict=True)]


def pair_slots(first: Unit, second: Unit) -> tuple[list[tuple[Slot, Slot]], list[str]]:
    """Tensors of two units that play the same role, and the roles that one of the units alone has.

    Users' own layers may call their one weight anything: what is left over on both sides is a pair if
    the shapes agree.
    """
    pairs = [(slot, other) for slot in first.slots if (other := second.slot(slot.role)) is not None]
    left = [slot for slot in first.slots if second.slot(slot.role) is None]
    right = [slot for slot in second.slots if first.slot(slot.role) is None]
    if len(left) == len(right) == 1 and left[0].shape == right[0].shape:
        return [*pairs, (left[0], right[0])], []
    return pairs, sorted(slot.role for slot in (*left, *right))
