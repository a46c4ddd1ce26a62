"""Writing a Run as it happens.

Tensor bytes go to the segments first, the record's line after them, and each is where a process
killed at any moment leaves it: nothing that was finished is lost. No more than the slots of a ring
is kept in memory. ``run.json`` says that the run is incomplete until ``close``.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from parfocal.errors import InputError
from parfocal.phrases import phrase
from parfocal.run.dtypes import DTYPES, dtype_name
from parfocal.run.layout import (
    HEADER_FILE,
    MAX_HEADER_BYTES,
    MAX_RANKS,
    claim_folder,
    pending_file,
    rank_header_file,
    records_file,
    segment_file,
)
from parfocal.run.records import Contents, Record, RunHeader, TensorRef, TensorValue
from parfocal.run.ring import RING_SHAPE, RingShape
from parfocal.run.segments import Segments
from parfocal.run.serial import decode_header, encode_header, encode_record
from parfocal.run.storage import read_limited, storage_errors, write_all, write_atomically

SEGMENT_BYTES = 256 * 2**20


class RunWriter:
    """An open Run. Use it as a context manager; ``path`` is the folder it got.

    A process that is one of several ranks gives its ``rank``, the number of ``ranks`` and
    the ``run_id`` that its launcher gave to all of them (by default as the header says).
    A run that need not survive a power failure, as a temporary one, is not ``durable``.
    ``ring`` says how many tensor bytes may wait in memory to be written.
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
        ring: RingShape = RING_SHAPE,
    ) -> None:
        ranks = header.ranks if ranks is None else ranks
        run_id = header.run_id if run_id is None else run_id
        _check_ranks(rank, ranks, run_id)
        if segment_bytes < 1:
            raise InputError(
                phrase("segment_bytes is {segment_bytes}, must be positive", segment_bytes=segment_bytes)
            )
        self.rank = rank
        self.header = replace(header, ranks=ranks, run_id=run_id, complete=False)
        self.path = claim_folder(Path(folder), self.header)
        self._durable = durable
        self._process = os.getpid()
        self._lock = threading.RLock()
        self._records_path = self.path / records_file(rank, ranks)
        self._records = self._create_records()
        self._record_count = 0
        self._record_bytes = 0
        self._segments = Segments(
            lambda number: self.path / segment_file(rank, ranks, number),
            self.path / pending_file(rank, ranks),
            segment_bytes,
            ring,
        )
        self._closed = False
        if ranks > 1:
            write_atomically(self.path / rank_header_file(rank, ranks), encode_header(self.header, None))

    def tensor(self, array: NDArray[Any]) -> TensorRef:
        """Append an array's bytes; the reference goes into a record that is appended later."""
        array = np.asarray(array)
        dtype = _stored_dtype(array)
        with self._lock:
            self._check_open()
            if not array.nbytes:  # nothing to write, and no segment that it could be missing from
                return TensorRef(0, 0, 0, "crc32:00000000", self.rank)
            segment, offset, checksum = self._segments.add(array, dtype)
            return TensorRef(segment, offset, array.nbytes, f"crc32:{checksum:08x}", self.rank)

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

    def append(self, *records: Record) -> None:
        """Append finished records; their tensors' bytes are safe already."""
        lines = b"".join([self._line(record) for record in records])
        with self._lock:
            self._check_open()
            try:
                with storage_errors("write", self._records_path):
                    write_all(self._records, memoryview(lines))
            except BaseException:
                self._take_back_torn_line()
                raise
            self._record_count += len(records)
            self._record_bytes += len(lines)

    def _line(self, record: Record) -> bytes:
        line = encode_record(record)
        if record.rank != self.rank:
            raise InputError(
                phrase(
                    "the record is of rank {rank}, this writer is of rank {own}",
                    rank=record.rank,
                    own=self.rank,
                )
            )
        return line

    def close(self, complete: bool = True) -> None:
        """Finish: synchronise with the disk and mark the run complete, or leave it incomplete."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            if os.getpid() != self._process:  # a forked process has nothing to finish
                return
            try:
                self._segments.finish()
                if complete and self._durable:
                    self._synchronise()
            finally:
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
            raise InputError(
                phrase("the run in {path} is closed", path=self.path), hint=phrase("open a new RunWriter")
            )
        if os.getpid() != self._process:
            raise InputError(
                phrase(
                    "the run in {path} is that of process {process}, this is process {current}",
                    path=self.path,
                    process=self._process,
                    current=os.getpid(),
                ),
                hint=phrase("open a run of its own in every process"),
            )
        self._segments.check()

    def _take_back_torn_line(self) -> None:
        """A torn line is tolerated at the end of the file only: nothing may follow it."""
        try:
            os.ftruncate(self._records, self._record_bytes)
        except OSError:
            self.close(complete=False)

    def _create_records(self) -> int:
        if self._records_path.exists():
            raise InputError(
                phrase(
                    "rank {rank} of run {run_id} is recorded in {path} already",
                    rank=self.rank,
                    run_id=repr(self.header.run_id),
                    path=self.path,
                ),
                hint=phrase("give every launch a run_id of its own, and every process its own rank"),
            )
        with storage_errors("create", self._records_path):
            return os.open(self._records_path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_APPEND, 0o666)

    def _synchronise(self) -> None:
        self._segments.synchronise()
        with storage_errors("write", self._records_path):
            os.fsync(self._records)

    def _mark_complete(self) -> None:
        ranks = self.header.ranks
        contents = Contents(self._record_count, self._record_bytes, tuple(self._segments.sizes))
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
        raise InputError(
            phrase(
                "rank {rank} of {ranks}: allowed are 0 to ranks - 1, and 1 to {max_ranks} ranks",
                rank=rank,
                ranks=ranks,
                max_ranks=MAX_RANKS,
            )
        )
    if ranks > 1 and not run_id:
        raise InputError(
            phrase(
                "rank {rank} of {ranks} has no run_id, so it cannot find the folder of the other ranks",
                rank=rank,
                ranks=ranks,
            ),
            hint=phrase("give every rank the same run_id, e.g. the launcher's job id and start time"),
        )


def _stored_dtype(array: NDArray[Any]) -> np.dtype[Any]:
    """As which the values lie in a segment: little-endian."""
    name = dtype_name(array.dtype)
    if name is None:
        raise InputError(
            phrase(
                "an array of dtype {dtype} cannot be stored; allowed are {dtypes}",
                dtype=array.dtype,
                dtypes=", ".join(DTYPES),
            ),
            hint=phrase("convert it, or log its repr"),
        )
    return DTYPES[name]
