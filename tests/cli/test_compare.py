"""``parfocal record --follow`` and ``parfocal compare``, each side in a process of its own."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from parfocal.run.reader import load_run
from tests.cli.command import run_apart, run_here
from tests.warm import warm_python

TORCH = """
import torch

class Norm(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(16))
        self.variance_epsilon = 1e-5

    def forward(self, x):
        return self.weight * x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.variance_epsilon)

class Attention(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.k, self.v, self.out = (torch.nn.Linear(16, 16) for _ in range(4))
        self.scaling = 0.25

    def forward(self, x):
        scores = self.q(x) @ self.k(x).transpose(-2, -1) * self.scaling
        scores = scores + torch.triu(torch.full((6, 6), float("-inf")), 1)
        return self.out(torch.softmax(scores, -1) @ self.v(x))

class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.attention = Norm(), Attention()

    def forward(self, x):
        return x + self.attention(self.norm(x))

def build():
    torch.manual_seed(0)
    return Block()
"""

PADDLE = """
import paddle

class RootMeanSquare(paddle.nn.Layer):
    def __init__(self):
        super().__init__()
        self.weight = self.create_parameter([16], default_initializer=paddle.nn.initializer.Constant(1.0))
        self.eps = EPSILON

    def forward(self, x):
        return self.weight * x * paddle.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps)

class SelfAttention(paddle.nn.Layer):
    def __init__(self):
        super().__init__()
        self.q, self.k, self.v, self.out = (paddle.nn.Linear(16, 16) for _ in range(4))

    def forward(self, x):
        scores = self.q(x) @ self.k(x).transpose([0, 2, 1]) * SCALE
        scores = scores + paddle.triu(paddle.full([6, 6], MASKED), 1)
        weights = paddle.nn.functional.softmax(scores, axis=-1)
        return self.out(weights.astype(PRECISION).astype("float32") @ self.v(x))

class Layer(paddle.nn.Layer):
    def __init__(self):
        super().__init__()
        self.norm, self.attention = RootMeanSquare(), SelfAttention()

    def forward(self, x):
        return x + self.attention(self.norm(x))

def build():
    return Layer()
"""
RIGHT = {"EPSILON": "1e-5", "SCALE": "0.25", "MASKED": 'float("-inf")', "PRECISION": '"float32"'}
MISTAKES = {
    "none": ({}, None, 0),
    "epsilon": ({"EPSILON": "2e-5"}, "norm", 4),
    "scale": ({"SCALE": "0.25001"}, "attention", 4),
    "mask": ({"MASKED": "-10.0"}, "attention", 4),
    "precision": ({"PRECISION": '"float16"'}, "attention", 4),
}


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the reference's code, inputs, weights and run."""
    folder = tmp_path_factory.mktemp("reference")
    (folder / "reference.py").write_text(TORCH)
    np.savez(folder / "x.npz", np.random.default_rng(0).normal(size=(2, 6, 16)).astype("float32"))
    save = "import torch, reference; torch.save(reference.build().state_dict(), 'weights.pth')"
    (folder / "save.py").write_text(save)
    options = ("--model", "reference.py:build", "--inputs", "x.npz", "--out", "reference")
    done = run_apart(folder, "record", *options)
    assert done.status == 0, done.err
    import subprocess

    subprocess.run([*warm_python(), "save.py"], cwd=folder, check=True)
    return folder


@pytest.mark.parametrize("name", MISTAKES)
def test_a_small_mistake_is_found_by_following(reference: Path, tmp_path: Path, name: str) -> None:
    changes, place, least = MISTAKES[name]
    code = PADDLE
    for word, value in {**RIGHT, **changes}.items():
        code = code.replace(word, value)
    (tmp_path / "port.py").write_text(code)
    done = run_apart(
        tmp_path,
        *("record", "--model", "port.py:build", "--inputs", reference / "x.npz", "--out", "port"),
        *("--weights", reference / "weights.pth", "--follow", reference / "reference"),
    )
    assert done.status == 0, done.err
    done = run_apart(tmp_path, "compare", reference / "reference", "port", "--json")
    report = json.loads(done.out)
    assert done.status == (0 if place is None else 1), done.out
    assert report["scale"] == "noise"
    if place is not None:
        first = report["divergences"][0]
        assert (first["phase"], first["port"]["path"]) == ("forward", place)
        assert first["score"] > least


def test_options_of_record(reference: Path, tmp_path: Path) -> None:
    train = (
        "import torch, sys\n"
        f"sys.path.insert(0, {str(reference)!r})\n"
        "import reference\n"
        "model = reference.build()\n"
        "optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)\n"
        "model(torch.ones(2, 6, 16)).square().mean().backward()\n"
        "optimizer.step()\n"
    )
    (tmp_path / "train.py").write_text(train)
    options = ("--state", "optimizer", "--state", "buffer", "--exclude", "attention.q", "--out", "run")
    done = run_apart(tmp_path, "record", *options, "train.py")
    assert done.status == 0, done.err
    run = load_run(tmp_path / "run")
    assert "attention.q" not in {call.path for call in run.calls()}
    assert "attention.k" in {call.path for call in run.calls()}
    slots = {(item.path, item.slot) for item in run.state() if item.role == "optimizer"}
    assert ("attention.k.weight", "momentum") in slots


def test_options_of_compare(reference: Path, monkeypatch: pytest.MonkeyPatch, capsys: object) -> None:
    path = reference / "reference"
    again = run_apart(
        reference, "record", "--model", "reference.py:build", "--inputs", "x.npz", "--out", "again"
    )
    assert again.status == 0, again.err
    done = run_here(
        monkeypatch, capsys, "compare", path, reference / "again", "--layers", "norm=norm", "--rank", "0"
    )
    assert done.status == 0, done.out
    done = run_here(monkeypatch, capsys, "compare", path, reference / "again", "--rank", "1")
    assert done.status == 2
    assert "rank 1 is not in both runs" in done.err
    done = run_here(monkeypatch, capsys, "compare", path, reference / "again", "--layers", "norm")
    assert done.status == 2
    assert "--layers norm is no pair" in done.err
