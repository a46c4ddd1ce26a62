"""What holds for all tests."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from parfocal.attempts import STRICT
from parfocal.phrases import VARIABLE
from tests.versions.declared import expect_failures, failed_as_declared

os.environ[STRICT] = "1"  # also for the commands that tests start
os.environ[VARIABLE] = "en"  # the language of the texts they pin, whatever the machine's

# No test may fail because a machine is slow or busy.
settings.register_profile("any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any machine")


def pytest_configure(config: pytest.Config) -> None:
    """The documentation uses the plugin's mark, also where parfocal is run without being installed."""
    config.addinivalue_line("markers", "parfocal(seeds=N): of parfocal's own plugin")
    config.addinivalue_line("markers", "cold: processes start as users' do, with everything still to load")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    expect_failures(items)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    return failed_as_declared(item, (yield))  # type: ignore[return-value]


def pytest_collection_finish() -> None:
    """What the imports made stays: no later collection of garbage has to look through it again."""
    gc.collect()
    gc.freeze()
