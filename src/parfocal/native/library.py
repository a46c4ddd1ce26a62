"""The compiled library, by ctypes; ``LIBRARY`` is None where the package was built without a compiler.

Calls release the interpreter lock and use several threads themselves: ``lend_threads`` says whose.
"""

from __future__ import annotations

import ctypes
import os
import sys
from ctypes import POINTER, c_double, c_int, c_int64, c_uint32, c_void_p
from functools import cache
from pathlib import Path
from typing import Any

PATH = Path(__file__).with_name("_compiled.so")


class Projection(ctypes.Structure):
    """The tables of a projection, by address; ``loops.c`` says what they are."""

    _fields_ = (
        ("flips", c_void_p),
        ("angles", c_void_p),
        ("turns", c_void_p),
        ("signs", c_void_p),
        ("elements", c_void_p),
    )


ANY_EXPONENT = -(2**31)  # parfocal_moments chooses one

_SIGNATURES: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "parfocal_moments": (
        c_int,
        (
            *(c_void_p, c_int, c_int64, POINTER(c_int), c_int),
            *(POINTER(Projection), POINTER(c_double), c_void_p),
        ),
    ),
    "parfocal_apart": (None, (c_void_p, c_void_p, c_int64, c_double, c_double, POINTER(c_double))),
    "parfocal_difference": (
        None,
        (c_void_p, c_void_p, c_int64, c_double, c_double, c_double, POINTER(c_double)),
    ),
    "parfocal_can_copy": (c_int, ()),
    "parfocal_copy": (c_uint32, (c_void_p, c_void_p, c_int64, c_uint32)),
    "parfocal_move": (None, (c_void_p, c_void_p, c_int64)),
    "parfocal_use_team": (None, (c_void_p, c_void_p)),
}


def _load(path: Path) -> ctypes.CDLL | None:
    """The library, unless it was not built or was built for another kind of machine."""
    if not path.exists() or sys.byteorder != "little":
        return None
    try:
        library = ctypes.CDLL(str(path))
        for name, (result, arguments) in _SIGNATURES.items():
            function = getattr(library, name)
            function.argtypes, function.restype = arguments, result
    except (OSError, AttributeError):  # a foreign binary, or one of another version
        return None
    return library


LIBRARY = _load(PATH)


def lend_threads(*openmp: str) -> None:
    """Work on the threads of the first of these OpenMP libraries that is loaded: the running framework's.

    Without one, and in a process forked later, on threads of our own.
    """
    if LIBRARY is not None:
        LIBRARY.parfocal_use_team(*_team(openmp))


@cache
def _team(names: tuple[str, ...]) -> tuple[int | None, int | None]:
    """The addresses of its entries; GNU's are those that every OpenMP library of Linux has."""
    for name in names:
        try:
            library = ctypes.CDLL(name, mode=os.RTLD_NOLOAD | os.RTLD_NOW)
            entries = [library.GOMP_parallel, library.omp_get_max_threads]
        except (OSError, AttributeError):  # not loaded, or of a kind that cannot be asked
            continue
        parallel, threads = (ctypes.cast(entry, c_void_p).value for entry in entries)
        return parallel, threads
    return None, None
