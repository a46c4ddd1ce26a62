"""Which units go together as parts of one layer: they take the same input, or stand side by side.

Looked up by what they take, so that the parts of every layer of a deep model are found among those
near by and not among all.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence

from parfocal.judge import limits
from parfocal.weights.fingerprint import WeightFingerprint
from parfocal.weights.fused import arrange_parts, is_norm_of, may_be_fused, rows
from parfocal.weights.observe import ObservedRun
from parfocal.weights.tables import BATCH_NORMS
from parfocal.weights.units import Unit

NEIGHBOURS = limits.transfer.NEIGHBOURS.value

Place = Callable[[Unit], float]


class PartCandidates:
    """Units that may be parts, by the company they keep."""

    def __init__(self, pool: Sequence[Unit], run: ObservedRun | None, place: Place) -> None:
        self._place = place
        self._taken: set[str] = set()
        groups: dict[tuple[object, object], list[Unit]] = {}
        for unit in filter(may_be_fused, pool):
            for company in _companies(unit, run):
                groups.setdefault((company, _input_shapes(unit)), []).append(unit)
        self._by_shapes: dict[object, list[tuple[float, list[Unit]]]] = {}
        for (_, shapes), units in groups.items():
            if len(units) > 1:
                middle = sum(map(place, units)) / len(units)
                self._by_shapes.setdefault(shapes, []).append((middle, units))
        for companies in self._by_shapes.values():
            companies.sort(key=lambda item: item[0])

    def take(self, paths: Iterable[str]) -> None:
        """These have found their whole."""
        self._taken.update(paths)

    def parts_of(self, whole: Unit) -> tuple[Unit, ...] | None:
        """The units that make up a whole: of equal size if there are, else nearest to it."""
        found = [parts for units in self._near(whole) for parts in arrange_parts(whole, units, self._place)]
        best = min(found, key=lambda item: item[:2], default=None)
        return tuple(sorted(best[2], key=self._place)) if best else None

    def _near(self, whole: Unit) -> Iterator[list[Unit]]:
        """Companies at about the place of the whole whose members are free."""
        companies = self._by_shapes.get(_input_shapes(whole), [])
        middle = bisect_left(companies, self._place(whole), key=lambda item: item[0])
        left, right = middle - 1, middle
        count = 0
        while count < NEIGHBOURS and (left >= 0 or right < len(companies)):
            for number in (left, right):
                if 0 <= number < len(companies):
                    free = [unit for unit in companies[number][1] if unit.path not in self._taken]
                    if len(free) > 1:
                        count += 1
                        yield free
            left, right = left - 1, right + 1


class NormsBehind:
    """Norms of channels, by the layer whose output they take."""

    def __init__(self, pool: Sequence[Unit], run: ObservedRun | None) -> None:
        self._run = run
        self._norms: dict[object, list[Unit]] = {}
        for unit in pool:
            if unit.kind in BATCH_NORMS:
                call = run.first(unit.module) if run else None
                key = _values(call.inputs) if call else _beside(unit)
                self._norms.setdefault(key, []).append(unit)

    def of(self, layer: Unit) -> Unit | None:
        call = self._run.first(layer.module) if self._run else None
        candidates = [
            *(self._norms.get(_values(call.outputs), ()) if call else ()),
            *self._norms.get(_beside(layer), ()),
        ]
        return next((unit for unit in candidates if is_norm_of(unit, rows(layer))), None)


def _companies(unit: Unit, run: ObservedRun | None) -> Iterator[object]:
    if unit.kind == "MultiheadAttention" and unit.path.endswith(".out"):
        return  # the output projection of an attention taken apart: fed by the others
    call = run.first(unit.module) if run else None
    if call:
        yield _values(call.inputs)
    if call is None or unit.path != unit.module:
        yield _beside(unit)


def _beside(unit: Unit) -> object:
    return unit.path.rpartition(".")[0]


def _values(prints: Sequence[WeightFingerprint]) -> object:
    """Equal for the very same values in one run."""
    return tuple(
        (each.shape, each.total, each.square, each.cube, each.least, each.greatest) for each in prints
    )


def _input_shapes(unit: Unit) -> object:
    """Roles and shapes but for the rows: the same for a whole and its parts."""
    return tuple(sorted((slot.role, slot.shape[1:]) for slot in unit.required))
