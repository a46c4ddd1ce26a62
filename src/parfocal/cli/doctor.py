"""``parfocal doctor``: what parfocal finds on this machine."""

from __future__ import annotations

import json
import os
import platform
from collections import Counter
from importlib.metadata import PackageNotFoundError, version
from typing import Annotated, Any

import typer

from parfocal import __version__
from parfocal.cli.console import print_wrapped
from parfocal.columns import padded
from parfocal.phrases import joined, phrase, said

# what is asked for -> the distributions that can provide it, and how to get it
PACKAGES = {
    "numpy": (("numpy",), "pip install numpy"),
    "torch": (("torch",), "pip install 'parfocal[torch]'"),
    "paddle": (("paddlepaddle", "paddlepaddle-gpu"), "pip install 'parfocal[paddle]'"),
    "safetensors": (("safetensors",), "pip install safetensors"),
    phrase("reprod_log and padiff drop-ins"): (("parfocal-compat",), "pip install parfocal-compat"),
}
FRAMEWORKS = ("torch", "paddle")
NAME_WIDTH = 32  # columns of the terminal


def doctor(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    traps: Annotated[bool, typer.Option("--traps", help="List every known difference.")] = False,
) -> None:
    """Show versions, threads, devices, speed, what is missing, and whether recording works here."""
    # not before a command needs them
    from parfocal.backends.versions import surroundings, untested
    from parfocal.judge.speed import measure_speed
    from parfocal.native.library import LIBRARY, path_in_use, usable_paths

    paths = [] if LIBRARY is None else usable_paths(LIBRARY)
    speed = measure_speed()
    found = {name: _installed(distributions) for name, (distributions, _) in PACKAGES.items()}
    frameworks = {name: _framework(name) for name in FRAMEWORKS if found[name] is not None}
    around = {name: line for name, version in surroundings().items() if (line := untested(name, version))}
    facts = {
        "parfocal": __version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "cores": os.cpu_count(),
        "packages": found,
        "frameworks": frameworks,
        "untested": around,
        "loops": {
            "path": path_in_use(),
            "paths": paths,
            "compare_bytes_per_second": speed.compare,
            "copy_bytes_per_second": speed.copy,
        },
        "traps": _traps() if len(frameworks) == len(FRAMEWORKS) else {},
    }
    if as_json:
        typer.echo(json.dumps(facts, indent=2))
    else:
        _print(
            facts,
            phrase(
                "{speed} GB/s, {times} times a memory copy",
                speed=f"{speed.compare / 1e9:.1f}",
                times=f"{speed.compare / speed.copy:.1f}",
            ),
        )
        if traps and facts["traps"]:
            _print_traps()
    if any(each["problem"] for each in frameworks.values()):
        raise typer.Exit(1)


def _print(facts: dict[str, Any], speed: str) -> None:
    """One table: what, and how it stands."""
    from parfocal.report.mapping import symptom_words

    loops = facts["loops"]
    rows = [
        (
            phrase("compiled loops"),
            phrase("{path}: compares {speed}", path=_path(loops["path"], loops["paths"]), speed=speed),
        )
    ]
    rows += [("", line) for line in facts["untested"].values()]
    for name, (_, remedy) in PACKAGES.items():
        rows.append((name, facts["packages"][name] or phrase("not installed: {missing}", missing=remedy)))
        about = facts["frameworks"].get(name)
        if about is not None and about["problem"]:
            rows.append(("", phrase("recording does not work: {problem}", problem=about["problem"])))
        elif about is not None:
            works = phrase(
                "threads: {threads}; devices: {devices}; recording works",
                threads=about["threads"],
                devices=joined(", ", about["devices"]),
            )
            rows.append(("", works))
        if about is not None and about["untested"]:
            rows.append(("", about["untested"]))
    if facts["traps"]:
        places = (
            phrase("{where} {count}", where=symptom_words(where), count=count)
            for where, count in facts["traps"].items()
        )
        told = phrase("by where they show: {places}", places=joined(", ", places))
        rows.append((phrase("known differences"), told))
        rows.append(
            ("", phrase("parfocal doctor --traps lists them, parfocal map NAME shows those of a layer"))
        )
    head = phrase(
        "parfocal {version}, Python {python}, {cores} cores, {platform}",
        version=__version__,
        python=facts["python"],
        cores=facts["cores"],
        platform=facts["platform"],
    )
    print_wrapped(said(head), 4)
    for name, text in rows:
        print_wrapped(f"  {padded(said(name), NAME_WIDTH)}{said(text)}", 2 + NAME_WIDTH)


def _framework(name: str) -> dict[str, Any]:
    """Threads, devices, and what is wrong with recording, of an installed framework."""
    from parfocal.backends import registry
    from parfocal.backends.versions import untested
    from parfocal.capture.selftest import recorder_works

    tested = recorder_works(name)
    if tested.problem:
        return {"threads": None, "devices": [], "problem": tested.problem, "untested": ""}
    backend = registry.get(name)
    return {
        "threads": backend.threads(),
        "devices": backend.devices(),
        "problem": "",
        "untested": untested(name, backend.framework_version),
    }


def _traps() -> dict[str, int]:
    """How many known differences show where."""
    from parfocal.backends.gaps import gaps

    counts = Counter(symptom.value for gap in gaps() for symptom in gap.symptoms)
    return dict(counts.most_common())


def _print_traps() -> None:
    from parfocal.backends.gaps import families
    from parfocal.phrases import current_language
    from parfocal.report.mapping import FAMILIES

    for family, gaps in families().items():
        typer.echo(f"\n{said(FAMILIES[family])}")
        for gap in gaps:
            words = gap.words(current_language())
            typer.echo(f"  {words.title}\n    {words.fix}")


def _path(used: str, paths: list[str]) -> str:
    if not paths:
        return phrase("{used}, NumPy alone", used=used)
    return phrase("{used} (of {paths})", used=used, paths=joined(", ", paths))


def _installed(distributions: tuple[str, ...]) -> str | None:
    for distribution in distributions:
        try:
            return version(distribution)
        except PackageNotFoundError:
            continue
    return None
