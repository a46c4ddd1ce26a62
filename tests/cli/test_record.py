"""``parfocal record``: scripts that know nothing of it, and models by name."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest

import parfocal as pf
from parfocal.run.reader import load_run
from tests.warm import warm_python

TRAINING = {
    "torch": """
import sys
import helper
import torch

model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU(), torch.nn.Linear(4, 1))
criterion = torch.nn.MSELoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(int(sys.argv[1])):
    x = helper.batch(torch.nn.Identity())
    loss = criterion(model(x), torch.zeros(2, 1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print("arguments", sys.argv[1:], "name", __name__)
""",
    "paddle": """
import sys
import warnings
warnings.simplefilter("ignore")
import helper
import paddle

model = paddle.nn.Sequential(paddle.nn.Linear(3, 4), paddle.nn.ReLU(), paddle.nn.Linear(4, 1))
criterion = paddle.nn.MSELoss()
optimizer = paddle.optimizer.Adam(0.1, parameters=model.parameters())
for step in range(int(sys.argv[1])):
    x = helper.batch(paddle.nn.Identity())
    loss = criterion(model(x), paddle.zeros([2, 1]))
    optimizer.clear_grad()
    loss.backward()
    optimizer.step()
print("arguments", sys.argv[1:], "name", __name__)
""",
}
# In a file next to the script; a module without parameters is called before the model is.
HELPERS = {
    "torch": "import torch\n\ndef batch(transform):\n    return transform(torch.ones(2, 3))\n",
    "paddle": "import paddle\n\ndef batch(transform):\n    return transform(paddle.ones([2, 3]))\n",
}
FACTORY = """
import torch

def build():
    torch.manual_seed(0)
    return Model()

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(3, 2)

    def forward(self, x, scale=None):
        x = self.linear(x)
        return x if scale is None else x * scale
"""


def run(folder, *arguments):
    return subprocess.run(
        [*warm_python(), "-m", "parfocal.cli.main", "record", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
    )


@pytest.mark.parametrize("name", TRAINING)
def test_a_script_is_recorded_as_it_is(tmp_path, name):
    (tmp_path / "train.py").write_text(TRAINING[name])
    (tmp_path / "helper.py").write_text(HELPERS[name])
    done = run(tmp_path, "--out", "here", "--tensors", "sketch", "train.py", "3", "--out", "not-ours")
    assert done.returncode == 0, done.stderr
    assert "arguments ['3', '--out', 'not-ours'] name __main__" in done.stdout
    recorded = load_run(tmp_path / "here")
    assert recorded.complete
    assert recorded.header.framework == name
    assert recorded.header.command[0] == "train.py"
    assert [item.step for item in recorded.steps()] == [0, 1, 2]
    assert all(item.loss is not None and item.learning_rate == 0.1 for item in recorded.steps())
    assert {call.path for call in recorded.calls()} == {"", "0", "1", "2"}
    sites = {(call.file.rpartition("/")[2], call.line) for call in recorded.calls()}
    line = TRAINING[name].split("\n").index("    loss = criterion(model(x), " + ZEROS[name]) + 1
    assert sites == {("train.py", line)}
    assert f"12 calls, {len(recorded.gradients())} gradients, 3 steps" in done.stdout


ZEROS = {"torch": "torch.zeros(2, 1))", "paddle": "paddle.zeros([2, 1]))"}


def test_the_script_ends_after_the_wanted_steps(tmp_path):
    (tmp_path / "train.py").write_text(TRAINING["torch"])
    (tmp_path / "helper.py").write_text(HELPERS["torch"])
    done = run(tmp_path, "--steps", "2", "--no-grads", "--json", "train.py", "1000000")
    assert done.returncode == 0, done.stderr
    summary = json.loads(done.stdout)
    assert (summary["steps"], summary["gradients"], summary["complete"]) == (2, 0, True)
    assert summary["model"] == "torch.nn.modules.container.Sequential"
    assert load_run(tmp_path / "run").complete


def test_a_script_that_fails_leaves_an_incomplete_run(tmp_path):
    (tmp_path / "bad.py").write_text(
        "import torch\nmodel = torch.nn.Linear(1, 1)\nmodel(torch.ones(1, 1))\nraise KeyError('lost')\n"
    )
    done = run(tmp_path, "bad.py")
    assert done.returncode == 1
    assert "KeyError: 'lost'" in done.stderr
    assert "parfocal" not in done.stderr  # the trace is the script's own
    recorded = load_run(tmp_path / "run")
    assert not recorded.complete
    assert len(recorded.calls()) == 1


def test_a_script_that_exits(tmp_path):
    source = "import sys, torch\ntorch.nn.Linear(1, 1)(torch.ones(1, 1))\nsys.exit({})\n"
    (tmp_path / "good.py").write_text(source.format(0))
    (tmp_path / "bad.py").write_text(source.format(7))
    assert run(tmp_path, "--out", "good", "good.py").returncode == 0
    assert load_run(tmp_path / "good").complete
    assert run(tmp_path, "--out", "bad", "bad.py").returncode == 7
    assert not load_run(tmp_path / "bad").complete


def test_a_script_without_a_model(tmp_path):
    (tmp_path / "empty.py").write_text("print('hello')\n")
    done = run(tmp_path, "empty.py")
    assert done.returncode == 2
    assert "called no model with parameters, so there is nothing to record" in done.stderr
    assert not (tmp_path / "run").exists()


def test_a_model_by_name(tmp_path):
    (tmp_path / "mine.py").write_text(FACTORY)
    x = np.ones((2, 3), "float32")
    np.savez(tmp_path / "x.npz", x)
    np.savez(tmp_path / "named.npz", x=x, scale=np.float32(2.0))
    outputs = {}
    for inputs in ("x.npz", "named.npz"):
        done = run(tmp_path, "--model", "mine:build", "--inputs", inputs, "--out", inputs + ".run")
        assert done.returncode == 0, done.stderr
        recorded = load_run(tmp_path / (inputs + ".run"))
        assert {call.path for call in recorded.calls()} == {"", "linear"}
        assert {item.path for item in recorded.state()} == {"linear.weight", "linear.bias"}
        root = next(call for call in recorded.calls() if call.path == "")
        outputs[inputs] = recorded.read(root.outputs.leaves["0"])
    assert outputs["named.npz"] == pytest.approx(2 * outputs["x.npz"])


CHECKED = """
import torch

class Model(torch.nn.Linear):
    def forward(self, x):
        return super().forward(x) + (1.0 if CHEATS and self._forward_hooks else 0.0)

Model(1, 1)(torch.ones(1, 1)).sum().backward()
"""


def test_a_script_is_checked(tmp_path):
    (tmp_path / "good.py").write_text(f"CHEATS = False{CHECKED}")
    (tmp_path / "bad.py").write_text(f"CHEATS = True{CHECKED}")
    done = run(tmp_path, "--check", "--out", "good", "good.py")
    assert done.returncode == 0, done.stderr
    done = run(tmp_path, "--check", "--out", "bad", "bad.py")
    assert done.returncode == 2
    assert "recording changes what the model computes" in done.stderr
    assert load_run(tmp_path / "bad").complete


def test_a_model_of_a_file(tmp_path):
    (tmp_path / "mine.py").write_text(FACTORY)
    np.savez(tmp_path / "x.npz", np.ones((2, 3), "float32"))
    done = run(tmp_path, "--model", "mine.py:Model", "--inputs", "x.npz", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["calls"] == 2


def test_two_models_with_the_weights_of_one_checkpoint(tmp_path):
    import torch

    torch.manual_seed(0)
    torch.save(torch.nn.Linear(4, 3).state_dict(), tmp_path / "weights.pth")
    (tmp_path / "ours.py").write_text("import torch\n\ndef build():\n    return torch.nn.Linear(4, 3)\n")
    (tmp_path / "theirs.py").write_text("import paddle\n\ndef build():\n    return paddle.nn.Linear(4, 3)\n")
    for side in ("ours", "theirs"):
        options = ("--model", f"{side}.py:build", "--weights", "weights.pth", "-i", "float32[6,4]")
        done = run(tmp_path, *options, "--out", side)
        assert done.returncode == 0, done.stderr
    report = pf.compare(tmp_path / "ours", tmp_path / "theirs")
    assert report.ok, str(report)
    assert report.coverage.count("parameter gradients") == 2
    assert [load_run(tmp_path / side).header.model_class for side in ("ours", "theirs")] == [
        "torch.nn.modules.linear.Linear",
        "paddle.nn.layer.common.Linear",
    ]


def test_two_scripts_with_the_weights_of_one_checkpoint(tmp_path):
    """Each seeds itself; what --weights gives both is there before the first call, in either framework."""
    import torch

    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU(), torch.nn.Linear(4, 1))
    torch.save(model.state_dict(), tmp_path / "weights.pth")
    helper = "import numpy as np\n\n\ndef batch(to):\n    return np.ones((2, 3), 'float32')\n"
    (tmp_path / "helper.py").write_text(helper)
    given = {"torch": "torch.from_numpy(helper.batch(0))", "paddle": "paddle.to_tensor(helper.batch(0))"}
    reports = []
    for options in ((), ("--weights", "weights.pth")):
        runs = []
        for name, script in TRAINING.items():
            lines = [
                f"    x = {given[name]}" if line.startswith("    x = ") else line
                for line in script.splitlines()
            ]
            (tmp_path / f"{name}.py").write_text("\n".join(lines))
            runs.append(tmp_path / f"{name}{len(options)}")
            done = run(tmp_path, *options, "--out", runs[-1].name, f"{name}.py", "2")
            assert done.returncode == 0, done.stderr
        reports.append(pf.compare(*runs))
    assert reports[0].first.phase == "weights"
    assert reports[0].first.cause.message.startswith("the runs begin with other weights")
    assert reports[1].first.phase == "optimizer"  # the paddle script has another rule of update


@pytest.mark.parametrize(("mode", "dropped"), [("eval", False), ("train", True)])
def test_a_model_is_recorded_in_the_wished_mode(tmp_path, mode, dropped):
    (tmp_path / "mine.py").write_text(
        "import torch\nfrom torch import nn\n\n"
        "def build():\n    return nn.Sequential(nn.Linear(9, 9), nn.Dropout())\n"
    )
    done = run(tmp_path, "--model", "mine.py:build", "-i", "float32[9,9]", "--mode", mode)
    assert done.returncode == 0, done.stderr
    recorded = load_run(tmp_path / "run")
    outputs = recorded.read(recorded.calls()[-1].outputs.leaves["0"])
    assert (outputs == 0).any() == dropped


def test_a_model_that_raises_is_one_message(tmp_path):
    (tmp_path / "mine.py").write_text(FACTORY)
    done = run(tmp_path, "--model", "mine.py:build", "-i", "float32[2,5]")
    assert done.returncode == 2
    assert done.stderr.startswith(
        "parfocal: the forward pass of the model raised RuntimeError in linear (Linear)"
    )
    assert "Traceback" not in done.stderr
    assert "what ran until then is in" in done.stderr
    assert not load_run(tmp_path / "run").complete


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "record needs either a script or --model"),
        (("--fast", "train.py"), "record has no option --fast"),
        (("--steps", "-1", "train.py"), "--steps"),
        (("--seed", "-1", "train.py"), "--seed"),
        (("missing.py",), "there is no script missing.py"),
        (("--model", "mine:build"), "--model needs inputs: either --input (once per input) or --inputs FILE"),
        (("--model", "mine", "--inputs", "x.npz"), "--model 'mine' is neither file.py:name nor"),
        (("--model", "nowhere:build", "--inputs", "x.npz"), "no module named 'nowhere'"),
        (("--model", "mine:other", "--inputs", "x.npz"), "mine has no 'other'"),
        (("--tensors", "all", "train.py"), "tensors is 'all'; allowed are 'full', 'sketch', 'stats'"),
    ],
)
def test_wrong_calls_exit_with_status_2(tmp_path, arguments, message, monkeypatch, capsys):
    from parfocal.cli.main import main

    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text("build = None\n")
    (tmp_path / "train.py").write_text("import torch\ntorch.nn.Linear(1, 1)(torch.ones(1, 1))\n")
    np.savez(tmp_path / "x.npz", np.ones(1))
    monkeypatch.setattr(sys, "argv", ["parfocal", "record", *arguments])
    monkeypatch.setattr(sys, "path", list(sys.path))
    with pytest.raises(SystemExit) as leaving:
        main()
    sys.modules.pop("mine", None)
    assert leaving.value.code == 2
    assert message in capsys.readouterr().err
