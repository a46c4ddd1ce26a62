"""Every test of this folder runs once for each backend; one that is not installed fails the run."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

from tests.conformance.models import KITS, Kit

_kits: dict[str, Kit] = {}


@pytest.fixture(params=sorted(KITS))
def kit(request: pytest.FixtureRequest) -> Any:
    if request.param not in _kits:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what a framework says while it is being imported
            _kits[request.param] = KITS[request.param]()
    return _kits[request.param]


@pytest.fixture
def backend(kit: Any) -> Any:
    return kit.backend
