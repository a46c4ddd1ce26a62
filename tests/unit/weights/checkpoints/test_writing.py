"""Checkpoint files written without a framework, and put in place complete or not at all."""

from __future__ import annotations

import os
import pickle
import zipfile
from pathlib import Path
from typing import IO, Any

import numpy as np
import pytest

from parfocal.errors import InputError, ParfocalError, StorageError, UnsupportedError
from parfocal.run.dtypes import DTYPES
from parfocal.weights.checkpoints import writing
from parfocal.weights.checkpoints.reading import load_checkpoint
from parfocal.weights.checkpoints.saving import save
from parfocal.weights.checkpoints.writing import WRITERS, PlannedTensor, check_framework, writer_for
from tests.unit.weights.checkpoints.files import FRAMEWORKS, arrays, same, write

SUFFIXES = (".pth", ".pdparams", ".safetensors")


def silent(action: str, amount: int) -> None:
    pass


def planned(values: dict[str, Any]) -> list[PlannedTensor]:
    return [PlannedTensor(name, array.shape, array.dtype) for name, array in values.items()]


def saved(path: Path, values: dict[str, Any]) -> None:
    framework = FRAMEWORKS[path.suffix]
    save(path, writer_for(path), planned(values), lambda each: values[each.name], framework, silent)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_saved_files_hold_what_was_given(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"model{suffix}"
    saved(path, arrays())
    found = load_checkpoint(path).tensors
    assert all(same(found[name].read(), array) for name, array in arrays().items())
    assert os.listdir(tmp_path) == [path.name]


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_the_same_tensors_give_the_same_bytes(tmp_path: Path, suffix: str) -> None:
    paths = tmp_path / f"a{suffix}", tmp_path / f"b{suffix}"
    for path in paths:
        saved(path, arrays())
    assert paths[0].read_bytes() == paths[1].read_bytes()


def test_pdparams_is_what_pickle_and_numpy_read(tmp_path: Path) -> None:
    path = write(tmp_path / "model.pdparams", arrays())
    found = pickle.loads(path.read_bytes())  # noqa: S301  # this test wrote it
    for name, array in arrays().items():
        expected = array.view("uint16") if array.dtype.name == "bfloat16" else array
        assert same(found[name], expected), name
        assert found[name].flags.writeable


def test_safetensors_is_what_the_library_reads(tmp_path: Path) -> None:
    from safetensors.numpy import load_file

    values = {name: array for name, array in arrays().items() if array.dtype.name != "bfloat16"}
    found = load_file(write(tmp_path / "model.safetensors", values))
    assert all(same(found[name], array) for name, array in values.items())


def test_pth_is_a_sound_zip_with_aligned_values(tmp_path: Path) -> None:
    check_zip(write(tmp_path / "model.pth", arrays()))


def check_zip(path: Path) -> None:
    data = path.read_bytes()
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
        for info in archive.infolist():
            assert info.compress_type == zipfile.ZIP_STORED
            name, extra = (int.from_bytes(data[info.header_offset + at :][:2], "little") for at in (26, 28))
            assert (info.header_offset + 30 + name + extra) % 64 == 0
        assert archive.read("archive/version") == b"3\n"


def test_members_beyond_what_a_plain_zip_can_hold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writing, "LARGE", 100)  # two gigabytes, in a test
    path = write(tmp_path / "model.pth", arrays())
    with zipfile.ZipFile(path) as archive:
        versions = {info.filename: info.extract_version for info in archive.infolist()}
    assert versions["archive/data/0"] == 45  # the version that has large members
    assert versions["archive/byteorder"] == 20
    check_zip(path)
    found = load_checkpoint(path).tensors
    assert all(same(found[name].read(), array) for name, array in arrays().items())


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_ties(tmp_path: Path, suffix: str) -> None:
    """Written once where the format can say so, twice where it cannot."""
    values = np.ones(100_000, "float32")
    tensors = [
        PlannedTensor("a", values.shape, values.dtype),
        PlannedTensor("b", values.shape, values.dtype, "a"),
    ]
    path = tmp_path / f"model{suffix}"
    save(path, writer_for(path), tensors, lambda each: values, FRAMEWORKS[suffix], silent)
    found = load_checkpoint(path).tensors
    assert same(found["a"].read(), values)
    assert same(found["b"].read(), values)
    shares = suffix != ".safetensors"
    assert (found["a"].memory == found["b"].memory) == shares
    assert path.stat().st_size < (500_000 if shares else 900_000)


LACKING = {
    ".pth": {"float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz"},
    ".pdparams": {name for name in DTYPES if name.startswith("float8")} | {"uint16", "uint32", "uint64"},
    ".safetensors": {name for name in DTYPES if name.startswith("float8")}.difference(
        {"float8_e4m3fn", "float8_e5m2", "float8_e8m0fnu"}
    )
    | {"complex128"},
}


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("name", sorted(DTYPES))
def test_every_dtype_is_written_or_refused(tmp_path: Path, suffix: str, name: str) -> None:
    path = tmp_path / f"model{suffix}"
    values = {"w": np.ones((2, 3)).astype(DTYPES[name])}
    if name in LACKING[suffix]:
        with pytest.raises(UnsupportedError, match=rf"w is {name}, which a {suffix} file cannot hold"):
            saved(path, values)
        assert os.listdir(tmp_path) == []
    else:
        saved(path, values)
        assert same(load_checkpoint(path).tensors["w"].read(), values["w"])


# In place complete, or not at all.


class Full(Exception):
    pass


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("existing", [False, True])
def test_a_failure_in_the_middle_leaves_everything_as_it_was(
    tmp_path: Path, suffix: str, existing: bool
) -> None:
    path = tmp_path / f"model{suffix}"
    if existing:
        path.write_bytes(b"what was there")

    def values(each: PlannedTensor) -> Any:
        if each.name == "half":
            raise Full
        return arrays()[each.name]

    with pytest.raises(Full):
        save(path, writer_for(path), planned(arrays()), values, FRAMEWORKS[suffix], silent)
    assert os.listdir(tmp_path) == ([path.name] if existing else [])
    if existing:
        assert path.read_bytes() == b"what was there"


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_bits_that_were_lost_on_the_way_are_noticed(tmp_path: Path, suffix: str) -> None:
    """A writer that stores one other bit than it was given."""
    path = tmp_path / f"model{suffix}"

    def lossy(file: IO[bytes], tensors: Any, values: Any, framework: str) -> None:
        def changed(each: PlannedTensor) -> Any:
            array = np.array(values(each))
            if each.name == "fc.bias":
                array.view("uint32")[-1] ^= 1
            return array

        WRITERS[suffix](file, tensors, changed, framework)

    with pytest.raises(StorageError, match=r"was not written: read back, fc\.bias has other values"):
        save(path, lossy, planned(arrays()), lambda each: arrays()[each.name], FRAMEWORKS[suffix], silent)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_process_that_dies_leaves_nothing_under_the_name(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"model{suffix}"
    path.write_bytes(b"what was there")
    child = os.fork()
    if child == 0:

        def values(each: PlannedTensor) -> Any:
            if each.name == "brain":
                os._exit(9)
            return arrays()[each.name]

        save(path, writer_for(path), planned(arrays()), values, FRAMEWORKS[suffix], silent)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9
    assert path.read_bytes() == b"what was there"
    assert len(os.listdir(tmp_path)) == 2  # and what the process left, under a name of its own


def test_names_that_were_lost_on_the_way_are_noticed(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"

    def forgetful(file: IO[bytes], tensors: Any, values: Any, framework: str) -> None:
        WRITERS[".safetensors"](file, tensors[1:], values, framework)

    with pytest.raises(StorageError, match="it holds other names than were written"):
        save(path, forgetful, planned(arrays()), lambda each: arrays()[each.name], "torch", silent)


def test_a_full_disk_is_a_storage_error(tmp_path: Path) -> None:
    import resource

    path = tmp_path / "model.pth"
    values = {"w": np.ones(1_000_000, "float32")}
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    import signal

    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, limits[1]))
        with pytest.raises(StorageError, match=r"cannot write .*model\.pth: File too large"):
            saved(path, values)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, handler)
    assert os.listdir(tmp_path) == []


def test_folders_that_are_missing_or_in_the_way(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match=r"there is no folder .*missing") as caught:
        saved(tmp_path / "missing" / "model.pth", arrays())
    assert caught.value.hint == "create it first"
    (tmp_path / "model.pth").mkdir()
    with pytest.raises(StorageError, match="it is a folder"):
        saved(tmp_path / "model.pth", arrays())


def test_a_folder_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Root may write anywhere, so the system's answer is put in its mouth."""
    import builtins

    original = builtins.open

    def refuse(file: Any, mode: str = "r", *more: Any, **named: Any) -> Any:
        if "x" in mode:
            raise PermissionError(13, "Permission denied", os.fspath(file))
        return original(file, mode, *more, **named)

    monkeypatch.setattr(builtins, "open", refuse)
    with pytest.raises(StorageError, match=r"cannot write .*model\.pth: Permission denied") as caught:
        saved(tmp_path / "model.pth", arrays())
    assert caught.value.hint == "choose a path that you may use"


def test_suffixes_and_frameworks() -> None:
    with pytest.raises(InputError, match=r"out\.onnx: the suffix '\.onnx' is not that of a checkpoint"):
        writer_for(Path("out.onnx"))
    with pytest.raises(
        InputError, match=r"a \.pth file is torch's, and the port or template is paddle's"
    ) as caught:
        check_framework(".pth", "paddle")
    assert caught.value.hint == "write .safetensors or .pdparams"
    check_framework(".pth", "torch")
    check_framework(".safetensors", "paddle")
    assert issubclass(InputError, ParfocalError)
