"""The user's frame: not ours, not the framework's, not Python's own."""

from __future__ import annotations

import concurrent.futures
import functools
import sys
import types
from pathlib import Path

import pytest

from parfocal.capture.sites import Sites

HERE = __file__


def line() -> int:
    return sys._getframe(1).f_lineno


def test_the_caller_is_found():
    assert Sites(()).find() == (HERE, line())


@pytest.fixture
def framework(tmp_path, monkeypatch):
    """A package whose function calls back, as a framework's module does with its hooks."""
    source = tmp_path / "fakeframework" / "__init__.py"
    source.parent.mkdir()
    source.write_text("def call(function):\n    return function()\n")
    module = types.ModuleType("fakeframework")
    module.__file__ = str(source)
    exec(compile(source.read_text(), str(source), "exec"), module.__dict__)
    monkeypatch.setitem(sys.modules, "fakeframework", module)
    return module


def test_frames_of_the_framework_are_passed_over(framework):
    sites = Sites(("fakeframework",))
    # skip=2 passes over the lambda, which stands for our own hook here.
    assert framework.call(lambda: sites.find(skip=2)) == (HERE, line())


def test_without_knowing_the_framework_its_frame_is_the_answer(framework):
    file, number = framework.call(lambda: Sites(()).find(skip=2))
    assert (Path(file).parent.name, number) == ("fakeframework", 2)


def test_a_folder_whose_name_only_begins_like_the_framework_is_the_users(framework, tmp_path):
    other = tmp_path / "fakeframework_extras.py"
    source = "def call(function):\n    return function()\n"
    scope: dict[str, types.FunctionType] = {}
    exec(compile(source, str(other), "exec"), scope)
    assert scope["call"](lambda: Sites(("fakeframework",)).find(skip=2)) == (str(other), 2)


def test_frames_of_the_standard_library_are_passed_over():
    sites = Sites(())
    assert functools.reduce(lambda _, __: sites.find(skip=2), [1, 2]) == (HERE, line())
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        # In this thread there are only frames of the standard library.
        assert pool.submit(sites.find).result() == (None, None)


def test_code_that_was_typed_in_is_the_users():
    scope = {"sites": Sites(())}
    exec(compile("\n\nfound = sites.find()", "<stdin>", "exec"), scope)
    assert scope["found"] == ("<stdin>", 3)


def test_parfocal_itself_is_passed_over():
    sites = Sites(())
    own = str(Path(sys.modules["parfocal"].__file__).parent / "somewhere.py")
    scope = {"sites": sites}
    exec(compile("found = sites.find", own, "exec"), scope)
    exec(compile("def call(sites):\n    return sites.find()\n", own, "exec"), scope)
    assert scope["call"](sites) == (HERE, line())


def test_what_called_our_command_is_nobody_s_model(framework):
    import parfocal.cli.main

    scope: dict[str, types.FunctionType] = {}
    source = "def command(function):\n    return function()\n"
    exec(compile(source, parfocal.cli.main.__file__, "exec"), scope)
    sites = Sites(("fakeframework",))
    called = lambda: framework.call(lambda: sites.find(skip=2))  # noqa: E731
    assert called() == (HERE, line() - 1)
    assert scope["command"](functools.partial(framework.call, functools.partial(sites.find, 1))) == (
        None,
        None,
    )
