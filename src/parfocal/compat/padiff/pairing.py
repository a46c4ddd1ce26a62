"""Which call of the base model is which call of the raw model, level by level.

Corresponding modules are defined in the same order, and their calls come in the same order: that
is PaDiff's rule. Positions count among siblings only, so a layer that is built differently inside
does not shift what comes after it. Where the rule does not fit, because one side has more calls or
the kinds contradict it, calls of equal kind are aligned in order and the rest stays without a
partner.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Protocol, TypeVar


class Node(Protocol):
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


N = TypeVar("N", bound=Node)


@dataclass(frozen=True, slots=True)
class Pairs:
    """Pairs by position in the two lists, in the base's order; ``problem`` when the rule did not fit."""

    positions: tuple[tuple[int, int], ...]
    problem: str = ""

    def of(self, base: Sequence[N], raw: Sequence[N]) -> Iterator[tuple[N, N]]:
        for first, second in self.positions:
            yield base[first], raw[second]


def pair_calls(base: Sequence[Node], raw: Sequence[Node], layer_map: Mapping[str, str]) -> Pairs:
    """Pair two lists of sibling calls; ``layer_map`` is base path -> raw path of mapped layers."""
    positions: list[tuple[int, int]] = []
    problems: list[str] = []
    for layer_type, words in (("in map", "opaque_layers"), ("net", "normal layer"), ("api", "api")):
        ours = [index for index, node in enumerate(base) if node.layer_type == layer_type]
        theirs = [index for index, node in enumerate(raw) if node.layer_type == layer_type]
        found: list[tuple[int, int]] | None
        if layer_type == "in map":
            found = _by_map(base, ours, raw, theirs, layer_map)
        elif layer_type == "net":
            found = _by_definition(base, ours, raw, theirs)
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
    base: Sequence[Node],
    ours: list[int],
    raw: Sequence[Node],
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


def _by_definition(
    base: Sequence[Node], ours: list[int], raw: Sequence[Node], theirs: list[int]
) -> list[tuple[int, int]] | None:
    """The n-th call of the k-th module defined among the siblings, or None when that does not fit."""
    first, second = _calls_by_module(base, ours), _calls_by_module(raw, theirs)
    if [len(calls) for calls in first] != [len(calls) for calls in second]:
        return None
    found = [pair for calls in zip(first, second, strict=True) for pair in zip(*calls, strict=True)]
    fits = all(_alike(base[left], raw[right]) for left, right in found)
    return found if fits else None


def _calls_by_module(nodes: Sequence[Node], indices: list[int]) -> list[list[int]]:
    calls: dict[int, list[int]] = defaultdict(list)
    for index in indices:
        calls[nodes[index].net_id].append(index)
    return [calls[net_id] for net_id in sorted(calls)]


def _alike(base: Node, raw: Node) -> bool:
    """Not two layers of the frameworks that do different things."""
    return not (base.builtin and raw.builtin) or base.kind == raw.kind


def _by_kind(
    base: Sequence[Node], ours: list[int], raw: Sequence[Node], theirs: list[int]
) -> list[tuple[int, int]]:
    first, second = ([_token(nodes[i]) for i in indices] for nodes, indices in ((base, ours), (raw, theirs)))
    blocks = SequenceMatcher(None, first, second, autojunk=False).get_matching_blocks()
    return [(ours[b.a + n], theirs[b.b + n]) for b in blocks for n in range(b.size)]


def _token(node: Node) -> str:
    """Framework layers and functions go by their kind; a user's classes may be called anything."""
    return node.kind if node.builtin or node.layer_type == "api" else "*"
