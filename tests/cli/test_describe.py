"""``parfocal describe``: the tree of one model, and of two side by side."""

from __future__ import annotations

import json

import pytest

from tests.cli.command import run_apart, run_here, write_pair

REFERENCE = """
import torch

def build():
    inner = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.LayerNorm(8))
    return torch.nn.Sequential(torch.nn.Linear(4, 8), inner, torch.nn.Linear(8, 3))
"""
PORT = """
import paddle

def build():
    inner = paddle.nn.Sequential(paddle.nn.Linear(8, 8), paddle.nn.LayerNorm(8, epsilon=1e-6))
    return paddle.nn.Sequential(paddle.nn.Linear(4, 8), inner, paddle.nn.Linear(8, 3))
"""
INPUT = ("--input", "float32[6,4]")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    return write_pair(tmp_path, monkeypatch, REFERENCE, PORT)


@pytest.fixture
def describe(folder, monkeypatch, capsys):
    return lambda *arguments: run_here(monkeypatch, capsys, "describe", *arguments)


def lines_of(done):
    assert done.status == 0, done.err
    return [" ".join(line.split()) for line in done.out.splitlines()]


def test_one_model_with_inputs(describe):
    lines = lines_of(describe("ref.py:build", *INPUT))
    assert lines[0] == "module kind layer tensors parameters calls input -> output"
    assert lines[1] == "Sequential Sequential Sequential 155 1 6x4 float32 -> 6x3 float32"
    assert (
        lines[2] == "0 Linear Linear(4, 8) weight 8x4 float32, bias 8 float32 40 1 6x4 float32 -> 6x8 float32"
    )
    assert lines[5] == (
        "1 LayerNorm LayerNorm(8) weight 8 float32, bias 8 float32 16 1 6x8 float32 -> 6x8 float32"
    )
    assert lines[-1].startswith("Sequential (torch ")
    assert lines[-1].endswith(": 6 modules, 155 parameters (155 trainable), 0 numbers in buffers, 6 calls")


def test_without_inputs_no_calls_are_shown(describe):
    lines = lines_of(describe("port.py:build"))
    assert lines[0] == "module kind layer tensors parameters"
    assert lines[2] == "0 Linear Linear(4, 8) weight 4x8 float32, bias 8 float32 40"
    assert "calls" not in lines[-1]


@pytest.mark.parametrize("given", [INPUT, ()])
def test_two_models_side_by_side(describe, given):
    lines = lines_of(describe("ref.py:build", "port.py:build", *given))
    assert lines[0].split()[0] == "reference"
    norm = next(line for line in lines if "LayerNorm(8)" in line)
    assert "LayerNorm(8, epsilon=1e-06)" in norm
    assert norm.endswith("epsilon 1e-05 / 1e-06")
    assert "paired 6 of 6 and 6 modules" in lines
    assert any(line.startswith("port Sequential (paddle ") for line in lines)


def test_another_dtype_is_seen_on_its_line_and_nowhere_else(describe, folder):
    (folder / "half.py").write_text(
        PORT.replace(
            "    return paddle.nn.Sequential(",
            "    inner[0].to(dtype='float64')\n    return paddle.nn.Sequential(",
        )
    )
    lines = lines_of(describe("ref.py:build", "half.py:build"))
    assert sum("dtype float32 / float64" in line for line in lines) == 1
    assert "dtype float32 / float64" in next(line for line in lines if "Linear(8, 8)" in line)
    assert not any("dtype" in line for line in lines_of(describe("ref.py:build", "port.py:build")))


def test_depth_shows_less_and_counts_all(describe):
    lines = lines_of(describe("ref.py:build", "--depth", "1"))
    assert len(lines) == 1 + 4 + 2
    assert "155 parameters" in lines[-1]
    assert len(lines_of(describe("ref.py:build", "port.py:build", "--depth", "0"))) == 1 + 1 + 4


def test_json_has_every_call(describe):
    done = describe("ref.py:build", *INPUT, "--json")
    found = json.loads(done.out)
    assert found["framework"] == "torch"
    assert found["totals"]["parameters"] == 155
    first = found["modules"][1]
    assert (first["path"], first["kind"], first["parameters"]) == ("0", "Linear", 40)
    (call,) = first["calls"]
    assert (call["inputs"], call["outputs"]) == ({"0": [6, 4]}, {"0": [6, 8]})
    assert (call["input_dtypes"], call["output_dtypes"]) == ({"0": "float32"}, {"0": "float32"})
    assert first["settings"]["in_features"] == 4
    pair = json.loads(describe("ref.py:build", "port.py:build", *INPUT, "--json").out)
    norm = next(line for line in pair["lines"] if line["reference"] == "1.1")
    assert norm["settings"] == {"epsilon": {"reference": 1e-05, "port": 1e-06}}
    assert pair["weights_agree"] is True


MISUSE = {
    "no file": (("gone.py:build",), "MODEL gone.py:build: there is no file gone.py"),
    "no port": (("ref.py:build", "port.py:gone"), "PORT port.py:gone: port.py has no 'gone'"),
    "shape": (
        ("ref.py:build", "--input", "float32[6,5]"),
        "the forward pass of the model raised RuntimeError",
    ),
    "both": (("ref.py:build", *INPUT, "--inputs", "x.npy"), "describe needs inputs: either --input"),
    "mode": (("ref.py:build", *INPUT, "--mode", "test"), "there is no mode 'test'"),
}


@pytest.mark.parametrize(("arguments", "message"), MISUSE.values(), ids=list(MISUSE))
def test_misuse_is_status_2_and_one_message(describe, arguments, message):
    done = describe(*arguments)
    assert done.status == 2
    assert done.out == ""
    assert message in done.err
    assert "Traceback" not in done.err


def test_in_a_pipe_what_belongs_together_stays_on_one_line(folder):
    done = run_apart(folder, "describe", "ref.py:build", "port.py:build", *INPUT)
    assert done.status == 0, done.err
    assert "\x1b" not in done.out
    assert len(done.out.splitlines()) == 1 + 6 + 4


def test_weights_without_a_counterpart_are_told(describe, folder):
    (folder / "other.py").write_text(PORT.replace("8, 3", "8, 5"))
    lines = lines_of(describe("ref.py:build", "other.py:build", *INPUT))
    assert lines[-1] == "not all weights correspond: without them modules are paired by kind and order alone"
    assert "paired 6 of 6 and 6 modules" in lines
    assert next(line for line in lines if "Linear(8, 5)" in line).endswith("out_features 3 / 5")
