"""One thread per framework, and no warnings that are none of the tests' business."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

# Said by the frameworks' own layers in runs that are right.
ORDINARY = ("ignore:When training, we now always track global mean and variance:UserWarning",)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            for warning in ORDINARY:
                item.add_marker(pytest.mark.filterwarnings(warning))


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    usual = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(usual)
