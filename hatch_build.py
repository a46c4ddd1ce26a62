"""Compiles the Chinese sentences and, if there is a C compiler, the inner loops while the package is built.

Without a C compiler the package is as complete, only slower: the same figures come from NumPy.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po
from hatchling.builders.hooks.plugin.interface import BuildHookInterface

HERE = Path(__file__).parent
CATALOGUE = Path("src/parfocal/locale/zh/LC_MESSAGES/parfocal.po")
ROOM = Path("src/parfocal/native")
SOURCES = tuple(ROOM / name for name in ("loops.c", "copying.c", "sharing.c"))
LIBRARY = ROOM / "_compiled.so"
# No result may depend on errno or traps; sums keep the order that the source gives them, and no product is
# fused with a sum: every processor finds the same figures.
FLAGS = (
    "-O3",
    "-fPIC",
    "-pthread",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-ffp-contract=off",
    "-Wno-psabi",
)
# The loops over numbers are compiled once for every kind of processor: machine -> name in C -> instructions.
_AVX512 = ("-mavx512f", "-mavx512bw", "-mavx512cd", "-mavx512dq", "-mavx512vl")
PIECES = {
    "x86_64": {
        "parfocal_x86_64": (),
        "parfocal_x86_64_v3": ("-mavx2",),
        "parfocal_x86_64_v4": _AVX512,
    }
}
_GLIBC = re.compile(rb"GLIBC_(\d+)\.(\d+)")
_OLDEST_GLIBC = (2, 17)  # that PEP 600's installers know of
ANY_MACHINE: dict[str, tuple[str, ...]] = {"parfocal_portable": ()}


def compile_catalogue(root: Path = HERE) -> Path:
    """Compile the Chinese sentences, as ``gettext`` reads them, beside their source."""
    with (root / CATALOGUE).open(encoding="utf-8") as source:
        catalogue = read_po(source, abort_invalid=True)
    # the same sentences give the same bytes
    catalogue.creation_date = datetime(1980, 1, 1, tzinfo=timezone.utc)
    made = CATALOGUE.with_suffix(".mo")
    with (root / made).open("wb") as file:
        write_mo(file, catalogue)
    return made


def compile_library(
    compiler: str, root: Path, made: Path, machine: str, *flags: str, program: Path | None = None
) -> str:
    """Compile for a machine; what the compiler says if it fails, else nothing.

    A ``program`` is compiled together with the loops, instead of the library.
    """
    kind = ("-shared",) if program is None else (str(program), f"-I{root / ROOM}")
    with tempfile.TemporaryDirectory() as room:
        objects, built = [], f"{room}/built"
        for name, instructions in PIECES.get(machine, ANY_MACHINE).items():
            objects.append(f"{room}/{name}.o")
            piece = (f"-DPARFOCAL_PIECES={name}", "-c", str(root / ROOM / "pieces.c"), "-o", objects[-1])
            error = _run(compiler, *FLAGS, *flags, *instructions, *piece)
            if error:
                return error
        sources = [str(root / source) for source in SOURCES]
        error = _run(compiler, *FLAGS, *flags, *kind, *sources, *objects, "-o", built, "-lm")
        if not error:
            # written beside and moved: a running process may have the old one open
            fresh = made.with_suffix(".fresh")
            shutil.copy(built, fresh)
            fresh.replace(made)
        return error


def _run(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return (done.stderr or "the compiler failed without a word") if done.returncode else ""


def platform_tag(library: Path) -> str:
    """The machines that can load a library: those whose C library is as new as the newest symbol it needs.

    It is linked with the C library alone, so that ``manylinux`` may promise that (PEP 600).
    """
    needed = {(int(major), int(minor)) for major, minor in _GLIBC.findall(library.read_bytes())}
    if not needed:  # another C library
        return sysconfig.get_platform().replace("-", "_").replace(".", "_")
    major, minor = max(needed | {_OLDEST_GLIBC})
    return f"manylinux_{major}_{minor}_{platform.machine()}"


class Compile(BuildHookInterface):  # type: ignore[type-arg]
    """Adds what is compiled to wheels and editable installs."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if self.target_name != "wheel":
            return
        root = Path(self.root)
        build_data["artifacts"].append(str(compile_catalogue(root)))
        compiler = shutil.which(os.environ.get("CC", "cc"))
        if sys.platform == "win32":
            return
        if compiler is None:
            self.app.display_warning("no C compiler: parfocal will use NumPy alone")
            return
        error = compile_library(compiler, root, root / LIBRARY, platform.machine())
        if error:
            self.app.display_warning(f"compiling failed, parfocal will use NumPy alone:\n{error}")
            return
        build_data["pure_python"] = False
        # for every Python 3 of this platform: the library is loaded by ctypes and knows no Python
        build_data["tag"] = f"py3-none-{platform_tag(root / LIBRARY)}"
        build_data["artifacts"].append(str(LIBRARY))


if __name__ == "__main__":  # after a change of the catalogue or the C sources: python hatch_build.py
    compile_catalogue()
    sys.exit(compile_library(os.environ.get("CC", "cc"), HERE, HERE / LIBRARY, platform.machine()) or None)
