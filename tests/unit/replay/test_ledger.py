"""Tensors put aside: equal arrays come back, from memory or disk, and nothing stays behind."""

from __future__ import annotations

import errno
import os
import tempfile

import ml_dtypes
import numpy as np
import pytest

from parfocal.errors import InputError, StorageError
from parfocal.replay import ledger as module
from parfocal.replay.ledger import Ledger, parse_amount

AMOUNTS = {
    "2GB": 2 * 2**30,
    "512 MiB": 512 * 2**20,
    "1KB": 1024,
    "1kb": 1024,
    "1.5K": 1536,
    " 3 t ": 3 * 2**40,
    "0": 0,
    "17": 17,
    "17B": 17,
}
DTYPES = ["float32", "float64", "float16", ml_dtypes.bfloat16, "int64", "uint8", "bool", "complex64"]


@pytest.mark.parametrize(("text", "amount"), AMOUNTS.items())
def test_amounts_as_people_write_them(text, amount):
    assert parse_amount(text) == amount


def test_numbers_and_none():
    assert parse_amount(12345) == 12345
    assert parse_amount(None) is None


@pytest.mark.parametrize(
    "wrong", ["", "lots", "-1GB", "2 XB", "1e9", "GB", "2GBs", "nan", "1.2.3MB", -5, True]
)
def test_what_is_no_amount(wrong):
    with pytest.raises(InputError) as caught:
        parse_amount(wrong)
    assert caught.value.message == f"memory={wrong!r} is not an amount of memory"
    assert caught.value.hint == 'write e.g. memory="2GB"'


def files_open() -> set[str]:
    """What this process has open, by the name the system gives it."""
    names = set()
    for number in os.listdir("/proc/self/fd"):
        try:
            names.add(os.readlink(f"/proc/self/fd/{number}"))
        except FileNotFoundError:
            continue
    return names


@pytest.mark.parametrize("budget", [0, 100, 10**9])
@pytest.mark.parametrize("dtype", DTYPES)
def test_equal_arrays_come_back(dtype, budget):
    arrays = [
        np.arange(24).reshape(2, 3, 4).astype(dtype),
        np.array(5).astype(dtype),
        np.empty((0, 3), dtype),
        np.arange(12).reshape(3, 4).astype(dtype).T,  # not contiguous
    ]
    with Ledger(budget) as ledger:
        tickets = [ledger.put(array) for array in arrays]
        for ticket, array in [*zip(tickets, arrays, strict=True)][::-1]:
            found = ledger.get(ticket)
            assert found.dtype == array.dtype
            assert found.shape == array.shape
            assert found.tobytes() == array.tobytes()


@pytest.mark.parametrize("budget", [0, 10**9])
def test_an_array_is_kept_as_it_was_when_it_was_put(budget):
    array = np.ones(10, "float32")
    with Ledger(budget) as ledger:
        ticket = ledger.put(array)
        array[:] = 9.0
        assert ledger.get(ticket).tolist() == [1.0] * 10


@pytest.mark.parametrize("size", [10, 10**7])  # in a piece of memory with others, and by itself
def test_what_is_taken_is_no_longer_held(size):
    array = np.ones(size, "float32")
    with Ledger() as ledger:
        taken, stays = ledger.put(array), ledger.put(array * 2)
        assert ledger.take(taken)[-1] == 1
        assert not ledger.has_in_memory(taken)
        assert ledger.get(stays)[-1] == 2


def test_what_is_taken_from_the_disk():
    with Ledger(0) as ledger:
        assert ledger.take(ledger.put(np.arange(3))).tolist() == [0, 1, 2]


def test_non_finite_bits_survive_the_disk():
    array = np.array([np.nan, -np.inf, -0.0, 1e-45], "float32")
    with Ledger(0) as ledger:
        assert ledger.get(ledger.put(array)).tobytes() == array.tobytes()


def test_memory_is_used_up_to_the_budget_and_the_disk_beyond(monkeypatch):
    written = []
    real = os.pwrite
    monkeypatch.setattr(
        os, "pwrite", lambda file, data, at: written.append(len(data)) or real(file, data, at)
    )
    with Ledger(100) as ledger:
        ledger.put(np.zeros(10, "float32"))  # 40
        ledger.put(np.zeros(10, "float64"))  # 80: too much
        ledger.put(np.zeros(15, "float32"))  # 60: fits exactly
        ledger.put(np.zeros(1, "uint8"))
    assert written == [80, 1]


def test_nothing_has_a_name_on_disk_and_nothing_stays_open(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    before = files_open()
    with Ledger(0) as ledger:
        ticket = ledger.put(np.arange(1000))
        assert list(tmp_path.iterdir()) == []
        opened = files_open() - before
        assert any(name.startswith(str(tmp_path)) for name in opened)
        assert ledger.get(ticket)[999] == 999
    assert list(tmp_path.iterdir()) == []
    assert files_open() - before == set()


def test_nothing_stays_after_an_exception_either(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    before = files_open()

    def fail():
        with Ledger(0) as ledger:
            ledger.put(np.arange(1000))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert list(tmp_path.iterdir()) == []
    assert files_open() - before == set()


def test_short_writes_and_reads_are_continued(monkeypatch):
    write, read = os.pwrite, os.preadv
    monkeypatch.setattr(os, "pwrite", lambda file, data, at: write(file, data[:7], at))
    monkeypatch.setattr(os, "preadv", lambda file, parts, at: read(file, [parts[0][:5]], at))
    array = np.arange(20, dtype="float64")
    with Ledger(0) as ledger:
        tickets = [ledger.put(array + number) for number in range(3)]
        assert [ledger.get(ticket).tolist() for ticket in tickets] == [(array + n).tolist() for n in range(3)]


def test_room_is_asked_for_before_it_is_written_to(monkeypatch):
    asked: list[tuple[int, int]] = []
    monkeypatch.setattr(module, "reserve", lambda _, offset, nbytes: asked.append((offset, nbytes)))
    monkeypatch.setattr(module, "_RESERVED", 4096)
    with Ledger(0) as ledger:
        ledger.put(np.zeros(100, np.uint8))
        assert asked == [(0, 4096)]
        ledger.put(np.zeros(100, np.uint8))  # there is room
        assert asked == [(0, 4096)]
        ledger.put(np.zeros(9000, np.uint8))  # more than is asked for at once
    assert asked == [(0, 4096), (4096, 4096), (8192, 4096)]


def test_what_is_kept_in_memory_asks_for_no_room(monkeypatch):
    asked: list[object] = []
    monkeypatch.setattr(module, "reserve", lambda *given: asked.append(given))
    with Ledger(10_000) as ledger:
        ledger.put(np.zeros(100, np.uint8))
    assert not asked


def test_a_full_disk_is_said_with_the_place_and_what_to_do(monkeypatch, tmp_path):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    def full(file, data, at):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "pwrite", full)
    with Ledger(0) as ledger, pytest.raises(StorageError) as caught:
        ledger.put(np.zeros(10, "float32"))
    assert caught.value.message == f"cannot put 40 bytes aside in {tmp_path}: No space left on device"
    assert caught.value.hint == "free some space there, set TMPDIR to a larger disk, or raise memory="


def test_a_temporary_folder_that_is_not_there(monkeypatch, tmp_path):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "gone"))
    with Ledger(0) as ledger, pytest.raises(StorageError, match="No such file or directory"):
        ledger.put(np.zeros(10, "float32"))


def test_a_file_that_became_shorter_is_an_error_and_not_a_wait(monkeypatch):
    with Ledger(0) as ledger:
        ticket = ledger.put(np.zeros(10, "float32"))
        monkeypatch.setattr(os, "preadv", lambda file, parts, at: 0)
        with pytest.raises(StorageError, match="40 of 40 bytes put aside cannot be read back"):
            ledger.get(ticket)


def test_what_is_given_is_kept_as_it_is_and_anything_else_is_copied():
    own, lent = np.arange(6.0).reshape(2, 3), np.arange(6.0).reshape(2, 3)
    with Ledger(1000) as ledger:
        kept, copied = ledger.put(own, given=True), ledger.put(lent)
        turned = ledger.put(own.T, given=True)
        assert ledger.get(kept) is own
        assert not np.shares_memory(ledger.get(copied), lent)
        assert ledger.get(turned).flags.c_contiguous
        assert not np.shares_memory(ledger.get(turned), own)
        lent[:] = 0
        assert ledger.get(copied).sum() == 15.0


def test_many_small_arrays_do_not_overlap():
    generator = np.random.default_rng(0)
    arrays = [generator.standard_normal(int(n)).astype("float32") for n in generator.integers(0, 400_000, 60)]
    with Ledger() as ledger:
        tickets = [ledger.put(array) for array in arrays]
        assert all(
            np.array_equal(ledger.get(ticket), array) for ticket, array in zip(tickets, arrays, strict=True)
        )


def in_memory(ledger, count, size=100):
    """How many of so many arrays are kept there; all come back as they were."""
    tickets = [ledger.put(np.full(size, number, np.uint8)) for number in range(count)]
    assert all(np.array_equal(ledger.get(each), np.full(size, number)) for number, each in enumerate(tickets))
    return sum(ledger.has_in_memory(each) for each in tickets)


def test_by_default_memory_is_in_proportion_to_what_is_put_aside(monkeypatch):
    monkeypatch.setattr(module, "LEAST", 0)
    with Ledger() as ledger:
        assert in_memory(ledger, 80) == 80 // module.SHARE
        assert ledger.budget == 8000 // module.SHARE


def test_small_runs_stay_in_memory(monkeypatch):
    monkeypatch.setattr(module, "LEAST", 5000)
    with Ledger() as ledger:
        assert in_memory(ledger, 50) == 50
        assert in_memory(ledger, 10) == 0
        assert ledger.budget == 5000


def test_a_budget_that_is_set_does_not_grow(monkeypatch):
    monkeypatch.setattr(module, "LEAST", 5000)
    with Ledger(300) as ledger:
        assert in_memory(ledger, 80) == 3
        assert ledger.budget == 300
