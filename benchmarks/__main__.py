"""All benchmarks, one after the other: ``python -m benchmarks`` (``make bench``)."""

from __future__ import annotations

import subprocess
import sys

MODULES = (
    *("metrics", "transfer", "conversion", "recording", "alignment", "growth", "wrong_pairs"),
    "explanation",
)


def main() -> int:
    status = 0
    for name in MODULES:
        print(f"\n== {name}", flush=True)
        # a process each, so that one's memory and threads do not show in the next one's numbers
        status |= subprocess.run([sys.executable, "-m", f"benchmarks.{name}"], check=False).returncode
    return status


if __name__ == "__main__":
    sys.exit(main())
