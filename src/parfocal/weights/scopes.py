"""Which module of the port stands for which module of the reference: the one that holds its counterparts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from parfocal.weights.draft import Draft
from parfocal.weights.observe import Observation, Seen
from parfocal.weights.units import Unit


def inside(path: str, scope: str) -> bool:
    """Whether a path is the scope or lies below it."""
    return not scope or path == scope or path.startswith(scope + ".")


def all_inside(paths: Iterable[str], scope: str) -> bool:
    return all(inside(path, scope) for path in paths)


class Scopes:
    """Looks up twins as the draft stands at the moment of asking."""

    def __init__(self, draft: Draft, seen: Observation) -> None:
        self._draft = draft
        self._seen = seen
        self._under = _units_under(draft.references, seen)

    def twins(self, scope: str, occurrence: int) -> list[Seen]:
        """Calls of reference modules that hold exactly the counterparts of what a port module holds."""
        calls = [self._seen.at(module, occurrence) for module in self._under.get(self._image(scope), [])]
        return [seen for seen in calls if seen is not None]

    def _image(self, scope: str) -> frozenset[str]:
        found: set[str] = set()
        for port in self._draft.ports:
            if port.required and inside(port.module, scope):  # a table of indices may have no counterpart
                choice = self._draft.choice_of(port.path)
                link = self._draft.links.get(port.path)
                units = choice.references if choice else (link.reference,) if link else ()
                found.update(unit.path for unit in units)
        return frozenset(found)


def _units_under(references: Sequence[Unit], seen: Observation) -> dict[frozenset[str], list[str]]:
    """Sets of units -> the called modules that hold exactly these."""
    found: dict[frozenset[str], list[str]] = {}
    for path in seen.by_path:
        under = frozenset(unit.path for unit in references if unit.required and inside(unit.module, path))
        if under:
            found.setdefault(under, []).append(path)
    return found
