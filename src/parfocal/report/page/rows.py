"""Both models' trees as rows: what stands for each other on one line, in order of execution.

A call's place in the tree is its path. A module around calls is a line of its own; it stands beside the
module of the reference that holds the partners of all its calls.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from parfocal.judge.verdict import Divergence, PairResult, Site
from parfocal.report.report import Report

State = Literal["own", "inherited", "unpaired", "same", "around"]


@dataclass(slots=True)
class PageRow:
    """One line: a call of both sides, of one side, or a module around calls."""

    reference: Site | None
    port: Site | None
    pair: PairResult | None = None
    depth: int = 0
    parent: int | None = None
    around: bool = False  # other rows lie inside
    divergences: list[int] = field(default_factory=list)  # their numbers in the report
    phases: list[str] = field(default_factory=list)  # of the divergences
    state: State = "same"
    inside: int = 0  # mistakes in the rows inside

    @property
    def site(self) -> Site:
        site = self.port or self.reference
        assert site is not None
        return site


def rows_of(report: Report) -> list[PageRow]:
    """Empty where no calls were compared."""
    if not report.pairs:
        return []
    calls = _merged(report)
    rows = _nested(calls, {site.path: site for site in report.unpaired_port})
    _name_references(rows, {site.path: site for site in report.unpaired_reference})
    _place_divergences(rows, report.divergences)
    for row in rows:
        row.state = _state(row, report.divergences)
        if row.state == "own":
            for above in _above(rows, row):
                above.inside += 1
    return rows


def _inner(sites: Sequence[Site], paths: Iterable[str]) -> list[Site]:
    """Those that nothing lies inside of."""
    above = {prefix for path in paths for prefix in _prefixes(path)}
    return [site for site in sites if site.path not in above]


def _prefixes(path: str) -> list[str]:
    """Of the modules around a path, the outermost first."""
    parts = path.split(".") if path else []
    return ["", *(".".join(parts[:count]) for count in range(1, len(parts)))] if parts else []


def _merged(report: Report) -> list[PageRow]:
    """Pairs in order of the port, and between them the calls that only one side has."""
    rows = [PageRow(pair.reference, pair.port, pair) for pair in report.pairs]
    for is_port, sites in ((True, report.unpaired_port), (False, report.unpaired_reference)):
        known = [(row.port if is_port else row.reference) for row in rows]
        paths = [site.path for site in (*sites, *(site for site in known if site is not None))]
        rows = _inserted(rows, known, _inner(sites, paths), is_port=is_port)
    return rows


def _inserted(
    rows: list[PageRow], known: list[Site | None], sites: list[Site], *, is_port: bool
) -> list[PageRow]:
    """Each after the last call before it; without a known order, after the last with most of its path."""
    ordered = sorted(
        (site.order, index) for index, site in enumerate(known) if site is not None and site.order is not None
    )
    behind: dict[int, list[Site]] = {}
    for site in sorted(sites, key=lambda each: math.inf if each.order is None else each.order):
        if site.order is not None and ordered:
            place = bisect_left(ordered, (site.order, -1))
            anchor = ordered[place - 1][1] if place else -1
        else:
            shared = [(_shared(each.path, site.path), i) for i, each in enumerate(known) if each is not None]
            anchor = max(shared, default=(0, len(rows) - 1))[1]
        behind.setdefault(anchor, []).append(site)
    merged: list[PageRow] = []
    for index in range(-1, len(rows)):
        if index >= 0:
            merged.append(rows[index])
        for site in behind.get(index, ()):
            merged.append(PageRow(None, site) if is_port else PageRow(site, None))
    return merged if is_port else _on_one_line(merged)


def _on_one_line(rows: list[PageRow]) -> list[PageRow]:
    """Calls without a partner that have the same name in the same gap between pairs, one of each side."""
    merged: list[PageRow] = []
    gap: list[PageRow] = []
    for row in rows:
        if row.pair is not None:
            gap = []
        if row.reference is None or row.port is None:
            name = _last(_own(row))
            is_port = row.reference is None
            for other in gap:
                free = other.port is None if is_port else other.reference is None
                if free and _last(_own(other)) == name:
                    other.port = other.port or row.port
                    other.reference = other.reference or row.reference
                    break
            else:
                gap.append(row)
                merged.append(row)
            continue
        merged.append(row)
    return merged


def _last(path: str) -> str:
    return path.rpartition(".")[2]


def _shared(one: str, other: str) -> int:
    """How many parts of two paths are the same, from the left."""
    count = 0
    for a, b in zip(one.split("."), other.split("."), strict=False):
        if a != b:
            break
        count += 1
    return count


def _nested(calls: list[PageRow], modules: dict[str, Site]) -> list[PageRow]:
    """With a row for every module around calls, and everybody's depth."""
    rows: list[PageRow] = []
    stack: list[int] = []  # rows that are open
    holding = {prefix for row in calls for prefix in _prefixes(_own(row))}
    for row in calls:
        path = _own(row)
        while stack and not _is_inside(path, _own(rows[stack[-1]])):
            stack.pop()
        opened = {_own(rows[index]) for index in stack}
        for prefix in _prefixes(path):
            if prefix in modules and prefix not in opened and row.port is not None:
                _append(rows, stack, PageRow(None, modules[prefix], around=True, state="around"))
                stack.append(len(rows) - 1)
        _append(rows, stack, row)
        if path in holding:
            row.around = True
            stack.append(len(rows) - 1)
    return rows


def _own(row: PageRow) -> str:
    return row.site.path


def _append(rows: list[PageRow], stack: list[int], row: PageRow) -> None:
    row.parent = stack[-1] if stack else None
    row.depth = len(stack)
    rows.append(row)


def _is_inside(path: str, around: str) -> bool:
    return (around == "" and path != "") or path.startswith(f"{around}.")


def _above(rows: Sequence[PageRow], row: PageRow) -> Iterable[PageRow]:
    parent = row.parent
    while parent is not None:
        yield rows[parent]
        parent = rows[parent].parent


def _name_references(rows: list[PageRow], modules: dict[str, Site]) -> None:
    """Beside every module of the port the reference's that holds the partners of all that is inside."""
    common: dict[int, str | None] = {}
    for row in rows:
        if row.pair is None or row.around:
            continue
        above = row.pair.reference.path.rpartition(".")[0]
        index = row.parent
        while index is not None:
            common[index] = above if index not in common else _common(common[index], above)
            index = rows[index].parent
    for index, row in enumerate(rows):
        if row.around and row.reference is None and common.get(index):
            outer = {above.reference.path for above in _above(rows, row) if above.reference is not None}
            named = str(common[index])
            if named not in outer:
                row.reference = modules.get(named) or Site(named, "")


def _common(one: str | None, other: str) -> str | None:
    parts = (one or "").split(".")[: _shared(one or "", other)]
    return ".".join(parts) or None


def _place_divergences(rows: list[PageRow], divergences: Sequence[Divergence]) -> None:
    """Every difference to its call; to the nearest module around it where it is none of a call."""
    by_order = {
        row.port.order: row for row in reversed(rows) if row.port is not None and row.port.order is not None
    }
    by_path: dict[str, PageRow] = {}
    for row in rows:
        by_path.setdefault(_own(row), row)
    for number, each in enumerate(divergences):
        site = each.port or each.reference
        if site is None:
            continue
        exact = by_order.get(site.order) if each.port is not None and site.order is not None else None
        if exact is None or _own(exact) != site.path:
            exact = next(
                (by_path[path] for path in (site.path, *reversed(_prefixes(site.path))) if path in by_path),
                rows[0],
            )
        exact.divergences.append(number)
        if each.phase not in exact.phases:
            exact.phases.append(each.phase)


def _state(row: PageRow, divergences: Sequence[Divergence]) -> State:
    told = [divergences[number] for number in row.divergences]
    if any(not each.inherited for each in told):
        return "own"
    if told:
        return "inherited"
    if row.around and row.pair is None:
        return "around"
    return "same" if row.pair is not None else "unpaired"
