"""Where the parts of a Run lie in its folder, and how a folder is claimed.

File names follow from numbers alone, never from a file's content, so no record can point
outside its folder. The first to create ``run.json`` owns the folder; who comes later with
the same name gets ``name-2``, ``name-3``, ... The ranks of one launch share a folder by
giving the same ``run_id``: they join the folder whose ``run.json`` bears it.
"""

from __future__ import annotations

import os
from dataclasses import replace
from itertools import count
from pathlib import Path

from parfocal.errors import FileFormatError, InputError, StorageError
from parfocal.phrases import phrase
from parfocal.run.records import RunHeader
from parfocal.run.serial import decode_header, encode_header
from parfocal.run.storage import PARTIAL_SUFFIX, create_exclusively, read_limited, storage_errors

HEADER_FILE = "run.json"
MAX_HEADER_BYTES = 16 * 2**20
MAX_RANKS = 100_000
ALIGNMENT = 64


def records_file(rank: int, ranks: int) -> str:
    return "records.jsonl" if ranks == 1 else f"records-rank{rank:05d}.jsonl"


def segment_file(rank: int, ranks: int, segment: int) -> str:
    return f"tensors-{segment:05d}.bin" if ranks == 1 else f"tensors-rank{rank:05d}-{segment:05d}.bin"


def pending_file(rank: int, ranks: int) -> str:
    """Where bytes wait that have not reached their segment; a finished rank has none."""
    return "pending.bin" if ranks == 1 else f"pending-rank{rank:05d}.bin"


def rank_header_file(rank: int, ranks: int) -> str:
    """Where a rank says whether it finished; ``run.json`` speaks for all of them."""
    return HEADER_FILE if ranks == 1 else f"run-rank{rank:05d}.json"


def claim_folder(folder: Path, header: RunHeader) -> Path:
    """A folder for this run alone, or the one its other ranks already share."""
    folder = Path(os.path.abspath(folder))
    if not folder.name:
        raise InputError(
            phrase("{folder} has no name to number; give a folder inside it", folder=repr(str(folder)))
        )
    text = encode_header(replace(header, complete=False), None)
    for number in count(1):
        candidate = folder if number == 1 else folder.with_name(f"{folder.name}-{number}")
        if _make_folder(candidate) and create_exclusively(candidate / HEADER_FILE, text):
            return candidate
        if header.run_id and _belongs(candidate, header):
            return candidate
    raise AssertionError("unreachable: count() does not end")


def _make_folder(folder: Path) -> bool:
    """Whether the folder exists now and is free: nothing in it but what is being claimed."""
    try:
        os.makedirs(folder)
    except FileExistsError as error:
        if not folder.exists():  # a part of the way is a file
            raise _cannot_create(folder, error) from error
        if not folder.is_dir():
            return False
    except OSError as error:
        raise _cannot_create(folder, error) from error
    with storage_errors("read", folder):
        return all(name.endswith(PARTIAL_SUFFIX) for name in os.listdir(folder))


def _cannot_create(folder: Path, error: OSError) -> StorageError:
    return StorageError(
        phrase(
            "cannot create the folder {folder}: {strerror} (errno {errno})",
            folder=folder,
            strerror=error.strerror,
            errno=error.errno,
        ),
        hint=phrase("choose a path whose parts are all folders that you may write to"),
    )


def _belongs(folder: Path, header: RunHeader) -> bool:
    path = folder / HEADER_FILE
    if not path.is_file():
        return False
    try:
        found, _ = decode_header(read_limited(path, MAX_HEADER_BYTES), str(path))
    except FileFormatError:
        return False  # somebody else's file: not ours to judge here, and not ours to use
    if found.run_id != header.run_id:
        return False
    if found.ranks != header.ranks:
        raise InputError(
            phrase(
                "run {run_id} in {folder} has {ranks} ranks, this process says {here}",
                run_id=repr(header.run_id),
                folder=folder,
                ranks=found.ranks,
                here=header.ranks,
            ),
            hint=phrase("give every rank of a launch the same number of ranks"),
        )
    return True
