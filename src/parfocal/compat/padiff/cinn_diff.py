"""PaDiff's comparison of paddle's framework with its CINN compiler: not part of this package.

It reads what a CUDA build of paddle with CINN writes while a static graph runs; parfocal compares
models, not compiler passes. Using anything of it says so.
"""

from __future__ import annotations

from typing import Any

from parfocal.errors import UnsupportedError
from parfocal.phrases import phrase


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    raise UnsupportedError(
        phrase(
            "padiff.cinn_diff.{name} is not available: parfocal does not compare paddle with "
            "its CINN compiler",
            name=name,
        ),
        hint=phrase("use the original PaDiff for that, in an environment of its own"),
    )
