"""What holds for all tests."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from parfocal.attempts import STRICT
from parfocal.judge.codes import codes
from parfocal.judge.verdict import Cause, Claim, Grounds, ProvenBy
from parfocal.phrases import VARIABLE
from tests.thorough import is_thorough
from tests.versions.declared import expect_failures, failed_as_declared

os.environ[STRICT] = "1"  # also for the commands that tests start
os.environ[VARIABLE] = "en"  # the language of the texts they pin, whatever the machine's

# No test may fail because a machine is slow or busy.
settings.register_profile("any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any machine")


def pytest_configure(config: pytest.Config) -> None:
    """The documentation uses the plugin's mark, also where parfocal is run without being installed."""
    config.addinivalue_line("markers", "parfocal(seeds=N): of parfocal's own plugin")
    config.addinivalue_line("markers", "thorough: make test leaves it out (tests/thorough.py)")
    config.addinivalue_line("markers", "cold: processes start as users' do, with everything still to load")


def _hold_against_the_register() -> None:
    """Every cause that any test brings about is proven, or likely, as the register says."""
    proven, likely = Claim.proven, Claim.likely

    def declared_proven(claim: Claim, way: ProvenBy, before: float, after: float) -> Cause:
        assert way in codes()[claim.code].proven, f"{claim.code} is {way.value}: add that to data/codes.toml"
        return proven(claim, way, before, after)

    def declared_likely(claim: Claim, rests_on: Grounds) -> Cause:
        known = codes()[claim.code].likely
        assert rests_on in known, f"{claim.code} rests on {rests_on.value}: add that to data/codes.toml"
        return likely(claim, rests_on)

    Claim.proven, Claim.likely = declared_proven, declared_likely  # type: ignore[method-assign]


_hold_against_the_register()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    expect_failures(items)
    for item in items:
        if is_thorough(item.path, getattr(item, "originalname", "")):
            item.add_marker("thorough")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    return failed_as_declared(item, (yield))  # type: ignore[return-value]


def pytest_collection_finish() -> None:
    """What the imports made stays: no later collection of garbage has to look through it again.

    What a test imports is not kept compiled: it may write a module twice within the second that Python
    tells its versions apart by.
    """
    gc.collect()
    gc.freeze()
    sys.dont_write_bytecode = True
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
