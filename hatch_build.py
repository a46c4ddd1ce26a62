"""Compiles the inner loops while the package is built, if there is a C compiler.

Without one the package is as complete, only slower: the same figures come from NumPy.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

ROOM = Path("src/parfocal/native")
SOURCES = tuple(ROOM / name for name in ("loops.c", "copying.c", "sharing.c"))
LIBRARY = ROOM / "_compiled.so"
# No result may depend on errno or traps; sums keep the order that the source gives them.
FLAGS = ("-O3", "-fPIC", "-shared", "-pthread", "-fno-math-errno", "-fno-trapping-math", "-Wno-psabi")


class Compile(BuildHookInterface):  # type: ignore[type-arg]
    """Adds the library to wheels and editable installs."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        compiler = shutil.which(os.environ.get("CC", "cc"))
        if self.target_name != "wheel" or sys.platform == "win32":
            return
        if compiler is None:
            self.app.display_warning("no C compiler: parfocal will use NumPy alone")
            return
        root = Path(self.root)
        sources = [str(root / source) for source in SOURCES]
        command = [compiler, *FLAGS, *sources, "-o", str(root / LIBRARY), "-lm"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            self.app.display_warning(f"compiling failed, parfocal will use NumPy alone:\n{done.stderr}")
            return
        build_data["pure_python"] = False
        # for every Python 3 of this platform: the library is loaded by ctypes and knows no Python
        build_data["tag"] = f"py3-none-{sysconfig.get_platform().replace('-', '_').replace('.', '_')}"
        build_data["artifacts"].append(str(LIBRARY))
