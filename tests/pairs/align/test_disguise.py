"""Names, order of definition and nesting of the port's layers do not matter."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from examples.pairs import PAIRS
from examples.pairs.disguise import DISGUISES, Moves
from examples.pairs.faults import wrong_epsilon

from parfocal.report.report import Report
from tests.pairs.align.tools import blamed, run

NAMES = ("vit", "unet", "gpt", "detector", "nhwc_cnn", "fused_cnn", "transformer_decoder")
Plain = dict[str, Counter[Any]]


def pairs_of(report: Report, moves: Moves | None = None) -> Counter[tuple[str, str]]:
    paths = ((pair.reference.path, pair.port.path) for pair in report.pairs)
    if moves is None:
        return Counter(paths)
    return Counter((ours, moves[theirs]) for ours, theirs in paths if theirs in moves)


@pytest.fixture(scope="module")
def plain() -> Plain:
    return {name: pairs_of(run(name, "eval")) for name in NAMES}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("disguise", DISGUISES)
def test_a_disguised_port_is_paired_as_before(
    name: str, disguise: str, plain: dict[str, Counter[Any]]
) -> None:
    moves: Moves = {}
    report = run(name, "eval", change=lambda port: moves.update(DISGUISES[disguise](port)))
    assert report.ok, str(report)
    kept = plain[name] & pairs_of(report, moves)
    assert sum(kept.values()) >= 0.99 * sum(plain[name].values()), plain[name] - kept


@pytest.mark.parametrize("name", ["vit", "unet", "gpt"])
def test_a_disguise_is_one(name: str) -> None:
    for label, disguise in DISGUISES.items():
        port, disguised = PAIRS[name].port(0), PAIRS[name].port(0)
        disguise(disguised)
        before, after = ([path for path, _ in each.named_sublayers()] for each in (port, disguised))
        assert before != after, label


@pytest.mark.parametrize("name", ["vit", "unet", "gpt", "nhwc_cnn"])
def test_a_fault_in_a_disguised_port_is_found(name: str) -> None:
    fault = wrong_epsilon(PAIRS[name])
    assert fault is not None
    moves: Moves = {}

    def change(port: object) -> None:
        fault.plant(port)  # type: ignore[arg-type]
        moves.update(DISGUISES["all three"](port))  # type: ignore[arg-type]

    report = run(name, "eval", change=change)
    assert [moves[path] for path in blamed(report) if path] == [fault.guilty], str(report)
