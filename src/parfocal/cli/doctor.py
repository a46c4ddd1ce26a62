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
    """Show versions, cores, and what is missing."""
    found = {name: _installed(distributions) for name, (distributions, _) in PACKAGES.items()}
    facts = {
        "parfocal": __version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "cores": os.cpu_count(),
        "packages": found,
    }
    if as_json:
        typer.echo(json.dumps(facts, indent=2))
        return
    typer.echo(
        f"parfocal {__version__}, Python {facts['python']}, {facts['cores']} cores, {facts['platform']}"
    )
    for name, (_, remedy) in PACKAGES.items():
        typer.echo(f"  {name:<32}{found[name] or f'not installed: {remedy}'}")


def _installed(distributions: tuple[str, ...]) -> str | None:
    for distribution in distributions:
        try:
            return version(distribution)
        except PackageNotFoundError:
            continue
    return None
