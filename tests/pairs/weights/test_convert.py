"""Conversion of checkpoint files between live torch and paddle models, and back."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import paddle
import pytest
import torch

import parfocal as pf
from parfocal.errors import MissingFrameworkError, TransferError, UnsafeFileError
from parfocal.weights.checkpoints.reading import load_checkpoint
from tests.pairs.vision import torchvision_models

from .tools import gap, randomise, run, state_bytes

Inputs = Callable[[], tuple[Any, ...]]


def images() -> tuple[Any, ...]:
    return (np.random.default_rng(0).standard_normal((2, 3, 64, 64)).astype("float32"),)


def sequence() -> tuple[Any, ...]:
    return (np.random.default_rng(0).standard_normal((3, 2, 8)).astype("float32"),)


def torch_encoder() -> Any:
    layer = torch.nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
    return torch.nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)


def paddle_encoder() -> Any:
    return paddle.nn.TransformerEncoder(paddle.nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0), 2)


MODELS: dict[str, tuple[Callable[[], Any], Callable[[], Any], Inputs]] = {
    "resnet18": (torchvision_models.resnet18, paddle.vision.models.resnet18, images),
    "encoder": (torch_encoder, paddle_encoder, sequence),
    "lstm": (
        lambda: torch.nn.LSTM(8, 6, 2, bidirectional=True),
        lambda: paddle.nn.LSTM(8, 6, 2, direction="bidirect", time_major=True),
        sequence,
    ),
    "mixed": (
        lambda: torch.nn.Sequential(
            torch.nn.Linear(8, 8), torch.nn.LayerNorm(8), torch.nn.PReLU(), torch.nn.Linear(8, 5)
        ),
        lambda: paddle.nn.Sequential(
            paddle.nn.Linear(8, 8), paddle.nn.LayerNorm(8), paddle.nn.PReLU(), paddle.nn.Linear(8, 5)
        ),
        sequence,
    ),
}


def without_counters(model: Any) -> dict[str, bytes]:
    return {name: data for name, data in state_bytes(model).items() if "num_batches_tracked" not in name}


def load_paddle(model: Any, path: Path) -> None:
    if path.suffix == ".safetensors":
        from safetensors.paddle import load_file

        state = load_file(path)
    else:
        state = paddle.load(str(path))
    missing, unexpected = model.set_state_dict(state)
    assert (missing, unexpected) == ([], [])
    assert set(state) == set(model.state_dict())


def load_torch(model: Any, path: Path) -> None:
    if path.suffix == ".safetensors":
        from safetensors.torch import load_file

        model.load_state_dict(load_file(path), strict=True)
    else:
        model.load_state_dict(torch.load(path, weights_only=True), strict=True)
        model.load_state_dict(torch.load(str(path), weights_only=True, mmap=True), strict=True)


@pytest.mark.parametrize("middle", [".pdparams", ".safetensors"])
@pytest.mark.parametrize("name", sorted(MODELS))
def test_there_and_back(tmp_path: Path, name: str, middle: str) -> None:
    make_torch, make_paddle, inputs = MODELS[name]
    reference, port, again = (
        randomise(make_torch(), 1),
        randomise(make_paddle(), 2),
        randomise(make_torch(), 3),
    )
    torch.save({"state_dict": reference.state_dict(), "epoch": 3}, tmp_path / "in.pth")
    there = pf.convert(tmp_path / "in.pth", port, tmp_path / f"port{middle}")
    assert there.complete
    load_paddle(port, tmp_path / f"port{middle}")
    assert gap(run(reference, *inputs()), run(port, *inputs())) < 1e-5
    ending = ".pth" if middle == ".pdparams" else ".safetensors"
    back = pf.convert(tmp_path / f"port{middle}", again, tmp_path / f"back{ending}")
    assert back.complete
    load_torch(again, tmp_path / f"back{ending}")
    assert without_counters(again) == without_counters(reference)


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "float64"])
@pytest.mark.parametrize("suffix", [".pth", ".safetensors"])
def test_every_float_dtype_is_bit_exact(tmp_path: Path, dtype: str, suffix: str) -> None:
    def make_torch() -> Any:
        layers = (
            torch.nn.Linear(6, 4),
            torch.nn.Embedding(5, 6),
            torch.nn.BatchNorm1d(4),
            torch.nn.Conv2d(3, 4, 2),
        )
        return torch.nn.Sequential(*layers).to(getattr(torch, dtype))

    port = paddle.nn.Sequential(
        paddle.nn.Linear(6, 4), paddle.nn.Embedding(5, 6), paddle.nn.BatchNorm1D(4), paddle.nn.Conv2D(3, 4, 2)
    )
    port.to(dtype=dtype)
    reference, again = randomise(make_torch(), 1), randomise(make_torch(), 2)
    source = tmp_path / f"in{suffix}"
    if suffix == ".pth":
        torch.save(reference.state_dict(), source)
    else:
        from safetensors.torch import save_file

        save_file(reference.state_dict(), source, {"format": "pt"})
    pf.convert(source, port, tmp_path / "port.pdparams")
    load_paddle(port, tmp_path / "port.pdparams")
    assert str(port[0].weight.dtype) == f"paddle.{dtype}"
    pf.convert(tmp_path / "port.pdparams", again, tmp_path / "back.pth")
    load_torch(again, tmp_path / "back.pth")
    assert without_counters(again) == without_counters(reference)


@pytest.mark.parametrize("protocol", [2, 3, 4])
def test_what_paddle_save_writes(tmp_path: Path, protocol: int) -> None:
    port = randomise(paddle.nn.Sequential(paddle.nn.Linear(80, 30), paddle.nn.BatchNorm1D(30)), 1)
    path = tmp_path / "port.pdparams"
    paddle.save(
        {"model": port.state_dict(), "epoch": 3, "optimizer": {"lr": 0.1}}, str(path), protocol=protocol
    )
    found = load_checkpoint(path).tensors
    assert set(found) == set(port.state_dict())
    for name, value in port.state_dict().items():
        assert np.array_equal(found[name].read(), value.numpy())
    paddle.save(port.state_dict(), str(path), protocol=protocol)
    assert set(load_checkpoint(path).tensors) == set(port.state_dict())


@pytest.mark.parametrize(
    "dtype",
    ["float64", "float32", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint8", "bool",
     "complex64", "complex128", "uint16", "uint32", "uint64", "float8_e4m3fn", "float8_e5m2"],
)  # fmt: skip
def test_what_torch_save_writes(tmp_path: Path, dtype: str) -> None:
    """Every dtype, strided and shared tensors, parameters, and the odd things training scripts add."""
    plain = torch.arange(24).reshape(4, 6).to(getattr(torch, dtype))
    content = {
        "state_dict": {
            "plain": plain,
            "turned": plain.T,
            "part": plain[1:3, 2:5],
            "scalar": plain[0, 0],
            "empty": plain[:0],
            "same": plain,
        },
        "extras": [torch.Size([1, 2]), torch.float16, torch.device("cpu"), np.float64(3), {1, 2}],
    }
    torch.save(content, tmp_path / "in.pth")
    found = load_checkpoint(tmp_path / "in.pth").tensors
    assert found["plain"].memory == found["same"].memory
    assert found["plain"].memory != found["turned"].memory
    for name, value in content["state_dict"].items():
        assert found[name].shape == tuple(value.shape)
        assert found[name].dtype.name == dtype
        expected = value.contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()
        assert np.ascontiguousarray(found[name].read()).tobytes() == expected, name


def test_parameters_and_schedules_of_torch(tmp_path: Path) -> None:
    model = torch.nn.Linear(3, 2)
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
    schedule = torch.optim.lr_scheduler.MultiStepLR(optimizer, [2, 4])
    model(torch.ones(1, 3)).sum().backward()
    optimizer.step()
    content = {
        "model": dict(model.named_parameters()),
        "optimizer": optimizer.state_dict(),
        "schedule": schedule.state_dict(),
    }
    torch.save(content, tmp_path / "in.pth")
    found = load_checkpoint(tmp_path / "in.pth").tensors
    assert set(found) == {"weight", "bias"}
    assert np.array_equal(found["weight"].read(), model.weight.detach().numpy())


def test_the_oldest_format_of_torch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = torch.nn.Linear(3, 2)
    path = tmp_path / "in.pth"
    torch.save({"state_dict": model.state_dict()}, path, _use_new_zipfile_serialization=False)
    found = load_checkpoint(path)
    assert found.framework == "torch"
    assert np.array_equal(found.tensors["weight"].read(), model.weight.detach().numpy())
    from parfocal.backends import registry

    def missing(name: str) -> Any:
        raise MissingFrameworkError("PyTorch is not installed", hint="pip install 'parfocal[torch]'")

    monkeypatch.setattr(registry, "get", missing)
    with pytest.raises(MissingFrameworkError, match=r"from before 1\.6, which only torch reads") as caught:
        load_checkpoint(path)
    assert caught.value.hint == "pip install 'parfocal[torch]'"


@pytest.mark.parametrize("zipped", [True, False])
def test_a_whole_model_is_refused(tmp_path: Path, zipped: bool) -> None:
    path = tmp_path / "in.pth"
    torch.save(torch.nn.Linear(3, 2), path, _use_new_zipfile_serialization=zipped)
    with pytest.raises(UnsafeFileError, match=r"torch\.nn\.modules\.linear\.Linear"):
        load_checkpoint(path)


def test_large_members_are_what_torch_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from parfocal.weights.checkpoints import writing

    monkeypatch.setattr(writing, "LARGE", 10)  # the form of members of two gigabytes and more
    source, port = randomise(paddle.nn.Linear(4, 6), 1), torch.nn.Linear(4, 6)
    paddle.save(source.state_dict(), str(tmp_path / "in.pdparams"))
    pf.convert(tmp_path / "in.pdparams", port, tmp_path / "out.pth")
    load_torch(port, tmp_path / "out.pth")
    assert np.array_equal(port.weight.detach().numpy(), source.weight.numpy().T)


# Matching a bare file with a live port.


class TorchDecoder(torch.nn.Module):
    """Square projections without bias, square embeddings, a tied head."""

    def __init__(self, tied: bool = False) -> None:
        super().__init__()
        self.wte = torch.nn.Embedding(8, 8)
        self.blocks = torch.nn.ModuleList(
            torch.nn.ModuleDict({name: torch.nn.Linear(8, 8, bias=False) for name in "qkv"}) for _ in range(2)
        )
        self.lm_head = torch.nn.Linear(8, 8, bias=False)
        if tied:
            self.lm_head.weight = self.wte.weight


class PaddleDecoder(paddle.nn.Layer):
    def __init__(self) -> None:
        super().__init__()
        self.embedder = paddle.nn.Embedding(8, 8)
        self.layers = paddle.nn.LayerList(
            [
                paddle.nn.LayerDict({name: paddle.nn.Linear(8, 8, bias_attr=False) for name in "qkv"})
                for _ in range(2)
            ]
        )
        self.head = paddle.nn.Linear(8, 8, bias_attr=False)


@pytest.mark.parametrize("tied", [False, True])
def test_the_ports_kinds_decide_about_squares(tmp_path: Path, tied: bool) -> None:
    reference, port = randomise(TorchDecoder(tied), 1), PaddleDecoder()
    torch.save(reference.state_dict(), tmp_path / "in.pth")
    plan = pf.convert(tmp_path / "in.pth", port, tmp_path / "port.pdparams")
    assert plan.complete
    load_paddle(port, tmp_path / "port.pdparams")
    assert np.array_equal(port.embedder.weight.numpy(), reference.wte.weight.detach().numpy())
    assert np.array_equal(port.head.weight.numpy(), reference.lm_head.weight.detach().numpy().T)
    for mine, yours in zip(reference.blocks, port.layers, strict=True):
        for name in "qkv":
            assert np.array_equal(yours[name].weight.numpy(), mine[name].weight.detach().numpy().T)


def test_layers_that_are_stored_the_other_way_round(tmp_path: Path) -> None:
    """A checkpoint whose class keeps [in, out], as GPT-2's does: the square one follows its neighbours."""
    state = {
        "h.0.attn.weight": torch.randn(4, 12),
        "h.0.attn.bias": torch.randn(12),
        "h.0.proj.weight": torch.randn(4, 4),
        "h.0.proj.bias": torch.randn(4),
        "head.weight": torch.randn(9, 4),
    }
    torch.save(state, tmp_path / "in.pth")

    class Port(paddle.nn.Layer):
        def __init__(self) -> None:
            super().__init__()
            block = {"attn": paddle.nn.Linear(4, 12), "proj": paddle.nn.Linear(4, 4)}
            self.h = paddle.nn.LayerList([paddle.nn.LayerDict(block)])
            self.head = paddle.nn.Linear(4, 9, bias_attr=False)

    pf.convert(tmp_path / "in.pth", Port(), tmp_path / "out.pdparams")
    found = paddle.load(str(tmp_path / "out.pdparams"))
    assert np.array_equal(found["h.0.proj.weight"].numpy(), state["h.0.proj.weight"].numpy())
    assert np.array_equal(found["head.weight"].numpy(), state["head.weight"].numpy().T)


def test_a_file_that_does_not_say_its_framework(tmp_path: Path) -> None:
    from safetensors.torch import save_file

    square, wide = torch.nn.Linear(4, 4), torch.nn.Linear(4, 6)
    port = paddle.nn.Sequential(paddle.nn.Linear(4, 4))
    save_file(
        {f"0.{name}": value for name, value in square.state_dict().items()}, tmp_path / "in.safetensors"
    )
    with pytest.raises(TransferError, match=r"0\.weight as it is, 0\.weight transposed"):
        pf.convert(tmp_path / "in.safetensors", port, tmp_path / "out.pdparams")
    port = paddle.nn.Sequential(paddle.nn.Linear(4, 4), paddle.nn.Linear(4, 6))
    state = torch.nn.Sequential(square, wide).state_dict()
    save_file(state, tmp_path / "in.safetensors")
    plan = pf.convert(tmp_path / "in.safetensors", port, tmp_path / "out.pdparams")
    assert "the checkpoint does not say which framework it is of; taken for one of torch" in plan.notes
    load_paddle(port, tmp_path / "out.pdparams")
    assert np.array_equal(port[0].weight.numpy(), square.weight.detach().numpy().T)


def test_everything_unmatched_is_named_and_nothing_is_written(tmp_path: Path) -> None:
    reference = torch.nn.Sequential(torch.nn.Linear(4, 6), torch.nn.ReLU(), torch.nn.Linear(6, 3))
    port = paddle.nn.Sequential(paddle.nn.Linear(4, 6), paddle.nn.ReLU(), paddle.nn.Linear(6, 5))
    torch.save(reference.state_dict(), tmp_path / "in.pth")
    (tmp_path / "out.pdparams").write_bytes(b"what was there")
    with pytest.raises(TransferError) as caught:
        pf.convert(tmp_path / "in.pth", port, tmp_path / "out.pdparams")
    assert "unmatched in the reference: 2.weight [3, 6]: Linear 6->3 here, 2 is 6->5 in the port" in str(
        caught.value
    )
    assert "unmatched in the port: 2.bias [5]" in str(caught.value)
    assert (tmp_path / "out.pdparams").read_bytes() == b"what was there"


def test_partial_keeps_the_ports_values(tmp_path: Path) -> None:
    reference = torch.nn.Sequential(torch.nn.Linear(4, 6), torch.nn.Linear(6, 3))
    port = paddle.nn.Sequential(paddle.nn.Linear(4, 6), paddle.nn.Linear(6, 5))
    before = port[1].weight.numpy().copy()
    torch.save(reference.state_dict(), tmp_path / "in.pth")
    plan = pf.convert(tmp_path / "in.pth", port, tmp_path / "out.pdparams", partial=True)
    assert not plan.complete
    load_paddle(port, tmp_path / "out.pdparams")
    assert np.array_equal(port[1].weight.numpy(), before)
    assert np.array_equal(port[0].weight.numpy(), reference[0].weight.detach().numpy().T)


def test_the_port_itself_is_left_alone(tmp_path: Path) -> None:
    reference, port = torch.nn.Linear(4, 6), paddle.nn.Linear(4, 6)
    before = state_bytes(port)
    torch.save(reference.state_dict(), tmp_path / "in.pth")
    pf.convert(tmp_path / "in.pth", port, tmp_path / "out.pdparams")
    assert state_bytes(port) == before


def test_a_saved_plan_is_followed(tmp_path: Path) -> None:
    reference, port = torch.nn.Linear(4, 4), paddle.nn.Linear(4, 4)
    torch.save(reference.state_dict(), tmp_path / "in.pth")
    pf.convert(tmp_path / "in.pth", port, tmp_path / "out.pdparams").save(tmp_path / "plan.json")
    text = (
        (tmp_path / "plan.json")
        .read_text()
        .replace('"transpose",\n     1,\n     0', '"transpose",\n     0,\n     1')
    )
    (tmp_path / "plan.json").write_text(text)
    pf.convert(tmp_path / "in.pth", port, tmp_path / "out.pdparams", plan=tmp_path / "plan.json")
    load_paddle(port, tmp_path / "out.pdparams")
    assert np.array_equal(port.weight.numpy(), reference.weight.detach().numpy())


def test_buffers_that_are_not_saved_are_not_written(tmp_path: Path) -> None:
    port = torch.nn.Linear(4, 6)
    port.register_buffer("kept", torch.ones(3))
    port.register_buffer("made anew", torch.ones(3), persistent=False)
    paddle.save(paddle.nn.Linear(4, 6).state_dict(), str(tmp_path / "in.pdparams"))
    pf.convert(tmp_path / "in.pdparams", port, tmp_path / "out.pth")
    assert set(torch.load(tmp_path / "out.pth", weights_only=True)) == {"weight", "bias", "kept"}


def test_tied_tensors_of_a_torch_port_stay_tied(tmp_path: Path) -> None:
    port = TorchDecoder(tied=True)
    source = PaddleDecoder()
    source.head.weight.set_value(source.embedder.weight.T)
    paddle.save(source.state_dict(), str(tmp_path / "in.pdparams"))
    pf.convert(tmp_path / "in.pdparams", port, tmp_path / "out.pth")
    found = torch.load(tmp_path / "out.pth", weights_only=True)
    assert found["lm_head.weight"].data_ptr() == found["wte.weight"].data_ptr()
    assert np.array_equal(found["wte.weight"].numpy(), source.embedder.weight.numpy())


def test_progress_is_shown_only_when_asked_for(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    torch.save(torch.nn.Linear(4, 6).state_dict(), tmp_path / "in.pth")
    pf.convert(tmp_path / "in.pth", paddle.nn.Linear(4, 6), tmp_path / "out.pdparams")
    assert capfd.readouterr() == ("", "")
    pf.convert(tmp_path / "in.pth", paddle.nn.Linear(4, 6), tmp_path / "out.pdparams", progress=True)
    shown = capfd.readouterr()
    assert shown.out == ""
    assert "out.pdparams" in shown.err
