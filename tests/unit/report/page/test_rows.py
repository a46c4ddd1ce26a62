"""Both trees as rows: order, nesting, partners, and where differences are told."""

from __future__ import annotations

from dataclasses import replace

from parfocal.judge.verdict import PairResult, Site
from parfocal.report.page.rows import PageRow, rows_of
from parfocal.report.report import Report
from tests.unit.report.reports import divergence, report


def at(path: str, order: int | None = None, kind: str = "Linear") -> Site:
    return Site(path, kind, None, None, None, {}, order)


def pair(ours: str, theirs: str, order: int) -> PairResult:
    return PairResult(at(ours, order), at(theirs, order), "weights", 1.0, 1.0)


def told(made: Report) -> list[str]:
    return [
        "  " * row.depth + " | ".join(_path(site) for site in (row.reference, row.port))
        for row in rows_of(made)
    ]


def _path(site: Site | None) -> str:
    return "-" if site is None else site.path or "(model)"


def of(*pairs: PairResult, reference: tuple[Site, ...] = (), port: tuple[Site, ...] = ()) -> Report:
    return report(pairs=pairs, unpaired_reference=reference, unpaired_port=port, along=())


def test_modules_stand_beside_those_that_hold_the_partners():
    made = of(
        pair("", "", 0), pair("layers.0.a", "net.first.a", 3), pair("layers.0.b", "net.first.b", 4),
        pair("layers.1.a", "net.second.a", 6),
        reference=(at("layers", 1), at("layers.0", 2), at("layers.1", 5)),
        port=(at("net", 1), at("net.first", 2), at("net.second", 5)),
    )  # fmt: skip
    assert told(made) == [
        "(model) | (model)",
        "  layers | net",
        "    layers.0 | net.first",
        "      layers.0.a | net.first.a",
        "      layers.0.b | net.first.b",
        "    layers.1 | net.second",
        "      layers.1.a | net.second.a",
    ]


def test_a_wrapper_that_only_the_port_has():
    made = of(pair("", "", 0), pair("fc", "wrap.fc", 2), port=(at("wrap", 1),))
    assert told(made) == ["(model) | (model)", "  - | wrap", "    fc | wrap.fc"]


def test_calls_of_one_side_are_where_they_ran():
    made = of(
        pair("", "", 0), pair("a", "a", 1), pair("b", "b", 4),
        reference=(at("only.reference", 3), at("act", 2)), port=(at("act", 2), at("drop", 5)),
    )  # fmt: skip
    assert told(made) == [
        "(model) | (model)",
        "  a | a",
        "  act | act",
        "  only.reference | -",
        "  b | b",
        "  - | drop",
    ]
    assert [row.state for row in rows_of(made)] == [
        "same",
        "same",
        "unpaired",
        "unpaired",
        "same",
        "unpaired",
    ]


def test_one_layer_called_twice_is_two_rows():
    made = of(pair("", "", 0), pair("relu", "relu", 1), pair("fc", "fc", 2), pair("relu", "relu", 3))
    second = divergence(reference=at("relu", 3), port=at("relu", 3))
    rows = rows_of(replace(made, divergences=(second,)))
    assert [row.state for row in rows] == ["same", "same", "same", "own"]
    assert rows[0].inside == 1


def test_a_difference_of_no_call_goes_to_the_module_around_it():
    made = of(pair("", "", 0), pair("fc", "fc", 1))
    weight = divergence(reference=None, port=at("fc.weight"), phase="weights")
    lost = divergence(reference=at("gone"), port=None, inherited=True)
    nowhere = divergence(reference=None, port=None)
    rows: list[PageRow] = rows_of(replace(made, divergences=(weight, lost, nowhere)))
    assert [row.divergences for row in rows] == [[1], [0]]
    assert (rows[1].phases, rows[0].state) == (["weights"], "inherited")


def test_without_orders_the_path_says_where():
    """Recorded runs, and files of other versions."""
    pairs = [
        replace(pair(path, path, 0), reference=at(path), port=at(path)) for path in ("a.x", "a.y", "b.x")
    ]
    assert told(of(*pairs, port=(at("a.z"),))) == ["a.x | a.x", "a.y | a.y", "- | a.z", "b.x | b.x"]


def test_no_calls_no_rows():
    assert rows_of(of()) == []
