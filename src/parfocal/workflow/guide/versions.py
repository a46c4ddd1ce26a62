"""Versions without importing what they are of."""

from __future__ import annotations

from importlib import metadata


def version_of(module: str) -> str:
    """The version of the package that owns a top-level module; "unknown" where none says so."""
    for name in metadata.packages_distributions().get(module, ()):
        return metadata.version(name)
    return "unknown"
