"""What holds for all tests."""

from __future__ import annotations

import gc
import os

import pytest
from hypothesis import HealthCheck, settings

from parfocal.attempts import STRICT
from parfocal.phrases import VARIABLE

os.environ[STRICT] = "1"  # also for the commands that tests start
os.environ[VARIABLE] = "en"  # the language of the texts they pin, whatever the machine's

# No test may fail because a machine is slow or busy.
settings.register_profile("any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any machine")


def pytest_configure(config: pytest.Config) -> None:
    """The documentation uses the plugin's mark, also where parfocal is run without being installed."""
    config.addinivalue_line("markers", "parfocal(seeds=N): of parfocal's own plugin")
    config.addinivalue_line("markers", "cold: processes start as users' do, with everything still to load")


def _note_proofs() -> None:
    import parfocal.judge.verdict as v

    former = v.Cause.__post_init__

    def noted(self):
        former(self)
        with open(os.environ["PARFOCAL_PROOFS"], "a") as f:
            f.write(
                f"{self.code} {(self.proof.way if self.proof else self.rests_on).value.replace(' ', '_')}\n"
            )

    v.Cause.__post_init__ = noted


if os.environ.get("PARFOCAL_PROOFS"):
    _note_proofs()


def pytest_collection_finish() -> None:
    """What the imports made stays: no later collection of garbage has to look through it again."""
    gc.collect()
    gc.freeze()
