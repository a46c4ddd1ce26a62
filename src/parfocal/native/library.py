"""The compiled library, by ctypes; ``LIBRARY`` is None where the package was built without a compiler.

Calls release the interpreter lock and use several threads themselves: ``lend_threads`` says whose.
"""

from __future__ import annotations

import ctypes
import sys
from ctypes import POINTER, c_double, c_float, c_int, c_int64, c_uint32, c_void_p
from functools import cache
from pathlib import Path
from typing import Any

PATH = Path(__file__).with_name("_compiled.so")


class Projection(ctypes.Structure):
    """The tables of a projection, by address; ``compiled.c`` says what they are."""

    _fields_ = (
        ("flips", c_void_p),
        ("angles", c_void_p),
        ("turns", c_void_p),
        ("signs", c_void_p),
    )


_SIGNATURES: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "parfocal_moments": (
        c_int,
        (
            *(c_void_p, c_int, c_int64, c_float, c_int),
            *(POINTER(Projection), POINTER(c_double), c_void_p),
        ),
    ),
    "parfocal_apart": (None, (c_void_p, c_void_p, c_int64, POINTER(c_double))),
    "parfocal_difference": (
        None,
        (c_void_p, c_void_p, c_int64, c_double, c_double, c_double, POINTER(c_double)),
    ),
    "parfocal_can_copy": (c_int, ()),
    "parfocal_copy": (c_uint32, (c_void_p, c_void_p, c_int64, c_uint32)),
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


def lend_threads(openmp: str | None) -> None:
    """Work on the threads of this OpenMP library from now on: that of the framework which is running.

    None, or a library that cannot do it, means threads of our own.
    """
    if LIBRARY is not None:
        LIBRARY.parfocal_use_team(*_team(openmp))


@cache
def _team(openmp: str | None) -> tuple[int | None, int | None]:
    if openmp is None:
        return None, None
    try:
        library = ctypes.CDLL(openmp)
        functions = library.GOMP_parallel, library.omp_get_max_threads
    except (OSError, AttributeError):  # not there, or of a kind that has no such entry
        return None, None
    first, second = (ctypes.cast(function, c_void_p).value for function in functions)
    return first, second
