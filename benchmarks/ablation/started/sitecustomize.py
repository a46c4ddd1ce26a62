"""Run by Python as it starts: the tables and numbers of parfocal are changed as soon as they are loaded."""

import importlib.util
import os
import sys
from pathlib import Path

PACKAGE = "_parfocal_ablation"  # benchmarks.ablation.switches, wherever the process was started


def _switches():
    if PACKAGE not in sys.modules:
        spec = importlib.util.spec_from_file_location(PACKAGE, Path(__file__).parents[1] / "switches.py")
        sys.modules[PACKAGE] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[PACKAGE])
    return sys.modules[PACKAGE]


class _Finder:
    """Finds a module as the others do, and is told once it is loaded."""

    looking = False

    def find_spec(self, name, path=None, target=None):
        if self.looking or not name.startswith("parfocal."):
            return None
        switches = _switches()
        if name not in switches.TABLES and not name.startswith(switches.NUMBERS):
            return None
        self.looking = True
        try:
            spec = importlib.util.find_spec(name)
        finally:
            self.looking = False
        execute = spec.loader.exec_module

        def exec_module(module):
            execute(module)
            switches.switched(module, os.environ[switches.VARIABLE])

        spec.loader.exec_module = exec_module
        return spec


if os.environ.get("PARFOCAL_ABLATION"):
    sys.meta_path.insert(0, _Finder())
