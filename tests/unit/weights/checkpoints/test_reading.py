"""Checkpoint files read without a framework: formats, wrappers, shards, damage, hostility."""

from __future__ import annotations

import pickle
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from parfocal.errors import FileFormatError, InputError, ParfocalError, UnsafeFileError
from parfocal.weights.checkpoints.reading import load_checkpoint
from parfocal.weights.checkpoints.tensors import MAPPED
from tests.unit.run.hostile import MARKER, samples
from tests.unit.weights.checkpoints.files import arrays, dumped, index, pickle_of, same, torch_archive, write

SUFFIXES = (".pth", ".pdparams", ".safetensors")
SAMPLES = samples()


def loaded(path: Path) -> dict[str, Any]:
    return {name: tensor.read() for name, tensor in load_checkpoint(path).tensors.items()}


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_every_format_gives_names_shapes_dtypes_and_bits(tmp_path: Path, suffix: str) -> None:
    values = arrays()
    found = load_checkpoint(write(tmp_path / f"model{suffix}", values))
    assert set(found.tensors) == set(values)
    for name, array in values.items():
        tensor = found.tensors[name]
        assert (tensor.shape, tensor.dtype) == (array.shape, array.dtype)
        assert tensor.nbytes == array.nbytes
        assert same(tensor.read(), array), name
    assert found.framework == {".pth": "torch", ".pdparams": "paddle", ".safetensors": "torch"}[suffix]


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
@pytest.mark.parametrize("count", [3, MAPPED])
def test_pickles_of_all_protocols(tmp_path: Path, protocol: int, count: int) -> None:
    generator = np.random.default_rng(1)
    values = {
        "a": generator.standard_normal((count, 4)).astype("float32"),
        "b": np.asfortranarray(generator.standard_normal((count, 4)).astype("float64")),
        "StructuredToParameterName@@": {"a": "linear_0.w_0"},
    }
    path = tmp_path / "model.pdparams"
    path.write_bytes(dumped(values, protocol))
    found = loaded(path)
    assert set(found) == {"a", "b"}
    assert same(found["a"], values["a"])
    assert same(found["b"], values["b"])


@pytest.mark.parametrize("protocol", [2, 4])
def test_long_values_stay_in_the_file(tmp_path: Path, protocol: int) -> None:
    import tracemalloc

    path = tmp_path / "model.pdparams"
    path.write_bytes(dumped({str(n): np.full(500_000, n, "float64") for n in range(4)}, protocol))
    tracemalloc.start()
    found = load_checkpoint(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found.tensors["3"].read()[-1] == 3
    assert peak < (4_000_000 if protocol == 4 else 13_000_000)  # one chunk of decoded text at a time


def test_uint16_of_paddle_is_bfloat16(tmp_path: Path) -> None:
    path = tmp_path / "model.pdparams"
    path.write_bytes(dumped({"w": np.full(4, 0x3F80, "uint16")}, 4))
    found = loaded(path)["w"]
    assert found.dtype.name == "bfloat16"
    assert found.astype("float32").tolist() == [1.0] * 4


def test_pairs_of_name_and_array_and_cut_tensors(tmp_path: Path) -> None:
    values = np.arange(12, dtype="float32")
    cut = {"w": {"OriginShape": (3, 4), "slices": ["w@@.0", "w@@.1"]}}
    content = {
        "pair": ("linear_0.w_0", values),
        "w@@.0": values[:7],
        "w@@.1": values[7:],
        "UnpackBigParamInfor@@": cut,
    }
    path = tmp_path / "model.pdparams"
    path.write_bytes(dumped(content, 2))
    found = loaded(path)
    assert same(found["pair"], values)
    assert same(found["w"], values.reshape(3, 4))
    assert set(found) == {"pair", "w"}


def test_a_missing_piece_is_named(tmp_path: Path) -> None:
    path = tmp_path / "model.pdparams"
    cut = {"UnpackBigParamInfor@@": {"w": {"OriginShape": (3, 4), "slices": ["w@@.0"]}}}
    path.write_bytes(dumped(cut, 2))
    with pytest.raises(FileFormatError, match="a piece of 'w' is missing"):
        load_checkpoint(path)


# Wrappers.


@pytest.mark.parametrize(
    "wrap",
    [
        lambda state: {"state_dict": state, "epoch": 3},
        lambda state: {"model": state, "optimizer": {"state": {0: {"step": np.zeros(3)}}}},
        lambda state: {"model_state_dict": state, "best": 0.5},
        lambda state: {"net": {"module": state}},
        lambda state: {"anything at all": state, "epoch": 3},
        lambda state: {"model": state, "model_ema": state, "mean": np.zeros(3)},
    ],
)
def test_the_state_dict_is_found_inside_other_dictionaries(tmp_path: Path, wrap: Any) -> None:
    state = {"a.weight": np.ones((2, 3)), "a.bias": np.zeros(2)}
    path = tmp_path / "model.pdparams"
    path.write_bytes(dumped(wrap(state), 4))
    found = load_checkpoint(path)
    assert set(found.tensors) == set(state)


def test_what_is_left_out_is_noted(tmp_path: Path) -> None:
    path = tmp_path / "model.pdparams"
    path.write_bytes(dumped({"state_dict": {"w": np.ones(2), "version": 3}, "epoch": 7}, 4))
    assert load_checkpoint(path).notes == (
        "read ['state_dict'] of the checkpoint, left out: epoch",
        "not tensors, left out of the checkpoint: version",
    )


def test_several_unknown_dictionaries_are_not_guessed_at(tmp_path: Path) -> None:
    path = tmp_path / "model.pdparams"
    path.write_bytes(dumped({"first": {"w": np.ones(2)}, "second": {"w": np.ones(2)}}, 4))
    with pytest.raises(FileFormatError, match=r"several dictionaries of tensors: first, second"):
        load_checkpoint(path)


# Shards.


@pytest.mark.parametrize("suffix", [".bin", ".safetensors"])
def test_shards(tmp_path: Path, suffix: str) -> None:
    values = {"a.weight": np.ones((2, 3), "float32"), "b.weight": np.zeros(4, "float32")}
    for number, (name, array) in enumerate(values.items()):
        write(tmp_path / f"model-{number}{suffix}", {name: array})
    places = {name: f"model-{number}{suffix}" for number, name in enumerate(values)}
    path = index(tmp_path / f"model{suffix}.index.json", places)
    found = load_checkpoint(path)
    assert found.framework == "torch"
    assert all(same(found.tensors[name].read(), array) for name, array in values.items())
    assert found.tensors["a.weight"].memory != found.tensors["b.weight"].memory


def test_a_missing_shard_is_named(tmp_path: Path) -> None:
    path = index(tmp_path / "model.safetensors.index.json", {"a": "model-1.safetensors"})
    with pytest.raises(
        FileFormatError, match=r"names the shard model-1\.safetensors, and there is no file .*model-1"
    ):
        load_checkpoint(path)


def test_a_shard_outside_of_the_folder_is_refused(tmp_path: Path) -> None:
    write(tmp_path / "model.safetensors", arrays())
    (tmp_path / "inner").mkdir()
    path = index(tmp_path / "inner" / "m.safetensors.index.json", {"fc.bias": "../model.safetensors"})
    with pytest.raises(FileFormatError, match="shards lie in the folder of their index"):
        load_checkpoint(path)


def test_a_shard_without_its_tensor_is_named(tmp_path: Path) -> None:
    write(tmp_path / "model-1.safetensors", arrays())
    path = index(tmp_path / "model.safetensors.index.json", {"other": "model-1.safetensors"})
    with pytest.raises(FileFormatError, match=r"says that other is in model-1\.safetensors, which does not"):
        load_checkpoint(path)


@pytest.mark.parametrize(
    "text", ["", "[]", "{", '{"weight_map": {}}', '{"weight_map": {"a": 3}}', "[" * 100_000]
)
def test_an_index_that_is_none(tmp_path: Path, text: str) -> None:
    path = tmp_path / "model.safetensors.index.json"
    path.write_text(text)
    with pytest.raises(FileFormatError, match=r"not valid JSON|not the index of a sharded checkpoint"):
        load_checkpoint(path)


# Wrong files.


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"there is no file .*model\.pth") as caught:
        load_checkpoint(tmp_path / "model.pth")
    assert caught.value.hint == "check the path"
    index(tmp_path / "model.pth.index.json", {"a": "b"})
    with pytest.raises(InputError) as caught:
        load_checkpoint(tmp_path / "model.pth")
    assert caught.value.hint.endswith("model.pth.index.json: give that")


def test_a_wrong_suffix(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(b"x")
    with pytest.raises(InputError, match=r"the suffix '\.onnx' is not that of a checkpoint"):
        load_checkpoint(path)


def test_a_folder(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is a folder"):
        load_checkpoint(tmp_path)


@pytest.mark.parametrize("content", [b"", b"hello world, this is a text", b"\x00" * 100])
@pytest.mark.parametrize("suffix", SUFFIXES)
def test_not_a_checkpoint(tmp_path: Path, suffix: str, content: bytes) -> None:
    path = tmp_path / f"model{suffix}"
    path.write_bytes(content)
    with pytest.raises(FileFormatError, match=r"is not a checkpoint: it begins with"):
        load_checkpoint(path)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_truncated_at_any_place(tmp_path: Path, suffix: str) -> None:
    whole = write(tmp_path / f"model{suffix}", arrays()).read_bytes()
    path = tmp_path / f"cut{suffix}"
    for length in sorted({*range(0, len(whole), max(1, len(whole) // 60)), len(whole) - 1}):
        path.write_bytes(whole[:length])
        with pytest.raises(FileFormatError, match=re.escape(str(path))):
            load_checkpoint(path)


def test_a_pickle_without_tensors(tmp_path: Path) -> None:
    path = tmp_path / "model.pdparams"
    path.write_bytes(dumped({"epoch": 3}, 4))
    with pytest.raises(FileFormatError, match="holds no tensors; its entries are: epoch"):
        load_checkpoint(path)
    path.write_bytes(dumped([1, 2], 4))
    with pytest.raises(FileFormatError, match="holds a list, not a mapping"):
        load_checkpoint(path)


def test_a_zip_that_is_not_torchs(tmp_path: Path) -> None:
    import zipfile

    path = tmp_path / "model.pth"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("readme.txt", "hello")
    with pytest.raises(FileFormatError, match=r"without the one data\.pkl of a torch checkpoint"):
        load_checkpoint(path)


# Hostile files.


@pytest.mark.parametrize("name", sorted(SAMPLES))
@pytest.mark.parametrize("suffix", [".pth", ".pdparams"])
def test_nothing_of_a_hostile_pickle_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / f"model{suffix}"
    if suffix == ".pth":
        torch_archive(path, SAMPLES[name][0])
    else:
        path.write_bytes(SAMPLES[name][0])
    with pytest.raises(FileFormatError, match=r"model\.p"):
        load_checkpoint(path)
    assert not (tmp_path / MARKER).exists()


@pytest.mark.parametrize("suffix", [".pth", ".pdparams"])
def test_foreign_objects_are_refused_by_name(tmp_path: Path, suffix: str) -> None:
    import argparse

    content = pickle.dumps({"args": argparse.Namespace(lr=0.1), "model": {"w": np.ones(2)}}, 2)
    path = tmp_path / f"model{suffix}"
    if suffix == ".pth":
        torch_archive(path, content)
    else:
        path.write_bytes(content)
    with pytest.raises(UnsafeFileError, match=r"argparse\.Namespace|copyreg\._reconstructor") as caught:
        load_checkpoint(path)
    assert "nothing of it was executed" in caught.value.message
    assert "save only" in caught.value.hint


def storage(element: bytes, key: bytes, count: int) -> bytes:
    return (
        b"(X\x07\x00\x00\x00storagectorch\n" + element + b"\nX" + len(key).to_bytes(4, "little") + key
        + b"X\x03\x00\x00\x00cpuJ" + count.to_bytes(4, "little") + b"tQ"
    )  # fmt: skip


def tensor(shape: bytes, strides: bytes, count: int = 4, offset: int = 0, key: bytes = b"0") -> bytes:
    return (
        b"\x80\x02}X\x01\x00\x00\x00wctorch._utils\n_rebuild_tensor_v2\n("
        + storage(b"FloatStorage", key, count)
        + (b"J" + offset.to_bytes(4, "little") + shape + strides + b"\x89}tRs.")
    )


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (tensor(b"K\x05\x85", b"K\x01\x85"), "reaches beyond storage '0'"),
        (tensor(b"K\x04\x85", b"K\x01\x85", offset=1), "reaches beyond storage '0'"),
        (tensor(b"K\x02\x85", b"K\x09\x85"), "reaches beyond storage '0'"),
        (tensor(b"K\x04\x85", b"K\x01\x85", count=5), "needs 20 bytes, 16 are there"),
        (tensor(b"K\x04\x85", b"K\x01\x85", key=b"9"), "lacks the member data/9"),
        (tensor(b"J\xff\xff\xff\xff\x85", b"K\x01\x85"), "a tensor has shape"),
        (tensor(b"K\x04\x85", b"J\xff\xff\xff\xff\x85"), "a tensor has shape"),
        (tensor(b"K\x04\x85", b")"), "a tensor has shape"),
        (tensor(b"J\xff\xff\xff\x7f\x85", b"K\x00\x85"), "is made out of a storage of 16 bytes"),
        (
            tensor(b"(K\x00" + b"J\xff\xff\xff\x7f" * 3 + b"t", b"(K\x00K\x00K\x00K\x00t"),
            "a storage of 16 bytes",
        ),
        (b"\x80\x02X\x01\x00\x00\x00xQ.", "a persistent object is not a storage"),
        (b"\x80\x02ctorch.hub\nload\n(tR.", r"asks to run torch\.hub\.load"),
        (b"\x80\x02c__torch__.Model\nModel\n)\x81.", r"asks to run __torch__\.Model\.Model"),
    ],
)
def test_torch_archives_that_lie(tmp_path: Path, content: bytes, words: str) -> None:
    path = torch_archive(tmp_path / "model.pth", content, {"0": b"\x00" * 16})
    with pytest.raises(FileFormatError, match=words):
        load_checkpoint(path)


def test_the_archive_of_those_tests_can_be_read_when_it_does_not_lie(tmp_path: Path) -> None:
    content = tensor(b"K\x02K\x02\x86", b"K\x01K\x02\x86")
    path = torch_archive(tmp_path / "model.pth", content, {"0": np.arange(4, dtype="float32").tobytes()})
    assert loaded(path)["w"].tolist() == [[0, 2], [1, 3]]


def test_compressed_storages_and_big_endian_archives_are_refused(tmp_path: Path) -> None:
    import zipfile

    path = tmp_path / "model.pth"
    for compression, order, words in (
        (zipfile.ZIP_DEFLATED, b"little", "is compressed or encrypted"),
        (zipfile.ZIP_STORED, b"big", "big-endian"),
    ):
        with zipfile.ZipFile(path, "w", compression) as archive:
            archive.writestr("archive/data.pkl", tensor(b"K\x04\x85", b"K\x01\x85"))
            archive.writestr("archive/byteorder", order)
            archive.writestr("archive/data/0", b"\x00" * 16)
        with pytest.raises(FileFormatError, match=words):
            load_checkpoint(path)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_mutated_files_load_or_are_refused(tmp_path: Path, suffix: str) -> None:
    """Whatever happens to a file's bytes: a ParfocalError, or tensors that can be read."""
    small = {name: array for name, array in arrays().items() if array.nbytes < 10_000}
    whole = write(tmp_path / f"model{suffix}", small).read_bytes()
    generator = np.random.default_rng(7)
    path = tmp_path / f"mutated{suffix}"
    refused = 0
    for _ in range(200):
        data = bytearray(whole)
        for _ in range(int(generator.integers(1, 6))):
            place = int(generator.integers(0, len(data)))
            # Values are most of a file, and any value is right: aim at the structure half of the time.
            if suffix == ".pth" and generator.random() < 0.5:
                place = int(generator.integers(0, min(len(data), 1500)))
            data[place] = int(generator.integers(0, 256))
        if generator.random() < 0.2:
            del data[int(generator.integers(0, len(data))) :]
        path.write_bytes(data)
        try:
            for each in load_checkpoint(path).tensors.values():
                np.ascontiguousarray(each.read())
        except ParfocalError:
            refused += 1
    assert 20 < refused < 200


def test_the_pickle_inside_an_archive_is_mutated_too(tmp_path: Path) -> None:
    whole = pickle_of(write(tmp_path / "model.pth", {"w": np.ones(4, "float32"), "b": np.ones(2, "float32")}))
    generator = np.random.default_rng(8)
    path = tmp_path / "mutated.pth"
    refused = 0
    for _ in range(300):
        data = bytearray(whole)
        for _ in range(int(generator.integers(1, 4))):
            data[int(generator.integers(0, len(data)))] = int(generator.integers(0, 256))
        torch_archive(path, bytes(data), {"0": b"\x00" * 16, "1": b"\x00" * 8})
        try:
            for each in load_checkpoint(path).tensors.values():
                np.ascontiguousarray(each.read())
        except ParfocalError:
            refused += 1
    assert 100 < refused < 300
