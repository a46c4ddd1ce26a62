"""Which modules correspond, as far as the weights say.

Two modules correspond when exactly the same weights lie below both: a layer and its port, but also
an attention that packs its projections and one that keeps them apart, or a block and its port
under another name and nesting.
"""

from __future__ import annotations

from collections.abc import Iterable


def anchors_of(copies: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Path of the reference's module -> path of the port's; ``copies``: source and target tensors."""
    pairs = list(dict.fromkeys(copies))
    below_reference = _modules(enumerate(source for source, _ in pairs))
    below_port = _modules(enumerate(target for _, target in pairs))
    found: dict[str, str] = {}
    for weights, ours in below_reference.items():
        theirs = below_port.get(weights, [])
        # Wrappers around one module hold the same weights: pair them from the inside.
        for reference, port in zip(reversed(ours), reversed(theirs), strict=False):
            found[reference] = port
    return found


def _modules(tensors: Iterable[tuple[int, str]]) -> dict[frozenset[int], list[str]]:
    """The weights below -> the modules they are below of, the outermost first."""
    below: dict[str, set[int]] = {}
    for number, path in tensors:
        parts = path.split(".")[:-1]
        for depth in range(len(parts) + 1):
            below.setdefault(".".join(parts[:depth]), set()).add(number)
    groups: dict[frozenset[int], list[str]] = {}
    for module, numbers in sorted(below.items(), key=lambda item: item[0].count(".") + bool(item[0])):
        groups.setdefault(frozenset(numbers), []).append(module)
    return groups
