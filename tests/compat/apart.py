"""Code in a fresh interpreter: what importing the drop-ins loads, and where from."""

import os
import subprocess
import sys
from pathlib import Path

WHEEL = Path(__file__).parents[2] / "compat-dist"
LOADED = "import sys; print([name for name in ('torch', 'paddle') if name in sys.modules])"


def run(code, folder, *paths):
    """What it prints; ``paths`` come before all others."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, paths))}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
