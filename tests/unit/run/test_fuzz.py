"""Mutated files either load or raise a ``ParfocalError``: no crash, no hang, no code, no warning."""

from __future__ import annotations

import json
import random
import shutil
import struct
import time
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import safetensors.numpy

from parfocal.errors import ParfocalError
from parfocal.run.files import load_arrays, save_reprod_log
from parfocal.run.reader import load_run
from parfocal.run.records import ValueRecord
from parfocal.run.ring import RingShape
from parfocal.run.writer import RunWriter

from .hostile import MARKER, samples
from .samples import HEADER, records, write_run

ROUNDS = 350  # for each of the nine kinds of file below
SLOWEST = 5.0  # seconds that any one file may take

ARRAYS = {
    "weight": np.arange(12, dtype=np.float32).reshape(3, 4),
    "brain": np.ones(5, ml_dtypes.bfloat16),
    "text": np.array(["ab", "c"]),
    "scalar": np.array(2.5),
}
LOG = {**ARRAYS, "nested": {"list": [1, 2.5, "x", None, (True, b"y")], "value": np.float32(1)}}


def make_plain(folder: Path) -> Path:
    np.save(folder / "a.npy", ARRAYS["weight"])
    return folder / "a.npy"


def make_log(folder: Path) -> Path:
    return save_reprod_log(folder / "a.npy", LOG)


def make_archive(folder: Path) -> Path:
    np.savez(folder / "a.npz", **LOG)  # type: ignore[arg-type]
    return folder / "a.npz"


def make_packed_archive(folder: Path) -> Path:
    np.savez_compressed(folder / "a.npz", **LOG)  # type: ignore[arg-type]
    return folder / "a.npz"


def make_safetensors(folder: Path) -> Path:
    arrays = {name: array for name, array in ARRAYS.items() if array.dtype.kind in "if"}
    safetensors.numpy.save_file(arrays, folder / "a.safetensors", metadata={"k": "v"})
    return folder / "a.safetensors"


def part_of_run(name: str, complete: bool) -> Callable[[Path], Path]:
    return lambda folder: write_run(folder / "r", complete=complete) / name


def make_pending(folder: Path) -> Path:
    """A run as a killed process leaves it: its bytes are in the ring alone, in a slot that is not full."""
    shape = RingShape(slot_bytes=4 * 4096, slots=1, after=0)
    writer = RunWriter(folder / "written", HEADER, ring=shape)
    for record in records(writer):
        writer.append(record)
    writer.append(ValueRecord("long", writer.tensor_value(np.arange(1200))))
    shutil.copytree(writer.path, folder / "r")
    writer.close()
    assert (folder / "r" / "tensors-00000.bin").stat().st_size == 0
    return folder / "r" / "pending.bin"


KINDS: dict[str, Callable[[Path], Path]] = {
    "npy": make_plain,
    "reprod_log": make_log,
    "npz": make_archive,
    "packed npz": make_packed_archive,
    "safetensors": make_safetensors,
    "run.json": part_of_run("run.json", True),
    "records.jsonl": part_of_run("records.jsonl", False),
    "tensors-00000.bin": part_of_run("tensors-00000.bin", False),
    "pending.bin": make_pending,
}

# Mutations: bytes in, bytes out.

EXTREMES = [0, 1, -1, 255, 2**15, 2**31 - 1, 2**31, 2**32 - 1, 2**62, 2**63 - 1, 2**63, 2**64 - 1, 10**30]
JSON_VALUES: list[Any] = [
    *EXTREMES,
    None,
    True,
    "",
    "../../etc/passwd",
    [],
    {},
    1e308,
    [[]],
    {"$tuple": 1},
    "float32",
]
SNIPPETS = [sample for sample, _ in samples().values() if len(sample) < 1000]


def flip_bits(data: bytearray, generator: random.Random) -> bytearray:
    for _ in range(generator.choice([1, 1, 2, 8])):
        data[generator.randrange(len(data))] ^= 1 << generator.randrange(8)
    return data


def truncate(data: bytearray, generator: random.Random) -> bytearray:
    return data[: generator.randrange(len(data))]


def insert(data: bytearray, generator: random.Random) -> bytearray:
    at = generator.randrange(len(data) + 1)
    data[at:at] = generator.randbytes(generator.choice([1, 2, 8, 100]))
    return data


def splice(data: bytearray, generator: random.Random) -> bytearray:
    a, b, c = sorted(generator.randrange(len(data) + 1) for _ in range(3))
    return data[:a] + data[b:c] + data[a:b] + data[c:] if generator.random() < 0.5 else data[:b] + data[a:]


def overwrite_number(data: bytearray, generator: random.Random) -> bytearray:
    size, code = generator.choice([(1, "B"), (2, "H"), (4, "I"), (8, "Q")])
    at = generator.randrange(max(1, min(len(data), 400) - size))
    value = generator.choice(EXTREMES) % 2 ** (8 * size)
    data[at : at + size] = struct.pack(f"<{code}", value)
    return data


def change_digits(data: bytearray, generator: random.Random) -> bytearray:
    digits = [index for index, byte in enumerate(data) if 48 <= byte <= 57]
    if digits:
        at = generator.choice(digits)
        data[at : at + 1] = str(generator.choice(EXTREMES)).encode()
    return data


def plant(data: bytearray, generator: random.Random) -> bytearray:
    """A hostile pickle somewhere inside, with or without its head."""
    at = generator.randrange(len(data) + 1)
    data[at:at] = generator.choice(SNIPPETS)[generator.choice([0, 2]) :]
    return data


def edit_json(data: bytearray, generator: random.Random) -> bytearray:
    """Any one value of any one JSON line or header becomes an extreme one, or goes."""
    lines = bytes(data).splitlines()
    number = generator.randrange(len(lines))
    try:
        document = json.loads(lines[number] if len(lines) == 7 else bytes(data))
    except ValueError:
        return flip_bits(data, generator)
    containers = [document]
    for container in containers:
        items = container.values() if isinstance(container, dict) else container
        containers += [item for item in items if isinstance(item, (dict, list)) and item]
    target = generator.choice(containers)
    key = generator.choice(list(target) if isinstance(target, dict) else range(len(target)))
    if generator.random() < 0.2:
        del target[key]
    else:
        target[key] = generator.choice(JSON_VALUES)
    text = json.dumps(document).encode()
    return bytearray(
        b"\n".join([*lines[:number], text, *lines[number + 1 :]]) + b"\n" if len(lines) == 7 else text
    )


MUTATIONS = [
    flip_bits,
    flip_bits,
    truncate,
    insert,
    splice,
    overwrite_number,
    change_digits,
    plant,
    edit_json,
]


def mutate(data: bytes, generator: random.Random) -> bytes:
    changed = bytearray(data)
    for _ in range(generator.choice([1, 1, 1, 2, 4])):
        if changed:
            changed = generator.choice(MUTATIONS)(changed, generator)
    return bytes(changed)


def look_at(value: Any) -> None:
    """Use everything that was loaded, as a comparison would."""
    if isinstance(value, dict):
        for item in value.values():
            look_at(item)
    elif isinstance(value, np.ndarray):
        assert len(value.tobytes()) < 2**24
        repr(value)
    else:
        repr(value)


def use(path: Path) -> None:
    if path.parent.name != "r":
        look_at(load_arrays(path))
        return
    run = load_run(path.parent)
    run.verify()
    look_at(load_arrays(path.parent))


@pytest.mark.parametrize("kind", KINDS)
def test_mutated_files_load_or_are_refused(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path = KINDS[kind](tmp_path)
    original = path.read_bytes()
    use(path)
    generator = random.Random(kind)
    outcomes = {"loaded": 0, "refused": 0}
    for number in range(ROUNDS):
        path.write_bytes(mutate(original, generator))
        started = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            try:
                use(path)
                outcomes["loaded"] += 1
            except ParfocalError:
                outcomes["refused"] += 1
            except BaseException as error:
                shutil.copy(path, tmp_path / "failed")
                raise AssertionError(
                    f"mutation {number} of {kind}: {error!r}; see {tmp_path}/failed"
                ) from error
        assert time.perf_counter() - started < SLOWEST
    assert not Path(MARKER).exists()
    # Segments are covered by checksums, but the padding and the spare bytes between them are not.
    assert outcomes["refused"] > ROUNDS // 10, outcomes
    path.write_bytes(original)
    use(path)


def test_members_of_an_archive_are_mutated_too(tmp_path: Path) -> None:
    """A zip's own checksum hides the members from the mutations above: change them before packing."""
    generator = random.Random(3)
    original = make_log(tmp_path).read_bytes()
    refused = 0
    for _ in range(200):
        with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
            archive.writestr("a.npy", mutate(original, generator))
        try:
            use(tmp_path / "a.npz")
        except ParfocalError:
            refused += 1
    assert refused > 100
