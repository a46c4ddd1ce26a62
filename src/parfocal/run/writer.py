"""Writing a Run as it happens.

Tensor bytes go to the current segment first, the record's line after them, each handed to
the operating system at once: a process killed at any moment loses nothing it had finished.
Nothing is kept in memory. ``run.json`` says that the run is incomplete until ``close``.
"""

from __future__ import annotations

import os
import threading
import zlib
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from parfocal.errors import InputError
from parfocal.run.dtypes import DTYPES, dtype_name
from parfocal.run.layout import (
    ALIGNMENT,
    HEADER_FILE,
    MAX_HEADER_BYTES,
    MAX_RANKS,
    claim_folder,
    rank_header_file,
    records_file,
    segment_file,
)
from parfocal.run.records import Contents, Record, RunHeader, TensorRef, TensorValue
from parfocal.run.serial import decode_header, encode_header, encode_record
from parfocal.run.storage import read_limited, reserve, storage_errors, write_all, write_atomically

SEGMENT_BYTES = 256 * 2**20

# Room for a segment is asked for in steps, each as large as what is there, between these sizes.
_SMALLEST_STEP, _LARGEST_STEP = 2**20, 64 * 2**20
# From this size on a tensor is summed on another core while it is written.
_PARALLEL_BYTES = 2**19


class RunWriter:
    """An open Run. Use it as a context manager; ``path`` is the folder it got.

    A process that is one of several ranks gives its ``rank``, the number of ``ranks`` and
    the ``run_id`` that its launcher gave to all of them (by default as the header says).
    A run that need not survive a power failure, as a temporary one, is not ``durable``.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        header: RunHeader,
        *,
        segment_bytes: int = SEGMENT_BYTES,
        rank: int = 0,
        ranks: int | None = None,
        run_id: str | None = None,
        durable: bool = True,
    ) -> None:
        ranks = header.ranks if ranks is None else ranks
        run_id = header.run_id if run_id is None else run_id
        _check_ranks(rank, ranks, run_id)
        if segment_bytes < 1:
            raise InputError(f"segment_bytes is {segment_bytes}, must be positive")
        self.rank = rank
        self.header = replace(header, ranks=ranks, run_id=run_id, complete=False)
        self.path = claim_folder(Path(folder), self.header)
        self._segment_bytes = segment_bytes
        self._durable = durable
        self._lock = threading.RLock()
        self._records_path = self.path / records_file(rank, ranks)
        self._records = self._create_records()
        self._record_count = 0
        self._record_bytes = 0
        self._segment: int | None = None  # file descriptor of the last segment
        self._segment_sizes: list[int] = []
        self._reserved = 0  # bytes of the last segment
        self._closed = False
        self._summer = ThreadPoolExecutor(1, thread_name_prefix="parfocal-checksum")
        if ranks > 1:
            write_atomically(self.path / rank_header_file(rank, ranks), encode_header(self.header, None))

    def tensor(self, array: NDArray[Any]) -> TensorRef:
        """Append an array's bytes; the reference goes into a record that is appended later."""
        data = _little_endian_bytes(array)
        with self._lock:
            self._check_open()
            if not data.nbytes:  # nothing to write, and no segment that it could be missing from
                return TensorRef(0, 0, 0, "crc32:00000000", self.rank)
            offset = self._place(data.nbytes)
            checksum = self._write_tensor(data, offset)
            self._segment_sizes[-1] = offset + data.nbytes
            return TensorRef(len(self._segment_sizes) - 1, offset, data.nbytes, checksum, self.rank)

    def tensor_value(
        self,
        array: NDArray[Any],
        *,
        stats: Mapping[str, Any] | None = None,
        sketch: Mapping[str, Any] | None = None,
    ) -> TensorValue:
        """Append an array's bytes and describe it as a record needs it."""
        ref = self.tensor(array)
        return TensorValue(str(dtype_name(array.dtype)), tuple(array.shape), ref, stats, sketch)

    def append(self, record: Record) -> None:
        """Append one finished record; its tensors' bytes are with the operating system already."""
        line = encode_record(record)
        if record.rank != self.rank:
            raise InputError(f"the record is of rank {record.rank}, this writer is of rank {self.rank}")
        with self._lock:
            self._check_open()
            try:
                with storage_errors("write", self._records_path):
                    write_all(self._records, memoryview(line))
            except BaseException:
                self._take_back_torn_line()
                raise
            self._record_count += 1
            self._record_bytes += len(line)

    def close(self, complete: bool = True) -> None:
        """Finish: synchronise with the disk and mark the run complete, or leave it incomplete."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            self._summer.shutdown()
            try:
                if complete and self._durable:
                    self._synchronise()
            finally:
                self._close_segment()
                os.close(self._records)
            if complete:
                self._mark_complete()

    def __enter__(self) -> RunWriter:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close(complete=error is None)

    def _check_open(self) -> None:
        if self._closed:
            raise InputError(f"the run in {self.path} is closed", hint="open a new RunWriter")

    def _take_back_torn_line(self) -> None:
        """A torn line is tolerated at the end of the file only: nothing may follow it."""
        try:
            os.ftruncate(self._records, self._record_bytes)
        except OSError:
            self.close(complete=False)

    def _create_records(self) -> int:
        if self._records_path.exists():
            raise InputError(
                f"rank {self.rank} of run {self.header.run_id!r} is recorded in {self.path} already",
                hint="give every launch a run_id of its own, and every process its own rank",
            )
        return self._create(self._records_path, os.O_APPEND)

    def _create(self, path: Path, flags: int = 0) -> int:
        with storage_errors("create", path):
            return os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | flags, 0o666)

    def _segment_path(self, number: int) -> Path:
        return self.path / segment_file(self.rank, self.header.ranks, number)

    def _place(self, nbytes: int) -> int:
        """The aligned offset for the next tensor, in a new segment where it does not fit.

        A tensor larger than a whole segment gets one of its own.
        """
        if self._segment is not None:
            offset = -(-self._segment_sizes[-1] // ALIGNMENT) * ALIGNMENT
            if offset == 0 or offset + nbytes <= self._segment_bytes:
                return offset
        new = self._create(self._segment_path(len(self._segment_sizes)))
        self._close_segment()
        self._segment = new
        self._segment_sizes.append(0)
        return 0

    def _close_segment(self) -> None:
        """Give back the room that was not needed."""
        if self._segment is None:
            return
        try:
            if self._reserved > self._segment_sizes[-1]:
                os.ftruncate(self._segment, self._segment_sizes[-1])
        finally:
            os.close(self._segment)
            self._segment, self._reserved = None, 0

    def _reserve(self, end: int) -> None:
        """Ask for room up to ``end``, and some more for what follows."""
        assert self._segment is not None
        if end > self._reserved:
            step = max(_SMALLEST_STEP, end - self._reserved, min(_LARGEST_STEP, self._reserved))
            reserve(self._segment, self._reserved, step)
            self._reserved += step

    def _write_tensor(self, data: NDArray[np.uint8], offset: int) -> str:
        """Write at an offset and return the checksum: CRC-32, as zlib, gzip and PNG know it.

        It finds every error within 32 neighbouring bits, and any other one (swapped blocks,
        zeroed pages) but for one in four thousand million; the record's size finds truncation.
        """
        assert self._segment is not None
        view = data.data
        with storage_errors("write", self._segment_path(len(self._segment_sizes) - 1)):
            self._reserve(offset + data.nbytes)
            os.lseek(self._segment, offset, os.SEEK_SET)
            if data.nbytes < _PARALLEL_BYTES:
                checksum = zlib.crc32(view)
                write_all(self._segment, view)
            else:
                # The future is asked for in any case: nobody may let go of the bytes before it is done.
                summing = self._summer.submit(zlib.crc32, view)
                try:
                    write_all(self._segment, view)
                finally:
                    checksum = summing.result()
        return f"crc32:{checksum:08x}"

    def _synchronise(self) -> None:
        for number in range(len(self._segment_sizes)):
            path = self._segment_path(number)
            with storage_errors("write", path):
                descriptor = os.open(path, os.O_RDWR)
                try:
                    os.fsync(descriptor)
                finally:
                    os.close(descriptor)
        with storage_errors("write", self._records_path):
            os.fsync(self._records)

    def _mark_complete(self) -> None:
        ranks = self.header.ranks
        contents = Contents(self._record_count, self._record_bytes, tuple(self._segment_sizes))
        done = encode_header(replace(self.header, complete=True), contents)
        write_atomically(self.path / rank_header_file(self.rank, ranks), done)
        # Each rank says so for itself before it looks at the others: the last one sees all.
        if ranks > 1 and all(self._is_complete(rank) for rank in range(ranks)):
            write_atomically(
                self.path / HEADER_FILE, encode_header(replace(self.header, complete=True), None)
            )

    def _is_complete(self, rank: int) -> bool:
        path = self.path / rank_header_file(rank, self.header.ranks)
        return path.exists() and decode_header(read_limited(path, MAX_HEADER_BYTES), str(path))[0].complete


def _check_ranks(rank: int, ranks: int, run_id: str) -> None:
    if not 1 <= ranks <= MAX_RANKS or not 0 <= rank < ranks:
        raise InputError(f"rank {rank} of {ranks}: allowed are 0 to ranks - 1, and 1 to {MAX_RANKS} ranks")
    if ranks > 1 and not run_id:
        raise InputError(
            f"rank {rank} of {ranks} has no run_id, so it cannot find the folder of the other ranks",
            hint="give every rank the same run_id, e.g. the launcher's job id and start time",
        )


def _little_endian_bytes(array: NDArray[Any]) -> NDArray[np.uint8]:
    """The values in C order as bytes, without a copy where they lie like that already."""
    array = np.asarray(array)
    name = dtype_name(array.dtype)
    if name is None:
        raise InputError(
            f"an array of dtype {array.dtype} cannot be stored; allowed are {', '.join(DTYPES)}",
            hint="convert it, or log its repr",
        )
    return np.ascontiguousarray(array, dtype=DTYPES[name]).reshape(-1).view(np.uint8)
