"""The backend of toybox, tiers 1 and 2. Its dialect can be read without toybox; the backend needs it."""

from __future__ import annotations

from typing import Any


def __getattr__(name: str) -> Any:
    if name != "ToyboxBackend":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from parfocal_toybox.backend import ToyboxBackend

    return ToyboxBackend
