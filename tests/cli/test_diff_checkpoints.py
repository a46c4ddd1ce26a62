"""``parfocal diff`` on checkpoints: within a framework by name, between two in one layout."""

from __future__ import annotations

import json

import numpy as np
import paddle
import pytest
import torch

import parfocal as pf
from tests.cli.command import run_apart, run_here
from tests.compat.padiff.models import PaddleEncoder, PaddleLSTM, TorchEncoder, TorchLSTM
from tests.pairs.vision import torchvision_models


def torch_net():
    return torch.nn.Sequential(
        torch.nn.Conv2d(3, 4, 3), torch.nn.BatchNorm2d(4), torch.nn.Flatten(), torch.nn.Linear(16, 16),
        torch.nn.PReLU(), torch.nn.Linear(16, 5),
    )  # fmt: skip


def paddle_net():
    return paddle.nn.Sequential(
        paddle.nn.Conv2D(3, 4, 3), paddle.nn.BatchNorm2D(4), paddle.nn.Flatten(), paddle.nn.Linear(16, 16),
        paddle.nn.PReLU(), paddle.nn.Linear(16, 5),
    )  # fmt: skip


PAIRS = {
    "net": (torch_net, paddle_net),
    "recurrent": (TorchLSTM, PaddleLSTM),
    "attention": (TorchEncoder, PaddleEncoder),
    "resnet18": (lambda: torchvision_models.resnet18(), lambda: paddle.vision.models.resnet18()),
}


@pytest.fixture
def diff(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    return lambda *arguments: run_here(monkeypatch, capsys, "diff", *arguments)


def saved(folder, name):
    """The two models as checkpoints; the port has the reference's weights."""
    reference, port = (make() for make in PAIRS[name])
    pf.transfer(reference, port)
    torch.save(reference.state_dict(), folder / "reference.pth")
    paddle.save(port.state_dict(), str(folder / "port.pdparams"))
    return reference, port


@pytest.mark.parametrize("name", PAIRS)
def test_a_correct_pair_of_checkpoints_does_not_differ(name, diff, tmp_path):
    reference, _ = saved(tmp_path, name)
    for paths in (("reference.pth", "port.pdparams"), ("port.pdparams", "reference.pth")):
        done = diff(*paths, "--json", "--threshold", "0")
        report = json.loads(done.out)
        assert (done.status, report["failed"]) == (0, 0), report["rows"][:3]
        assert report["compared"] >= len(list(reference.parameters()))


@pytest.mark.parametrize(
    ("name", "tensor"),
    [
        ("net", "3.weight"),  # a square Linear
        ("net", "1._variance"),
        ("net", "5.bias"),
        ("recurrent", "lstm.weight_hh_l1_reverse"),
        ("attention", "encoder.layers.1.self_attn.k_proj.weight"),
    ],
)
def test_one_wrong_tensor_is_the_one_row_that_differs(name, tensor, diff, tmp_path):
    _, port = saved(tmp_path, name)
    state = {key: value.numpy() for key, value in port.state_dict().items()}
    wrong = state[tensor]
    wrong = np.ascontiguousarray(wrong.T) if tensor == "3.weight" else wrong + 1e-3
    for key, value in state.items():  # paddle lists recurrent weights twice
        if key == tensor or (np.array_equal(value, state[tensor]) and key.startswith("lstm")):
            port.state_dict()[key].set_value(wrong)
    paddle.save(port.state_dict(), str(tmp_path / "port.pdparams"))
    done = diff("reference.pth", "port.pdparams", "--json")
    rows = [row for row in json.loads(done.out)["rows"] if not row["ok"]]
    assert done.status == 1
    assert len(rows) == 1
    module = tensor.rpartition(".")[0].removesuffix(".k_proj")
    assert module in rows[0]["name"][0]


def test_names_of_both_sides_and_what_was_left_out_are_shown(diff, tmp_path):
    saved(tmp_path, "net")
    done = diff("reference.pth", "port.pdparams")
    assert "1.running_mean -> 1._mean" in done.out
    assert "num_batches_tracked: 1 counter of the reference left out" in done.out


def test_a_tensor_that_one_side_lacks_or_has_in_another_shape_is_named(diff, tmp_path):
    reference, port = (make() for make in PAIRS["net"])
    pf.transfer(reference, port)
    state = reference.state_dict()
    del state["4.weight"]
    state["5.bias"] = torch.zeros(7)
    torch.save(state, tmp_path / "reference.pth")
    paddle.save(port.state_dict(), str(tmp_path / "port.pdparams"))
    done = diff("reference.pth", "port.pdparams", "--json")
    problems = {row["name"][0]: row["problem"] for row in json.loads(done.out)["rows"] if not row["ok"]}
    assert done.status == 1
    assert problems.pop("4._weight") == "missing in the first"
    assert all(name.startswith("5.") for name in problems)
    assert "shapes differ: (7,) against (5,)" in problems["5.bias"]


def test_checkpoints_of_one_framework_go_by_their_names(diff, tmp_path):
    first = torch_net()
    torch.save(first.state_dict(), tmp_path / "a.pth")
    torch.save({"state_dict": first.state_dict(), "epoch": 3}, tmp_path / "b.pt")
    done = diff("a.pth", "b.pt")
    assert done.status == 0
    assert "left out: epoch" in done.out
    first[3].weight.data.copy_(first[3].weight.data.T.clone())
    torch.save(first.state_dict(), tmp_path / "b.pt")
    done = diff("a.pth", "b.pt", "--json")
    assert [row["name"] for row in json.loads(done.out)["rows"] if not row["ok"]] == [["3.weight"]]


@pytest.mark.parametrize("kind", ["npz", "npy", "safetensors", "folder"])
def test_a_checkpoint_against_arrays_that_do_not_say_their_framework(kind, diff, tmp_path):
    reference, port = saved(tmp_path, "net")
    sides = {
        "torch": {key: value.numpy() for key, value in reference.state_dict().items()},
        "paddle": {key: value.numpy() for key, value in port.state_dict().items()},
    }
    for name, arrays in sides.items():
        write(tmp_path / f"{name}.{kind}", arrays, kind)
        for checkpoint in ("reference.pth", "port.pdparams"):
            assert diff(checkpoint, f"{name}.{kind}", "--threshold", "0").status == 0


def write(path, arrays, kind):
    if kind == "npz":
        np.savez(path, **arrays)
    elif kind == "npy":
        np.save(path, arrays, allow_pickle=True)
    elif kind == "safetensors":
        from safetensors.numpy import save_file

        save_file({name: np.ascontiguousarray(array) for name, array in arrays.items()}, path)
    else:
        path.mkdir()
        for name, array in arrays.items():
            np.save(path / f"{name}.npy", array)


def test_square_weights_that_nothing_decides_are_seen_as_they_fit(diff, tmp_path):
    reference = torch.nn.Sequential(torch.nn.Linear(4, 4, bias=False), torch.nn.Embedding(4, 4))
    port = paddle.nn.Sequential(paddle.nn.Linear(4, 4, bias_attr=False), paddle.nn.Embedding(4, 4))
    pf.transfer(reference, port)
    torch.save(reference.state_dict(), tmp_path / "a.pth")
    paddle.save(port.state_dict(), str(tmp_path / "b.pdparams"))
    done = diff("a.pth", "b.pdparams", "--threshold", "0")
    assert done.status == 0
    assert "square, and nothing says how it lies" in " ".join(done.out.split())


def test_no_framework_is_needed(tmp_path):
    saved(tmp_path, "net")
    for name in ("torch", "paddle"):  # these are found first, and do not load
        (tmp_path / f"{name}.py").write_text("raise ImportError('a framework was asked for')")
    done = run_apart(tmp_path, "diff", "reference.pth", "port.pdparams")
    assert done.status == 0, done.err
