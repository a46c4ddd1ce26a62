"""A mistake taken out of its models: a script that fails, and passes once its fix is in place."""

from __future__ import annotations

import contextlib
import io
import re
import runpy
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from paddle import nn as pnn
from safetensors.numpy import load_file
from torch import nn

import parfocal as pf
from parfocal.cli.loading import load_model
from parfocal.errors import InputError, UnsupportedError
from tests.faults.mending import patched
from tests.faults.tools import align, numbers, own, seeded
from tests.warm import warm_python

Run = Callable[[Path], "subprocess.CompletedProcess[str]"]


def run(script: Path) -> subprocess.CompletedProcess[str]:
    """Alone, and from a folder that is neither the script's nor the models'."""
    return subprocess.run(
        [*warm_python(), str(script)],
        cwd="/", capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip


def uncommented(script: Path) -> str:
    """The script with the fix made; it has exactly one."""
    lines = script.read_text().splitlines()
    marked = [index for index, line in enumerate(lines) if line.endswith("# the fix")]
    assert len(marked) == 1
    lines[marked[0]] = lines[marked[0]].removeprefix("# ")
    return "\n".join(lines) + "\n"


def run_here(script: Path) -> subprocess.CompletedProcess[str]:
    """In this process: what a script does, without the seconds that frameworks take to start."""
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        try:
            runpy.run_path(str(script))
        except AssertionError as error:
            return subprocess.CompletedProcess([], 1, printed.getvalue(), str(error))
    return subprocess.CompletedProcess([], 0, printed.getvalue(), "")


def fails_until_mended(script: Path, run: Run = run_here, part: str = "layer") -> str:
    """Runs both; returns the line with the fix."""
    before = run(script)
    assert before.returncode == 1, before.stderr
    assert f"the port's {part} is not the reference's" in before.stderr
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
    assert fails_until_mended(script, run) == "# port = paddle.nn.LayerNorm(16, epsilon=1e-05)  # the fix"


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
    port = pnn.Sequential(pnn.Linear(8, 4), pnn.ReLU())
    report = align(reference, port, numbers(6, 8), explain=False)
    assert report.first is not None
    with pytest.raises(UnsupportedError, match="nothing that can be run apart from the models"):
        report.reproduce(tmp_path)
    assert not list(tmp_path.iterdir())


LOADED = """import {0}


def build():
    model = {0}.nn.Sequential({0}.nn.Linear(8, 8), {0}.nn.Tanh(), {0}.nn.Linear(8, 2))
    return model
"""


@pytest.mark.parametrize(
    ("wrong", "fix"),
    [
        (True, "# port[0].weight.set_value(port[0].weight.transpose([1, 0]).clone())  # the fix"),
        (False, "# parfocal.transfer(reference, port)  # the fix"),
    ],
    ids=["transposed", "other numbers"],
)
def test_wrong_weights(tmp_path: Path, wrong: bool, fix: str) -> None:
    builds = {"reference": f"{tmp_path}/ref.py:build", "port": f"{tmp_path}/port.py:build"}
    (tmp_path / "ref.py").write_text(LOADED.format("torch"))
    (tmp_path / "port.py").write_text(LOADED.format("paddle"))
    reference, port = (load_model(spec, name, 0) for name, spec in builds.items())
    if wrong:
        pf.transfer(reference, port)
        port[0].weight.set_value(port[0].weight.T.clone())
    report = align(reference, port, numbers(6, 8), transfer=False)
    with pytest.raises(
        InputError, match=r"0\.weight differs before anything runs: a script has to build both"
    ):
        report.reproduce(tmp_path / "script")
    script = report.reproduce(tmp_path / "script", **builds)
    assert fails_until_mended(script, part="tensor") == fix
    assert "\n\n\n\n" not in script.read_text()


@pytest.mark.filterwarnings("ignore:When training, we now always track global mean:UserWarning")
@pytest.mark.parametrize("framework", ["torch", "paddle"])
def test_running_statistics_that_move_on_wrongly(tmp_path: Path, framework: str) -> None:
    reference = seeded(lambda: nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU()))
    if framework == "torch":
        port: Any = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4, momentum=0.3), nn.ReLU())
        fix = "# port = torch.nn.BatchNorm2d(4, momentum=0.1)  # the fix"
    else:
        port = pnn.Sequential(pnn.Conv2D(3, 4, 3), pnn.BatchNorm2D(4, momentum=0.1), pnn.ReLU())
        fix = "# port = paddle.nn.BatchNorm2D(4, momentum=0.9)  # the fix"
    report = align(reference, port, numbers(2, 3, 6, 6), mode="train")
    assert [each.phase for each in report.divergences] == ["buffer"]
    script = report.reproduce(tmp_path)
    part = "running_mean after a step" if framework == "torch" else "_mean after a step"
    assert fails_until_mended(script, part=part) == fix


TORCH = """import torch
from torch import nn


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.first, self.second = nn.LayerNorm(8), nn.Linear(8, 12), nn.Linear(12, 8)

    def forward(self, x, scale=1.0):
        hidden = torch.tanh(self.first(self.norm(x))) * scale
        weights = torch.softmax(hidden, 1)
        return x + self.second(hidden * weights)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList([Block(), Block()])
        self.drop, self.head = nn.Dropout(0.3), nn.Linear(8, 3)

    def forward(self, x):
        for block in self.blocks:
            x = block(x, scale=2.0)
        return self.head(self.drop(x))


def build():
    return Model()
"""
PADDLE = (
    TORCH.replace("torch", "paddle")
    .replace("nn.Module)", "nn.Layer)")
    .replace("nn.ModuleList", "nn.LayerList")
)
MISTAKES = {
    "another axis": ("softmax(hidden, 1)", "softmax(hidden, -1)", "result", {}),
    "a forgotten factor": ("* scale", "+ 0", "result", {}),
    "in train mode": ("self.drop(x)", "self.drop(x * 0.5)", "result", {"mode": "train"}),
    "a detach": ("self.second(hidden *", "self.second(hidden.detach() *", "gradient", {}),
}


def written(folder: Path, reference: str, port: str, **options: Any) -> Any:
    """Two files, the report on what they build, and how to build it."""
    (folder / "ref.py").write_text(reference)
    (folder / "port.py").write_text(port)
    builds = {"reference": f"{folder}/ref.py:build", "port": f"{folder}/port.py:build"}
    models = [load_model(spec, name, 0) for name, spec in builds.items()]
    return align(*models, numbers(4, 5, 8), **options), builds


def fails_until_the_source_is_mended(script: Path, source: Path, fix: str, part: str, run: Run = run) -> None:
    before = run(script)
    assert before.returncode == 1, before.stderr
    assert f"the port's {part} is not the reference's" in before.stderr
    assert "".join(f"#     {line}\n" for line in fix.splitlines()) in script.read_text()
    text = patched(source.read_text(), fix)
    assert text is not None
    source.write_text(text)
    after = run(script)
    assert after.returncode == 0, after.stdout + after.stderr


@pytest.mark.parametrize("to_torch", [False, True], ids=["to paddle", "to torch"])
@pytest.mark.parametrize(("right", "wrong", "part", "options"), MISTAKES.values(), ids=list(MISTAKES))
def test_a_mistake_in_the_models_own_code(
    tmp_path: Path, right: str, wrong: str, part: str, options: Any, to_torch: bool
) -> None:
    reference, port = (PADDLE, TORCH) if to_torch else (TORCH, PADDLE)
    assert right in port
    report, builds = written(tmp_path, reference, port.replace(right, wrong), **options)
    cause = own(report)[0].cause
    assert cause is not None
    script = report.reproduce(tmp_path / "repro", **builds)
    fails_until_the_source_is_mended(script, tmp_path / "port.py", cause.fix, part, run_here)


@pytest.mark.parametrize("name", ["another axis", "a detach"])
def test_the_script_runs_by_itself_from_anywhere(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    right, wrong, part, _ = MISTAKES[name]
    report, _ = written(tmp_path, TORCH, PADDLE.replace(right, wrong))
    monkeypatch.chdir(tmp_path)  # a file, and a module of this folder
    script = report.reproduce("repro", reference="ref.py:build", port="port:build").resolve()
    (divergence, *_) = own(report)
    assert divergence.cause is not None
    fails_until_the_source_is_mended(script, tmp_path / "port.py", divergence.cause.fix, part)


def test_only_the_guilty_module_is_run_and_saved(tmp_path: Path) -> None:
    right, wrong, _, _ = MISTAKES["another axis"]
    report, builds = written(tmp_path, TORCH, PADDLE.replace(right, wrong))
    script = report.reproduce(tmp_path / "repro", **builds)
    assert "reference, port = reference.blocks[0], port.blocks[0]\n" in script.read_text()
    saved = load_file(script.with_name("data.safetensors"))
    assert {name for name in saved if name.startswith("port ")} == {
        "port input 0",
        *(f"port {layer}.{name}" for layer in ("norm", "first", "second") for name in ("weight", "bias")),
    }


def test_all_the_mistakes_of_the_code_that_is_run_are_to_be_mended(tmp_path: Path) -> None:
    """What a module is called with is its caller's mistake: that is run, and it has another."""
    wrong = PADDLE.replace("scale=2.0", "scale=3.0").replace("self.drop(x)", "self.drop(x * 0.5)")
    report, builds = written(tmp_path, TORCH, wrong)
    script = report.reproduce(tmp_path / "repro", **builds)
    assert "runs reference and port with" in script.read_text()
    for line in ("call blocks.0 in port.py:24 with scale=2", "return self.head(self.drop(x))  # port.py:25"):
        assert f"#     {line}\n" in script.read_text()
    for half in (wrong, PADDLE.replace("scale=2.0", "scale=3.0"), wrong.replace("scale=3.0", "scale=2.0")):
        (tmp_path / "port.py").write_text(half)
        assert run_here(script).returncode == 1
    (tmp_path / "port.py").write_text(PADDLE)
    assert run_here(script).returncode == 0


BY_HAND = """import torch
from torch import nn


class Norm(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.rand(8)), nn.Parameter(torch.rand(8))

    def forward(self, x):
        centred = x - x.mean(-1, keepdim=True)
        return centred * torch.rsqrt(centred.square().mean(-1, keepdim=True) + 1e-5) * self.weight + self.bias


def build():
    return nn.Sequential(nn.Linear(8, 8), Norm(), nn.Linear(8, 3))
"""
BY_LAYERS = """from paddle import nn


def build():
    return nn.Sequential(nn.Linear(8, 8), nn.LayerNorm(8, epsilon=1e-3), nn.Linear(8, 3))
"""


def test_a_fix_that_is_made_to_the_model_is_made_in_the_script(tmp_path: Path) -> None:
    report, builds = written(tmp_path, BY_HAND, BY_LAYERS)
    script = report.reproduce(tmp_path / "repro", **builds)
    assert run_here(script).returncode == 1
    script.write_text(uncommented(script))
    assert run_here(script).returncode == 0
    assert "\nport[1] = paddle.nn.LayerNorm(8" in script.read_text()


WRONG_BUILDS = {
    "none": ({}, "the mistake is in blocks.0 itself: a script for it has to build both models"),
    "one": ({"port": "port.py:build"}, "a script for it has to build both models"),
    "no name": (
        {"reference": "ref.py", "port": "port.py:build"},
        "reference='ref.py' is neither file.py:name",
    ),
    "no file": (
        {"reference": "ref.py:build", "port": "gone.py:build"},
        "port='gone.py:build': there is no file gone.py",
    ),
}


def test_without_a_way_to_build_the_models_it_says_what_to_pass(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    report, _ = written(tmp_path, TORCH, PADDLE.replace("softmax(hidden, 1)", "softmax(hidden, -1)"))
    monkeypatch.chdir(tmp_path)
    for builds, message in WRONG_BUILDS.values():
        with pytest.raises(InputError, match=re.escape(message)):
            report.reproduce("repro", **builds)
    with pytest.raises(InputError) as raised:
        report.reproduce("repro")
    assert raised.value.hint == 'say how: reproduce(folder, reference="ref.py:build", port="port.py:build")'
    assert not Path("repro").exists()


OBJECT = """
class Model(nn.{base}):
    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Linear(8, 8), nn.Linear(8, 8)

    def forward(self, x, settings):
        return self.last({framework}.softmax(self.first(x) * settings.factor, {axis}))


def build():
    return Model()
"""


def test_what_is_called_with_an_object_cannot_be_written_down(tmp_path: Path) -> None:
    sources = [
        f"import {framework}\nfrom {framework} import nn\n" + text
        for framework, text in (
            ("torch", OBJECT.format(base="Module", framework="torch", axis=1)),
            ("paddle", OBJECT.format(base="Layer", framework="paddle.nn.functional", axis=-1)),
        )
    ]
    (tmp_path / "ref.py").write_text(sources[0])
    (tmp_path / "port.py").write_text(sources[1])
    models = [load_model(f"{tmp_path}/{name}.py:build", name, 0) for name in ("ref", "port")]

    class Settings:
        factor = 2.0

    report = align(*models, (numbers(4, 5, 8), Settings()))
    assert own(report)[0].cause is not None
    with pytest.raises(UnsupportedError, match="nothing that can be run apart from the models"):
        report.reproduce(tmp_path / "repro", reference="ref.py:build", port="port.py:build")
