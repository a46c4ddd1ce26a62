"""The pairs of versions that are tested, and an environment for each."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tests.examples.environments import PIP, packages_of

ROOT = Path(__file__).parents[2]
ENVIRONMENTS = ROOT / "build" / "versions"
READY = ".ready"
# As what it asks for is there, and would be installed once more.
ALONE = {"torchvision": ("--no-deps",)}


@dataclass(frozen=True)
class Pair:
    """Versions that are installed together: the running environment's, where none is said."""

    paddle: str
    torch: str
    numpy: str = ""
    torchvision: str = ""  # which knows one version of torch only
    python: str = ""  # "3.12"

    @property
    def name(self) -> str:
        return f"paddle-{self.paddle}-torch-{self.torch}" + (f"-python-{self.python}" if self.python else "")


PAIRS = (
    Pair("2.6.2", "2.13.0", "1.26.4"),  # it knows NumPy 1 only
    Pair("3.0.0", "2.13.0"),
    Pair("3.1.1", "2.13.0"),
    Pair("3.2.2", "2.13.0"),
    Pair("3.3.1", "2.13.0"),
    Pair("3.3.1", "2.13.0", python="3.10"),
    Pair("3.3.1", "2.13.0", python="3.12"),
    Pair("3.3.1", "2.13.0", python="3.13"),
    Pair("2.6.2", "2.1.2", "1.26.4", torchvision="0.16.2"),
    Pair("3.0.0", "2.4.1", torchvision="0.19.1"),
    Pair("3.3.1", "2.15.0", torchvision="0.29.2"),
)
# Their builds of torch come with gigabytes of CUDA's libraries: they are run only where they are named.
LARGE = tuple(pair for pair in PAIRS if pair.torch != "2.13.0")


def environment(pair: Pair) -> Path:
    """The interpreter of the pair's environment, which is made where it is not complete.

    It has what differs from the running environment, and all else from there: behind its own packages on
    the path, so that they go first. With another Python nothing of the running environment fits, and it is
    made as that one was.
    """
    folder = ENVIRONMENTS / pair.name
    python = folder / "bin" / "python"
    wanted = _differing(pair)
    noted = folder / READY
    if noted.exists() and noted.read_text() == "\n".join(wanted):
        return python
    if pair.python:
        _make_whole(folder, pair.python)
    else:
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", "--clear", str(folder)], check=True)
        behind = [ROOT / "src", ROOT / "compat-dist" / "src", packages_of(Path(sys.prefix))]
        path = "".join(f"{each}\n" for each in behind)
        (packages_of(folder) / "zz_running_environment.pth").write_text(path)
    for requirement in wanted:
        alone = ALONE.get(requirement.partition("==")[0], ())
        install = ["install", "-q", "--no-compile", *alone, requirement]
        subprocess.run([sys.executable, *PIP, "--python", str(python), *install], check=True)
    noted.write_text("\n".join(wanted))
    return python


def _make_whole(folder: Path, python: str) -> None:
    interpreter = interpreter_of(python)
    if interpreter is None:
        raise SystemExit(f"there is no Python {python} on this machine: install it, or name other pairs")
    target = folder / READY
    make = ["make", "--silent", f"VENV={folder}", f"PYTHON={interpreter}", str(target)]
    subprocess.run(make, cwd=ROOT, check=True)
    target.unlink()  # what differs is still to come


@cache
def interpreter_of(python: str) -> Path | None:
    """An interpreter of that version: on the path, or one of pyenv's; None where there is none."""
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    candidates = [*sorted(pyenv.glob(f"versions/{python}.*/bin/python")), shutil.which(f"python{python}")]
    return next((Path(each) for each in candidates if each and _runs(each, python)), None)


def _runs(interpreter: str | Path, python: str) -> bool:
    asked = [str(interpreter), "-c", "import sys; print('%d.%d' % sys.version_info[:2])"]
    told = subprocess.run(asked, capture_output=True, text=True, check=False)
    return told.stdout.strip() == python


def _differing(pair: Pair) -> list[str]:
    from importlib.metadata import version

    wanted = {"numpy": pair.numpy, "torch": pair.torch, "paddlepaddle": pair.paddle}
    wanted["torchvision"] = pair.torchvision
    return [
        f"{name}=={number}"
        for name, number in wanted.items()
        if number and version(name).partition("+")[0] != number
    ]
