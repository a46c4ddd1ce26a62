"""A virtual environment for every tool that is not ours, made once and kept in the temporary folder."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
CACHE = Path(tempfile.gettempdir()) / f"parfocal-bench-faults-{os.getuid()}"

# torch goes first and alone: resolved together with the rest, pip may pick a build with CUDA.
FRAMEWORKS = (("torch==2.13.0",), ("paddlepaddle==3.3.1",), ("numpy>=2,<2.5", "scipy", "ml-dtypes"))
PACKAGES = {"padiff": ("padiff==0.2.0", "pyyaml"), "reprod_log": ("reprod_log==1.0.1",)}
# Tuned: single functions are not paired (their number differs between the frameworks, and then nothing
# is), and models are not moved between devices (an LSTM of paddle does not survive it).
SETTINGS = {"padiff-tuned": {"PADIFF_API_CHECK": "OFF", "PADIFF_CUDA_MEMORY": "OFF"}}
ENVIRONMENTS = {"padiff": "padiff", "padiff-tuned": "padiff", "reprod_log": "reprod_log"}


class Unavailable(Exception):  # noqa: N818  it is a state, not an error of ours
    """An environment could not be made; the text says why."""


def interpreter(tool: str) -> str:
    """The Python that has this tool. Our own tool lives in the one that is running."""
    if tool not in ENVIRONMENTS:
        return sys.executable
    name = ENVIRONMENTS[tool]
    folder = CACHE / name
    python = folder / "bin" / "python"
    ready = folder / ".ready"
    if not ready.exists():
        print(f"making an environment for {name} in {folder} (once)", flush=True)
        venv.create(folder, with_pip=True, clear=True)
        for packages in (*FRAMEWORKS, PACKAGES[name]):
            _install(str(python), packages)
        ready.touch()
    return str(python)


def _install(python: str, packages: tuple[str, ...]) -> None:
    command = [python, "-m", "pip", "install", "-q", "--disable-pip-version-check", *packages]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        errors = [line for line in done.stderr.splitlines() if line.startswith("ERROR")]
        raise Unavailable(f"pip install {' '.join(packages)}: {(errors or ['failed'])[-1]}")
