"""Every test of this folder runs once for each backend; one that is not installed fails the run."""

from __future__ import annotations

from typing import Any

import pytest

from tests.conformance.models import KITS, kit_for


@pytest.fixture(params=sorted(KITS))
def kit(request: pytest.FixtureRequest) -> Any:
    return kit_for(request.param)


@pytest.fixture
def backend(kit: Any) -> Any:
    return kit.backend
