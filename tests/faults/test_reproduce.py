"""A mistake taken out of its models: a script that fails, and passes once its fix is in place."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from paddle import nn as pnn
from torch import nn

from parfocal.errors import InputError, UnsupportedError
from tests.faults.tools import align, numbers, seeded


def run(script: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, check=False, timeout=120
    )


def uncommented(script: Path) -> str:
    """The script with the fix made; it has exactly one."""
    lines = script.read_text().splitlines()
    marked = [index for index, line in enumerate(lines) if line.endswith("# the fix")]
    assert len(marked) == 1
    lines[marked[0]] = lines[marked[0]].removeprefix("# ")
    return "\n".join(lines) + "\n"


def fails_until_mended(script: Path) -> str:
    """Runs both; returns the line with the fix."""
    before = run(script)
    assert before.returncode == 1, before.stderr
    assert "the port's layer is not the reference's" in before.stderr
    mended = script.with_name("mended.py")
    mended.write_text(uncommented(script))
    after = run(mended)
    assert after.returncode == 0, after.stderr
    assert "score" in after.stdout
    return next(line for line in script.read_text().splitlines() if line.endswith("# the fix"))


def test_the_script_fails_until_the_fix_is_made(tmp_path: Path) -> None:
    reference = seeded(lambda: nn.Sequential(nn.Linear(8, 16), nn.LayerNorm(16), nn.Linear(16, 4)))
    port = pnn.Sequential(pnn.Linear(8, 16), pnn.LayerNorm(16, epsilon=1e-3), pnn.Linear(16, 4))
    script = align(reference, port, numbers(6, 8)).reproduce(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data.safetensors", "reproduce.py"]
    assert "port = paddle.nn.LayerNorm(16, epsilon=0.001)\n" in script.read_text()
    assert fails_until_mended(script) == "# port = paddle.nn.LayerNorm(16, epsilon=1e-05)  # the fix"


@pytest.mark.filterwarnings("ignore:When training, we now always track global mean:UserWarning")
def test_a_layer_in_the_wrong_mode(tmp_path: Path) -> None:
    reference = seeded(lambda: nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU()))
    port = pnn.Sequential(pnn.Conv2D(3, 4, 3), pnn.BatchNorm2D(4), pnn.ReLU())
    port.eval()
    port[1].train()
    script = align(reference, port, numbers(2, 3, 6, 6), mode="keep").reproduce(tmp_path)
    assert fails_until_mended(script) == "# port.eval()  # the fix"


class TorchAttending(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(16, 4, batch_first=True)

    def forward(self, x: Any) -> Any:
        return self.attention(x, x.flip(1), x, need_weights=False)[0]


class PaddleAttending(pnn.Layer):
    def __init__(self) -> None:
        super().__init__()
        self.attention = pnn.MultiHeadAttention(16, 2)

    def forward(self, x: Any) -> Any:
        return self.attention(x, x.flip(1), x)


def test_a_layer_of_several_inputs(tmp_path: Path) -> None:
    report = align(seeded(TorchAttending), PaddleAttending(), numbers(2, 5, 16))
    fix = fails_until_mended(report.reproduce(tmp_path))
    assert fix.startswith("# port = paddle.nn.MultiHeadAttention(16, 4")


def test_the_same_has_nothing_to_reproduce(tmp_path: Path) -> None:
    reference = seeded(lambda: nn.Sequential(nn.Linear(8, 4), nn.GELU()))
    report = align(reference, pnn.Sequential(pnn.Linear(8, 4), pnn.GELU()), numbers(6, 8))
    assert report.ok
    with pytest.raises(InputError, match="nothing to reproduce: the port is the same"):
        report.reproduce(tmp_path)
    assert "reproduction" not in report.to_json()


def test_without_a_layer_to_take_out_it_says_so(tmp_path: Path) -> None:
    reference = seeded(lambda: nn.Sequential(nn.Linear(8, 4), nn.GELU()))
    port = pnn.Sequential(pnn.Linear(8, 4), pnn.GELU())
    report = align(reference, port, numbers(6, 8), transfer=False)
    assert report.first is not None
    assert report.first.phase == "weights"
    with pytest.raises(UnsupportedError, match="nothing that can be run apart from the models"):
        report.reproduce(tmp_path)
    assert not list(tmp_path.iterdir())
