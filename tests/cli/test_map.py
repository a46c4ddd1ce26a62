"""``parfocal map``: counterparts of either framework, on screen and as JSON."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from parfocal.backends.counterparts.lookup import find
from parfocal.backends.gaps import gaps
from tests.cli.command import run_apart, run_here

WITHOUT = """
import sys
class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("torch", "paddle"):
            raise ModuleNotFoundError(f"{name} is blocked", name=name)
sys.meta_path.insert(0, Blocked())
from parfocal.backends import registry
registry.available = lambda: ()
sys.argv = ["parfocal", "map", *sys.argv[1:]]
from parfocal.cli.main import main
main()
"""


@pytest.fixture
def map_names(monkeypatch, capsys):
    return lambda *arguments: run_here(monkeypatch, capsys, "map", *arguments)


@pytest.fixture
def as_json(map_names):
    def run(*arguments):
        done = map_names(*arguments, "--json")
        assert done.status == 0, done.err
        return json.loads(done.out)

    return run


SPELLINGS = ("torch.nn.BatchNorm2d", "nn.BatchNorm2d", "BatchNorm2d")


@pytest.mark.parametrize("name", SPELLINGS)
def test_a_name_in_any_length(as_json, name):
    (found,) = as_json(name)
    assert (found["name"], found["counterpart"]) == ("torch.nn.BatchNorm2d", "paddle.nn.BatchNorm2D")
    assert found["exact"]
    momentum = next(each for each in found["arguments"] if (each["torch"] or {}).get("name") == "momentum")
    assert momentum["relation"] == "complement"
    assert [momentum[side]["default"] for side in ("torch", "paddle")] == ["0.1", "0.9"]
    stored = {each["torch"]: each["paddle"] for each in found["parameters"]}
    assert stored["running_mean"] == "_mean"
    assert stored["num_batches_tracked"] is None
    assert "batch-norm-running-variance" in [each["id"] for each in found["differences"]]


PAIRS = {
    "torch.nn.functional.interpolate": "paddle.nn.functional.interpolate",
    "F.conv_transpose2d": "paddle.nn.functional.conv2d_transpose",
    "torch.optim.AdamW": "paddle.optimizer.AdamW",
    "torch.optim.lr_scheduler.StepLR": "paddle.optimizer.lr.StepDecay",
    "torch.nn.init.kaiming_normal_": "paddle.nn.initializer.KaimingNormal",
    "torch.cat": "paddle.concat",
    "lr_scheduler.MultiStepLR": "paddle.optimizer.lr.MultiStepDecay",
    "optim.RMSprop": "paddle.optimizer.RMSProp",
    "init.normal_": "paddle.nn.initializer.Normal",
    "paddle.nn.Linear": "torch.nn.Linear",
    "paddle.optimizer.Momentum": "torch.optim.SGD",
    "paddle.nn.Conv2DTranspose": "torch.nn.ConvTranspose2d",
    "CrossEntropyLoss": "paddle.nn.CrossEntropyLoss",
    "Silu": "torch.nn.SiLU",
}


@pytest.mark.parametrize(("name", "counterpart"), PAIRS.items())
def test_counterparts_in_both_directions(as_json, name, counterpart):
    assert as_json(name)[0]["counterpart"] == counterpart


GUIDE = {  # what a guide to reproducing a model names, and what it is in the other framework
    "paddle.nn.Layer": "torch.nn.Module",
    "torch.nn.modules.linear.Linear": "paddle.nn.Linear",
    "paddle.nn.layer.common.Linear": "torch.nn.Linear",
    "paddle.to_tensor": "torch.tensor",
    "torch.as_tensor": "paddle.to_tensor",
    "paddle.rand": "torch.rand",
    "paddle.seed": "torch.manual_seed",
    "torch.cuda.manual_seed_all": "paddle.seed",
    "torch.save": "paddle.save",
    "torch.load": "paddle.load",
    "torch.optim": "paddle.optimizer",
    "torch.Optim": "paddle.optimizer",
    "paddle.optimizer": "torch.optim",
    "paddle.regularizer.L1Decay": None,
    "paddle.regularizer.L2Decay": None,
    "paddle.ParamAttr": None,
    "paddle.vision": "torchvision",
    "torchvision.transforms": "paddle.vision.transforms",
    "torchvision.transforms.Resize": "paddle.vision.transforms.Resize",
    "transforms.RandomHorizontalFlip": "paddle.vision.transforms.RandomHorizontalFlip",
    "paddle.vision.transforms.Normalize": "torchvision.transforms.Normalize",
    "paddle.vision.datasets.Cifar10": "torchvision.datasets.CIFAR10",
    "torch.utils.data.Dataset": "paddle.io.Dataset",
    "torch.utils.data.DataLoader": "paddle.io.DataLoader",
    "paddle.io.BatchSampler": "torch.utils.data.BatchSampler",
    "paddle.io.RandomSampler": "torch.utils.data.RandomSampler",
    "paddle.io.DistributedBatchSampler": "torch.utils.data.distributed.DistributedSampler",
    "paddle.DataParallel": "torch.nn.parallel.DistributedDataParallel",
    "paddle.distributed.init_parallel_env": "torch.distributed.init_process_group",
    "paddle.distributed.get_world_size": "torch.distributed.get_world_size",
    "paddle.distributed.launch": "torch.distributed.run",
    "torch.nn.init.kaiming_uniform_": "paddle.nn.initializer.KaimingUniform",
    "torch.nn.init.xavier_normal_": "paddle.nn.initializer.XavierNormal",
    "paddle.nn.BatchNorm2D": "torch.nn.BatchNorm2d",
    "paddle.optimizer.Optimizer.get_lr": "torch.optim.lr_scheduler.LRScheduler.get_last_lr",
}


@pytest.mark.parametrize(("name", "counterpart"), GUIDE.items())
def test_names_of_a_guide_to_reproducing(as_json, name, counterpart):
    assert as_json(name)[0]["counterpart"] == counterpart


def test_every_name_of_the_table_of_differences_is_found():
    names = {name for gap in gaps() for name in gap.names}
    assert len(names) > 250
    assert all(find(name) for name in names)


def test_another_case_is_taken_only_where_no_name_is_written_so(as_json):
    assert as_json("torch.nn.functional.relu")[0]["name"] == "torch.nn.functional.relu"
    assert as_json("torch.nn.relu")[0]["name"] == "torch.nn.ReLU"
    assert as_json("paddle.nn.batchnorm2d")[0]["counterpart"] == "torch.nn.BatchNorm2d"


def test_what_to_write_for_a_regularizer(map_names, monkeypatch):
    done = map_names("paddle.regularizer.L2Decay")
    assert "instead: Pass weight_decay=coeff to the optimizer; of Adam, not of AdamW." in done.out
    monkeypatch.setenv("PARFOCAL_LANG", "zh")
    assert "给优化器传 weight_decay=coeff" in map_names("paddle.regularizer.L2Decay").out


def test_several_names_and_several_counterparts(as_json):
    found = [each["counterpart"] for each in as_json("nn.ReLU", "torch.optim.SGD")]
    assert found == ["paddle.nn.ReLU", "paddle.optimizer.SGD", "paddle.optimizer.Momentum"]


def test_a_name_of_both_goes_by_torch_or_as_said(map_names, as_json):
    assert as_json("gather")[0]["counterpart"] == "paddle.take_along_axis"
    assert as_json("gather", "--to", "torch")[0]["counterpart"] == "torch.index_select"
    assert "gather is another name in paddle: --to torch shows that one" in map_names("gather").err
    assert map_names("nn.Linear").err == ""  # the same pair from either side


def test_the_screen_shows_both_sides(map_names):
    done = map_names("torch.nn.Linear")
    assert done.status == 0, done.err
    lines = [" ".join(line.split()) for line in done.out.splitlines()]
    assert lines[0] == "torch.nn.Linear -> paddle.nn.Linear"
    assert "bias True bias_attr None paddle = False where torch is False" in lines
    assert "weight [out, in] weight [in, out] transposed" in lines
    assert "The weight of Linear is transposed (linear-weight-layout, verified)" in lines


def test_no_counterpart_says_what_to_write(map_names, as_json):
    done = map_names("nn.RMSNorm")
    assert done.status == 0
    assert done.out.startswith("torch.nn.RMSNorm has no counterpart in paddle\n")
    assert "instead: Write a layer with one weight that returns" in done.out
    assert as_json("torch.nn.Softmin")[0]["instead"] == "Write paddle.nn.functional.softmax(-x, axis)."
    (dilation,) = (
        each
        for each in as_json("MaxPool2d")[0]["arguments"]
        if (each["torch"] or {}).get("name") == "dilation"
    )
    assert dilation["paddle"] is None
    assert dilation["values"] == [[1, 1]]


def test_what_concerns_every_schedule_is_told_of_each(as_json):
    assert "scheduler-wiring" in [each["id"] for each in as_json("StepLR")[0]["differences"]]
    assert "group-learning-rate" in [each["id"] for each in as_json("torch.optim.RAdam")[0]["differences"]]
    assert as_json("nn.ReLU")[0]["differences"] == []


def test_nothing_in_its_place_is_said(map_names):
    done = map_names("paddle.nn.HSigmoidLoss")
    assert "instead: nothing is known that stands in for it" in done.out


def test_the_nearest_relation_is_not_called_a_counterpart(map_names):
    done = map_names("torch.nn.HuberLoss")
    assert done.out.startswith(
        "torch.nn.HuberLoss -> paddle.nn.SmoothL1Loss (the nearest relation: there is no exact counterpart)"
    )
    assert "torch always behaves as True" in done.out  # is_huber


UNKNOWN = {
    "torch.nn.BatchNom2d": "nearest names: torch.nn.BatchNorm2d",
    "paddle.concatt": "nearest names: paddle.concat",
    "qqqqqq": "parfocal map torch.nn.Linear shows an example",
}


@pytest.mark.parametrize(("name", "hint"), UNKNOWN.items())
def test_an_unknown_name_is_one_error_with_the_nearest(map_names, name, hint):
    done = map_names(name)
    assert done.status == 2
    assert done.out == ""
    assert done.err.startswith(f"parfocal: {name} is in no table of ")
    assert hint in done.err
    assert done.err.count("\n") == 2


def test_wrong_directions_are_told(map_names):
    done = map_names("Linear", "--to", "jax")
    assert done.status == 2
    assert "there is no framework 'jax' to map to" in done.err
    done = map_names("torch.nn.Linear", "--to", "torch")
    assert done.status == 2
    assert "torch.nn.Linear is a name of torch already" in done.err


def test_in_a_pipe_there_are_no_terminal_codes(tmp_path):
    done = run_apart(tmp_path, "map", "torch.nn.GELU")
    assert done.status == 0, done.err
    assert "'none' is False, 'tanh' is True" in done.out
    assert "\x1b" not in done.out


def run_without_frameworks(*arguments):
    command = [sys.executable, "-c", WITHOUT, *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


def test_tables_are_shown_without_any_framework():
    done = run_without_frameworks("torch.nn.BatchNorm2d")
    assert done.returncode == 0, done.stderr
    assert "not installed: torch and paddle" in done.stdout
    lines = [" ".join(line.split()) for line in done.stdout.splitlines()]
    assert "momentum momentum paddle = 1 - torch" in lines
    assert "running_mean [channels] _mean [channels] renamed" in lines
    assert "Pass momentum = 1 - the momentum of torch." in done.stdout
    found = json.loads(run_without_frameworks("torch.optim.AdamW", "--json").stdout)
    assert found[0]["not_installed"] == ["torch", "paddle"]
    assert {"name": "lr", "default": None} in [each["torch"] for each in found[0]["arguments"]]


def test_the_blocking_above_blocks():
    command = [sys.executable, "-c", WITHOUT.partition("sys.argv")[0] + "import torch"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "torch is blocked" in done.stderr
