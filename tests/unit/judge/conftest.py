"""Everything about single arrays and pairs of arrays is tested twice: compiled, and with NumPy alone."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from parfocal.judge import kernels, moments
from parfocal.native.library import LIBRARY

WAYS = {"numpy": None, **({} if LIBRARY is None else {"compiled": LIBRARY})}


@pytest.fixture(params=WAYS, scope="module", autouse=True)
def inner_loops(request: pytest.FixtureRequest) -> Iterator[str]:
    with pytest.MonkeyPatch.context() as patch:
        for user in (kernels, moments):
            patch.setattr(user, "LIBRARY", WAYS[request.param])
        yield request.param
