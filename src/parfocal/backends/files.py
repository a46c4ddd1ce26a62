"""Writing a file so that it appears complete or not at all, whatever framework writes it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from parfocal.errors import InputError, StorageError
from parfocal.phrases import phrase


@contextmanager
def complete_or_absent(path: str) -> Iterator[str]:
    """Gives the name to write to; on leaving without an error the file takes its real name."""
    folder = os.path.dirname(os.path.abspath(path))
    if not os.path.isdir(folder):
        raise StorageError(
            phrase("cannot write {path}: there is no folder {folder}", path=path, folder=folder),
            hint=phrase("create it first"),
        )
    partial = f"{path}.partial"
    try:
        yield partial
        os.replace(partial, path)
    except (OSError, RuntimeError) as error:  # a framework may report a full disk as a RuntimeError
        raise StorageError(phrase("cannot write {path}: {error}", path=path, error=error)) from error
    finally:
        if os.path.exists(partial):
            os.remove(partial)


def no_such_file(path: str) -> InputError:
    """The error for a file that is not there."""
    return InputError(phrase("there is no file {path}", path=path), hint=phrase("check the path"))
