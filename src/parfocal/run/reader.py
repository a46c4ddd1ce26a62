"""Reading a Run: lazily, without copies, and without trusting it.

``load_run`` reads ``run.json`` only; records are decoded as they are asked for, tensors are
views into memory-mapped segments. Whatever is damaged is named: file, line, field, offset.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from parfocal.errors import FileFormatError, InputError, ParfocalError, StorageError
from parfocal.phrases import phrase
from parfocal.run.dtypes import DTYPES
from parfocal.run.layout import (
    ALIGNMENT,
    HEADER_FILE,
    MAX_HEADER_BYTES,
    MAX_RANKS,
    pending_file,
    rank_header_file,
    records_file,
    segment_file,
)
from parfocal.run.pending import read_pending
from parfocal.run.records import (
    CallRecord,
    Contents,
    GradientRecord,
    Record,
    RunHeader,
    StateRecord,
    StepRecord,
    Structure,
    TensorRef,
    TensorValue,
    ValueRecord,
)
from parfocal.run.serial import decode_header, decode_record
from parfocal.run.storage import map_file, open_for_reading, read_limited, release, storage_errors

MAX_LINE_BYTES = 64 * 2**20
WINDOW_BYTES = 64 * 2**20  # of tensors that may be in memory only because they were looked at

_R = TypeVar("_R")


@dataclass(frozen=True, slots=True)
class Problem:
    """Something in a Run is not as it should be; ``line`` is that of the record concerned."""

    file: str
    line: int | None
    message: str

    def __str__(self) -> str:
        return f"{self.file}{f', line {self.line}' if self.line else ''}: {self.message}"


def load_run(path: str | os.PathLike[str]) -> Run:
    """Open a Run, finished or not. It may have been moved since it was written."""
    return Run(Path(path))


class Run:
    """A recorded run on disk.

    ``complete`` says whether it was closed in good order. ``problems`` lists what was
    tolerated on opening: a last line that was being written when the process died.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        header_path = path / HEADER_FILE
        if os.path.isdir(path) and not os.path.exists(header_path):
            raise FileFormatError(
                phrase("{path} is not a Run: it has no {header_file}", path=path, header_file=HEADER_FILE),
                hint=phrase("give the folder that a recording made"),
            )
        self.header, contents = _load_header(header_path)
        self.complete = self.header.complete
        self.problems: list[Problem] = []
        self._ends: dict[int, int] = {}  # rank -> where its last whole line ends
        self._contents: dict[int, Contents] = {}
        self._mapped: dict[tuple[int, int], NDArray[np.uint8]] = {}
        self._checked: set[TensorRef] = set()
        self._looked_at = 0  # bytes since memory was given back
        for rank in range(self.header.ranks):
            self._open_rank(rank, contents)

    @property
    def ranks(self) -> tuple[int, ...]:
        """The ranks that left records."""
        return tuple(self._ends)

    def records(self, rank: int | None = None) -> Iterator[Record]:
        """All records in the order in which they were written; of one rank, or rank by rank."""
        for _, _, record in self._lines(rank):
            if isinstance(record, ParfocalError):
                raise record
            yield record

    def calls(self, rank: int | None = None) -> list[CallRecord]:
        return self._of_type(CallRecord, rank)

    def gradients(self, rank: int | None = None) -> list[GradientRecord]:
        return self._of_type(GradientRecord, rank)

    def state(self, rank: int | None = None) -> list[StateRecord]:
        return self._of_type(StateRecord, rank)

    def steps(self, rank: int | None = None) -> list[StepRecord]:
        return self._of_type(StepRecord, rank)

    def values(self, rank: int | None = None) -> list[ValueRecord]:
        return self._of_type(ValueRecord, rank)

    def read(self, value: TensorValue | TensorRef, *, check: bool = True) -> NDArray[Any]:
        """A tensor's values as a read-only view into the file; of a bare reference, its bytes.

        The checksum is compared on the first read of each tensor, unless ``check`` is False.
        """
        ref = value.ref if isinstance(value, TensorValue) else value
        if ref is None:
            raise InputError(
                phrase(
                    "the bytes of this tensor were not kept: the run was recorded with tensors={tensors}",
                    tensors=repr(self.header.tensors),
                ),
                hint=phrase('record with tensors="full"'),
            )
        data = self._bytes(ref)
        if check and ref not in self._checked:
            self._check_sum(ref, data)
            if data.base is not None:  # a view into the file, which does not change any more
                self._checked.add(ref)
        if isinstance(value, TensorRef):
            return data
        return data.view(DTYPES[value.dtype]).reshape(value.shape)

    def verify(self) -> list[Problem]:
        """Read everything and compare every checksum; all that is wrong, by name."""
        problems = list(self.problems)
        for file, line, record in self._lines(None):
            if isinstance(record, ParfocalError):
                problems.append(Problem(file, line, record.message))
                continue
            for ref in _refs(record):
                try:
                    self._check_sum(ref, self._bytes(ref))
                except ParfocalError as error:
                    problems.append(Problem(file, line, error.message))
        return problems

    def _open_rank(self, rank: int, contents: Contents | None) -> None:
        """Find where the rank's records end, and compare with what it said on closing."""
        path = self.path / records_file(rank, self.header.ranks)
        if not path.exists():
            self._tolerate(path.name, "is missing: this rank left no records")
            return
        if self.header.ranks > 1:
            own_header = self.path / rank_header_file(rank, self.header.ranks)
            contents = _load_header(own_header)[1] if own_header.exists() else None
        size, self._ends[rank] = _whole_lines(path)
        if contents is not None:
            self._contents[rank] = contents
            self._compare_contents(rank, path, size, contents)
        elif self.complete:
            raise FileFormatError(
                phrase("{path}: complete, but field 'contents' is missing", path=self.path / HEADER_FILE)
            )
        if size > self._ends[rank]:
            self._tolerate(path.name, f"the last line is torn: {size - self._ends[rank]} bytes were ignored")

    def _tolerate(self, file: str, message: str) -> None:
        """What an interrupted run may look like is damage in a complete one."""
        if self.complete:
            raise FileFormatError(
                phrase("{path}: {message}, but the run was complete", path=self.path / file, message=message)
            )
        self.problems.append(Problem(file, None, message))

    def _compare_contents(self, rank: int, path: Path, size: int, contents: Contents) -> None:
        if size != contents.record_bytes:
            raise FileFormatError(
                phrase(
                    "{path} has {size} bytes; the run was closed with {record_bytes}",
                    path=path,
                    size=size,
                    record_bytes=contents.record_bytes,
                ),
                hint=phrase("the file was cut or changed after recording: copy the folder again"),
            )
        for number, expected in enumerate(contents.segment_bytes):
            segment = self.path / segment_file(rank, self.header.ranks, number)
            actual = _size(segment)
            if actual < expected:
                raise _too_short(segment, actual, expected)

    def _lines(self, rank: int | None) -> Iterator[tuple[str, int, Record | ParfocalError]]:
        """File, line number and the record of that line, or what is wrong with it."""
        if rank is not None and rank not in self._ends:
            raise InputError(
                phrase(
                    "{path} has no records of rank {rank}; it has those of {ranks}",
                    path=self.path,
                    rank=rank,
                    ranks=self.ranks,
                )
            )
        for each in self.ranks if rank is None else (rank,):
            yield from self._lines_of(each)

    def _lines_of(self, rank: int) -> Iterator[tuple[str, int, Record | ParfocalError]]:
        path = self.path / records_file(rank, self.header.ranks)
        number = 0
        with os.fdopen(open_for_reading(path), "rb") as file:
            while file.tell() < self._ends[rank]:
                number += 1
                line = file.readline(MAX_LINE_BYTES)
                try:
                    if not line.endswith(b"\n"):
                        raise FileFormatError(
                            phrase(
                                "{path}, line {number}: longer than {max_line_bytes} bytes",
                                path=path,
                                number=number,
                                max_line_bytes=MAX_LINE_BYTES,
                            )
                        )
                    record: Record | ParfocalError = decode_record(line, f"{path}, line {number}")
                    self._check_record(record, rank, f"{path}, line {number}")
                except FileFormatError as error:
                    record = error
                yield path.name, number, record

    def _check_record(self, record: Any, rank: int, where: str) -> None:
        ranks = {record.rank, *(ref.rank for ref in _refs(record))}
        if ranks != {rank}:
            raise FileFormatError(
                phrase(
                    "{where}: field 'rank' is {ranks} in the file of rank {rank}",
                    where=where,
                    ranks=sorted(ranks),
                    rank=rank,
                )
            )

    def _of_type(self, kind: type[_R], rank: int | None) -> list[_R]:
        return [record for record in self.records(rank) if isinstance(record, kind)]

    def _bytes(self, ref: TensorRef) -> NDArray[np.uint8]:
        if not ref.nbytes:
            return np.empty(0, np.uint8)
        path = self.path / segment_file(ref.rank, self.header.ranks, ref.segment)
        if ref.offset % ALIGNMENT:
            raise FileFormatError(
                phrase(
                    "{path}: offset {offset} is not a multiple of {alignment}",
                    path=path,
                    offset=ref.offset,
                    alignment=ALIGNMENT,
                )
            )
        key = (ref.rank, ref.segment)
        end = ref.offset + ref.nbytes
        if key not in self._mapped or end > self._mapped[key].nbytes:
            if _size(path) < end and ref.rank not in self._contents:
                ring = self.path / pending_file(ref.rank, self.header.ranks)
                pending = read_pending(ring, path, ref.segment, ref.offset, end)
                if pending is not None:
                    return pending
            self._mapped[key] = map_file(path)  # again, when the file has grown since
        if end > self._mapped[key].nbytes:
            raise _too_short(path, self._mapped[key].nbytes, end)
        self._looked_at += ref.nbytes
        if self._looked_at > WINDOW_BYTES:
            self._looked_at = ref.nbytes
            for mapped in self._mapped.values():
                release(mapped)
        return self._mapped[key][ref.offset : end]

    def _check_sum(self, ref: TensorRef, data: NDArray[np.uint8]) -> None:
        path = self.path / segment_file(ref.rank, self.header.ranks, ref.segment)
        if not ref.checksum.startswith("crc32:"):
            raise FileFormatError(
                phrase(
                    "{path}: unknown checksum {checksum}; crc32 is known",
                    path=path,
                    checksum=repr(ref.checksum),
                )
            )
        actual = f"crc32:{zlib.crc32(data.data):08x}"
        if actual != ref.checksum:
            raise FileFormatError(
                phrase(
                    "{path}: checksum of {nbytes} bytes at offset {offset} is {actual}, "
                    "recorded was {checksum}",
                    path=path,
                    nbytes=ref.nbytes,
                    offset=ref.offset,
                    actual=actual,
                    checksum=ref.checksum,
                ),
                hint=phrase("the file was changed after recording: copy the folder again, or record again"),
            )


def _load_header(path: Path) -> tuple[RunHeader, Contents | None]:
    header, contents = decode_header(read_limited(path, MAX_HEADER_BYTES), str(path))
    if header.ranks > MAX_RANKS:
        raise FileFormatError(
            phrase(
                "{path}: field 'ranks' is {ranks}; at most {max_ranks} are allowed",
                path=path,
                ranks=header.ranks,
                max_ranks=MAX_RANKS,
            )
        )
    return header, contents


def _size(path: Path) -> int:
    try:
        with os.fdopen(open_for_reading(path), "rb") as file:
            return os.fstat(file.fileno()).st_size
    except StorageError as error:
        if isinstance(error.__cause__, FileNotFoundError):
            raise FileFormatError(
                phrase("{path} is missing", path=path),
                hint=phrase("copy the whole folder: a Run needs all its files"),
            ) from None
        raise


def _too_short(path: Path, actual: int, needed: int) -> FileFormatError:
    return FileFormatError(
        phrase(
            "{path} is too short: it has {actual} bytes, {needed} are needed",
            path=path,
            actual=actual,
            needed=needed,
        ),
        hint=phrase("the file was cut after recording: copy the folder again, or record again"),
    )


def _whole_lines(path: Path) -> tuple[int, int]:
    """The file's size, and where its last whole line ends."""
    with os.fdopen(open_for_reading(path), "rb") as file, storage_errors("read", path):
        size = end = os.fstat(file.fileno()).st_size
        step = 2**16
        while end > 0:
            start = max(0, end - step)
            file.seek(start)
            found = file.read(end - start).rfind(b"\n")
            if found >= 0:
                return size, start + found + 1
            end = start
        return size, 0


def _refs(value: Any) -> Iterator[TensorRef]:
    """Every tensor reference inside a record."""
    if isinstance(value, TensorRef):
        yield value
    elif isinstance(value, Structure):
        for leaf in value.leaves.values():
            yield from _refs(leaf)
    elif is_dataclass(value):
        for item in fields(value):
            yield from _refs(getattr(value, item.name))
