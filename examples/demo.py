"""The main jobs on bundled models, each with a mistake, found; then mended, and the same.

First one comparison of two models; then AlexNet through the guide's eleven steps and five checkpoints, on
pictures that are made for it. Its first check runs while the encoders are compared. Everything is written to
``build/demo``.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import warnings
from pathlib import Path

ALEXNET = Path(__file__).parent / "alexnet"
SCRATCH = Path(__file__).parents[1] / "build" / "demo"
MADE = (".parfocal", "pictures", "acceptance*", "__pycache__")  # by earlier runs: the demo begins anew
PICTURES = "python make_pictures.py"
MISTAKEN = "parfocal check --project mistaken.toml"


def main() -> int:
    headline("A port with one wrong epsilon, six blocks deep", first=True)
    folder = SCRATCH / ALEXNET.name
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(ALEXNET, folder, ignore=shutil.ignore_patterns(*MADE))
    with start(PICTURES, folder, subprocess.PIPE) as pictures:
        wrong = encoders_agree(mistaken=True)
        made, told = finish(pictures)
    with start(MISTAKEN, folder, subprocess.PIPE) as check:
        headline("The same port, mended")
        right = encoders_agree(mistaken=False)

        headline("AlexNet through all steps, with a mistake in the port")
        print(f"$ {PICTURES}\n{told}$ {MISTAKEN}", flush=True)
        found, told = finish(check)
        print(told, end="", flush=True)

    headline("The same, mended: only what the mistake touched is run again")
    mended = run("parfocal check", folder)

    headline("The files for acceptance")
    accepted = run("parfocal accept", folder)
    return 0 if right and not wrong and (made, found, mended, accepted) == (0, 1, 0, 0) else 1


def encoders_agree(*, mistaken: bool) -> bool:
    # The frameworks take seconds to import: the first headline is shown before.
    warnings.filterwarnings("ignore", message="No ccache found", category=UserWarning)
    import encoder_paddle
    import encoder_torch
    import numpy as np

    import parfocal as pf

    port = encoder_paddle.build_with_a_mistake() if mistaken else encoder_paddle.build()
    ids = np.random.default_rng(0).integers(0, 1000, (4, 32))
    report = pf.align(encoder_torch.build(), port, ids)
    print(report, flush=True)
    return report.ok


def run(command: str, folder: Path) -> int:
    print(f"$ {command}", flush=True)
    with start(command, folder) as process:
        return process.wait()


def start(command: str, folder: Path, output: int | None = None) -> subprocess.Popen[str]:
    program, *words = command.split()
    module = ("-m", "parfocal.cli.main") if program == "parfocal" else ()
    return subprocess.Popen(
        [sys.executable, *module, *words], cwd=folder, stdout=output, stderr=output, text=True
    )


def finish(process: subprocess.Popen[str]) -> tuple[int, str]:
    """The exit status, and what was printed to pipes."""
    printed, problems = process.communicate()
    return process.returncode, printed + problems


def headline(text: str, *, first: bool = False) -> None:
    print(f"{'' if first else chr(10)}{text}\n{'=' * len(text)}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
