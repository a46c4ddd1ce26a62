"""What the tests of this folder have in common."""

from __future__ import annotations

import pytest

from parfocal.workflow.guide.checking import check
from tests.guide.projects import toy


@pytest.fixture(scope="session")
def checked(tmp_path_factory):
    """A project whose steps have all passed."""
    project = toy(tmp_path_factory.mktemp("accept") / "toy")
    assert check(project).status == 0
    return project
