"""What a version of a package does not have, and the tests that fail for it.

``lacks.toml`` declares it, each with its reason and with the words of the failure. Such a test is expected to
fail with these words: one that passes, or that fails otherwise, fails the run. Nothing else is skipped.
"""

from __future__ import annotations

import platform
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pytest
from packaging.specifiers import SpecifierSet
from packaging.version import Version

from parfocal.workflow.guide.settings import tomllib

TABLE = Path(__file__).with_name("lacks.toml")
PACKAGES = {"paddle": "paddlepaddle", "torch": "torch", "numpy": "numpy"}
KNOWN = (*PACKAGES, "python")
EXPECTED = pytest.StashKey["Lack"]()


@dataclass(frozen=True)
class Lack:
    """Something that versions of a package do not have."""

    package: str
    versions: str  # "<3.0"
    what: str
    chinese: str  # the same
    says: str  # a pattern that the failure's text matches
    tests: tuple[str, ...]  # node ids, "*" for anything
    crashes: bool = False  # it ends the process: the tests are not run

    def holds_for(self, versions: Mapping[str, str]) -> bool:
        found = versions.get(self.package)
        return found is not None and Version(found) in SpecifierSet(self.versions, prereleases=True)

    def concerns(self, node: str) -> bool:
        return any(_pattern(each).fullmatch(node) for each in self.tests)


@cache
def _pattern(test: str) -> re.Pattern[str]:
    return re.compile(re.escape(f"tests/{test}").replace(r"\*", ".*"))


@cache
def table() -> tuple[Lack, ...]:
    found = tomllib.loads(TABLE.read_text(encoding="utf-8"))["lack"]
    return tuple(Lack(**{**entry, "tests": tuple(entry["tests"])}) for entry in found)


@cache
def installed() -> Mapping[str, str]:
    """The versions of this environment."""
    found = {"python": platform.python_version()}
    for name, distribution in PACKAGES.items():
        try:
            found[name] = version(distribution).partition("+")[0]
        except PackageNotFoundError:
            continue
    return found


def expect_failures(items: Iterable[pytest.Item]) -> None:
    """Mark the tests that are declared to fail here."""
    here = [lack for lack in table() if lack.holds_for(installed())]
    for item in items if here else ():
        for lack in here:
            if lack.concerns(item.nodeid):
                item.stash[EXPECTED] = lack
                item.add_marker(pytest.mark.xfail(reason=lack.what, strict=True, run=not lack.crashes))
                break


def failed_as_declared(item: pytest.Item, report: pytest.TestReport) -> pytest.TestReport:
    """The report of one phase of a test; a failure of another kind than the declared one is a failure."""
    lack = item.stash.get(EXPECTED, None)
    if lack is None or lack.crashes or not hasattr(report, "wasxfail") or not report.skipped:
        return report
    if not re.search(lack.says, report.longreprtext):
        report.outcome = "failed"
        report.longrepr = f"declared: {lack.what} ({lack.says!r}), yet it fails with\n{report.longreprtext}"
        del report.wasxfail
    return report
