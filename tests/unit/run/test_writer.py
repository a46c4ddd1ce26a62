from __future__ import annotations

import errno
import os
import subprocess
import sys
import textwrap
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from parfocal.errors import InputError, StorageError
from parfocal.run.dtypes import DTYPES
from parfocal.run.reader import load_run
from parfocal.run.records import StepRecord, ValueRecord
from parfocal.run.writer import RunWriter

from .samples import HEADER, records, write_run


def stored(folder: Path, array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    with RunWriter(folder, HEADER) as writer:
        writer.append(ValueRecord("x", writer.tensor_value(array)))
    run = load_run(writer.path)
    assert run.verify() == []
    (record,) = run.values()
    return run.read(record.value)  # type: ignore[arg-type]


def same_bits(a: np.ndarray[Any, Any], b: np.ndarray[Any, Any]) -> bool:
    little = [np.ascontiguousarray(x, DTYPES[x.dtype.name]).tobytes() for x in (a, b)]
    return a.dtype.name == b.dtype.name and a.shape == b.shape and little[0] == little[1]


def layouts(array: np.ndarray[Any, Any]) -> dict[str, np.ndarray[Any, Any]]:
    """The same values, lying differently in memory."""
    doubled = np.zeros((*array.shape, 2), array.dtype)
    doubled[..., 1] = array
    views = {
        "c": array,
        "fortran": np.asfortranarray(array),
        "strided": doubled[..., 1],
        "flipped": array[::-1],
    }
    if array.dtype.isbuiltin == 1:
        views["big_endian"] = array.astype(array.dtype.newbyteorder(">"))
    return views


@pytest.mark.parametrize("name", sorted(DTYPES))
def test_every_dtype_and_layout_round_trips(tmp_path: Path, name: str) -> None:
    bits = np.random.default_rng(0).integers(0, 256, size=6 * DTYPES[name].itemsize, dtype=np.uint8)
    bits = bits & 1 if name == "bool" else bits
    array = bits.view(DTYPES[name]).reshape(2, 3)
    for layout, view in layouts(array).items():
        assert same_bits(stored(tmp_path / layout, view), view), layout


@pytest.mark.parametrize("shape", [(), (0,), (3, 0, 2), (1,), (1, 1, 1, 1)])
def test_scalars_and_empty_arrays_round_trip(tmp_path: Path, shape: tuple[int, ...]) -> None:
    for name in ("float32", "bfloat16", "complex64", "bool"):
        array = np.ones(shape, DTYPES[name])
        assert same_bits(stored(tmp_path / name, array), array)


@settings(max_examples=40, deadline=None)
@given(
    hnp.arrays(
        hnp.integer_dtypes(endianness="?") | hnp.floating_dtypes(endianness="?", sizes=(16, 32, 64)),
        hnp.array_shapes(min_dims=0, min_side=0, max_side=5),
    ),
    st.booleans(),
)
def test_any_array_round_trips(tmp_path_factory: pytest.TempPathFactory, array: Any, transpose: bool) -> None:
    array = array.T if transpose else array
    assert same_bits(stored(tmp_path_factory.mktemp("run") / "r", array), array)


@pytest.mark.parametrize(
    "array", [np.array(["text"]), np.array([object()]), np.zeros(2, "M8[s]"), np.zeros(1, "i4,f4")]
)
def test_an_array_that_is_no_tensor_is_refused(tmp_path: Path, array: Any) -> None:
    with RunWriter(tmp_path / "r", HEADER) as writer:
        with pytest.raises(InputError, match="cannot be stored; allowed are bool, int8"):
            writer.tensor(array)
        writer.append(StepRecord(0))
    assert len(list(load_run(writer.path).records())) == 1


def test_every_kind_of_record_comes_back_in_order(tmp_path: Path) -> None:
    with RunWriter(tmp_path / "r", HEADER) as writer:
        written = records(writer)
        for record in written:
            writer.append(record)
        assert not load_run(writer.path).complete
    run = load_run(tmp_path / "r")
    assert run.complete
    assert [type(record) for record in run.records()] == [type(record) for record in written]
    assert run.header.framework == "torch"
    assert run.problems == []


def test_records_appended_at_once_are_the_same_lines(tmp_path: Path) -> None:
    files = []
    for name, sizes in {"one": [1, 1, 1], "all": [3], "none": [0, 2, 0, 1]}.items():
        found = [StepRecord(0), ValueRecord("a", 1.5), StepRecord(1, loss=0.1)]
        with RunWriter(tmp_path / name, HEADER) as writer:
            for size in sizes:
                writer.append(*found[:size])
                del found[:size]
        assert len(list(load_run(tmp_path / name).records())) == 3
        files.append((tmp_path / name / "records.jsonl").read_bytes())
    assert files[0] == files[1] == files[2]


def test_of_records_appended_at_once_none_is_written_when_one_cannot_be(tmp_path: Path) -> None:
    with RunWriter(tmp_path / "run", HEADER) as writer:
        with pytest.raises(InputError, match="cannot store ValueRecord"):
            writer.append(StepRecord(0), ValueRecord("a", object()))  # type: ignore[arg-type]
        writer.append(StepRecord(1))
    assert list(load_run(tmp_path / "run").records()) == [StepRecord(1)]


def test_segments_are_bounded_and_aligned(tmp_path: Path) -> None:
    with RunWriter(tmp_path / "r", HEADER, segment_bytes=1000) as writer:
        refs = [writer.tensor(np.full(n, n % 251, np.uint8)) for n in (10, 500, 400, 5000, 1, 0)]
    assert [(ref.segment, ref.offset) for ref in refs] == [(0, 0), (0, 64), (0, 576), (1, 0), (2, 0), (0, 0)]
    assert sorted(path.name for path in writer.path.glob("*.bin")) == [
        f"tensors-0000{n}.bin" for n in range(3)
    ]
    run = load_run(writer.path)
    for ref, n in zip(refs, (10, 500, 400, 5000, 1, 0), strict=True):
        np.testing.assert_array_equal(run.read(ref), np.full(n, n % 251, np.uint8))


def test_a_contiguous_array_is_not_copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    array = np.arange(8, dtype=np.float32)
    seen: list[np.ndarray[Any, Any]] = []
    original = os.write

    def spy(descriptor: int, data: Any) -> int:
        seen.append(np.frombuffer(data, np.uint8))
        return original(descriptor, data)

    monkeypatch.setattr(os, "write", spy)
    with RunWriter(tmp_path / "r", HEADER) as writer:
        writer.tensor(array)
        writer.tensor(array[::2])
        shared = [np.shares_memory(data, array) for data in seen]
    assert shared[-2:] == [True, False]


def test_an_exception_leaves_an_incomplete_run_with_what_was_finished(tmp_path: Path) -> None:
    def record_and_fail() -> None:
        with RunWriter(tmp_path / "r", HEADER) as writer:
            for record in records(writer):
                writer.append(record)
            raise KeyError("the model's own fault")

    with pytest.raises(KeyError):
        record_and_fail()
    run = load_run(tmp_path / "r")
    assert not run.complete
    assert len(list(run.records())) == 7
    assert run.verify() == []


def test_a_closed_writer_says_so(tmp_path: Path) -> None:
    writer = RunWriter(tmp_path / "r", HEADER)
    writer.close()
    writer.close()
    with pytest.raises(InputError, match=r"the run in .*/r is closed"):
        writer.append(StepRecord(0))
    with pytest.raises(InputError, match="is closed"):
        writer.tensor(np.zeros(1))


def test_threads_do_not_disturb_each_other(tmp_path: Path) -> None:
    barrier = threading.Barrier(4)

    def work(writer: RunWriter, number: int) -> None:
        barrier.wait()
        for step in range(25):
            array = np.full(1000 + number, step * 4 + number, np.int32)
            writer.append(ValueRecord(f"{number}", writer.tensor_value(array), step=step))

    with RunWriter(tmp_path / "r", HEADER, segment_bytes=50_000) as writer, ThreadPoolExecutor(4) as pool:
        for future in [pool.submit(work, writer, number) for number in range(4)]:
            future.result()
    run = load_run(writer.path)
    values = run.values()
    assert len(values) == 100
    for record in values:
        number = int(record.name)
        np.testing.assert_array_equal(
            run.read(record.value),  # type: ignore[arg-type]
            np.full(1000 + number, record.step * 4 + number, np.int32),
        )


# Folders.


def test_a_taken_name_gets_a_number(tmp_path: Path) -> None:
    paths = [write_run(tmp_path / "deep" / "r") for _ in range(3)]
    assert [path.name for path in paths] == ["r", "r-2", "r-3"]
    assert all(len(list(load_run(path).records())) == 7 for path in paths)


def test_an_empty_folder_is_used_and_a_foreign_one_is_not_touched(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert write_run(tmp_path / "empty").name == "empty"
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "notes.txt").write_text("mine")
    assert write_run(tmp_path / "full").name == "full-2"
    assert [path.name for path in (tmp_path / "full").iterdir()] == ["notes.txt"]
    (tmp_path / "file").write_text("mine")
    assert write_run(tmp_path / "file").name == "file-2"


def test_the_current_folder_can_be_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    assert [write_run(Path(".")).name for _ in range(2)] == ["here", "here-2"]
    with pytest.raises(InputError, match="'/' has no name to number"):
        RunWriter("/", HEADER)


@pytest.mark.parametrize("hard_links", [True, False])
def test_a_folder_claimed_by_another_in_the_last_moment_is_left_to_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hard_links: bool
) -> None:
    original = os.link
    claimed: list[Path] = []

    def link_after_another(source: Path, target: Path) -> None:
        if not claimed:
            target.write_text("another run's")
            claimed.append(target)
        if not hard_links:
            raise OSError(errno.EPERM, os.strerror(errno.EPERM))
        original(source, target)

    monkeypatch.setattr(os, "link", link_after_another)
    path = write_run(tmp_path / "r")
    assert path.name == "r-2"
    assert load_run(path).complete
    assert [item.read_text() for item in (tmp_path / "r").iterdir()] == ["another run's"]


def test_no_temporary_files_remain(tmp_path: Path) -> None:
    path = write_run(tmp_path / "r")
    assert sorted(item.name for item in path.iterdir()) == ["records.jsonl", "run.json", "tensors-00000.bin"]


CHILD = textwrap.dedent("""
    import sys
    import numpy as np
    from parfocal.run.records import RunHeader, ValueRecord
    from parfocal.run.writer import RunWriter

    folder, number, rank, ranks, run_id = sys.argv[1:]
    sys.stdin.readline()  # all start together
    header = RunHeader("torch", {})
    for _ in range(int(number)):
        with RunWriter(folder, header, rank=int(rank), ranks=int(ranks), run_id=run_id) as writer:
            array = np.full(100, int(rank), np.int64)
            writer.append(ValueRecord("x", writer.tensor_value(array), rank=int(rank)))
        print(writer.path, flush=True)
""")


def run_together(commands: list[list[str]]) -> list[list[str]]:
    children = [
        subprocess.Popen(
            [sys.executable, "-c", CHILD, *command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for command in commands
    ]
    for child in children:
        assert child.stdin is not None
        child.stdin.write("go\n")
        child.stdin.flush()
    results = [child.communicate(timeout=60)[0].split() for child in children]
    assert [child.returncode for child in children] == [0] * len(children)
    return results


def test_two_processes_with_one_name_never_share_a_folder(tmp_path: Path) -> None:
    command = [str(tmp_path / "r"), "10", "0", "1", ""]
    first, second = run_together([command, command])
    assert len(set(first) | set(second)) == 20
    for path in first + second:
        run = load_run(path)
        assert run.complete
        assert len(run.values()) == 1
        assert run.verify() == []


# Ranks.


def test_ranks_share_a_folder_and_are_read_apart(tmp_path: Path) -> None:
    write_run(tmp_path / "r")  # an older run has the name
    command = [str(tmp_path / "r"), "1"]
    paths = run_together([[*command, str(rank), "3", "job-7"] for rank in range(3)])
    assert {path for (path,) in paths} == {str(tmp_path / "r-2")}
    run = load_run(tmp_path / "r-2")
    assert run.complete
    assert run.ranks == (0, 1, 2)
    assert [record.rank for record in run.values()] == [0, 1, 2]
    for rank in range(3):
        (record,) = run.values(rank=rank)
        np.testing.assert_array_equal(run.read(record.value), np.full(100, rank))  # type: ignore[arg-type]
    assert run.verify() == []
    with pytest.raises(InputError, match=r"has no records of rank 3; it has those of \(0, 1, 2\)"):
        run.values(rank=3)


def test_a_run_is_complete_only_when_all_its_ranks_are(tmp_path: Path) -> None:
    first = RunWriter(tmp_path / "r", HEADER, rank=0, ranks=2, run_id="job")
    second = RunWriter(tmp_path / "r", HEADER, rank=1, ranks=2, run_id="job")
    assert first.path == second.path
    first.append(StepRecord(0, rank=0))
    first.close()
    assert not load_run(first.path).complete
    second.close()
    assert load_run(first.path).complete


def test_a_rank_that_never_came_is_a_problem_by_name(tmp_path: Path) -> None:
    path = write_run(tmp_path / "r", rank=1, ranks=2, run_id="job")
    run = load_run(path)
    assert not run.complete
    assert [str(problem) for problem in run.problems] == [
        "records-rank00000.jsonl: is missing: this rank left no records"
    ]
    assert len(list(run.records())) == 7


def test_wrong_ranks_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="rank 2 of 2: allowed are 0 to ranks - 1"):
        RunWriter(tmp_path / "r", HEADER, rank=2, ranks=2, run_id="job")
    with pytest.raises(InputError, match="rank 0 of 2 has no run_id"):
        RunWriter(tmp_path / "r", HEADER, ranks=2)
    RunWriter(tmp_path / "r", HEADER, ranks=2, run_id="job").close()
    with pytest.raises(InputError, match="has 2 ranks, this process says 3"):
        RunWriter(tmp_path / "r", HEADER, rank=1, ranks=3, run_id="job")
    with pytest.raises(InputError, match=r"rank 0 of run 'job' is recorded in .*/r already"):
        RunWriter(tmp_path / "r", HEADER, ranks=2, run_id="job")
    with (
        RunWriter(tmp_path / "s", HEADER) as writer,
        pytest.raises(InputError, match="the record is of rank 1, this writer is of rank 0"),
    ):
        writer.append(StepRecord(0, rank=1))


# When the operating system refuses.


def test_a_file_in_the_way_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(
        StorageError, match=r"cannot create the folder .*/file/r: Not a directory \(errno 20\)"
    ):
        RunWriter(tmp_path / "file" / "r", HEADER)


def test_a_folder_that_cannot_be_made_is_named() -> None:
    with pytest.raises(StorageError, match=r"cannot create the folder /proc/nowhere: .* \(errno \d+\)"):
        RunWriter("/proc/nowhere", HEADER)


def failing_write(after: int) -> Any:
    """``os.write`` on a disk that has ``after`` bytes left: a short write, then ENOSPC."""
    original, left = os.write, [after]

    def write(descriptor: int, data: Any) -> int:
        if left[0] <= 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        written = original(descriptor, data[: left[0]])
        left[0] -= written
        return written

    return write


@pytest.mark.parametrize("room", [0, 1, 30, 1000, 8010])
def test_a_full_disk_loses_nothing_that_was_finished(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, room: int
) -> None:
    writer = RunWriter(tmp_path / "r", HEADER)
    before = ValueRecord("before", writer.tensor_value(np.arange(10)))
    writer.append(before)
    with monkeypatch.context() as patched:
        patched.setattr(os, "write", failing_write(room))
        with pytest.raises(
            StorageError, match=r"cannot write .*: No space left on device \(errno 28\)"
        ) as caught:
            writer.append(ValueRecord("during", writer.tensor_value(np.arange(1000))))
        assert "free some space" in caught.value.hint
        assert list(load_run(writer.path).records()) == [before]
    # Space was made: the writer goes on where it was, and nothing torn lies in between.
    writer.append(ValueRecord("after", writer.tensor_value(np.arange(20))))
    writer.close()
    run = load_run(writer.path)
    assert [record.name for record in run.values()] == ["before", "after"]
    assert run.verify() == []


def test_short_writes_are_continued(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    original = os.write
    monkeypatch.setattr(os, "write", lambda descriptor, data: original(descriptor, data[:7]))
    array = np.arange(100)
    np.testing.assert_array_equal(stored(tmp_path / "r", array), array)


def test_a_real_file_size_limit_is_reported(tmp_path: Path) -> None:
    code = textwrap.dedent("""
        import resource, signal, sys
        import numpy as np
        from parfocal.errors import StorageError
        from parfocal.run.records import RunHeader, ValueRecord
        from parfocal.run.writer import RunWriter

        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
        count = 0
        try:
            with RunWriter(sys.argv[1], RunHeader("torch", {})) as writer:
                while True:
                    writer.append(ValueRecord(str(count), writer.tensor_value(np.arange(1000))))
                    count += 1
        except StorageError as error:
            print(count, error.message)
    """)
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "r")],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    count, message = done.stdout.split(" ", 1)
    assert f"cannot write {tmp_path}/r/tensors-00000.bin: File too large (errno 27)" in message
    run = load_run(tmp_path / "r")
    assert not run.complete
    assert len(run.values()) == int(count) == 12
    assert run.verify() == []


def test_closing_on_a_full_disk_leaves_the_run_incomplete_but_readable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = RunWriter(tmp_path / "r", HEADER)
    writer.append(StepRecord(0))
    monkeypatch.setattr(os, "write", failing_write(0))
    with pytest.raises(StorageError, match=r"run.json: No space left"):
        writer.close()
    run = load_run(writer.path)
    assert not run.complete
    assert len(run.steps()) == 1
    assert sorted(item.name for item in writer.path.iterdir()) == ["records.jsonl", "run.json"]
