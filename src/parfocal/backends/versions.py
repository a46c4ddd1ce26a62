"""The versions of the frameworks that parfocal is tested with, and the one line about any other."""

from __future__ import annotations

import platform
import re
import sys

import numpy as np

from parfocal.phrases import phrase, said

# The oldest and the newest that ``make test-versions`` has run with; docs/versions.md has what came out.
TESTED: dict[str, tuple[str, str]] = {
    "paddle": ("2.6.2", "3.3.1"),
    "torch": ("2.1.2", "2.15.0"),
    "numpy": ("1.26.4", "2.4.6"),
    "python": ("3.10", "3.13"),
}


def surroundings() -> dict[str, str]:
    """The versions of what every framework stands on."""
    return {"python": platform.python_version(), "numpy": np.__version__}


def untested(name: str, version: str) -> str:
    """What is to be said of a version; nothing within the range, or where no range is known."""
    if name not in TESTED:
        return ""
    oldest, newest = TESTED[name]
    found, last = _numbers(version), _numbers(newest)
    if _numbers(oldest) <= found and found[: len(last)] <= last:
        return ""
    return phrase(
        "{name} {version} is not tested with parfocal: {oldest} to {newest} are; go on at your own risk",
        name=name,
        version=version,
        oldest=oldest,
        newest=newest,
    )


def say_untested(name: str, version: str) -> None:
    """Say it on standard error, which belongs to people."""
    line = untested(name, version)
    if line:
        print(f"parfocal: {said(line)}", file=sys.stderr)  # noqa: T201


def _numbers(version: str) -> tuple[int, ...]:
    """The release's numbers; 3.3.1 is as new as 3.3.1+cpu, and a pre-release counts as its release."""
    release = re.match(r"[\d.]*", version)
    return tuple(int(each) for each in release[0].split(".") if each) if release else ()
