"""Weights that had to cross to fit: the names of both sides say one thing, the values another.

A port whose code exchanges the roles of ``q`` and ``k`` fits the reference once their weights are
exchanged too. The outputs agree then, and a checkpoint converted by name would be wrong. Layers of one
shape inside one block are compared by what tells their names apart; numbers of a list say nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from parfocal.weights.linking import Link
from parfocal.weights.names import plain_words, tokens
from parfocal.weights.plan import Exchange

Words = Callable[[str], Sequence[str]]


def exchanges(links: Iterable[Link]) -> list[Exchange]:
    """Links that contradict the names of both sides, one item for each block."""
    groups: dict[tuple[object, ...], list[Link]] = {}
    for link in links:
        if link.port.required:
            places = _block(link.reference.path), _block(link.port.path)
            groups.setdefault((*places, link.port.key), []).append(link)
    found = []
    for group in groups.values():
        ports, fitting = [link.port.path for link in group], [link.reference.path for link in group]
        found += crossed(ports, fitting) if len(group) > 1 else []
    return found


def crossed(ports: Sequence[str], fitting: Sequence[str]) -> list[Exchange]:
    """The ports that names give to others than those that fit; one item, or none."""
    named = {}
    certain = True
    for port, own in zip(ports, fitting, strict=True):
        literal = _by_local_name(port, ports, fitting) or _by_words(port, ports, fitting, plain_words)
        other = counterpart(port, ports, fitting)
        if other is not None and other != own:
            named[port] = other
            certain = certain and literal is not None
    if len(named) < 2 or len(set(named.values())) < len(named):
        return []  # names that give one layer to several say nothing
    fits = dict(zip(ports, fitting, strict=True))
    if set(named.values()) != {fits[port] for port in named}:
        return []
    return [Exchange(tuple(named), tuple(fits[port] for port in named), tuple(named.values()), certain)]


def counterpart(port: str, ports: Sequence[str], references: Sequence[str]) -> str | None:
    """The one that names give to a port, of those in question with the others; None: they say nothing."""
    return (
        _by_local_name(port, ports, references)
        or _by_words(port, ports, references, plain_words)
        or _by_words(port, ports, references, lambda path: tokens(path).words)
    )


def _by_local_name(port: str, ports: Sequence[str], references: Sequence[str]) -> str | None:
    """The only one whose own name is the very same, unless that is the number of a list."""
    name = port.rpartition(".")[2]
    same = [path for path in references if path.rpartition(".")[2] == name]
    alone = sum(path.rpartition(".")[2] == name for path in ports) == 1
    return same[0] if len(same) == 1 and alone and not name.isdigit() else None


def _by_words(port: str, ports: Sequence[str], references: Sequence[str], words: Words) -> str | None:
    """The only one that shares what tells this port apart from the others, if no other port does."""
    role = _roles(ports, words)[port]
    roles = _roles(references, words)
    sharing = [path for path in references if role & roles[path]]
    if len(sharing) != 1:
        return None
    back = [path for path, other in _roles(ports, words).items() if other & roles[sharing[0]]]
    return sharing[0] if back == [port] else None


def _roles(paths: Sequence[str], words: Words) -> dict[str, set[str]]:
    """The words of each path that not all of them have."""
    counts = {path: Counter(words(path)) for path in paths}
    common: Counter[str] | None = None
    for count in counts.values():
        common = count if common is None else common & count
    return {path: set(count - (common or Counter())) for path, count in counts.items()}


def _block(path: str) -> str:
    """Up to the last number of a list."""
    parts = path.split(".")
    last = max((place for place, part in enumerate(parts) if part.isdigit()), default=-1)
    return ".".join(parts[: last + 1])
