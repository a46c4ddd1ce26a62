"""Every dotted name of the table is there in the installed frameworks."""

from __future__ import annotations

import importlib
from typing import Any

import pytest

from parfocal.backends.gaps import gaps
from tests.pairs import vision  # noqa: F401  torchvision can be imported once this is

NAMES = sorted({name for gap in gaps() for name in gap.names})


def resolve(name: str) -> Any:
    root, *rest = name.split(".")
    found: Any = importlib.import_module(root)
    path = root
    for part in rest:
        path = f"{path}.{part}"
        if not hasattr(found, part):
            importlib.import_module(path)
        found = getattr(found, part)
    return found


@pytest.mark.parametrize("name", NAMES)
def test_a_name_resolves(name: str) -> None:
    assert resolve(name) is not None


def test_a_name_that_is_not_there_does_not() -> None:
    with pytest.raises((AttributeError, ModuleNotFoundError)):
        resolve("torch.nn.Linearr")
