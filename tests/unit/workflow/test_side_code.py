"""Modules of one name on both sides: each side's code gets its own, and both keep their sources."""

from __future__ import annotations

import importlib
import inspect
import sys

import pytest

from parfocal.workflow.side_code import SideCode


@pytest.fixture
def sides(tmp_path, monkeypatch):
    """Two folders with a ``netw.py`` each, and a module that both may import."""
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    monkeypatch.setattr(sys, "modules", dict(sys.modules))
    (tmp_path / "both_use.py").write_text("class Shared:\n    pass\n")
    for name in ("ours", "theirs"):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "netw.py").write_text(f"import both_use\n\n\nclass Net:\n    side = {name!r}\n")
    (tmp_path / "ours" / "only_ours.py").write_text("VALUE = 1\n")
    return SideCode(), SideCode(), tmp_path


def load(side, folder):
    with side.active():
        sys.path.insert(0, str(folder))
        return importlib.import_module("netw")


def test_each_side_imports_its_own(sides):
    ours, theirs, folder = sides
    first, second = load(ours, folder / "ours"), load(theirs, folder / "theirs")
    assert (first.Net.side, second.Net.side) == ("ours", "theirs")
    for side, module in ((ours, first), (theirs, second), (ours, first)):
        with side.active():
            assert importlib.import_module("netw") is module


def test_what_both_find_at_one_place_is_one(sides):
    ours, theirs, folder = sides
    assert load(ours, folder / "ours").both_use is load(theirs, folder / "theirs").both_use


def test_both_sources_are_found_afterwards(sides):
    ours, theirs, folder = sides
    kinds = [load(ours, folder / "ours").Net, load(theirs, folder / "theirs").Net]
    for kind, name in zip(kinds, ("ours", "theirs"), strict=True):
        assert inspect.getsourcefile(kind) == str(folder / name / "netw.py")
        assert f"side = {name!r}" in inspect.getsource(kind)


def test_a_later_import_of_what_only_one_has_works_outside(sides):
    ours, theirs, folder = sides
    load(ours, folder / "ours")
    load(theirs, folder / "theirs")
    assert importlib.import_module("only_ours").VALUE == 1


def test_one_side_does_not_find_the_others_modules(sides):
    ours, theirs, folder = sides
    load(ours, folder / "ours")
    with theirs.active(), pytest.raises(ModuleNotFoundError):
        importlib.import_module("netw")
    with ours.active():
        assert importlib.import_module("only_ours").VALUE == 1


def test_an_error_leaves_the_path_and_the_modules(sides):
    ours, theirs, folder = sides
    first = load(ours, folder / "ours")
    (folder / "theirs" / "netw.py").write_text("raise ValueError('no')\n")
    with pytest.raises(ValueError, match="no"):
        load(theirs, folder / "theirs")
    assert sys.modules["netw"] is first
    with ours.active():
        assert importlib.import_module("netw") is first


def test_a_folder_that_is_put_on_the_path_for_all_counts_for_all(sides):
    ours, theirs, folder = sides
    load(ours, folder / "ours")
    sys.path.insert(0, str(folder / "ours"))
    with theirs.active():
        assert importlib.import_module("only_ours").VALUE == 1


def test_a_folder_that_is_put_there_twice_is_hidden_as_well(sides):
    ours, theirs, folder = sides
    for _ in range(2):
        load(ours, folder / "ours")
    assert load(theirs, folder / "theirs").Net.side == "theirs"
    assert ours.folders == [str(folder / "ours")]
