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

# what is asked for -> the distributions that can provide it, and how to get it
PACKAGES = {
    "numpy": (("numpy",), "pip install numpy"),
    "torch": (("torch",), "pip install 'parfocal[torch]'"),
    "paddle": (("paddlepaddle", "paddlepaddle-gpu"), "pip install 'parfocal[paddle]'"),
    "safetensors": (("safetensors",), "pip install safetensors"),
    "reprod_log and padiff drop-ins": (("parfocal-compat",), "pip install parfocal-compat"),
}
FRAMEWORKS = ("torch", "paddle")


def doctor(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    traps: Annotated[bool, typer.Option("--traps", help="List every known difference.")] = False,
) -> None:
    """Show versions, threads, devices, speed, what is missing, and whether recording works here."""
    # not before a command needs them
    from parfocal.judge.speed import measure_speed
    from parfocal.native.library import LIBRARY, path_in_use, usable_paths

    paths = [] if LIBRARY is None else usable_paths(LIBRARY)
    speed = measure_speed()
    found = {name: _installed(distributions) for name, (distributions, _) in PACKAGES.items()}
    frameworks = {name: _framework(name) for name in FRAMEWORKS if found[name] is not None}
    facts = {
        "parfocal": __version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "cores": os.cpu_count(),
        "packages": found,
        "frameworks": frameworks,
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
        _print(facts, f"{speed.compare / 1e9:.1f} GB/s, {speed.compare / speed.copy:.1f} times a memory copy")
        if traps and facts["traps"]:
            _print_traps()
    if any(each["problem"] for each in frameworks.values()):
        raise typer.Exit(1)


def _print(facts: dict[str, Any], speed: str) -> None:
    """One table: what, and how it stands."""
    loops = facts["loops"]
    rows = [("compiled loops", f"{_path(loops['path'], loops['paths'])}: compares {speed}")]
    for name, (_, remedy) in PACKAGES.items():
        rows.append((name, facts["packages"][name] or f"not installed: {remedy}"))
        about = facts["frameworks"].get(name)
        if about is not None and about["problem"]:
            rows.append(("", f"recording does not work: {about['problem']}"))
        elif about is not None:
            devices = ", ".join(about["devices"])
            rows.append(("", f"threads: {about['threads']}; devices: {devices}; recording works"))
    if facts["traps"]:
        told = ", ".join(f"{where} {count}" for where, count in facts["traps"].items())
        rows.append(("known differences", f"by where they show: {told}"))
        rows.append(("", "parfocal doctor --traps lists them, parfocal map NAME shows those of a layer"))
    typer.echo(
        f"parfocal {__version__}, Python {facts['python']}, {facts['cores']} cores, {facts['platform']}"
    )
    for name, text in rows:
        typer.echo(f"  {name:<32}{text}")


def _framework(name: str) -> dict[str, Any]:
    """Threads, devices, and what is wrong with recording, of an installed framework."""
    from parfocal.backends import registry
    from parfocal.capture.selftest import recorder_works

    tested = recorder_works(name)
    if tested.problem:
        return {"threads": None, "devices": [], "problem": tested.problem}
    backend = registry.get(name)
    return {"threads": backend.threads(), "devices": backend.devices(), "problem": ""}


def _traps() -> dict[str, int]:
    """How many known differences show where."""
    from parfocal.backends.gaps import GAPS

    counts = Counter(symptom.value for gap in GAPS for symptom in gap.symptoms)
    return dict(counts.most_common())


def _print_traps() -> None:
    from parfocal.backends.gaps import GAPS
    from parfocal.phrases import current_language

    family = None
    for gap in GAPS:
        if gap.family is not family:
            family = gap.family
            typer.echo(f"\n{family.value}")
        words = gap.words(current_language())
        typer.echo(f"  {words.title}\n    {words.fix}")


def _path(used: str, paths: list[str]) -> str:
    return f"{used} (of {', '.join(paths)})" if paths else f"{used}, NumPy alone"


def _installed(distributions: tuple[str, ...]) -> str | None:
    for distribution in distributions:
        try:
            return version(distribution)
        except PackageNotFoundError:
            continue
    return None
