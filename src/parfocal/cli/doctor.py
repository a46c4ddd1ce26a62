"""``parfocal doctor``: what parfocal finds on this machine."""

from __future__ import annotations

import json
import os
import platform
from importlib.metadata import PackageNotFoundError, version
from typing import Annotated

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


def doctor(as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False) -> None:
    """Show versions, cores, how fast arrays are compared here, and what is missing."""
    # not before a command needs them
    from parfocal.judge.speed import measure_speed
    from parfocal.native.library import LIBRARY, path_in_use, usable_paths

    paths = [] if LIBRARY is None else usable_paths(LIBRARY)
    speed = measure_speed()
    found = {name: _installed(distributions) for name, (distributions, _) in PACKAGES.items()}
    facts = {
        "parfocal": __version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "cores": os.cpu_count(),
        "packages": found,
        "loops": {
            "path": path_in_use(),
            "paths": paths,
            "compare_bytes_per_second": speed.compare,
            "copy_bytes_per_second": speed.copy,
        },
    }
    if as_json:
        typer.echo(json.dumps(facts, indent=2))
        return
    typer.echo(
        f"parfocal {__version__}, Python {facts['python']}, {facts['cores']} cores, {facts['platform']}"
    )
    typer.echo(
        f"  {'compiled loops':<32}{_path(path_in_use(), paths)}: compares {speed.compare / 1e9:.1f} GB/s, "
        f"{speed.compare / speed.copy:.1f} times a memory copy"
    )
    for name, (_, remedy) in PACKAGES.items():
        typer.echo(f"  {name:<32}{found[name] or f'not installed: {remedy}'}")


def _path(used: str, paths: list[str]) -> str:
    return f"{used} (of {', '.join(paths)})" if paths else f"{used}, NumPy alone"


def _installed(distributions: tuple[str, ...]) -> str | None:
    for distribution in distributions:
        try:
            return version(distribution)
        except PackageNotFoundError:
            continue
    return None
