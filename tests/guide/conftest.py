"""What the tests of this folder have in common."""

from __future__ import annotations

import pytest

from parfocal.workflow.guide.checking import check
from parfocal.workflow.guide.processes import Worker
from tests.guide.projects import toy
from tests.warm import warm_python
from tests.warm.workers import warm_command


@pytest.fixture(autouse=True)
def warm_workers(request, monkeypatch):
    """Most tests here are about what the steps find, not about how a process starts."""
    if request.node.get_closest_marker("cold") is None:
        monkeypatch.setattr(Worker, "command", warm_command(warm_python()))


@pytest.fixture(scope="session")
def checked(tmp_path_factory):
    """A project whose steps have all passed."""
    project = toy(tmp_path_factory.mktemp("accept") / "toy")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Worker, "command", warm_command(warm_python()))
        assert check(project).status == 0
    return project
