"""The main jobs on bundled models, each with a mistake, found; then mended, and the same.

First one comparison of two models; then AlexNet through the guide's eleven steps and five checkpoints, on
pictures that are made for it. Everything is written to ``build/demo``.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import encoder_paddle
import encoder_torch
import numpy as np

import parfocal as pf

ALEXNET = Path(__file__).parent / "alexnet"
SCRATCH = Path(__file__).parents[1] / "build" / "demo"
MADE = (".parfocal", "pictures", "acceptance*", "__pycache__")  # by earlier runs: the demo begins anew


def main() -> int:
    compared = compare_encoders()
    folder = SCRATCH / ALEXNET.name
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(ALEXNET, folder, ignore=shutil.ignore_patterns(*MADE))
    return 0 if reproduce(folder) and compared else 1


def compare_encoders() -> bool:
    """Whether the mistake was found, and nothing once it is mended."""
    reference = encoder_torch.build()
    ids = np.random.default_rng(0).integers(0, 1000, (4, 32))

    headline("A port with one wrong epsilon, six blocks deep", first=True)
    wrong = pf.align(reference, encoder_paddle.build_with_a_mistake(), ids)
    print(wrong)

    headline("The same port, mended")
    right = pf.align(reference, encoder_paddle.build(), ids)
    print(right)
    return right.ok and not wrong.ok


def reproduce(folder: Path) -> bool:
    """AlexNet with a mistake in its optimizer, then without: whether every run ended as it should."""
    headline("AlexNet through all steps, with a mistake in the port")
    made = run(folder, "make_pictures.py")
    wrong = run(folder, "-m", "parfocal.cli.main", "check", "--project", "mistaken.toml")

    headline("The same, mended: only what the mistake touched is run again")
    right = run(folder, "-m", "parfocal.cli.main", "check")

    headline("The files for acceptance")
    accepted = run(folder, "-m", "parfocal.cli.main", "accept")
    return (made, wrong, right, accepted) == (0, 1, 0, 0)


def run(folder: Path, *arguments: str) -> int:
    words = ("python", *arguments) if arguments[0] != "-m" else ("parfocal", *arguments[2:])
    print(f"$ {' '.join(words)}", flush=True)
    return subprocess.run([sys.executable, *arguments], cwd=folder, check=False).returncode


def headline(text: str, *, first: bool = False) -> None:
    print(f"{'' if first else chr(10)}{text}\n{'=' * len(text)}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
