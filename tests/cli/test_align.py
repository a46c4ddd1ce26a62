"""``parfocal align``: verdict as exit status, reports on screen, as JSON and in files."""

from __future__ import annotations

import json
import runpy
import subprocess

import numpy as np
import pytest

from tests.cli.command import run_apart, run_here, write_pair
from tests.warm import warm_python

REFERENCE = """
import torch

def build():
    return torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.LeakyReLU(0.2), torch.nn.Linear(8, 3))

def two():
    class Two(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.a = torch.nn.Linear(4, 3)
        def forward(self, x, scale):
            return self.a(x) * scale
    return Two()

def nothing():
    model = build()
    for parameter in model.parameters():
        torch.nn.init.zeros_(parameter)
    return model
"""
PORT = """
import paddle

def build(slope=0.2):
    return paddle.nn.Sequential(paddle.nn.Linear(4, 8), paddle.nn.LeakyReLU(slope), paddle.nn.Linear(8, 3))

def wrong():
    return build(0.3)

def two():
    class Two(paddle.nn.Layer):
        def __init__(self):
            super().__init__()
            self.a = paddle.nn.Linear(4, 3)
        def forward(self, x, scale):
            return self.a(x) * scale
    return Two()

def raises():
    class Raising(paddle.nn.Layer):
        def forward(self, x):
            raise NotImplementedError("to do")
    return Raising()
"""
INPUT = ("--input", "float32[6,4]")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    return write_pair(tmp_path, monkeypatch, REFERENCE, PORT)


@pytest.fixture
def align(folder, monkeypatch, capsys):
    return lambda *arguments: run_here(monkeypatch, capsys, "align", *arguments)


def test_the_same_is_status_0(align):
    done = align("ref.py:build", "port.py:build", *INPUT)
    assert done.status == 0, done.err
    assert done.out.startswith("SAME: Sequential (paddle ")
    assert done.err == ""


def test_different_is_status_1_and_names_the_place(align):
    done = align("ref.py:build", "port.py:wrong", *INPUT)
    assert done.status == 1
    assert done.out.startswith("DIFFERENT: Sequential (paddle ")
    assert "first divergence: forward, 1: output 0" in done.out
    assert done.err == ""


@pytest.mark.parametrize(("port", "status"), [("port.py:build", 0), ("port.py:wrong", 1)])
def test_json_parses_and_says_the_same(align, port, status):
    done = align("ref.py:build", port, *INPUT, "--json")
    report = json.loads(done.out)
    assert done.status == status
    assert report["ok"] == (status == 0)
    assert report["coverage"]["compared"][0] == {"what": "calls", "count": 3, "of": 3}
    assert [each["port"]["path"] for each in report["divergences"][:1]] == ["1"] * status


def test_a_report_is_saved_beside_what_is_printed(align, folder):
    done = align("ref.py:build", "port.py:wrong", *INPUT, "--save", "deep/report")
    text = (folder / "deep/report/report.txt").read_text()
    assert text == done.out
    assert json.loads((folder / "deep/report/report.json").read_text())["ok"] is False


def test_the_seed_gives_the_same_report_twice(align):
    outputs = [
        align("ref.py:build", "port.py:wrong", *INPUT, "--seed", seed, "--json").out for seed in (5, 5, 6)
    ]
    assert outputs[0] == outputs[1]
    assert outputs[0] != outputs[2]


def test_a_name_that_the_model_does_not_take_is_told_with_those_that_it_takes(align):
    done = align("ref.py:build", "port.py:build", "--input", "x=float32[6,4]")
    said = " ".join(done.err.split())
    assert done.status == 2
    assert "the reference takes no input called 'x'; its names are: input" in said
    assert "leave the names out to pass inputs by position: --input float32[3,4]" in said


def test_named_inputs_and_inputs_from_a_file(align, folder):
    names = ("--input", "x=float32[6,4]", "-i", "scale=float32[3]:1..2")
    assert align("ref.py:two", "port.py:two", *names).status == 0
    np.savez(folder / "given.npz", x=np.ones((6, 4), "float32"), scale=np.arange(1, 4, dtype="float32"))
    assert align("ref.py:two", "port.py:two", "--inputs", "given.npz").status == 0


def test_options_reach_align(align):
    wrong = ("ref.py:build", "port.py:wrong", *INPUT)
    assert align(*wrong, "--atol", "100").status == 0
    assert align(*wrong, "--rtol", "0", "--atol", "1e-9").status == 1
    report = json.loads(align(*wrong, "--no-backward", "--memory", "1KB", "--mode", "train", "--json").out)
    assert report["coverage"]["directions"] == ["forward"]
    done = align("ref.py:build", "port.py:build", *INPUT, "--no-transfer")
    assert done.status == 1
    assert "first divergence: weights" in done.out


def test_a_mistake_is_written_as_a_script_that_fails_until_mended(align, folder):
    done = align("ref.py:build", "port.py:wrong", *INPUT, "--repro", "deep/repro")
    assert done.status == 1
    assert done.err == "parfocal: wrote deep/repro/reproduce.py: it fails until the fix is made\n"
    script = folder / "deep/repro/reproduce.py"
    assert run_script(script) == 1
    script.write_text(script.read_text().replace("# port = ", "port = "))
    assert run_script(script) == 0


def test_a_mistake_in_the_ports_own_code_is_written_as_a_script_too(align, folder):
    source = folder / "port.py"
    source.write_text(PORT.replace("self.a(x) * scale", "self.a(x) + scale"))
    given = ("--input", "x=float32[6,4]", "--input", "scale=float32[6,3]")
    done = align("ref.py:two", "port.py:two", *given, "--repro", "repro", "--seed", "3")
    assert done.status == 1
    assert done.err == "parfocal: wrote repro/reproduce.py: it fails until the fix is made\n"
    script = folder / "repro/reproduce.py"
    assert "#     return self.a(x) * scale  # port.py:" in script.read_text()
    assert f"port = load_model('{source}:two', 'port', 3)\n" in script.read_text()
    with pytest.raises(AssertionError, match="the port's result is not the reference's"):
        runpy.run_path(str(script))
    source.write_text(PORT)
    runpy.run_path(str(script))


def run_script(script):
    return subprocess.run(
        [*warm_python(), str(script)], capture_output=True, timeout=120, check=False
    ).returncode


def test_json_stays_json_beside_a_script(align, folder):
    done = align("ref.py:build", "port.py:wrong", *INPUT, "--repro", "repro", "--json")
    assert json.loads(done.out)["ok"] is False


def test_nothing_to_reproduce_is_said_and_the_verdict_stands(align, folder):
    done = align("ref.py:build", "port.py:build", *INPUT, "--repro", "repro")
    assert done.status == 0
    assert done.out.startswith("SAME: ")
    assert done.err == (
        "parfocal: no script: there is nothing to reproduce: the port is the same as the reference\n"
    )
    done = align("ref.py:build", "port.py:wrong", *INPUT, "--rtol", "1e-9", "--repro", "repro")
    assert done.status == 1
    assert "parfocal: no script: there is nothing that can be run apart from the models" in done.err
    assert not (folder / "repro").exists()


MISUSE = {
    "no inputs": ((), "align needs inputs: either --input (once per input) or --inputs FILE"),
    "both inputs": ((*INPUT, "--inputs", "x.npy"), "align needs inputs: either --input"),
    "bad text": (("--input", "float32(2)"), "--input 'float32(2)' is not understood"),
    "missing file": (("--inputs", "gone.npz"), "gone.npz"),
    "mode": ((*INPUT, "--mode", "test"), "there is no mode 'test'; the modes are: eval, train, keep"),
    "memory": ((*INPUT, "--memory", "much"), "memory='much' is not an amount of memory"),
    "shape": (
        ("--input", "float32[6,5]"),
        "the forward pass of the reference raised RuntimeError in 0 (Linear)",
    ),
    "plan": ((*INPUT, "--plan", "gone.json"), "gone.json"),
    "tolerance": ((*INPUT, "--rtol", "-1"), "rtol must be finite and not negative"),
}


@pytest.mark.parametrize(("arguments", "message"), MISUSE.values(), ids=list(MISUSE))
def test_misuse_is_status_2_and_one_message(align, arguments, message):
    done = align("ref.py:build", "port.py:build", *arguments)
    assert done.status == 2
    assert done.out == ""
    assert done.err.startswith("parfocal: ")
    assert message in done.err
    assert "Traceback" not in done.err


@pytest.mark.parametrize("option", ["--repro", "--save"])
def test_a_place_that_cannot_be_written_is_status_2(align, folder, option):
    (folder / "file").write_text("mine")
    done = align("ref.py:build", "port.py:wrong", *INPUT, option, "file/deep")
    assert done.status == 2
    assert "cannot write the re" in done.err
    assert done.out.startswith("DIFFERENT: ")  # what was found is not lost
    assert (folder / "file").read_text() == "mine"


def test_two_files_of_one_name_with_neighbours_of_one_name(align, folder):
    for side, source in (("ours", REFERENCE), ("theirs", PORT)):
        (folder / side).mkdir()
        (folder / side / "layers.py").write_text(source)
        (folder / side / "model.py").write_text("from layers import *\n")
    done = align("ours/model.py:build", "theirs/model.py:wrong", *INPUT)
    assert done.status == 1, done.err
    assert done.out.startswith("DIFFERENT: Sequential (paddle ")


SPECS = {
    "no file": ("gone.py:build", "port.py:build", "REFERENCE gone.py:build: there is no file gone.py"),
    "no name": ("ref.py:build", "port.py:gone", "PORT port.py:gone: port.py has no 'gone'"),
    "no colon": (
        "ref.py",
        "port.py:build",
        "REFERENCE 'ref.py' is neither file.py:name nor package.module:name",
    ),
    "raises": ("ref.py:build", "port.py:raises", "the port raised NotImplementedError"),
    "dead": ("ref.py:nothing", "port.py:build", "the reference's outputs are all zero, constant or tiny"),
}


@pytest.mark.parametrize(("reference", "port", "message"), SPECS.values(), ids=list(SPECS))
def test_models_that_cannot_be_compared_are_status_2(align, reference, port, message):
    done = align(reference, port, *INPUT)
    assert done.status == 2, done.out
    assert message in done.err.replace("the forward pass of ", "")
    assert "Traceback (most" not in done.err


def test_in_a_pipe_there_are_no_terminal_codes(folder, monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)  # paddle warns of more than one
    done = run_apart(folder, "align", "ref.py:build", "port.py:wrong", *INPUT)
    assert done.status == 1, done.err
    assert done.out.startswith("DIFFERENT: ")
    assert "\x1b" not in done.out + done.err
    assert done.err == ""


def test_how_long_causes_are_searched_for(align):
    causes = {}
    for said in ("yes", "no", "thorough"):
        done = align("ref.py:build", "port.py:wrong", *INPUT, "--json", "--explain", said)
        assert done.status == 1
        causes[said] = json.loads(done.out)["divergences"][0]["cause"]
    assert causes["no"] is None
    assert causes["yes"]["code"] == causes["thorough"]["code"] == "config.slope"
    refused = align("ref.py:build", "port.py:wrong", *INPUT, "--explain", "fully")
    assert refused.status == 2
    assert "--explain fully is none of yes, no, thorough" in refused.err
