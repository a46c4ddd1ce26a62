"""Large runs: tensor bytes go through a ring of slots and are written by a thread of its own."""

from __future__ import annotations

import threading
import zlib
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parfocal.run import background, blockfile
from parfocal.run.blockfile import PAGE
from parfocal.run.copying import copy_summed
from parfocal.run.layout import ALIGNMENT, pending_file
from parfocal.run.reader import load_run
from parfocal.run.records import TensorRef
from parfocal.run.ring import RingShape
from parfocal.run.writer import RunWriter

from .rings import NAMES, Gate, append, assert_holds, names, noise, open_run, wait_until_idle
from .samples import HEADER

# A finished run.


def oracle(sizes: list[int], segment_bytes: int) -> tuple[list[tuple[int, int]], list[bytes]]:
    """Where tensors of these sizes lie, and what the segments' files are, said plainly."""
    places: list[tuple[int, int]] = []
    files: list[bytes] = []
    for number, size in enumerate(sizes):
        if not size:
            places.append((0, 0))
            continue
        offset = -(-len(files[-1]) // ALIGNMENT) * ALIGNMENT if files else 0
        if not files or (offset and offset + size > segment_bytes):
            files.append(b"")
            offset = 0
        files[-1] = files[-1].ljust(offset, b"\0") + noise(size, number).tobytes()
        places.append((len(files) - 1, offset))
    return places, files


@settings(max_examples=60, deadline=None)
@given(
    sizes=st.lists(
        st.one_of(
            st.integers(0, 3 * PAGE), st.sampled_from([0, 1, 63, 64, 65, PAGE - 1, PAGE, PAGE + 1, 9 * PAGE])
        ),
        max_size=12,
    ),
    slot_pages=st.integers(1, 3),
    slots=st.integers(0, 3),
    after=st.sampled_from([0, 1, 100, PAGE, 5 * PAGE, 2**30]),
    segment_bytes=st.sampled_from([1, 1000, PAGE, 3 * PAGE + 1, 2**30]),
    direct=st.booleans(),
)
def test_any_sequence_of_sizes_gives_the_same_files_as_writing_plainly(
    tmp_path_factory: pytest.TempPathFactory,
    sizes: list[int],
    slot_pages: int,
    slots: int,
    after: int,
    segment_bytes: int,
    direct: bool,
) -> None:
    places, files = oracle(sizes, segment_bytes)
    shape = RingShape(slot_pages * PAGE, slots, after)
    with pytest.MonkeyPatch.context() as patch:
        if not direct:
            patch.setattr(blockfile, "_DIRECT", 0)
        writer = open_run(tmp_path_factory.mktemp("run") / "r", ring=shape, segment_bytes=segment_bytes)
        with writer:
            live = load_run(writer.path)
            refs = []
            for number, size in enumerate(sizes):
                refs.append(writer.tensor(noise(size, number)))
                np.testing.assert_array_equal(live.read(refs[-1]), noise(size, number))
    assert [(ref.segment, ref.offset) for ref in refs] == places
    assert [ref.nbytes for ref in refs] == sizes
    found = [path.read_bytes() for path in sorted(writer.path.glob("*.bin"))]
    assert found == files
    run = load_run(writer.path)
    for number, ref in enumerate(refs):
        np.testing.assert_array_equal(run.read(ref), noise(ref.nbytes, number))


def test_a_small_run_has_no_ring_and_no_thread(tmp_path: Path) -> None:
    before = threading.active_count()
    with RunWriter(tmp_path / "r", HEADER) as writer:
        append(writer, noise(1000), noise(100_000))
        assert names(writer.path) == NAMES
        assert threading.active_count() == before


def test_a_large_run_has_a_ring_until_it_is_closed(tmp_path: Path) -> None:
    before = threading.active_count()
    arrays = [noise(2**20, seed) for seed in range(7)]
    with RunWriter(tmp_path / "r", HEADER) as writer:
        append(writer, *arrays)
        assert names(writer.path) == ["pending.bin", *NAMES]
        assert_holds(load_run(writer.path), arrays)
        assert "pending.bin" in Path("/proc/self/maps").read_text()
    assert names(writer.path) == NAMES
    assert threading.active_count() == before
    assert "pending.bin" not in Path("/proc/self/maps").read_text()
    assert_holds(load_run(writer.path), arrays)


def test_a_ring_takes_room_as_it_is_used(tmp_path: Path) -> None:
    with open_run(tmp_path / "r", ring=RingShape(slot_bytes=2**20, slots=8, after=0)) as writer:
        append(writer, noise(100), noise(100))
        assert (writer.path / "pending.bin").stat().st_blocks * 512 < 2 * 2**20


@pytest.mark.parametrize("size", [PAGE // 2, 2 * PAGE])
def test_arrays_that_lie_differently_are_stored_in_order(tmp_path: Path, size: int) -> None:
    base = noise(8 * size).view("<i4").reshape(2, -1)
    arrays = [base[:, ::2], base.T, base.astype(">i4"), np.asfortranarray(base), base[0, ::-1]]
    with open_run(tmp_path / "r", ring=RingShape(4 * size, 2, 0)) as writer:
        append(writer, *arrays)
    assert_holds(load_run(writer.path), arrays)


def test_an_exception_removes_the_ring_and_leaves_the_run_incomplete(tmp_path: Path) -> None:
    arrays = [noise(5000), noise(9000)]

    def record_and_fail() -> None:
        with open_run(tmp_path / "r") as writer:
            append(writer, *arrays)
            raise KeyError("the model's own fault")

    with pytest.raises(KeyError):
        record_and_fail()
    assert names(tmp_path / "r") == NAMES
    run = load_run(tmp_path / "r")
    assert not run.complete
    assert_holds(run, arrays)


def test_every_rank_has_a_ring_of_its_own(tmp_path: Path) -> None:
    writers = [open_run(tmp_path / "r", rank=rank, ranks=5, run_id="job") for rank in range(5)]
    arrays = [[noise(3000 * (part + 1), rank * 10 + part) for part in range(4)] for rank in range(5)]
    for part in range(4):
        for writer, own in zip(writers, arrays, strict=True):
            append(writer, own[part])
    rings = [pending_file(rank, 5) for rank in range(5)]
    assert [name for name in names(tmp_path / "r") if name.startswith("pending")] == rings
    for moment in ("open", "closed"):
        run = load_run(tmp_path / "r")
        for rank in range(5):
            assert_holds(run, arrays[rank], rank)
        assert run.complete == (moment == "closed")
        for writer in writers:
            writer.close()
    assert not [name for name in names(tmp_path / "r") if name.startswith("pending")]


@pytest.mark.parametrize("call", range(7))
def test_a_tensor_that_was_interrupted_is_space_that_nobody_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: int
) -> None:
    calls = []

    def copy(*arguments: Any) -> int:
        calls.append(arguments)
        if len(calls) == call + 1:
            raise KeyboardInterrupt
        return copy_summed(*arguments)

    monkeypatch.setattr(background, "copy_summed", copy)
    arrays = [noise(3000, 1), noise(9000, 2), noise(70, 3), noise(PAGE, 4)]
    kept = []
    with open_run(tmp_path / "r") as writer:
        for array in arrays:
            with suppress(KeyboardInterrupt):
                append(writer, array)
                kept.append(array)
    assert len(kept) == 3
    assert_holds(load_run(writer.path), kept)


# Reading while bytes wait.


def test_what_is_not_written_is_read_from_the_ring(tmp_path: Path, gate: Gate) -> None:
    arrays = [noise(3000, 1), noise(6000, 2), noise(2000, 3)]
    writer = open_run(tmp_path / "r")
    append(writer, *arrays)
    assert (writer.path / "tensors-00000.bin").stat().st_size == 0
    run = load_run(writer.path)
    assert not run.complete
    assert_holds(run, arrays)
    first = run.read(run.values()[0].value)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="read-only"):
        first[0] = 1
    gate.open.set()
    wait_until_idle(writer)
    assert (writer.path / "tensors-00000.bin").stat().st_size == 2 * PAGE
    assert_holds(run, arrays)
    writer.close()
    assert_holds(run, arrays)


def test_a_full_ring_makes_the_recording_wait(tmp_path: Path, gate: Gate) -> None:
    arrays = [noise(PAGE, seed) for seed in range(8)]
    writer = open_run(tmp_path / "r")
    recording = threading.Thread(target=append, args=(writer, *arrays))
    recording.start()
    recording.join(0.3)
    assert recording.is_alive()
    assert_holds(load_run(writer.path), arrays[:3])
    gate.open.set()
    recording.join(30)
    assert not recording.is_alive()
    writer.close()
    assert_holds(load_run(writer.path), arrays)
    assert gate.writes == [(number * PAGE, PAGE) for number in range(8)]


def test_a_slot_that_is_used_again_while_it_is_read_gives_no_wrong_bytes(
    tmp_path: Path, gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    from parfocal.run import pending

    writer = open_run(tmp_path / "r")
    ref = writer.tensor(noise(PAGE, 1))
    original = pending._pieces
    seen = []

    def pieces_then_recycle(*arguments: Any) -> Any:
        """The reader has seen what the slot holds; before it copies, other bytes come there."""
        found = original(*arguments)
        seen.append(found)
        if len(seen) == 1:
            gate.open.set()
            wait_until_idle(writer)
            for seed in range(2, 5):
                writer.tensor(noise(PAGE, seed))
            wait_until_idle(writer)
        return found

    monkeypatch.setattr(pending, "_pieces", pieces_then_recycle)
    np.testing.assert_array_equal(load_run(writer.path).read(ref, check=False), noise(PAGE, 1))
    assert seen[0] is not None
    writer.close()


def test_a_run_is_read_rightly_while_another_thread_writes_it(tmp_path: Path) -> None:
    writer = open_run(tmp_path / "r", ring=RingShape(4 * PAGE, 2, 0), segment_bytes=50 * PAGE)
    refs: list[TensorRef] = []
    failures: list[BaseException] = []
    done = threading.Event()

    def read() -> None:
        run = load_run(writer.path)
        try:
            while not done.is_set():
                for number in range(max(0, len(refs) - 6), len(refs)):
                    expected = np.full(refs[number].nbytes, number % 251, np.uint8)
                    np.testing.assert_array_equal(run.read(refs[number], check=False), expected)
        except BaseException as error:  # raised below
            failures.append(error)

    reader = threading.Thread(target=read)
    reader.start()
    for number in range(400):
        refs.append(writer.tensor(np.full(3000 + number * 7, number % 251, np.uint8)))
    done.set()
    reader.join()
    writer.close()
    assert failures == []


# Copying.


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("nbytes", [0, 1, 15, 64, 1000, 2**18, 2**18 + 1, 3 * 2**18 + 77])
def test_bytes_are_summed_as_they_are_copied(
    monkeypatch: pytest.MonkeyPatch, nbytes: int, compiled: bool
) -> None:
    from parfocal.run import copying

    if not compiled:
        monkeypatch.setattr(copying, "_COMPILED", False)
    source, target = noise(nbytes), np.zeros(nbytes, np.uint8)
    half = nbytes // 3
    checksum = copy_summed(target[:half], source[:half])
    assert copy_summed(target[half:], source[half:], checksum) == zlib.crc32(source.data)
    np.testing.assert_array_equal(target, source)
