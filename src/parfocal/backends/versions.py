"""The versions of the frameworks that parfocal is tested with, and the one line about any other."""

from __future__ import annotations

import re
import sys

from parfocal.phrases import phrase, said

# The oldest and the newest that ``make test-versions`` has run with; docs/versions.md has what came out.
TESTED: dict[str, tuple[str, str]] = {
    "paddle": ("2.6.2", "3.3.1"),
    "torch": ("2.1.2", "2.15.0"),
    "numpy": ("1.26.4", "2.4.6"),
}


def untested(name: str, version: str) -> str:
    """What is to be said of a version; nothing within the range, or where no range is known."""
    if name not in TESTED:
        return ""
    oldest, newest = TESTED[name]
    if _numbers(oldest) <= _numbers(version) <= _numbers(newest):
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
