from __future__ import annotations

from collections.abc import Iterator

import pytest

from .rings import Gate


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> Iterator[Gate]:
    made = Gate(monkeypatch)
    yield made
    made.open.set()
