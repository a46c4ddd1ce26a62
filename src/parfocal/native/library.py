"""The compiled library, by ctypes; ``LIBRARY`` is None where the package was built without a compiler.

It has a path for every kind of processor and takes the best that this one can; ``PARFOCAL_CPU`` forces
another, or none. Calls release the interpreter lock and use several threads themselves: ``lend_threads``
says whose.
"""

from __future__ import annotations

import ctypes
import os
import sys
from ctypes import POINTER, c_char_p, c_double, c_int, c_int64, c_uint32, c_void_p
from functools import cache
from pathlib import Path
from typing import Any

from parfocal.errors import InputError
from parfocal.phrases import phrase

PATH = Path(__file__).with_name("_compiled.so")
VARIABLE = "PARFOCAL_CPU"
NO_PATH = "none"


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
    "parfocal_apart": (
        None,
        (c_void_p, c_int, c_void_p, c_int, c_int64, c_double, c_double, POINTER(c_double)),
    ),
    "parfocal_difference": (
        None,
        (c_void_p, c_int, c_void_p, c_int, c_int64, c_double, c_double, c_double, POINTER(c_double)),
    ),
    "parfocal_path": (c_char_p, (c_int,)),
    "parfocal_path_in_use": (c_int, ()),
    "parfocal_use_path": (c_int, (c_int,)),
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


def path_names(library: ctypes.CDLL) -> list[str]:
    """All paths that were compiled, the best last."""
    names: list[str] = []
    while (name := library.parfocal_path(len(names))) is not None:
        names.append(name.decode())
    return names


def usable_paths(library: ctypes.CDLL) -> list[str]:
    """The paths that this processor can take."""
    before, names = library.parfocal_path_in_use(), path_names(library)
    usable = [name for number, name in enumerate(names) if library.parfocal_use_path(number)]
    library.parfocal_use_path(before)
    return usable


def use_path(library: ctypes.CDLL, name: str) -> None:
    """Take this path from now on."""
    names = path_names(library)
    if name not in names or not library.parfocal_use_path(names.index(name)):
        allowed = ", ".join(usable_paths(library))
        raise InputError(
            phrase("there is no path {name} for this processor", name=repr(name)),
            hint=phrase(
                "set {variable} to {allowed} or {no_path}, or to nothing for the best",
                variable=VARIABLE,
                allowed=allowed,
                no_path=NO_PATH,
            ),
        )


def path_in_use() -> str:
    """The name of the path, ``none`` where NumPy does the work."""
    return NO_PATH if LIBRARY is None else path_names(LIBRARY)[LIBRARY.parfocal_path_in_use()]


def _chosen(library: ctypes.CDLL | None, wanted: str) -> ctypes.CDLL | None:
    """The library on the path that was wanted, if one was."""
    if wanted == NO_PATH:
        return None
    if wanted and library is None:
        raise InputError(
            phrase(
                "{variable} is {wanted}, but parfocal was built without a C compiler",
                variable=VARIABLE,
                wanted=repr(wanted),
            ),
            hint=phrase(
                "install a C compiler and then parfocal again, or set {variable} to {no_path}",
                variable=VARIABLE,
                no_path=NO_PATH,
            ),
        )
    if wanted and library is not None:
        use_path(library, wanted)
    return library


LIBRARY = _chosen(_load(PATH), os.environ.get(VARIABLE, ""))


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
