"""The registry finds frameworks without importing them."""

from __future__ import annotations

import ast
import importlib.metadata
import subprocess
import sys
import textwrap

import numpy as np
import pytest

from parfocal.backends import registry
from parfocal.errors import InputError, MissingFrameworkError

FRAMEWORKS = ("torch", "paddle")


def loaded_after(code):
    """Which frameworks a fresh interpreter has loaded after running some code."""
    report = f"import sys; print([name for name in {FRAMEWORKS} if name in sys.modules])"
    script = textwrap.dedent(code) + "\n" + report
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", script], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return ast.literal_eval(done.stdout.strip().splitlines()[-1])


def test_importing_and_asking_loads_no_framework():
    code = """
        from parfocal.backends import calls, checks, module_tree, opcalls, protocol
        from parfocal.backends import reading, registry, vocabulary
        registry.available()
        registry.names()
        try:
            registry.of({})
        except Exception:
            pass
    """
    assert loaded_after(code) == []


def test_the_check_for_loaded_frameworks_can_fail():
    assert loaded_after("import sys, types; sys.modules['torch'] = types.ModuleType('torch')") == ["torch"]


def test_both_builtin_backends_are_known_without_metadata(monkeypatch):
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda **_: [])
    registry._known.cache_clear()
    try:
        assert registry.names() == ("paddle", "torch")
    finally:
        registry._known.cache_clear()


def test_entry_points_of_the_package_agree_with_the_builtin_table():
    entries = importlib.metadata.entry_points(group=registry.ENTRY_POINT_GROUP)
    declared = {entry.name: entry.value for entry in entries}
    assert {name: declared[name] for name in registry.BUILTIN} == registry.BUILTIN


def test_a_third_party_backend_comes_from_an_entry_point(monkeypatch, tmp_path):
    (tmp_path / "abacus.py").write_text("class Bead: pass\n")
    (tmp_path / "abacus_backend.py").write_text(
        "import abacus\n"
        "class AbacusBackend:\n"
        "    name, framework_version = 'abacus', '1.0'\n"
        "    def is_tensor(self, value): return isinstance(value, abacus.Bead)\n"
        "    is_model = is_optimizer = is_scheduler = lambda self, value: False\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    entry = importlib.metadata.EntryPoint(
        "abacus", "abacus_backend:AbacusBackend", registry.ENTRY_POINT_GROUP
    )
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda **_: [entry])
    monkeypatch.setattr(registry, "_loaded", {})
    registry._known.cache_clear()
    try:
        assert "abacus" in registry.available()
        backend = registry.get("abacus")
        assert backend is registry.get("abacus")
        import abacus

        assert registry.of(abacus.Bead()) is backend
        with pytest.raises(InputError, match="belongs to no known framework"):
            registry.of(abacus.Bead)  # the class, not an object
    finally:
        registry._known.cache_clear()


def test_an_unknown_name_lists_what_there_is():
    with pytest.raises(InputError, match="no backend called 'tensorflow'; there are: paddle, torch"):
        registry.get("tensorflow")


@pytest.mark.parametrize(
    ("name", "message", "hint"),
    [
        (
            "paddle",
            "PaddlePaddle is not installed: no module named 'paddle'",
            "pip install 'parfocal[paddle]'",
        ),
        ("torch", "PyTorch is not installed: no module named 'torch'", "pip install 'parfocal[torch]'"),
    ],
)
def test_a_missing_framework_says_what_to_install(monkeypatch, name, message, hint):
    monkeypatch.setattr(registry, "_loaded", {})
    monkeypatch.setattr(registry, "available", lambda: ())
    with pytest.raises(MissingFrameworkError, match=message) as caught:
        registry.get(name)
    assert caught.value.hint == hint


def test_a_framework_that_is_not_installed_is_not_available(monkeypatch):
    monkeypatch.setattr(registry, "BUILTIN", {"no_such_framework": "x:Y"})
    registry._known.cache_clear()
    try:
        assert "no_such_framework" not in registry.available()
    finally:
        monkeypatch.undo()
        registry._known.cache_clear()


@pytest.mark.parametrize("value", [{}, [1, 2], np.ones(3), "model.pth", None, 3.0, object])
def test_plain_objects_are_refused(value):
    with pytest.raises(InputError, match="belongs to no known framework") as caught:
        registry.of(value)
    kind = type(value)
    assert f"{kind.__module__}.{kind.__qualname__}" in caught.value.message
    assert "not a state dict, an array or a class" in caught.value.hint
