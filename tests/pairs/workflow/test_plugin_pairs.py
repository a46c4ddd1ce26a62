"""The plugin's assertion on real pairs, in a session of its own."""

from __future__ import annotations

import sys
from pathlib import Path

pytest_plugins = ["pytester"]

CODE = """
import numpy as np, paddle, pytest, torch

def pair(activation):
    torch.manual_seed(0)
    ours = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 3))
    theirs = paddle.nn.Sequential(paddle.nn.Linear(4, 8), activation(), paddle.nn.Linear(8, 3))
    return ours, theirs

@pytest.mark.parfocal(seeds=2)
def test_same(aligned, parfocal_seed):
    inputs = np.random.normal(size=(6, 4)).astype("float32")
    assert aligned(*pair(paddle.nn.ReLU), inputs).ok

def test_different(aligned):
    inputs = np.random.default_rng(0).normal(size=(6, 4)).astype("float32")
    aligned(*pair(paddle.nn.GELU), inputs, backward=False)
"""


def test_real_pairs(pytester, monkeypatch):
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[3]))
    pytester.makepyfile(test_port=CODE)
    done = pytester.run(
        sys.executable, "-m", "pytest", "-p", "parfocal.pytest_plugin", "-q", "--parfocal-report=kept"
    )
    done.assert_outcomes(passed=2, failed=1)
    done.stdout.fnmatch_lines(["E * AssertionError: DIFFERENT: Sequential (paddle*"])
    assert (pytester.path / "kept" / "test_port.py-test_different" / "report.html").is_file()
    assert len(list((pytester.path / "kept").iterdir())) == 3
