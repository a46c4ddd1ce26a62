"""What an alignment costs, as ratios to the bare forward and backward of both models in one run.

    python -m benchmarks.alignment [--rounds 3] [--cpu] [--no-memory]

Times are the best of several rounds, interleaved with the bare runs; memory is the peak of a process
of its own. On a machine that is busy otherwise, wall time says little: ``--cpu`` counts the processor
time of everything this process does instead, with one thread for the frameworks. Bars: a fixed tolerance
at most 1.25x time and 1.4x memory, the full default at most 2.2x time and 1.8x memory.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.bars import has_time_bars, note
from benchmarks.memory import peak_bytes
from parfocal.native.library import path_in_use

MODELS = ("resnet50", "encoder")
WAYS = ("bare", "fixed", "full")
BARS = {"fixed": (1.25, 1.4), "full": (2.2, 1.8)}


def build(name: str) -> tuple[Any, Any, Any]:
    """Reference, port and input."""
    import paddle
    import torch

    generator = np.random.default_rng(0)
    if name == "resnet50":
        from examples.pairs.library import torchvision_models

        port = paddle.vision.models.resnet50(pretrained=False)
        images = generator.standard_normal((4, 3, 224, 224)).astype("float32")
        return torchvision_models().resnet50(weights=None), port, images
    layer = torch.nn.TransformerEncoderLayer(768, 12, 3072, batch_first=True)
    reference = torch.nn.TransformerEncoder(layer, 12, enable_nested_tensor=False)
    port = paddle.nn.TransformerEncoder(paddle.nn.TransformerEncoderLayer(768, 12, 3072), 12)
    return reference, port, generator.standard_normal((4, 128, 768)).astype("float32")


def jobs(name: str, memory: str | None = None) -> dict[str, Callable[[], Any]]:
    import parfocal as pf
    from parfocal.backends import registry

    reference, port, inputs = build(name)

    def bare() -> None:
        for model in (reference, port):
            backend = registry.of(model)
            with backend.mode(model, "eval"):
                output = model(backend.from_array(inputs, requires_grad=True))
                backend.backward([output], [backend.from_array(np.ones(backend.shape(output), "float32"))])
                backend.clear_gradients(model)

    tolerance = pf.Tolerance(rtol=1e-2, atol=1e-2)
    return {
        "bare": bare,
        "fixed": lambda: pf.align(reference, port, inputs, tolerance=tolerance, memory=memory),
        "full": lambda: pf.align(reference, port, inputs, memory=memory),
    }


def times(name: str, rounds: int, clock: Callable[[], float]) -> dict[str, float]:
    work = jobs(name)
    work["bare"]()  # the first run of each framework sets things up
    best = dict.fromkeys(WAYS, float("inf"))
    for _ in range(rounds):
        for way in WAYS:
            start = clock()
            work[way]()
            best[way] = min(best[way], clock() - start)
    return best


def peak_of(name: str, way: str, memory: str | None, folder: str) -> tuple[int, bool, int]:
    """Peak memory in bytes, whether it finished, and bytes left in the temporary folder."""
    command = [sys.executable, "-m", "benchmarks.alignment", "--child", name, way, memory or ""]
    done = subprocess.run(
        command, capture_output=True, text=True, env={**os.environ, "TMPDIR": folder}, check=False
    )
    left = sum(entry.stat().st_size for entry in os.scandir(folder) if entry.is_file())
    return (int(done.stdout.split()[-1]) if done.returncode == 0 else 0), done.returncode == 0, left


def child(name: str, way: str, memory: str) -> None:
    jobs(name, memory or None)[way]()
    print(peak_bytes())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--cpu", action="store_true", help="processor time, one thread")
    parser.add_argument("--no-memory", action="store_true")
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--child", nargs=3, metavar=("MODEL", "WAY", "MEMORY"))
    options = parser.parse_args()
    warnings.filterwarnings("ignore")
    if options.child:
        child(*options.child)
        return
    if options.cpu:
        os.environ["OMP_NUM_THREADS"] = "1"  # read when the frameworks are loaded
    clock = time.process_time if options.cpu else time.perf_counter
    print(f"{'model':<10} {'way':<22} {'ratio':>8} {'bar':>6}")
    for name in options.models.split(","):
        best = times(name, options.rounds, clock)
        for way, (bar, _) in BARS.items():
            longer = best[way] / best["bare"]
            bar_here = bar if has_time_bars(path_in_use()) else None
            print(f"{name:<10} {way:<22} {longer:>7.2f}x {_bar(bar_here)}", flush=True)
            note(f"align {name}, {way}", longer, bar_here)
        if not options.no_memory:
            report_memory(name)


def _bar(bar: float | None) -> str:
    return "no bar" if bar is None else f"{bar:>5}x"


def report_memory(name: str) -> None:
    """Peaks as ratios to the bare run's, and whether a quarter of what an alignment adds is enough."""
    with tempfile.TemporaryDirectory() as folder:
        peaks = {way: peak_of(name, way, None, folder)[0] for way in WAYS}
        for way, (_, bar) in BARS.items():
            more = peaks[way] / peaks["bare"]
            print(f"{name:<10} {way + ': memory':<22} {more:>7.2f}x {_bar(bar)}", flush=True)
            note(f"align {name}, {way}: memory", more, bar)
        quarter = max(1, (peaks["full"] - peaks["bare"]) // 4)
        _, finished, left = peak_of(name, "full", str(quarter), folder)
        said = "finishes" if finished else "FAILS"
        print(f"{name:<10} full, memory={quarter >> 20} MB: {said}, {left} bytes left on disk")


if __name__ == "__main__":
    main()
