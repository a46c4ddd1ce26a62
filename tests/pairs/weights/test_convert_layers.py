"""Files give what live models give: every layer converted must equal the same layer transferred."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import paddle
import pytest
import torch

import parfocal as pf
from parfocal.weights.checkpoints.reading import load_checkpoint

from .test_layers import CASES
from .tools import randomise, state_bytes

pytestmark = [
    pytest.mark.filterwarnings("ignore:LSTM with projections is not supported with oneDNN:UserWarning"),
    pytest.mark.filterwarnings("ignore:enable_nested_tensor is True:UserWarning"),
    pytest.mark.filterwarnings("ignore:.*weight_norm.* is deprecated:FutureWarning"),
]
# A square matrix of this class lies as torch's does, and nothing in a file says that it is of this class.
UNMARKED = "compat linear"


class Torch(torch.nn.Module):
    def __init__(self, layer: Any) -> None:
        super().__init__()
        self.layer = layer


class Paddle(paddle.nn.Layer):
    def __init__(self, layer: Any) -> None:
        super().__init__()
        self.layer = layer


def save(model: Any, path: Path) -> None:
    if isinstance(model, torch.nn.Module):
        torch.save(model.state_dict(), path)
    else:
        paddle.save(model.state_dict(), str(path))


def without_counters(state: dict[str, bytes]) -> dict[str, bytes]:
    return {name: data for name, data in state.items() if "num_batches_tracked" not in name}


def read(path: Path) -> dict[str, bytes]:
    tensors = load_checkpoint(path).tensors
    return without_counters({name: np.array(tensor.read()).tobytes() for name, tensor in tensors.items()})


@pytest.mark.parametrize("to_paddle", [True, False], ids=["to paddle", "to torch"])
@pytest.mark.parametrize("name", [name for name in CASES if name != UNMARKED])
def test_as_transferred(tmp_path: Path, name: str, to_paddle: bool) -> None:
    make_torch, make_paddle, _ = CASES[name]
    models = Torch(make_torch()), Paddle(make_paddle())
    reference, port = models if to_paddle else models[::-1]
    endings = (".pth", ".pdparams") if to_paddle else (".pdparams", ".pth")
    source, template = tmp_path / f"in{endings[0]}", tmp_path / f"template{endings[1]}"
    save(randomise(reference, 1), source)
    save(randomise(port, 2), template)
    outputs = []
    for target in (port, template):
        out = tmp_path / f"out{len(outputs)}{endings[1]}"
        assert pf.convert(source, target, out).complete
        outputs.append(read(out))
    pf.transfer(reference, port)
    expected = without_counters(state_bytes(port))
    assert outputs[0] == expected
    assert outputs[1] == expected


def test_a_matrix_that_is_not_square_needs_no_mark(tmp_path: Path) -> None:
    reference, port = torch.nn.Linear(6, 4), paddle.compat.nn.Linear(6, 4)
    save(reference, tmp_path / "in.pth")
    save(port, tmp_path / "template.pdparams")
    for target in (port, tmp_path / "template.pdparams"):
        pf.convert(tmp_path / "in.pth", target, tmp_path / "out.pdparams")
        found = paddle.load(str(tmp_path / "out.pdparams"))
        assert np.array_equal(found["weight"].numpy(), reference.weight.detach().numpy())
    save(port, tmp_path / "in.pdparams")
    pf.convert(tmp_path / "in.pdparams", reference, tmp_path / "out.pth")
    found = torch.load(tmp_path / "out.pth", weights_only=True)
    assert np.array_equal(found["weight"].numpy(), port.weight.numpy())


@pytest.mark.parametrize(("size", "told"), [(4, True), (6, False)], ids=["square", "oblong"])
def test_squares_that_may_lie_either_way_are_told(tmp_path: Path, size: int, told: bool) -> None:
    save(Paddle(paddle.nn.Linear(4, size)), tmp_path / "in.pdparams")
    plan = pf.convert(tmp_path / "in.pdparams", Torch(torch.nn.Linear(4, size)), tmp_path / "out.pth")
    notes = [note for note in plan.notes if "paddle.compat.nn.Linear lie the other way" in note]
    assert bool(notes) == told
    assert all("layer.weight" in note for note in notes)
    save(Torch(torch.nn.Linear(4, size)), tmp_path / "in.pth")
    plan = pf.convert(tmp_path / "in.pth", Paddle(paddle.nn.Linear(4, size)), tmp_path / "out.pdparams")
    assert not any("compat" in note for note in plan.notes)
