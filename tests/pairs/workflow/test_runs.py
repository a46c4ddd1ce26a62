"""Comparing two recorded runs: nothing is run again, and no framework is needed for it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import paddle
import pytest
import torch
from examples.pairs import PAIRS

import parfocal as pf
from parfocal.errors import EmptyComparisonError, InputError
from parfocal.report.coverage import LeftOut, Reason

X = np.random.default_rng(0).standard_normal((6, 12)).astype("float32")


class Reference(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = torch.nn.Linear(12, 24)
        self.norm = torch.nn.LayerNorm(24)
        self.act = torch.nn.GELU()
        self.second = torch.nn.Linear(24, 24)
        self.last = torch.nn.Linear(24, 3)

    def forward(self, x: Any) -> Any:
        y = self.act(self.norm(self.first(x)))
        return self.last(y + self.second(y))


class Port(paddle.nn.Layer):
    def __init__(self, epsilon: float = 1e-5) -> None:
        super().__init__()
        self.fc1 = paddle.nn.Linear(12, 24)
        self.ln = paddle.nn.LayerNorm(24, epsilon=epsilon)
        self.gelu = paddle.nn.GELU()
        self.fc2 = paddle.nn.Linear(24, 24)
        self.fc3 = paddle.nn.Linear(24, 3)

    def forward(self, x: Any) -> Any:
        y = self.gelu(self.ln(self.fc1(x)))
        return self.fc3(y + self.fc2(y))


def recorded(folder: Path, port: Any, tensors: str = "full") -> tuple[Path, Path]:
    """The runs of a reference and a port with its weights, forward and backward."""
    torch.manual_seed(0)
    reference = Reference()
    pf.transfer(reference, port, X)
    with pf.record(reference, folder / "torch", tensors=tensors) as recorder:
        reference(torch.from_numpy(X.copy())).square().sum().backward()
    with pf.record(port, folder / "paddle", tensors=tensors) as other:
        port(paddle.to_tensor(X)).square().sum().backward()
    return recorder.path, other.path


@pytest.mark.parametrize("tensors", ["full", "sketch"])
def test_runs_of_a_correct_port_agree(tmp_path: Path, tensors: str) -> None:
    report = pf.compare(*recorded(tmp_path, Port(), tensors))
    assert report.ok, str(report)
    assert report.coverage.count("calls") == report.coverage.of("calls") == 6
    assert report.coverage.directions == ("forward", "backward")
    assert all(pair.forward is not None for pair in report.pairs)


@pytest.mark.parametrize("tensors", ["full", "sketch"])
def test_the_first_wrong_call_is_named(tmp_path: Path, tensors: str) -> None:
    report = pf.compare(*recorded(tmp_path, Port(epsilon=1e-3), tensors))
    assert report.first is not None
    assert (report.first.phase, report.first.port.path, report.first.reference.path) == (
        "forward",
        "ln",
        "norm",
    )
    assert report.first.port.settings["epsilon"] == pytest.approx(1e-3)
    # what comes later carries the error on, and is not accused of having made it
    assert [each.port.path for each in report.divergences if each.phase == "forward"] == ["ln"]


def test_a_fixed_tolerance_counts_elements(tmp_path: Path) -> None:
    runs = recorded(tmp_path, Port(epsilon=1e-3))
    assert pf.compare(*runs, tolerance=pf.Tolerance(atol=1.0, rtol=1.0)).ok
    assert not pf.compare(*runs, tolerance=pf.Tolerance(atol=1e-7)).ok


def test_statistics_alone_cannot_be_compared(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="statistics only"):
        pf.compare(*recorded(tmp_path, Port(), "stats"))


def test_sketches_know_no_fixed_tolerance(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="needs full tensors"):
        pf.compare(*recorded(tmp_path, Port(), "sketch"), tolerance=pf.Tolerance(atol=1e-3))


def test_a_run_against_itself_is_refused(tmp_path: Path) -> None:
    first, _ = recorded(tmp_path, Port())
    with pytest.raises(InputError, match="compared with itself"):
        pf.compare(first, first)


def test_runs_without_a_common_step_are_an_error(tmp_path: Path) -> None:
    first, _ = recorded(tmp_path, Port())
    model = torch.nn.Linear(2, 2)
    with pf.record(model, tmp_path / "empty"):
        pass
    with pytest.raises(EmptyComparisonError, match="no step"):
        pf.compare(first, tmp_path / "empty")


@pytest.mark.parametrize("tensors", ["full", "sketch"])
def test_a_frozen_weight_is_named(tmp_path: Path, tensors: str) -> None:
    port = Port()
    port.fc3.weight.stop_gradient = True
    report = pf.compare(*recorded(tmp_path, port, tensors))
    assert [(each.phase, each.what) for each in report.divergences] == [
        ("gradient", "gradient of the parameter fc3.weight")
    ]
    assert report.first.message == "no gradient arrives in the port: frozen, or not used"
    assert (report.first.reference.path, report.first.port.path) == ("last", "fc3")


@pytest.mark.parametrize("tensors", ["full", "sketch"])
@pytest.mark.parametrize(("factor", "ok"), [(1.0, True), (0.5, False)])
def test_a_gradient_that_a_hook_changes_is_named(
    tmp_path: Path, tensors: str, factor: float, ok: bool
) -> None:
    port = Port()
    port.fc3.weight.register_hook(lambda gradient: gradient * factor)
    report = pf.compare(*recorded(tmp_path, port, tensors))
    assert report.ok == ok, str(report)
    assert report.coverage.count("parameter gradients") == 8
    if not ok:
        assert report.first.what == "gradient of the parameter fc3.weight"
        assert report.first.score > 100


@pytest.mark.parametrize("tensors", ["full", "sketch"])
def test_a_gradient_that_arrives_on_one_side_only_is_named_once(tmp_path: Path, tensors: str) -> None:
    class Cut(Port):
        def forward(self, x: Any) -> Any:
            y = self.gelu(self.ln(self.fc1(x)).detach())
            return self.fc3(y + self.fc2(y))

    report = pf.compare(*recorded(tmp_path, Cut(), tensors))
    first = report.first
    assert first is not None
    assert (first.phase, first.port.path) == ("backward", "fc2")
    assert first.message == "no gradient goes on from here in the port: it is stopped here or further up"
    assert [each.port.path for each in report.divergences if each.phase == "backward"] == ["fc2"]


@pytest.mark.filterwarnings("ignore:When training, we now always track:UserWarning")
def test_a_gradient_of_nothing_but_rounding_is_no_difference(tmp_path: Path) -> None:
    """A bias before a BatchNorm in training changes nothing: what it gets is noise, all of it."""
    torch.manual_seed(0)
    reference = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.BatchNorm1d(8), torch.nn.Linear(8, 3))
    port = paddle.nn.Sequential(paddle.nn.Linear(4, 8), paddle.nn.BatchNorm1D(8), paddle.nn.Linear(8, 3))
    x = np.random.default_rng(0).standard_normal((16, 4)).astype("float32")
    pf.transfer(reference, port, x)
    with pf.record(reference, tmp_path / "torch") as ours:
        reference(torch.from_numpy(x)).square().sum().backward()
    with pf.record(port, tmp_path / "paddle") as theirs:
        port(paddle.to_tensor(x)).square().sum().backward()
    report = pf.compare(ours.path, theirs.path)
    assert report.ok, str(report)
    assert report.coverage.count("parameter gradients") == 6


def added_twice(port: Port, x: Any) -> Any:
    y = port.gelu(port.ln(port.fc1(x)))
    return port.fc3(y + y + port.fc2(y))


def half_detached(port: Port, x: Any) -> Any:
    y = port.gelu(port.ln(port.fc1(x)))
    half = port.fc2(y) * 0.5
    return port.fc3(y + half + half.detach())


@pytest.mark.parametrize("tensors", ["full", "sketch"])
@pytest.mark.parametrize(
    ("forward", "phase", "what"),
    [
        (added_twice, "forward", "input 0 of fc3, made by the model's own code"),
        (half_detached, "backward", "gradient of output 0 of fc2, made by the model's own code"),
    ],
)
def test_what_the_code_between_layers_made_is_named(
    tmp_path: Path, tensors: str, forward: Any, phase: str, what: str
) -> None:
    port = type("Other", (Port,), {"forward": forward})()
    report = pf.compare(*recorded(tmp_path, port, tensors))
    first = report.first
    assert first is not None
    assert (first.phase, first.port.path, first.what) == (phase, "", what)
    assert (first.port.kind, first.reference.kind) == ("Other", "Reference")
    assert first.port.file == __file__
    assert first.score > 1000 or phase == "backward"


@pytest.mark.parametrize("tensors", ["full", "sketch"])
def test_an_attention_in_one_piece_is_not_taken_for_a_projection(tmp_path: Path, tensors: str) -> None:
    pair = PAIRS["transformer_encoder"]
    reference, port, x = pair.reference(0).eval(), pair.port(0), pair.inputs(0)
    port.eval()
    pf.transfer(reference, port, x)
    with pf.record(reference, tmp_path / "torch", tensors=tensors, grads=False) as ours:
        reference(torch.from_numpy(x))
    with pf.record(port, tmp_path / "paddle", tensors=tensors, grads=False) as theirs:
        port(paddle.to_tensor(x))
    report = pf.compare(ours.path, theirs.path)
    assert report.ok, str(report)
    assert "transformer.layers.0.norm1" in {pair.port.path for pair in report.pairs}


def test_a_tolerance_is_told_in_its_own_words(tmp_path: Path) -> None:
    report = pf.compare(*recorded(tmp_path, Port(epsilon=1e-3)), tolerance=pf.Tolerance(atol=1e-7))
    assert report.tolerance == pf.Tolerance(atol=1e-7)
    text = " ".join(str(report).split())
    assert "values beyond rtol=0, atol=1e-07" in text
    assert "what went in" not in text


def test_the_command_needs_no_framework(tmp_path: Path) -> None:
    runs = [str(path) for path in recorded(tmp_path, Port(epsilon=1e-3))]
    code = (
        "import sys\n"
        "from parfocal.cli.main import app\n"
        f"try:\n    app(['compare', *{runs!r}, '--json'])\n"
        "except SystemExit as end:\n"
        "    loaded = [name for name in ('torch', 'paddle') if name in sys.modules]\n"
        "    print(end.code, loaded, file=sys.stderr)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr.strip() == "1 []"
    assert json.loads(done.stdout)["divergences"][0]["port"]["path"] == "ln"


def recorded_in_training(folder: Path, momentum: float) -> tuple[Path, Path]:
    """One step of a batch norm that is called twice, with what it leaves in its buffers."""
    torch.manual_seed(0)
    ours, theirs = torch.nn.BatchNorm1d(5), paddle.nn.BatchNorm1D(5, momentum=momentum)
    reference = torch.nn.Sequential(torch.nn.Linear(12, 5), ours, torch.nn.Tanh(), ours)
    port = paddle.nn.Sequential(paddle.nn.Linear(12, 5), theirs, paddle.nn.Tanh(), theirs)
    pf.transfer(reference, port)
    paths = []
    for name, model, given in (
        ("torch", reference, torch.from_numpy(X.copy())),
        ("paddle", port, paddle.to_tensor(X)),
    ):
        with pf.record(model, folder / name, state=("buffer",)) as recorder:
            (model(given) ** 3).sum().backward()
        paths.append(recorder.path)
    return paths[0], paths[1]


@pytest.mark.filterwarnings("ignore:When training, we now always track:UserWarning")
@pytest.mark.parametrize("momentum", [0.9, 0.5])
def test_running_statistics_are_compared(tmp_path: Path, momentum: float) -> None:
    report = pf.compare(*recorded_in_training(tmp_path, momentum))
    assert report.ok == (momentum == 0.9), str(report)
    assert {(each.phase, each.port.path) for each in report.divergences if each.port} <= {("buffer", "1")}
    codes = {each.code for each in report.findings}
    assert ("buffer.running_variance" in codes) == report.ok  # n against n - 1 is a convention
    assert ("run.settings" in codes) == (not report.ok)


def test_settings_that_differ_are_told_where_nothing_shows(tmp_path: Path) -> None:
    report = pf.compare(*recorded(tmp_path, Port(epsilon=1.01e-5)))
    assert report.ok
    assert [each.message for each in report.findings if each.code == "run.settings"] == [
        "ln LayerNorm epsilon: 1e-05 in the reference, 1.01e-05 in the port"
    ]
    assert not any(
        each.code == "run.settings" for each in pf.compare(*recorded(tmp_path / "right", Port())).findings
    )


def test_without_gradients_on_one_side_only_the_forward_pass_is_compared(tmp_path: Path) -> None:
    reference, _ = recorded(tmp_path, port := Port())
    with pf.record(port, tmp_path / "forward") as recorder:
        port(paddle.to_tensor(X))
    report = pf.compare(reference, recorder.path)
    assert report.ok, str(report)
    assert report.coverage.directions == ("forward",)
    assert LeftOut("gradients", Reason.ONLY_REFERENCE) in report.coverage.left_out


class Attention(torch.nn.Module):
    """Fused or not: one projection for all three, or three."""

    def __init__(self, *, fused: bool, scale: float) -> None:
        super().__init__()
        self.scale = scale
        names = ["qkv"] if fused else ["q", "k", "v"]
        self.parts = torch.nn.ModuleDict({name: torch.nn.Linear(12, 36 // len(names)) for name in names})
        self.out = torch.nn.Linear(12, 12)

    def forward(self, x: Any) -> Any:
        q, k, v = torch.cat([part(x) for part in self.parts.values()], -1).chunk(3, -1)
        return self.out(torch.softmax(q @ k.transpose(-2, -1) * self.scale, -1) @ v)


@pytest.mark.parametrize("fused", [False, True])
@pytest.mark.parametrize("scale", [0.3, 1.0])
def test_a_projection_is_not_compared_with_a_third_of_it(tmp_path: Path, fused: bool, scale: float) -> None:
    torch.manual_seed(0)
    models = [
        torch.nn.Sequential(torch.nn.Linear(12, 12), Attention(fused=each, scale=size))
        for each, size in ((fused, 0.3), (not fused, scale))
    ]
    whole, apart = models if fused else models[::-1]
    apart[0].load_state_dict(whole[0].state_dict())
    apart[1].out.load_state_dict(whole[1].out.state_dict())
    for number, part in enumerate(apart[1].parts.values()):
        for name, tensor in part.named_parameters():
            tensor.data = getattr(whole[1].parts["qkv"], name).data[12 * number : 12 * number + 12].clone()
    paths = []
    for number, model in enumerate(models):
        with pf.record(model, tmp_path / str(number)) as recorder:
            model(torch.from_numpy(X)[None]).square().sum().backward()
        paths.append(recorder.path)
    report = pf.compare(*paths)
    assert report.ok == (scale == 0.3), str(report)
    if not report.ok:
        assert report.first is not None
        assert (report.first.phase, report.first.port.path) == ("forward", "1")
        assert "input 0 of 1.out, made by the code of 1" in report.first.what
