"""Every test of this folder runs once for each backend; one that is not installed fails the run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from typing import Any

import pytest

from tests.conformance import toy
from tests.conformance.models import KITS, kit_for


@pytest.fixture(params=sorted(KITS))
def kit(request: pytest.FixtureRequest) -> Iterator[Any]:
    with toy.installed() if request.param == "toybox" else nullcontext():
        yield kit_for(request.param)


@pytest.fixture
def backend(kit: Any) -> Any:
    return kit.backend
