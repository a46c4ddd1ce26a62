"""What the tests of this folder have in common."""

from __future__ import annotations

import sys

import pytest

from parfocal.workflow.guide.checking import check
from parfocal.workflow.guide.processes import Worker
from tests.guide.projects import toy
from tests.warm import warm_python

FRESH_COMMAND = Worker.command.fget


def warm_command(worker):
    """The command of a worker, with the frameworks already loaded where it is this interpreter's."""
    python, *rest = FRESH_COMMAND(worker)
    return [*warm_python(), *rest] if python == sys.executable else [python, *rest]


@pytest.fixture(autouse=True)
def warm_workers(request, monkeypatch):
    """Most tests here are about what the steps find, not about how a process starts."""
    if request.node.get_closest_marker("cold") is None:
        monkeypatch.setattr(Worker, "command", property(warm_command))


@pytest.fixture(scope="session")
def checked(tmp_path_factory):
    """A project whose steps have all passed."""
    project = toy(tmp_path_factory.mktemp("accept") / "toy")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Worker, "command", property(warm_command))
        assert check(project).status == 0
    return project
