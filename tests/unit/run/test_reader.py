from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from parfocal.errors import FileFormatError, InputError, StorageError
from parfocal.run.reader import Run, load_run
from parfocal.run.records import CallRecord, GradientRecord, TensorRef, TensorValue, ValueRecord
from parfocal.run.writer import RunWriter

from .samples import HEADER, write_run


@pytest.fixture
def run_path(tmp_path: Path) -> Path:
    return write_run(tmp_path / "r")


@pytest.fixture
def interrupted(tmp_path: Path) -> Path:
    return write_run(tmp_path / "i", complete=False)


def read_everything(path: Path) -> None:
    run = load_run(path)
    for record in run.records():
        for value in tensors_of(record):
            run.read(value)


def tensors_of(record: object) -> list[TensorValue]:
    if isinstance(record, CallRecord):
        leaves = [*record.inputs.leaves.values(), *record.outputs.leaves.values()]
    else:
        leaves = [getattr(record, "value", None)]
    return [leaf for leaf in leaves if isinstance(leaf, TensorValue)]


def test_the_accessors_split_the_records_by_kind(run_path: Path) -> None:
    run = load_run(str(run_path))
    assert [len(part()) for part in (run.calls, run.gradients, run.state, run.steps, run.values)] == [
        1,
        2,
        1,
        1,
        2,
    ]
    assert isinstance(run.calls()[0], CallRecord)
    assert isinstance(run.gradients(rank=0)[0], GradientRecord)
    assert run.ranks == (0,)


def test_records_are_decoded_lazily(run_path: Path) -> None:
    append(run_path / "records.jsonl", b"broken\n")
    edit_header(run_path, contents={"records": 8, "record_bytes": size(run_path / "records.jsonl")})
    first = next(load_run(run_path).records())
    assert isinstance(first, CallRecord)


def test_tensors_are_views_that_cannot_be_written(run_path: Path) -> None:
    run = load_run(run_path)
    value = tensors_of(run.calls()[0])[0]
    array = run.read(value)
    assert array.shape == (2, 3, 4)
    assert not array.flags.owndata
    assert np.shares_memory(array, run.read(value))
    with pytest.raises(ValueError, match="read-only"):
        array[0] = 1


def test_a_tensor_of_which_only_a_sketch_was_kept_says_so(run_path: Path) -> None:
    with pytest.raises(InputError, match=r"bytes of this tensor were not kept: .* tensors='full'"):
        load_run(run_path).read(TensorValue("float32", (2,)))


def test_a_moved_run_reads_the_same(run_path: Path, tmp_path: Path) -> None:
    before = list(load_run(run_path).values())
    moved = tmp_path / "elsewhere" / "renamed"
    moved.parent.mkdir()
    shutil.move(run_path, moved)
    run = load_run(moved)
    assert run.values() == before
    assert run.verify() == []


def test_a_run_can_be_read_while_it_is_written(tmp_path: Path) -> None:
    writer = RunWriter(tmp_path / "r", HEADER)
    writer.append(ValueRecord("a", writer.tensor_value(np.arange(5))))
    run = load_run(writer.path)
    first = run.read(run.values()[0].value)  # type: ignore[arg-type]
    ref = writer.tensor(np.arange(1000))
    assert run.read(ref).nbytes == 8000
    np.testing.assert_array_equal(first, np.arange(5))


# Interrupted runs.


def test_an_interrupted_run_loads_and_says_so(interrupted: Path) -> None:
    run = load_run(interrupted)
    assert not run.complete
    assert run.problems == []
    assert len(list(run.records())) == 7
    assert run.verify() == []


@pytest.mark.parametrize("torn", [b"{", b'{"type":"value"', b"\xff\x00", b"{}" * 100_000])
def test_a_torn_last_line_is_tolerated_and_reported(interrupted: Path, torn: bytes) -> None:
    append(interrupted / "records.jsonl", torn)
    run = load_run(interrupted)
    assert len(list(run.records())) == 7
    text = f"records.jsonl: the last line is torn: {len(torn)} bytes were ignored"
    assert [str(problem) for problem in run.problems] == [text]
    assert [str(problem) for problem in run.verify()] == [text]


def test_a_torn_line_in_the_middle_is_an_error(interrupted: Path) -> None:
    lines = (interrupted / "records.jsonl").read_bytes().splitlines(keepends=True)
    lines[2] = lines[2][:40] + b"\n"
    (interrupted / "records.jsonl").write_bytes(b"".join(lines))
    with pytest.raises(FileFormatError, match=r"records.jsonl, line 3: not a JSON object"):
        read_everything(interrupted)
    (problem,) = load_run(interrupted).verify()
    assert (problem.file, problem.line) == ("records.jsonl", 3)


# Damage: what was done to the folder, and what must be said.


def size(path: Path) -> int:
    return path.stat().st_size


def append(path: Path, data: bytes) -> None:
    path.write_bytes(path.read_bytes() + data)


def cut(path: Path, count: int) -> None:
    os.truncate(path, size(path) - count)


def flip(path: Path, position: int, bit: int = 0) -> None:
    data = bytearray(path.read_bytes())
    data[position] ^= 1 << bit
    path.write_bytes(data)


def edit_header(path: Path, **changes: object) -> None:
    data = json.loads((path / "run.json").read_text())
    for key, value in changes.items():
        data[key] = data[key] | value if isinstance(value, dict) else value
    (path / "run.json").write_text(json.dumps(data))


def replace_in_records(path: Path, old: str, new: str) -> None:
    text = (path / "records.jsonl").read_text()
    assert old in text
    (path / "records.jsonl").write_text(text.replace(old, new))


DAMAGE: list[tuple[Callable[[Path], object], str]] = [
    (
        lambda p: cut(p / "tensors-00000.bin", 1),
        r"tensors-00000.bin is too short: it has \d+ bytes, \d+ are needed",
    ),
    (lambda p: (p / "tensors-00000.bin").unlink(), r"tensors-00000.bin is missing"),
    (
        lambda p: flip(p / "tensors-00000.bin", 20),
        r"tensors-00000.bin: checksum of 96 bytes at offset 0 is crc32:",
    ),
    (lambda p: cut(p / "records.jsonl", 1), r"records.jsonl has \d+ bytes; the run was closed with \d+"),
    (lambda p: (p / "records.jsonl").unlink(), r"records.jsonl: is missing: .*, but the run was complete"),
    (lambda p: append(p / "records.jsonl", b"{}\n"), r"records.jsonl has \d+ bytes; the run was closed with"),
    (lambda p: flip(p / "records.jsonl", 0), r"records.jsonl, line 1: not a JSON object"),
    (lambda p: edit_header(p, schema=99), r"run.json: schema version 99; this parfocal reads up to 2"),
    (lambda p: edit_header(p, ranks=10**9), r"run.json: field 'ranks' is 1000000000; at most 100000"),
    (lambda p: (p / "run.json").write_text("{"), r"run.json: not a JSON object"),
    (lambda p: (p / "run.json").write_text(""), r"run.json: not a JSON object"),
    (lambda p: (p / "run.json").unlink(), r"is not a Run: it has no run.json"),
    (lambda p: os.truncate(p / "run.json", 2**40), r"run.json has 1099511627776 bytes; at most 16777216 are"),
]


@pytest.mark.parametrize(("damage", "text"), DAMAGE)
def test_damage_is_named(run_path: Path, damage: Callable[[Path], object], text: str) -> None:
    read_everything(run_path)  # whole before
    damage(run_path)
    with pytest.raises(FileFormatError, match=text):
        read_everything(run_path)


LIES = [
    ('"offset":0,', '"offset":1,', r"tensors-00000.bin: offset 1 is not a multiple of 64"),
    ('"offset":0,', f'"offset":{2**62},', rf"is too short: it has \d+ bytes, {2**62 + 96} are needed"),
    ('"segment":0,', '"segment":7,', r"tensors-00007.bin is missing"),
    ('"segment":0,', f'"segment":{2**62},', rf"tensors-{2**62}.bin is missing"),
    ('"checksum":"crc32:', '"checksum":"md5:', r"unknown checksum 'md5:[0-9a-f]{8}'; crc32 is known"),
    (
        '"shape":[2,3,4],',
        '"shape":[2,3,4000000000],',
        r"is 96, but float32 2x3x4000000000 has 96000000000 bytes",
    ),
    ('"rank":0}', '"rank":5}', r"field 'rank' is \[5\] in the file of rank 0"),
]


@pytest.mark.parametrize(("old", "new", "text"), LIES)
def test_a_record_that_lies_is_refused_before_anything_is_allocated(
    interrupted: Path, old: str, new: str, text: str
) -> None:
    replace_in_records(interrupted, old, new)
    with pytest.raises(FileFormatError, match=text):
        read_everything(interrupted)
    assert any(re.search(text, str(problem)) for problem in load_run(interrupted).verify())


def test_a_shape_that_lies_together_with_its_size_is_refused(interrupted: Path) -> None:
    replace_in_records(interrupted, '"shape":[2,3,4],', f'"shape":[{2**55}],')
    replace_in_records(interrupted, '"nbytes":96,', f'"nbytes":{2**57},')
    with pytest.raises(FileFormatError, match=rf"is too short: it has \d+ bytes, {2**57} are needed"):
        read_everything(interrupted)


def test_a_line_without_end_is_refused(interrupted: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("parfocal.run.reader.MAX_LINE_BYTES", 100)
    with pytest.raises(FileFormatError, match=r"records.jsonl, line 1: longer than 100 bytes"):
        read_everything(interrupted)


@pytest.mark.parametrize("name", ["run.json", "records.jsonl", "tensors-00000.bin"])
def test_a_pipe_in_place_of_a_file_is_refused_and_not_waited_for(run_path: Path, name: str) -> None:
    (run_path / name).unlink()
    os.mkfifo(run_path / name)
    with pytest.raises(FileFormatError, match=rf"{name} is not a regular file"):
        read_everything(run_path)


def test_a_path_that_does_not_exist_is_named(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match=r"cannot read .*/nothing/run.json: No such file or directory"):
        load_run(tmp_path / "nothing")
    with pytest.raises(StorageError, match="File name too long"):
        load_run(tmp_path / ("x" * 5000))
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match="Not a directory"):
        load_run(tmp_path / "file")


# Checksums.


def blocks(path: Path) -> tuple[Path, bytes, Run]:
    with RunWriter(path, HEADER) as writer:
        values = np.random.default_rng(1).integers(1, 256, 5 * 4096, dtype=np.uint8)
        writer.append(ValueRecord("x", writer.tensor_value(values)))
    segment = writer.path / "tensors-00000.bin"
    return segment, segment.read_bytes(), load_run(writer.path)


def swapped(data: bytes) -> bytes:
    return data[4096:8192] + data[:4096] + data[8192:]


CHANGES: list[Callable[[bytes], bytes]] = [
    swapped,
    lambda data: data[:4096] + bytes(4096) + data[8192:],  # a zeroed page
    lambda data: data[:-4096] + bytes(4096),
    lambda data: data[8:] + data[:8],
    lambda data: data[::-1],
    lambda data: bytes(len(data)),
    lambda data: bytes(byte ^ 0x80 for byte in data),  # every sign
]


@pytest.mark.parametrize("change", CHANGES)
def test_the_checksum_sees_moved_and_lost_blocks(tmp_path: Path, change: Callable[[bytes], bytes]) -> None:
    segment, data, run = blocks(tmp_path / "r")
    assert run.verify() == []
    segment.write_bytes(change(data))
    (problem,) = load_run(run.path).verify()
    assert problem.line == 1
    assert re.fullmatch(
        r".*tensors-00000.bin: checksum of 20480 bytes at offset 0 is crc32:[0-9a-f]{8}, "
        r"recorded was crc32:[0-9a-f]{8}",
        problem.message,
    )


def test_the_checksum_sees_every_single_bit(tmp_path: Path) -> None:
    segment, data, run = blocks(tmp_path / "r")
    generator = np.random.default_rng(2)
    for _ in range(300):
        changed = bytearray(data)
        changed[generator.integers(len(data))] ^= 1 << int(generator.integers(8))
        segment.write_bytes(changed)
        assert len(load_run(run.path).verify()) == 1


def test_a_wrong_checksum_is_an_error_on_reading_unless_unchecked(run_path: Path) -> None:
    flip(run_path / "tensors-00000.bin", 20)
    run = load_run(run_path)
    value = tensors_of(run.calls()[0])[0]
    with pytest.raises(FileFormatError, match="checksum of 96 bytes"):
        run.read(value)
    assert run.read(value, check=False).shape == (2, 3, 4)


def test_a_bare_reference_gives_bytes(run_path: Path) -> None:
    run = load_run(run_path)
    ref = tensors_of(run.calls()[0])[0].ref
    assert isinstance(ref, TensorRef)
    assert run.read(ref).dtype == np.uint8
    assert run.read(ref).nbytes == 96
