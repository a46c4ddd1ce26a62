"""Importing parfocal, its command line and its framework-free rooms loads no framework."""

from __future__ import annotations

import subprocess
import sys

import pytest

import parfocal

FRAMEWORKS = ("torch", "paddle")
LIGHT = (
    "parfocal",
    "parfocal.cli.main",
    "parfocal.judge.metrics",
    "parfocal.judge.sketch",
    "parfocal.judge.named",
    "parfocal.run.reader",
    "parfocal.run.writer",
    "parfocal.run.files",
    "parfocal.backends.registry",
    "parfocal.compat.reprod_log",
    "parfocal.report.page.page",
    "parfocal.pytest_plugin",
)


def frameworks_loaded_by(statement: str) -> list[str]:
    """The frameworks in ``sys.modules`` of a fresh interpreter after running the statement."""
    code = f"import sys\n{statement}\nprint([name for name in {FRAMEWORKS!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return list(eval(done.stdout))


@pytest.mark.parametrize("module", LIGHT)
def test_no_framework_is_imported(module: str) -> None:
    assert frameworks_loaded_by(f"import {module}") == []


def test_the_check_above_can_fail() -> None:
    assert frameworks_loaded_by("import torch") == ["torch"]


def test_importing_parfocal_does_not_even_import_numpy() -> None:
    code = "import sys, parfocal; print('numpy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_translations_are_read_when_they_are_needed() -> None:
    code = "import parfocal.cli.main, parfocal.locale as l; print(l.catalogue.cache_info().misses)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "0"


@pytest.mark.parametrize("name", parfocal.__all__)
def test_every_public_name_loads(name: str) -> None:
    assert getattr(parfocal, name) is not None
    assert name in dir(parfocal)


def test_public_names_stay_callable_after_submodules_are_imported() -> None:
    import importlib
    import pkgutil

    modules = {info.name for info in pkgutil.iter_modules(parfocal.__path__)}
    assert not modules & set(parfocal.__all__)
    for module in LIGHT:
        importlib.import_module(module)
    assert all(not hasattr(getattr(parfocal, name), "__path__") for name in parfocal.__all__)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'aline'"):
        _ = parfocal.aline  # type: ignore[attr-defined]
