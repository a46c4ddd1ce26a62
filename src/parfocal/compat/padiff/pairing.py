"""Which call of the base model is which call of the raw model, level by level.

Modules whose weights were copied from one to the other correspond; then modules of equal names;
then modules defined in the same order, which is PaDiff's rule. Their calls come in the same order.
Positions count among siblings only, so a layer that is built differently inside does not shift what
comes after it. Where no rule fits, because one side has more calls or the kinds contradict it, calls
of equal kind are aligned in order and the rest stays without a partner.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import takewhile
from typing import Protocol, TypeVar

from parfocal.compat.padiff.partners import Partners


class PairingNode(Protocol):
    """What pairing needs to know of a call."""

    @property
    def path(self) -> str: ...
    @property
    def layer_type(self) -> str: ...
    @property
    def net_id(self) -> int: ...
    @property
    def kind(self) -> str: ...
    @property
    def builtin(self) -> bool: ...


N = TypeVar("N", bound=PairingNode)
K = TypeVar("K")


@dataclass(frozen=True, slots=True)
class Pairs:
    """Pairs by position in the two lists, in the base's order; ``problem`` when the rule did not fit."""

    positions: tuple[tuple[int, int], ...]
    problem: str = ""

    def of(self, base: Sequence[N], raw: Sequence[N]) -> Iterator[tuple[N, N]]:
        for first, second in self.positions:
            yield base[first], raw[second]


def pair_calls(
    base: Sequence[PairingNode],
    raw: Sequence[PairingNode],
    layer_map: Mapping[str, str],
    partners: Partners | None = None,
) -> Pairs:
    """Pair two lists of sibling calls; ``layer_map`` is base path -> raw path of mapped layers.

    ``partners`` says which modules hold the same weights, where that is known.
    """
    positions: list[tuple[int, int]] = []
    problems: list[str] = []
    for layer_type, words in (("in map", "opaque_layers"), ("net", "normal layer"), ("api", "api")):
        ours = [index for index, node in enumerate(base) if node.layer_type == layer_type]
        theirs = [index for index, node in enumerate(raw) if node.layer_type == layer_type]
        found: list[tuple[int, int]] | None
        if layer_type == "in map":
            found = _by_map(base, ours, raw, theirs, layer_map)
        elif layer_type == "net":
            found = _by_module(base, ours, raw, theirs, partners)
        else:
            found = list(zip(ours, theirs, strict=True)) if len(ours) == len(theirs) else None
        if found is None or len(found) < max(len(ours), len(theirs)):
            problems.append(
                f"number of {words} is different" if len(ours) != len(theirs) else f"{words} differ"
            )
            found = _by_kind(base, ours, raw, theirs) if found is None else found
        positions += found
    return Pairs(tuple(sorted(positions)), ", ".join(problems))


def _by_map(
    base: Sequence[PairingNode],
    ours: list[int],
    raw: Sequence[PairingNode],
    theirs: list[int],
    layer_map: Mapping[str, str],
) -> list[tuple[int, int]]:
    waiting: dict[str, list[int]] = defaultdict(list)
    for index in theirs:
        waiting[raw[index].path].append(index)
    found = []
    for index in ours:
        candidates = waiting.get(layer_map.get(base[index].path, ""), [])
        if candidates:
            found.append((index, candidates.pop(0)))
    return found


def _by_module(
    base: Sequence[PairingNode],
    ours: list[int],
    raw: Sequence[PairingNode],
    theirs: list[int],
    partners: Partners | None,
) -> list[tuple[int, int]] | None:
    """By weights, then by names, then by definition order; None when the rest does not fit."""
    found = _by_weights(base, ours, raw, theirs, partners) if partners is not None else []
    settled = {left for left, _ in found}, {right for _, right in found}
    ours = [index for index in ours if index not in settled[0]]
    theirs = [index for index in theirs if index not in settled[1]]
    names = _local_names(base, ours), _local_names(raw, theirs)
    rest = _by_key(base, raw, *names) if ours and set(names[0]) == set(names[1]) else None
    if rest is None:
        rest = _by_definition(base, ours, raw, theirs)
    if rest is None:
        return found + _by_kind(base, ours, raw, theirs) if found else None
    return found + rest


def _by_weights(
    base: Sequence[PairingNode],
    ours: list[int],
    raw: Sequence[PairingNode],
    theirs: list[int],
    partners: Partners,
) -> list[tuple[int, int]]:
    """Calls of modules that hold the same weights, where both sides have as many."""
    first, second = (
        _grouped((side.get(nodes[index].path), index) for index in indices)
        for nodes, indices, side in ((base, ours, partners.base), (raw, theirs, partners.raw))
    )
    found = []
    for labels, calls in first.items():
        pairs = list(zip(calls, second.get(labels, []), strict=False))
        alike = all(_alike(base[left], raw[right]) for left, right in pairs)
        if labels and alike and len(calls) == len(second.get(labels, [])):
            found += pairs
    return found


def _local_names(nodes: Sequence[PairingNode], indices: list[int]) -> dict[str, list[int]]:
    """Calls by the names of their modules, without what all of these have in common."""
    parts = {index: nodes[index].path.split(".") for index in indices}
    columns = zip(*(path[:-1] for path in parts.values()), strict=False)
    shared = len(list(takewhile(lambda column: len(set(column)) == 1, columns)))
    return _grouped((".".join(path[shared:]), index) for index, path in parts.items())


def _by_key(
    base: Sequence[PairingNode],
    raw: Sequence[PairingNode],
    first: Mapping[str, list[int]],
    second: Mapping[str, list[int]],
) -> list[tuple[int, int]] | None:
    """The n-th call under each key, or None when that does not fit."""
    if any(len(calls) != len(second[key]) for key, calls in first.items()):
        return None
    found = [pair for key, calls in first.items() for pair in zip(calls, second[key], strict=True)]
    return found if all(_alike(base[left], raw[right]) for left, right in found) else None


def _grouped(entries: Iterable[tuple[K, int]]) -> dict[K, list[int]]:
    groups: dict[K, list[int]] = defaultdict(list)
    for key, index in entries:
        groups[key].append(index)
    return dict(groups)


def _by_definition(
    base: Sequence[PairingNode], ours: list[int], raw: Sequence[PairingNode], theirs: list[int]
) -> list[tuple[int, int]] | None:
    """The n-th call of the k-th module defined among the siblings, or None when that does not fit."""
    first, second = (
        sorted(_grouped((nodes[index].net_id, index) for index in indices).items())
        for nodes, indices in ((base, ours), (raw, theirs))
    )
    if [len(calls) for _, calls in first] != [len(calls) for _, calls in second]:
        return None
    found = [
        pair
        for (_, mine), (_, yours) in zip(first, second, strict=True)
        for pair in zip(mine, yours, strict=True)
    ]
    fits = all(_alike(base[left], raw[right]) for left, right in found)
    return found if fits else None


def _alike(base: PairingNode, raw: PairingNode) -> bool:
    """Not two layers of the frameworks that do different things."""
    return not (base.builtin and raw.builtin) or base.kind == raw.kind


def _by_kind(
    base: Sequence[PairingNode], ours: list[int], raw: Sequence[PairingNode], theirs: list[int]
) -> list[tuple[int, int]]:
    first, second = ([_token(nodes[i]) for i in indices] for nodes, indices in ((base, ours), (raw, theirs)))
    blocks = SequenceMatcher(None, first, second, autojunk=False).get_matching_blocks()
    return [(ours[b.a + n], theirs[b.b + n]) for b in blocks for n in range(b.size)]


def _token(node: PairingNode) -> str:
    """Framework layers and functions go by their kind; a user's classes may be called anything."""
    return node.kind if node.builtin or node.layer_type == "api" else "*"
