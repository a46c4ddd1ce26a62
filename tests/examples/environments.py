"""Virtual environments that lack a package: by links from the running one, or made from the wheel."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import parfocal

ROOT = Path(__file__).parents[2]
PIP = ("-m", "pip", "--disable-pip-version-check")
# How the names begin of what belongs to a package in site-packages.
BELONGING = {
    "torch": ("torch", "functorch"),
    "paddle": ("paddle",),
    "reprod_log": ("reprod_log", "parfocal_compat"),
}


def packages_of(folder: Path) -> Path:
    """Where a virtual environment has its packages."""
    return Path(sysconfig.get_path("purelib", "venv", vars={"base": str(folder), "platbase": str(folder)}))


def make_environment(folder: Path, lacking: str) -> Path:
    """A virtual environment with everything that this one has but a package; returns its interpreter."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    python = folder / ("Scripts" if os.name == "nt" else "bin") / "python"
    packages = packages_of(folder)
    for place in map(Path, sys.path):
        if place.name not in ("site-packages", "dist-packages") or not place.is_dir():
            continue
        for entry in place.iterdir():
            kept = not entry.name.lower().startswith(BELONGING[lacking]) and entry.suffix != ".pth"
            if kept and not (packages / entry.name).exists():
                (packages / entry.name).symlink_to(entry)
    if not (packages / "parfocal").exists():
        (packages / "parfocal.pth").write_text(f"{Path(parfocal.__file__).parents[1]}\n")
    return python


def install_wheel(folder: Path) -> Path:
    """A new environment with the wheel of this tree and what it depends on; returns its interpreter."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    python = folder / ("Scripts" if os.name == "nt" else "bin") / "python"
    made = folder / "wheel"
    build = [*PIP, "wheel", "-q", "--no-deps", "--no-build-isolation", "-w", str(made), str(ROOT)]
    subprocess.run([sys.executable, *build], check=True)
    (wheel,) = made.glob("*.whl")
    # as modules are compiled when they are imported, there is no need to compile them all
    install = ["install", "-q", "--no-compile", "-c", str(ROOT / "constraints.txt"), str(wheel)]
    subprocess.run([sys.executable, *PIP, "--python", str(python), *install], check=True)
    return python


def has(python: Path, module: str) -> bool:
    """Whether an interpreter can import a module."""
    return (
        subprocess.run([str(python), "-c", f"import {module}"], capture_output=True, check=False).returncode
        == 0
    )
