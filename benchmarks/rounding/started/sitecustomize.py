"""Run by Python as it starts: a framework is taken to the extreme of rounding once it has been imported."""

import importlib.abc
import importlib.util
import os
import sys
from pathlib import Path

FRAMEWORKS = {"torch": "on_torch", "paddle": "on_paddle"}
PACKAGE = "_parfocal_rounding"  # benchmarks.rounding, wherever the process was started


class _Finder(importlib.abc.MetaPathFinder):
    """Finds a framework as the others do, and is told once it is loaded."""

    def find_spec(self, name, path=None, target=None):
        if name not in FRAMEWORKS or name in _looking:
            return None
        _looking.add(name)
        try:
            spec = importlib.util.find_spec(name)
        finally:
            _looking.discard(name)
        if spec is None or spec.loader is None:
            return None
        execute = spec.loader.exec_module

        def exec_module(module):
            execute(module)
            _install(name)

        spec.loader.exec_module = exec_module
        return spec


_looking = set()


def _install(name):
    package = sys.modules.get(PACKAGE) or _package()
    rounding = importlib.import_module(f"{PACKAGE}.setting").Rounding.parse(os.environ["PARFOCAL_ROUNDING"])
    side = importlib.import_module(f"{PACKAGE}.{FRAMEWORKS[name]}")
    setattr(package, f"installed_{name}", side.install(rounding))


def _package():
    folder = Path(__file__).parents[1]
    spec = importlib.util.spec_from_file_location(
        PACKAGE, folder / "__init__.py", submodule_search_locations=[str(folder)]
    )
    package = sys.modules[PACKAGE] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(package)
    return package


if os.environ.get("PARFOCAL_ROUNDING"):
    sys.meta_path.insert(0, _Finder())
