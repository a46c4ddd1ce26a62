from __future__ import annotations

import io
import json
import os
import struct
import zipfile
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import safetensors.numpy

from parfocal.errors import FileFormatError, InputError, StorageError
from parfocal.run import files
from parfocal.run.dtypes import DTYPES
from parfocal.run.files import load_arrays, save_reprod_log
from parfocal.run.records import StateRecord, StepRecord, TensorValue, ValueRecord
from parfocal.run.serial import RECORD_TYPES
from parfocal.run.writer import RunWriter

from .samples import HEADER, call, write_run

LOG = {
    "logits": np.arange(6, dtype=np.float32).reshape(2, 3),
    "loss": np.float64(0.5),
    "names": ["a"],
    "n": {"x": 1},
}


def equal(a: Any, b: Any) -> bool:
    if isinstance(a, np.ndarray):
        return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
    return type(a) is type(b) and bool(a == b)


def same_items(a: dict[str, Any], b: dict[str, Any]) -> bool:
    return list(a) == list(b) and all(equal(a[key], b[key]) for key in a)


# reprod_log


def test_a_reprod_log_file_is_what_numpy_saves(tmp_path: Path) -> None:
    path = save_reprod_log(tmp_path / "ours", LOG)
    np.save(tmp_path / "theirs", LOG)  # type: ignore[arg-type]
    assert path == tmp_path / "ours.npy"
    assert path.read_bytes() == (tmp_path / "theirs.npy").read_bytes()
    assert same_items(load_arrays(path), LOG)
    assert same_items(np.load(path, allow_pickle=True).tolist(), LOG)


def test_the_suffix_is_added_on_saving_and_found_on_loading(tmp_path: Path) -> None:
    assert save_reprod_log(tmp_path / "log.npy", LOG).name == "log.npy"
    assert save_reprod_log(tmp_path / "forward.v1", LOG).name == "forward.v1.npy"
    assert same_items(load_arrays(tmp_path / "forward.v1"), LOG)
    np.save(tmp_path / "both.npy", np.zeros(1))
    with open(tmp_path / "both", "wb") as file:
        np.save(file, np.ones(1))
    assert load_arrays(tmp_path / "both")[""][0] == 1


def test_saving_is_done_in_one_step(tmp_path: Path) -> None:
    path = save_reprod_log(tmp_path / "log", LOG)
    before = path.read_bytes()
    with pytest.raises(InputError, match=r"cannot write .*/log.npy: a value cannot be pickled"):
        save_reprod_log(path, {"f": lambda: 0})
    assert path.read_bytes() == before
    assert [item.name for item in tmp_path.iterdir()] == ["log.npy"]
    with pytest.raises(StorageError, match=r"cannot write .*/missing/log.npy: No such file"):
        save_reprod_log(tmp_path / "missing" / "log", LOG)


def test_a_path_without_a_name_is_refused() -> None:
    with pytest.raises(InputError, match="'' does not name a file"):
        save_reprod_log("", LOG)


def test_keys_that_are_no_text(tmp_path: Path) -> None:
    np.save(tmp_path / "a", {1: "x", 2: "y"})  # type: ignore[arg-type]
    assert load_arrays(tmp_path / "a") == {"1": "x", "2": "y"}
    np.save(tmp_path / "b", {1: "x", "1": "y"})  # type: ignore[arg-type]
    with pytest.raises(FileFormatError, match="two keys are the same when written as text"):
        load_arrays(tmp_path / "b")


def test_other_pickled_things_have_no_name(tmp_path: Path) -> None:
    np.save(tmp_path / "a", np.array([[1, 2], 3], dtype=object))
    loaded = load_arrays(tmp_path / "a")
    assert list(loaded) == [""]
    assert loaded[""].shape == (2,)
    assert loaded[""][0] == [1, 2]


# .npy


@pytest.mark.parametrize(
    "array",
    [
        np.arange(6.0).reshape(2, 3),
        np.asfortranarray(np.arange(6).reshape(2, 3)),
        np.array(1.5),
        np.zeros((0, 3), np.complex64),
        np.arange(3, dtype=">i2"),
        np.array([True, False]),
        np.array(["é", "abc"]),
        np.array([b"x"]),
        np.ones(3, ml_dtypes.bfloat16),
        np.ones(3, ml_dtypes.float8_e5m2),
        np.zeros((1,) * 12),
    ],
)
def test_plain_arrays(tmp_path: Path, array: np.ndarray[Any, Any]) -> None:
    np.save(tmp_path / "a.npy", array)
    assert same_items(load_arrays(tmp_path / "a.npy"), {"": array})


@pytest.mark.parametrize("version", [(1, 0), (2, 0), (3, 0)])
def test_every_version_of_the_format(tmp_path: Path, version: tuple[int, int]) -> None:
    with open(tmp_path / "a.npy", "wb") as file:
        np.lib.format.write_array(file, np.arange(3), version=version)
    assert same_items(load_arrays(tmp_path / "a.npy"), {"": np.arange(3)})


def test_the_kind_of_a_file_is_told_by_its_content(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.arange(3))
    (tmp_path / "a.npy").rename(tmp_path / "a.safetensors")
    assert same_items(load_arrays(tmp_path / "a.safetensors"), {"": np.arange(3)})
    (tmp_path / "b.npy").write_text("hello")
    with pytest.raises(FileFormatError, match=r"unknown kind of file; it begins with b'hello'") as caught:
        load_arrays(tmp_path / "b.npy")
    assert ".safetensors can be read" in caught.value.hint


def test_a_large_plain_array_is_mapped_not_read(tmp_path: Path) -> None:
    header = b"{'descr': '|u1', 'fortran_order': False, 'shape': (1099511627776,), }".ljust(117) + b"\n"
    path = tmp_path / "a.npy"
    path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header)
    with pytest.raises(FileFormatError, match="needs 1099511627776 bytes of values, 0 are there"):
        load_arrays(path)
    os.truncate(path, path.stat().st_size + 2**40)  # a sparse file: a terabyte that is not there
    array = load_arrays(path)[""]
    assert array.nbytes == 2**40
    assert array[-1] == 0


def npy(header: str, data: bytes = b"", version: int = 1) -> bytes:
    text = header.encode()
    length = struct.pack("<H" if version == 1 else "<I", len(text))
    return b"\x93NUMPY" + bytes([version, 0]) + length + text + data


def header(descr: str = "'<f4'", order: str = "False", shape: str = "(2,)") -> str:
    return f"{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}, }}"


EIGHT = bytes(8)


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (npy(header(), bytes(7)), "needs 8 bytes of values, 7 are there"),
        (npy(header(), bytes(9)), "needs 8 bytes of values, more follow"),
        (npy(header(shape=f"({2**62}, 4)"), EIGHT), "no array can have shape"),
        (npy(header(shape=f"(0, {2**62})"), b""), "no array can have shape"),
        (npy(header(shape="(-2,)"), EIGHT), "not the header of a plain array"),
        (npy(header(shape="'x'"), EIGHT), "not the header of a plain array"),
        (npy(header(shape="(__import__('os').system('x'),)"), EIGHT), "not the header of a plain array"),
        (npy(header(order="1"), EIGHT), "not the header of a plain array"),
        (npy(header(order="(1,)"), EIGHT), "not the header of a plain array"),
        (npy(header(descr="[('a', '<f4')]"), EIGHT), "not the header of a plain array"),
        (npy(header(descr="'<M8[s]'"), EIGHT), r"dtype 'M8\[s\]' is none of numbers, strings or objects"),
        (npy(header(descr="'|V4'"), EIGHT), "dtype 'V4' is none of"),
        (npy(header(descr="'|S0'"), b""), "no array can have shape"),
        (npy(header(descr="'<U1'", shape="(1,)"), b"\xff" * 4), "0xffffffff, which is no character"),
        (npy(header(descr="'|O'"), b"\x80\x04."), "damaged pickle"),
        (npy("{}", b""), "not the header of a plain array"),
        (npy("{'shape': (" + "1" * 5000, b""), "not the header of a plain array"),  # once took for ever
        (npy(header(shape="(1 1, 2)"), EIGHT), "its shape is"),
        (npy("(" * 5000, b""), "not the header of a plain array"),
        (npy(header(), EIGHT)[:30], "cut within the header"),
        (npy(header(), EIGHT)[:9], "cut within the header"),
        (npy(header(), EIGHT)[:7], "does not begin with"),
        (b"\x93NUMPY\x09\x00" + bytes(20), r"version 9.0; 1.0 to 3.0 are known"),
        (b"\x93NUMPY\x02\x00\xff\xff\xff\xff", "a header of 4294967295 bytes; at most 65536 are allowed"),
        (npy("\u00e9" + header(), EIGHT, 3)[:14] + b"\xff\xff" + bytes(100), "codec can't decode"),
    ],
)
def test_a_wrong_npy_is_refused(tmp_path: Path, data: bytes, text: str) -> None:
    (tmp_path / "a.npy").write_bytes(data)
    with pytest.raises(FileFormatError, match=text) as caught:
        load_arrays(tmp_path / "a.npy")
    assert caught.value.message.startswith(f"{tmp_path}/a.npy: ")


def test_the_header_used_above_is_a_right_one(tmp_path: Path) -> None:
    (tmp_path / "a.npy").write_bytes(npy(header(), EIGHT))
    assert same_items(load_arrays(tmp_path / "a.npy"), {"": np.zeros(2, np.float32)})
    (tmp_path / "b.npy").write_bytes(
        npy("{'shape': (2L,), 'descr': \"<f4\", 'fortran_order': True}\n", EIGHT)
    )
    assert same_items(load_arrays(tmp_path / "b.npy"), {"": np.zeros(2, np.float32)})


# .npz


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_archives(tmp_path: Path, save: Any) -> None:
    arrays = {"a": np.arange(3), "b/c": np.zeros((2, 0)), "f": np.asfortranarray(np.ones((2, 3)))}
    save(tmp_path / "a.npz", **arrays, log=LOG)
    loaded = load_arrays(tmp_path / "a.npz")
    assert same_items(loaded.pop("log"), LOG)
    assert same_items(loaded, arrays)


def test_an_empty_archive(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz")
    assert load_arrays(tmp_path / "a.npz") == {}


def test_a_zip_bomb_is_refused_before_it_is_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("parfocal.run.npy.MAX_NPZ_BYTES", 10**6)
    np.savez_compressed(tmp_path / "a.npz", a=np.zeros(10**6))
    with pytest.raises(
        FileFormatError, match=r"unpacks to 8000128 bytes; at most 1000000 are allowed"
    ) as caught:
        load_arrays(tmp_path / "a.npz")
    assert "64 times the file's size" in caught.value.hint
    np.savez(tmp_path / "b.npz", a=np.zeros(10**6))
    assert load_arrays(tmp_path / "b.npz")["a"].nbytes == 8 * 10**6


def test_a_member_that_unpacks_to_more_than_it_says(tmp_path: Path) -> None:
    buffer = io.BytesIO()
    np.save(buffer, np.zeros(10**6))
    path = tmp_path / "a.npz"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.npy", buffer.getvalue())
    data = path.read_bytes()
    size = struct.pack("<I", len(buffer.getvalue()))
    assert data.count(size) == 2
    path.write_bytes(data.replace(size, struct.pack("<I", 1000)))
    with pytest.raises(FileFormatError, match=r"a\.npz.*: "):
        load_arrays(path)


def test_an_archive_whose_directory_lies_before_its_start(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", a=np.arange(3))
    data = bytearray((tmp_path / "a.npz").read_bytes())
    data[-10:-6] = struct.pack("<I", 0xFFFFFFF0)  # the size of the directory
    data[-6:-2] = struct.pack("<I", 0xFFFFFFF0)
    (tmp_path / "a.npz").write_bytes(data)
    with pytest.raises(FileFormatError, match="damaged zip archive"):
        load_arrays(tmp_path / "a.npz")


def test_foreign_archives_are_named(tmp_path: Path) -> None:
    for name, members, text in (
        ("a.npz", ["notes.txt"], "member 'notes.txt': not a NumPy array"),
        ("b.pth", ["archive/data.pkl"], "b.pth is a torch checkpoint"),
        ("c.npz", ["x", "x.npy"], "two members have the same name"),
    ):
        with zipfile.ZipFile(tmp_path / name, "w") as archive:
            for member in members:
                archive.writestr(member, "hello there")
        with pytest.raises(FileFormatError, match=text):
            load_arrays(tmp_path / name)
    with zipfile.ZipFile(tmp_path / "d.npz", "w", zipfile.ZIP_LZMA) as archive:
        archive.writestr("a.npy", "hello")
    with pytest.raises(FileFormatError, match="packed in a way NumPy does not use"):
        load_arrays(tmp_path / "d.npz")


# .safetensors

CODES = {
    "F32": "float32",
    "BF16": "bfloat16",
    "F8_E4M3": "float8_e4m3fn",
    "F8_E5M2": "float8_e5m2",
    "C64": "complex64",
}


def safetensors_file(header: object, data: bytes) -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def entry(dtype: str, shape: list[Any], begin: Any, end: Any) -> dict[str, Any]:
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


def test_what_the_library_writes(tmp_path: Path) -> None:
    names = ["bool", "uint8", "int8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float16"]
    arrays = {name: np.arange(4).astype(name).reshape(2, 2) for name in [*names, "float32", "float64"]}
    arrays |= {"empty": np.zeros((0, 2), np.float32), "scalar": np.array(2.5)}
    safetensors.numpy.save_file(arrays, tmp_path / "a.safetensors", metadata={"format": "np"})
    loaded = load_arrays(tmp_path / "a.safetensors")
    assert sorted(loaded) == sorted(arrays)
    assert all(equal(loaded[name], arrays[name]) for name in arrays)
    assert not loaded["float64"].flags.owndata


@pytest.mark.parametrize("code", CODES)
def test_dtypes_that_numpy_lacks(tmp_path: Path, code: str) -> None:
    array = np.arange(4).astype(DTYPES[CODES[code]])
    data = safetensors_file({"w": entry(code, [4], 0, array.nbytes)}, array.tobytes())
    (tmp_path / "a").write_bytes(data)
    assert same_items(load_arrays(tmp_path / "a"), {"w": array})


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (
            safetensors_file({"w": entry("F32", [2], 0, 8)}, bytes(7)),
            r"lies at 0 to 8; expected 0 to 8 within 7",
        ),
        (
            safetensors_file({"w": entry("F32", [2], 0, 8)}, bytes(9)),
            "describes 8 bytes of values, 9 are there",
        ),
        (safetensors_file({"w": entry("F32", [2], 4, 12)}, bytes(12)), "lies at 4 to 12; expected 0 to 8"),
        (safetensors_file({"w": entry("F32", [3], 0, 8)}, EIGHT), "lies at 0 to 8; expected 0 to 12"),
        (safetensors_file({"w": entry("F32", [2**62, 4], 0, 8)}, EIGHT), "expected 0 to None"),
        (safetensors_file({"w": entry("F32", [-2], 0, 8)}, EIGHT), "expected 0 to None"),
        (safetensors_file({"w": entry("F32", [True], 0, 4)}, bytes(4)), "not integers"),
        (safetensors_file({"w": entry("F4", [2], 0, 8)}, EIGHT), "has dtype 'F4'; known are BOOL"),
        (safetensors_file({"w": 5}, EIGHT), "tensor 'w' has no dtype, shape and data_offsets"),
        (safetensors_file(b"{", b""), "header is not JSON"),
        (safetensors_file(b'{"a":1,"a":1}', b""), "header has one name twice"),
        (safetensors_file(b"{" + b'"a":{' * 50_000, b""), "header is not JSON"),
        (
            safetensors_file({"a": entry("U8", [8], 0, 8), "b": entry("U8", [8], 0, 8)}, EIGHT),
            "tensor 'b' .* lies at 0 to 8; expected 8 to 16",
        ),
    ],
)
def test_a_wrong_safetensors_file_is_refused(tmp_path: Path, data: bytes, text: str) -> None:
    (tmp_path / "a.safetensors").write_bytes(data)
    with pytest.raises(FileFormatError, match=text):
        load_arrays(tmp_path / "a.safetensors")


# Runs


def test_a_run_becomes_named_arrays(tmp_path: Path) -> None:
    arrays = load_arrays(write_run(tmp_path / "r"))
    assert list(arrays) == [
        "layer1.0.conv1#0/input/0",
        "layer1.0.conv1#0/output/0",
        "layer1.0.conv1#0/output/0/grad",
        "optimizer/conv1.weight.moment1@after",
        "end/loss",
        "end/learning_rate",
        "value/accuracy",
        "value/array",
    ]
    assert arrays["layer1.0.conv1#0/input/0"].shape == (2, 3, 4)
    assert arrays["layer1.0.conv1#0/output/0"].dtype.name == "bfloat16"
    assert arrays["value/accuracy"] == 0.75
    np.testing.assert_array_equal(arrays["value/array"], [0, 1, 2])


def test_ops_steps_and_ranks_are_part_of_the_name(tmp_path: Path) -> None:
    with RunWriter(tmp_path / "r", HEADER, rank=1, ranks=2, run_id="j") as writer:
        value = writer.tensor_value(np.ones(2))
        writer.append(call(value, value, op="relu", path="", occurrence=2, step=3, rank=1))
        writer.append(ValueRecord("x", TensorValue("float32", (2,)), rank=1))  # its bytes were not kept
    assert list(load_arrays(writer.path)) == [
        "rank1/step3/:relu#2/input/0",
        "rank1/step3/:relu#2/output/0",
    ]


def test_one_name_twice_in_a_run_is_an_error(tmp_path: Path) -> None:
    with RunWriter(tmp_path / "r", HEADER) as writer:
        writer.append(StepRecord(0, loss=1.0))
        writer.append(StepRecord(0, loss=2.0))
    with pytest.raises(FileFormatError, match="two records have the name 'end/loss'"):
        load_arrays(writer.path)


def test_of_gradients_that_add_up_the_last_counts(tmp_path: Path) -> None:
    with RunWriter(tmp_path / "r", HEADER) as writer:
        for total in (1.0, 3.0):  # after each backward pass of one step
            value = writer.tensor_value(np.full(2, total))
            writer.append(StateRecord("gradient", "w", None, "before", value))
    assert load_arrays(writer.path)["gradient/w@before"].tolist() == [3.0, 3.0]


def test_paths_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match=r"cannot read .*/nothing: No such file or directory \(errno 2\)"):
        load_arrays(tmp_path / "nothing")
    with pytest.raises(FileFormatError, match=r"is not a Run: it has no run\.json"):
        load_arrays(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(FileFormatError, match="is not a regular file"):
        load_arrays(tmp_path / "pipe")
    (tmp_path / "empty.npy").write_bytes(b"")
    with pytest.raises(FileFormatError, match=r"empty\.npy is empty"):
        load_arrays(tmp_path / "empty.npy")


def test_every_kind_of_record_has_names() -> None:
    assert set(files._NAMES) == set(RECORD_TYPES.values())
