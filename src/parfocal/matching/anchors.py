"""Which modules correspond, as far as the weights say.

Two modules correspond when exactly the same weights lie below both: a layer and its port, but also
an attention that packs its projections and one that keeps them apart, or a block and its port
under another name and nesting. Wrappers around one module hold the same weights, so several
modules of one side may stand against several of the other; values decide between those.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Anchor:
    """Modules of the reference and of the port with the same weights below, the outermost first."""

    reference: tuple[str, ...]
    port: tuple[str, ...]


def anchors_of(copies: Iterable[tuple[str, str]]) -> list[Anchor]:
    """``copies``: paths of the source and the target tensor of every copy."""
    pairs = list(dict.fromkeys(copies))
    below_reference = _modules([source for source, _ in pairs])
    below_port = _modules([target for _, target in pairs])
    return [
        Anchor(tuple(ours), tuple(below_port[weights]))
        for weights, ours in below_reference.items()
        if weights in below_port
    ]


def splits_of(copies: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """Modules of the reference and of the port that share weights, one of them with several others.

    One projection for query, key and value against three: each of the three has a part.
    """
    owners = {(source.rpartition(".")[0], target.rpartition(".")[0]) for source, target in copies}
    ours, theirs = (Counter(pair[side] for pair in owners) for side in (0, 1))
    return sorted((source, target) for source, target in owners if ours[source] > 1 or theirs[target] > 1)


def _modules(tensors: list[str]) -> dict[frozenset[int], list[str]]:
    """The weights below -> the modules they are below of, the outermost first."""
    below: dict[str, set[int]] = {}
    for number, path in enumerate(tensors):
        parts = path.split(".")[:-1]
        for depth in range(len(parts) + 1):
            below.setdefault(".".join(parts[:depth]), set()).add(number)
    groups: dict[frozenset[int], list[str]] = {}
    for module, numbers in sorted(below.items(), key=lambda item: item[0].count(".") + bool(item[0])):
        groups.setdefault(frozenset(numbers), []).append(module)
    return groups
