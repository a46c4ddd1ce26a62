"""Versions without importing what they are of."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import metadata


def version_of(module: str) -> str:
    """The version of the package that owns a top-level module; "unknown" where none says so."""
    for name in _owners().get(module, ()):
        return metadata.version(name)
    return "unknown"


@cache  # it reads the lists of files of all packages
def _owners() -> Mapping[str, list[str]]:
    return metadata.packages_distributions()
