"""Which module of the port stands for which module of the reference: the one that holds its counterparts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from parfocal.weights.draft import Draft
from parfocal.weights.observe import FinishedCall, ObservedRun
from parfocal.weights.units import Unit


def inside(path: str, scope: str) -> bool:
    """Whether a path is the scope or lies below it."""
    return not scope or path == scope or path.startswith(scope + ".")


def around(path: str) -> Iterator[str]:
    """A module and everything around it, the model last."""
    while path:
        yield path
        path = path.rpartition(".")[0]
    yield ""


class UnitsByModule:
    """Units by every module that they lie in."""

    def __init__(self, units: Iterable[Unit]) -> None:
        self._units: dict[str, list[Unit]] = {}
        for unit in units:
            for path in around(unit.module):
                self._units.setdefault(path, []).append(unit)

    def __getitem__(self, path: str) -> Sequence[Unit]:
        return self._units.get(path, ())


class Scopes:
    """Looks up twins as the draft stands at the moment of asking."""

    def __init__(self, draft: Draft, seen: ObservedRun) -> None:
        self._draft = draft
        self._seen = seen
        # a table of indices may have no counterpart
        self._ports = UnitsByModule(unit for unit in draft.ports if unit.required)
        self._holders = _holders(draft.references, seen)

    def twins(self, scope: str, occurrence: int) -> list[FinishedCall]:
        """Calls of reference modules that hold exactly the counterparts of what a port module holds."""
        calls = [self._seen.at(module, occurrence) for module in self._holders.get(self._image(scope), [])]
        return [seen for seen in calls if seen is not None]

    def _image(self, scope: str) -> frozenset[str]:
        found: set[str] = set()
        for port in self._ports[scope]:
            choice = self._draft.choice_of(port.path)
            link = self._draft.links.get(port.path)
            units = choice.references if choice else (link.reference,) if link else ()
            found.update(unit.path for unit in units)
        return frozenset(found)


def _holders(references: Sequence[Unit], seen: ObservedRun) -> dict[frozenset[str], list[str]]:
    """Sets of units -> the called modules that hold exactly these."""
    under = UnitsByModule(unit for unit in references if unit.required)
    found: dict[frozenset[str], list[str]] = {}
    for path in seen.by_path:
        held = frozenset(unit.path for unit in under[path])
        if held:
            found.setdefault(held, []).append(path)
    return found
