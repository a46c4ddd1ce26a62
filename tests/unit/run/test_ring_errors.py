"""Large runs: rings that are damaged, and an operating system that refuses."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from parfocal.errors import FileFormatError, InputError, StorageError
from parfocal.run import background
from parfocal.run.blockfile import PAGE
from parfocal.run.layout import ALIGNMENT
from parfocal.run.reader import load_run
from parfocal.run.records import StepRecord

from .rings import NAMES, Gate, append, assert_holds, names, noise, open_run, wait_until_idle

# Damaged rings.


@pytest.fixture
def killed(tmp_path: Path, gate: Gate) -> Path:
    """As a killed process leaves it: the segment is empty, the ring has everything."""
    writer = open_run(tmp_path / "k")
    append(writer, noise(3000, 1), noise(6000, 2))
    path = tmp_path / "killed"
    path.mkdir()
    for item in writer.path.iterdir():
        (path / item.name).write_bytes(item.read_bytes())
    gate.open.set()
    writer.close()
    return path


def poke(path: Path, at: int, value: int) -> None:
    with open(path, "r+b") as file:
        file.seek(at)
        file.write(value.to_bytes(8, "little"))


DAMAGE = {
    "magic": (lambda path: poke(path, 0, 1), "does not begin as a file of pending bytes does"),
    "slot size": (lambda path: poke(path, 16, 5000), "slots have 5000 bytes; allowed are multiples of 4096"),
    "no slot size": (lambda path: poke(path, 16, 0), "slots have 0 bytes"),
    "start": (lambda path: poke(path, 72, 7), "slot 0 has 4096 bytes from offset 7 on"),
    "filled": (lambda path: poke(path, 80, 2**40), "slot 0 has 1099511627776 bytes"),
    "cut": (lambda path: os.truncate(path, PAGE + 100), "slot 0 has 4096 bytes .* within the file's 4196"),
    "empty": (lambda path: os.truncate(path, 0), "too short for pending bytes: it has 0 bytes"),
    "bytes": (lambda path: poke(path, PAGE + 8, 0), "checksum of 3000 bytes at offset 0 is"),
    "gone": (os.unlink, r"tensors-00000.bin is too short: it has 0 bytes, 3000 are needed"),
    "other segment": (lambda path: poke(path, 64, 9), "is too short: it has 0 bytes, 3000 are needed"),
}


def test_a_ring_that_is_left_is_read(killed: Path) -> None:
    assert_holds(load_run(killed), [noise(3000, 1), noise(6000, 2)])


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_ring_is_named(killed: Path, damage: str) -> None:
    change, text = DAMAGE[damage]
    change(killed / "pending.bin")
    run = load_run(killed)
    with pytest.raises(FileFormatError, match=text):
        run.read(run.values()[0].value)  # type: ignore[arg-type]
    assert len(run.verify()) >= 1


def test_a_pipe_in_place_of_a_ring_is_refused(killed: Path) -> None:
    (killed / "pending.bin").unlink()
    os.mkfifo(killed / "pending.bin")
    run = load_run(killed)
    with pytest.raises(FileFormatError, match=r"pending.bin is not a regular file"):
        run.read(run.values()[0].value)  # type: ignore[arg-type]


# When the operating system refuses.


@pytest.mark.parametrize("refused", ["open", "write"])
def test_a_file_system_without_direct_writes_is_written_normally(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, refused: str
) -> None:
    tried = []
    originals = {"open": os.open, "write": os.write}
    direct: set[int] = set()

    def open_file(path: Any, flags: int, mode: int = 0o777) -> int:
        if flags & os.O_DIRECT:
            tried.append("open")
            if refused == "open":
                raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
        descriptor = originals["open"](path, flags, mode)
        (direct.add if flags & os.O_DIRECT else direct.discard)(descriptor)
        return descriptor

    def write(descriptor: int, data: Any) -> int:
        if descriptor in direct:
            tried.append("write")
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
        return originals["write"](descriptor, data)

    monkeypatch.setattr(os, "open", open_file)
    monkeypatch.setattr(os, "write", write)
    arrays = [noise(3000, 1), noise(9000, 2), noise(1, 3)]
    with open_run(tmp_path / "r") as writer:
        append(writer, *arrays)
    assert refused in tried
    assert_holds(load_run(writer.path), arrays)
    assert (writer.path / "tensors-00000.bin").stat().st_size == oracle_size(arrays)


def oracle_size(arrays: list[np.ndarray[Any, Any]]) -> int:
    end = 0
    for array in arrays:
        end = -(-end // ALIGNMENT) * ALIGNMENT + array.nbytes
    return end


def test_a_full_disk_is_raised_by_the_next_call_and_loses_nothing(tmp_path: Path, gate: Gate) -> None:
    arrays = [noise(PAGE, seed) for seed in range(6)]
    gate.error = errno.ENOSPC
    gate.open.set()
    writer = open_run(tmp_path / "r")
    append(writer, arrays[0])
    wait_until_idle(writer)
    text = r"cannot write .*tensors-00000.bin: No space left on device \(errno 28\)"
    with pytest.raises(StorageError, match=text) as caught:
        writer.append(StepRecord(0))
    assert "free some space" in caught.value.hint
    assert_holds(load_run(writer.path), arrays[:1])
    # Who goes on though there is no space can do so as long as the ring has slots.
    with pytest.raises(StorageError, match=text):
        append(writer, *arrays[1:])
    gate.error = None
    kept = len(load_run(writer.path).values())
    assert 1 <= kept <= 3
    append(writer, arrays[4], arrays[5])
    writer.close()
    assert names(writer.path) == NAMES
    run = load_run(writer.path)
    assert run.complete
    assert_holds(run, [*arrays[:kept], *arrays[4:]])


def test_closing_on_a_full_disk_leaves_the_ring_with_what_is_missing(tmp_path: Path, gate: Gate) -> None:
    arrays = [noise(3000, 1), noise(PAGE, 2)]
    writer = open_run(tmp_path / "r")
    append(writer, *arrays)
    gate.error = errno.ENOSPC
    gate.open.set()
    with pytest.raises(StorageError, match=r"cannot write .*tensors-00000.bin: No space left"):
        writer.close()
    assert names(writer.path) == ["pending.bin", *NAMES]
    run = load_run(writer.path)
    assert not run.complete
    assert_holds(run, arrays)
    writer.close(complete=False)  # of no effect
    with pytest.raises(InputError, match="is closed"):
        writer.tensor(arrays[0])


def test_any_other_error_of_the_thread_is_raised_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> None:
        raise RuntimeError("unforeseen")

    monkeypatch.setattr(background, "BlockFile", fail)
    writer = open_run(tmp_path / "r")
    append(writer, noise(PAGE))
    wait_until_idle(writer)
    with pytest.raises(RuntimeError, match="unforeseen"):
        writer.tensor(noise(1))
    with pytest.raises(RuntimeError, match="unforeseen"):
        writer.close()


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EFBIG, errno.EOPNOTSUPP])
@pytest.mark.parametrize("room", [0, 1, 2])
def test_a_ring_that_cannot_be_made_or_grow_is_done_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: int, room: int
) -> None:
    original, asked = os.posix_fallocate, []

    def allocate(descriptor: int, start: int, nbytes: int) -> None:
        asked.append(start)
        if len(asked) > room:
            raise OSError(error, os.strerror(error))
        original(descriptor, start, nbytes)

    monkeypatch.setattr(os, "posix_fallocate", allocate)
    arrays = [noise(PAGE, seed) for seed in range(6)]
    with open_run(tmp_path / "r") as writer:
        append(writer, *arrays)
        assert ("pending.bin" in names(writer.path)) == (room == 2)
    assert names(writer.path) == NAMES
    assert_holds(load_run(writer.path), arrays)


def test_a_forked_process_does_not_touch_the_run(tmp_path: Path) -> None:
    writer = open_run(tmp_path / "r")
    append(writer, noise(9000, 1))
    child = os.fork()
    if not child:
        status = 1
        try:
            with pytest.raises(InputError, match=r"is that of process \d+, this is process"):
                writer.tensor(noise(10))
            writer.close()
            status = 0
        finally:
            os._exit(status)
    assert os.waitpid(child, 0)[1] == 0
    append(writer, noise(5000, 2))
    writer.close()
    run = load_run(writer.path)
    assert run.complete
    assert_holds(run, [noise(9000, 1), noise(5000, 2)])
