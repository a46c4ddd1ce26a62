"""The judge's inner loops as compiled C, where the package was built with a compiler.

``LIBRARY`` is None otherwise, and everything is computed by NumPy. Calls release the interpreter
lock, so blocks run on several threads at once.
"""

from __future__ import annotations

import ctypes
import sys
from ctypes import POINTER, c_double, c_float, c_int, c_int64, c_void_p
from pathlib import Path

PATH = Path(__file__).with_name("_compiled.so")


class Projection(ctypes.Structure):
    """The tables of a projection, by address; ``compiled.c`` says what they are."""

    _fields_ = (
        ("flips", c_void_p),
        ("angles", c_void_p),
        ("turns", c_void_p),
        ("signs", c_void_p),
        ("tiles", c_int64),
    )


_SIGNATURES = {
    "parfocal_moments": (
        *(c_void_p, c_int, c_int64, c_float, c_int),
        *(POINTER(Projection), POINTER(c_double), c_void_p),
    ),
    "parfocal_apart": (c_void_p, c_void_p, c_int64, POINTER(c_double)),
    "parfocal_difference": (*(c_void_p, c_void_p, c_int64, c_double, c_double, c_double, POINTER(c_double)),),
}


def _load(path: Path) -> ctypes.CDLL | None:
    """The library, unless it was not built or was built for another kind of machine."""
    if not path.exists() or sys.byteorder != "little":
        return None
    try:
        library = ctypes.CDLL(str(path))
        for name, signature in _SIGNATURES.items():
            function = getattr(library, name)
            function.argtypes, function.restype = signature, None
    except (OSError, AttributeError):  # a foreign binary, or one of another version
        return None
    return library


LIBRARY = _load(PATH)
