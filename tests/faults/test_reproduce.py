"""A mistake taken out of its models: a script that fails, and passes once its fix is in place."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from paddle import nn as pnn
from torch import nn

from parfocal.errors import UnsupportedError
from tests.faults.tools import align, numbers, seeded


def run(script: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, check=False, timeout=120
    )


def test_the_script_fails_until_the_fix_is_made(tmp_path: Path) -> None:
    reference = seeded(lambda: nn.Sequential(nn.Linear(8, 16), nn.LayerNorm(16), nn.Linear(16, 4)))
    port = pnn.Sequential(pnn.Linear(8, 16), pnn.LayerNorm(16, epsilon=1e-3), pnn.Linear(16, 4))
    script = align(reference, port, numbers(6, 8)).reproduce(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data.safetensors", "reproduce.py"]
    before = run(script)
    assert before.returncode == 1
    assert "the port's layer is not the reference's" in before.stderr
    text = script.read_text()
    assert (
        "port = paddle.nn.LayerNorm(16, epsilon=0.001)\n# port = paddle.nn.LayerNorm(16, epsilon=1e-05)"
        in text
    )
    script.write_text(text.replace("# port = ", "port = "))
    after = run(script)
    assert after.returncode == 0, after.stderr
    assert "score" in after.stdout


def test_without_a_layer_to_take_out_it_says_so(tmp_path: Path) -> None:
    reference = seeded(lambda: nn.Sequential(nn.Linear(8, 4), nn.GELU()))
    report = align(reference, pnn.Sequential(pnn.Linear(8, 4), pnn.GELU()), numbers(6, 8))
    assert report.ok
    with pytest.raises(UnsupportedError, match="nothing that can be run apart from the models"):
        report.reproduce(tmp_path)
    assert "reproduction" not in report.to_json()
