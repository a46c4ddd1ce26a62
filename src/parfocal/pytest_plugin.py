"""For pytest: compare a port with its reference in a test, keep the report, and repeat it with other seeds.

Loaded by pytest itself in every project where parfocal is installed, so nothing heavy is imported before a
test asks for it.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from parfocal.phrases import phrase, said

if TYPE_CHECKING:
    from parfocal.report.report import Report

OPTION = "--parfocal-report"
MARKER = "parfocal"
SEED = "parfocal_seed"
LONGEST = 100  # characters of a folder's name
_CURRENT = "PYTEST_CURRENT_TEST"  # "path::name (call)", set by pytest
_folders: list[
    Path | None
] = []  # where reports are kept, of the sessions that run: the innermost is the last
_saved: dict[str, int] = {}  # reports of each test


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("parfocal", "comparing ports of models")
    group.addoption(
        OPTION, metavar="DIR", help="keep the report of every comparison (HTML, JSON, text) in this folder"
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", f"{MARKER}(seeds=N): run the test N times, with every random source seeded by 0 to N - 1"
    )
    folder = config.getoption(OPTION)
    _folders.append(None if folder is None else config.invocation_params.dir / folder)


def pytest_unconfigure() -> None:
    if _folders:
        _folders.pop()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    marker = metafunc.definition.get_closest_marker(MARKER)
    if marker is None:
        return
    count = _seeds(marker, metafunc.definition.nodeid)
    if SEED not in metafunc.fixturenames:
        metafunc.fixturenames.append(SEED)
    metafunc.parametrize(SEED, range(count), indirect=True, ids=lambda seed: f"seed{seed}")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """A marked test is seeded before its fixtures, whether or not it asks for the seed."""
    chosen = getattr(getattr(item, "callspec", None), "params", {}).get(SEED)
    if chosen is not None:
        from parfocal.workflow.seeding import seed

        seed(chosen)


def _seeds(marker: pytest.Mark, test: str) -> int:
    unknown = sorted(set(marker.kwargs) - {"seeds"})
    count = marker.kwargs.get("seeds", 1)
    if marker.args or unknown or isinstance(count, bool) or not isinstance(count, int) or count < 1:
        given = ", ".join([*map(repr, marker.args), *(f"{k}={v!r}" for k, v in marker.kwargs.items())])
        told = phrase(
            "{test}: {marker}: write seeds=N, with N a whole number from 1 on",
            test=test,
            marker=f"@pytest.mark.{MARKER}({given})",
        )
        pytest.fail(said(told), pytrace=False)  # not a mistake of the test's code
    return count


@pytest.fixture
def parfocal_seed(request: pytest.FixtureRequest) -> int:
    """The seed of this run of the test; Python, NumPy and every loaded framework have been seeded with it."""
    from parfocal.workflow.seeding import seed

    return seed(getattr(request, "param", 0))


@pytest.fixture
def aligned(parfocal_seed: int) -> Callable[..., Report]:
    """``assert_aligned``, after everything was seeded."""
    return assert_aligned


def assert_aligned(reference: Any, port: Any, inputs: Any, **options: Any) -> Report:
    """Fail unless the port is the same as the reference; the message is the report on one screen.

    ``options`` are those of ``pf.align``. Returns the report.
    """
    __tracebackhide__ = True
    from parfocal.workflow.align import align

    report = align(reference, port, inputs, **options)
    return assert_same(report)


def assert_same(report: Report) -> Report:
    """Fail unless a report says so: for ``pf.compare``, ``pf.compare_training`` and the others."""
    __tracebackhide__ = True
    kept = _keep(report)
    if not report.ok:
        where = "" if kept is None else phrase("\n\nthe whole report: {page}", page=kept / "report.html")
        raise AssertionError(f"{report}{said(where)}")
    return report


def _keep(report: Report) -> Path | None:
    """The folder where it was saved; a test that compares twice has two."""
    folder = _folders[-1] if _folders else None
    if folder is None:
        return None
    test = os.environ.get(_CURRENT, "session").rpartition(" (")[0] or "session"
    _saved[test] = number = _saved.get(test, 0) + 1
    name = folder_name(test)
    return report.save(folder / (name if number == 1 else f"{name}-{number}"))


def folder_name(test: str) -> str:
    """A test's name as that of a folder: readable, and never the same for two tests."""
    plain = re.sub(r"[^\w.=-]+", "-", test).strip("-.")
    if plain == test.replace("::", "-").replace("/", "-") and len(plain) <= LONGEST:
        return plain
    return f"{plain[:LONGEST]}-{hashlib.sha256(test.encode()).hexdigest()[:8]}"
