from __future__ import annotations

import argparse
import os

import ml_dtypes
import numpy as np
import pytest

from parfocal.backends.protocol import CheckpointReader
from parfocal.errors import FileFormatError, InputError, StorageError, UnsafeFileError, UnsupportedError
from tests.conformance.models import kit_for

STATE = {
    "layer.weight": np.arange(6, dtype="float32").reshape(2, 3),
    "layer.half": np.array([1.5, -2.0], ml_dtypes.bfloat16),
    "layer.count": np.asarray(7, dtype="int64"),
    "empty": np.zeros((0, 3), "float32"),
}


@pytest.fixture
def torch():
    return kit_for("torch").torch


@pytest.fixture
def reader():
    return kit_for("torch").backend


def assert_same_state(found):
    assert list(found) == list(STATE)
    for name, array in STATE.items():
        assert (found[name].dtype, found[name].shape) == (array.dtype, array.shape)
        assert found[name].tobytes() == array.tobytes()


def test_what_is_written_the_framework_itself_reads(kit, backend, tmp_path):
    path = str(tmp_path / "state.bin")
    backend.save_checkpoint(path, iter(STATE.items()))
    assert_same_state({name: backend.to_array(tensor) for name, tensor in kit.load(path).items()})
    assert os.listdir(tmp_path) == ["state.bin"]


def test_a_file_that_cannot_be_written_leaves_the_old_one(backend, tmp_path):
    with pytest.raises(StorageError, match="cannot write"):
        backend.save_checkpoint(str(tmp_path / "no such folder" / "x.bin"), iter(STATE.items()))
    target = tmp_path / "folder"
    target.mkdir()
    with pytest.raises(StorageError, match="cannot write"):
        backend.save_checkpoint(str(target), iter(STATE.items()))
    assert os.listdir(tmp_path) == ["folder"]


def test_who_can_read_says_so():
    assert isinstance(kit_for("torch").backend, CheckpointReader)
    assert not isinstance(kit_for("paddle").backend, CheckpointReader)


@pytest.mark.parametrize("new_format", [True, False])
def test_torch_files_come_back(torch, reader, tmp_path, new_format):
    path = str(tmp_path / "x.pth")
    tensors = {name: reader.from_array(array) for name, array in STATE.items()}
    torch.save(tensors, path, _use_new_zipfile_serialization=new_format)
    assert_same_state(reader.load_checkpoint(path))


def test_training_checkpoints_stay_nested(torch, reader, tmp_path):
    model = torch.nn.Linear(2, 2)
    optimizer = torch.optim.Adam(model.parameters())
    model(torch.ones(1, 2)).sum().backward()
    optimizer.step()
    path = str(tmp_path / "x.pth")
    content = {
        "model": model.state_dict(),
        "optimizer": optimizer.state_dict(),
        "epoch": 3,
        "best": np.float64(0.5),
        "curve": np.arange(3.0),
        "flags": (True, None, "text"),
    }
    torch.save(content, path)
    loaded = reader.load_checkpoint(path)
    assert loaded["model"]["weight"].tolist() == model.weight.tolist()
    assert isinstance(loaded["optimizer"]["state"][0]["exp_avg"], np.ndarray)
    assert loaded["optimizer"]["param_groups"][0]["params"] == [0, 1]
    assert (loaded["epoch"], loaded["best"], loaded["flags"]) == (3, 0.5, (True, None, "text"))
    assert loaded["curve"].tolist() == [0.0, 1.0, 2.0]


def test_large_files_are_mapped_not_read(torch, reader, tmp_path):
    path = str(tmp_path / "x.pth")
    torch.save({"big": torch.ones(4_000_000)}, path)
    array = reader.load_checkpoint(path)["big"]
    address = array.__array_interface__["data"][0]
    with open("/proc/self/maps") as maps:
        ranges = [line for line in maps if line.rstrip().endswith("x.pth")]
    assert any(
        int(line.split("-")[0], 16) <= address < int(line.split()[0].split("-")[1], 16) for line in ranges
    )


class Evil:
    def __init__(self, marker):
        self.marker = marker

    def __reduce__(self):
        return os.mkdir, (self.marker,)


def test_a_file_that_wants_code_run_is_refused_by_name(torch, reader, tmp_path):
    path, marker = str(tmp_path / "evil.pth"), str(tmp_path / "ran")
    torch.save({"x": Evil(marker)}, path)
    with pytest.raises(UnsafeFileError, match=r"evil\.pth asks for posix\.mkdir, .* nothing of it was run"):
        reader.load_checkpoint(path)
    assert not os.path.exists(marker)


def test_whole_models_and_foreign_objects_are_refused_by_name(torch, reader, tmp_path):
    path = str(tmp_path / "x.pth")
    torch.save(torch.nn.Linear(2, 2), path)
    with pytest.raises(UnsafeFileError, match=r"asks for torch\.nn\.modules\.linear\.Linear") as caught:
        reader.load_checkpoint(path)
    assert "save only the state dict" in caught.value.hint
    torch.save({"args": argparse.Namespace(a=1)}, path)
    with pytest.raises(UnsafeFileError, match=r"asks for argparse\.Namespace"):
        reader.load_checkpoint(path)


@pytest.mark.filterwarnings("ignore:.*torch.jit.*deprecated")
def test_scripts_are_refused(torch, reader, tmp_path):
    path = str(tmp_path / "x.pt")
    torch.jit.script(torch.nn.Linear(2, 2)).save(path)
    with pytest.raises(UnsafeFileError, match="is a TorchScript archive, which holds code"):
        reader.load_checkpoint(path)


@pytest.mark.parametrize("damage", ["cut", "junk", "empty", "zip"])
def test_damaged_files_are_said_to_be(torch, reader, tmp_path, damage):
    path = tmp_path / "x.pth"
    torch.save({"a": torch.ones(100)}, path)
    whole = path.read_bytes()
    content = {
        "cut": whole[: len(whole) // 2],
        "junk": b"hello world" * 9,
        "empty": b"",
        "zip": b"PK\x03\x04",
    }
    path.write_bytes(content[damage])
    with pytest.raises(
        FileFormatError, match=r"x\.pth .*is not a PyTorch checkpoint, or it is damaged"
    ) as caught:
        reader.load_checkpoint(str(path))
    assert not isinstance(caught.value, UnsafeFileError)


def test_other_contents_and_missing_files(torch, reader, tmp_path):
    path = str(tmp_path / "x.pth")
    with pytest.raises(InputError, match="there is no file"):
        reader.load_checkpoint(path)
    torch.save(torch.ones(2), path)
    with pytest.raises(FileFormatError, match="holds a Tensor, not a mapping"):
        reader.load_checkpoint(path)
    torch.save({"a": {"b": torch.eye(2).to_sparse()}}, path)
    with pytest.raises(UnsupportedError, match=r"x\.pth: a\.b: a torch\.sparse_coo tensor"):
        reader.load_checkpoint(path)
