"""Memory and speed of ``pf.convert`` on a large synthetic checkpoint, against the bar.

    python -m benchmarks.conversion [--gigabytes 1.5] [--folder DIR]

Writes a stack of Linears and an Embedding as .pth, .pdparams and .safetensors, converts each to the
other framework by a template file, and prints the extra memory (anonymous resident pages, sampled
while it runs; pages of mapped files are the system's to take back) as a multiple of the largest
tensor. The bar is 3. Exit status 1 when it is missed.
"""

from __future__ import annotations

import argparse
import gc
import sys
import tempfile
import threading
import time
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

import parfocal as pf
from benchmarks.bars import note
from parfocal.weights.checkpoints.writing import WRITERS, PlannedTensor

WIDTH = 4096
BAR = 3.0
INTERVAL = 0.002


def anonymous_bytes() -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) * 1024
    raise SystemExit("this benchmark needs RssAnon in /proc/self/status")


@contextmanager
def peak_growth() -> Iterator[Callable[[], int]]:
    """How far anonymous memory rose above where it was, while the block ran."""
    gc.collect()
    before = anonymous_bytes()
    peak = before
    done = threading.Event()

    def sample() -> None:
        nonlocal peak
        while not done.wait(INTERVAL):
            peak = max(peak, anonymous_bytes())

    thread = threading.Thread(target=sample)
    thread.start()
    try:
        yield lambda: peak - before
    finally:
        done.set()
        thread.join()


def tensors(framework: str, layers: int) -> list[PlannedTensor]:
    """A stack of [WIDTH, 4 * WIDTH] matrices and their way back, an embedding, biases, norms."""
    wide = (4 * WIDTH, WIDTH) if framework == "torch" else (WIDTH, 4 * WIDTH)
    found = [PlannedTensor("embed.weight", (8000, WIDTH), np.dtype("float32"))]
    for layer in range(layers):
        found += [
            PlannedTensor(f"layers.{layer}.up.weight", wide, np.dtype("float32")),
            PlannedTensor(f"layers.{layer}.up.bias", (4 * WIDTH,), np.dtype("float32")),
            PlannedTensor(f"layers.{layer}.down.weight", wide[::-1], np.dtype("float32")),
            PlannedTensor(f"layers.{layer}.down.bias", (WIDTH,), np.dtype("float32")),
            PlannedTensor(f"layers.{layer}.norm.weight", (WIDTH,), np.dtype("float32")),
        ]
    return found


def make(path: Path, framework: str, layers: int) -> int:
    """Write random values; returns the bytes of the largest tensor."""
    planned = tensors(framework, layers)

    def values(each: PlannedTensor) -> Any:
        generator = np.random.Generator(np.random.SFC64(hash(each.name) % 2**32))
        return generator.random(each.shape, dtype=np.float32)

    with path.open("wb") as file:
        WRITERS[path.suffix](file, planned, values, framework)
    return max(each.nbytes for each in planned)


def template(path: Path, framework: str, layers: int) -> None:
    """A template has shapes only, but a file holds values: zeros, in holes of the file where possible."""
    zeros = np.zeros(1, np.float32)
    with path.open("wb") as file:
        WRITERS[path.suffix](
            file,
            tensors(framework, layers),
            lambda each: np.ascontiguousarray(np.broadcast_to(zeros, each.shape)),
            framework,
        )


def measure(source: Path, shape: Path, out: Path, largest: int) -> float:
    size = source.stat().st_size
    start = time.perf_counter()
    with peak_growth() as growth:
        pf.convert(source, shape, out, progress=False)
        seconds = time.perf_counter() - start
        grown = growth()
    tracemalloc.start()
    pf.convert(source, shape, out, progress=False)
    allocated = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    out.unlink()
    worst = max(grown, allocated) / largest
    print(
        f"{source.suffix:>12} -> {out.suffix:<12} {size / 1e9:5.2f} GB in {seconds:5.1f} s "
        f"({size / 1e6 / seconds:5.0f} MB/s): extra memory {grown / largest:4.2f} x the largest tensor "
        f"({largest / 1e6:.0f} MB), allocated {allocated / largest:4.2f} x; bar {BAR:g} x"
    )
    return worst


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--gigabytes", type=float, default=1.5)
    parser.add_argument("--folder", type=Path, default=None)
    options = parser.parse_args()
    layers = max(1, round(options.gigabytes * 1e9 / (2 * 4 * WIDTH * WIDTH * 4)))
    worst = 0.0
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        folder = Path(name)
        small = folder / "small.safetensors"
        make(small, "torch", 1)
        pf.convert(small, small, folder / "warm.safetensors", progress=False)  # imports are not counted
        for source, framework, out in (
            ("in.pth", "torch", "out.pdparams"),
            ("in.safetensors", "torch", "out.pdparams"),
            ("in.pdparams", "paddle", "out.pth"),
            ("in.pdparams", "paddle", "out.safetensors"),
        ):
            other = "paddle" if framework == "torch" else "torch"
            largest = make(folder / source, framework, layers)
            shape = folder / f"template.{'pdparams' if other == 'paddle' else 'pth'}"
            template(shape, other, layers)
            worst = max(worst, measure(folder / source, shape, folder / out, largest))
            (folder / source).unlink()
            shape.unlink()
    note("convert: extra memory in largest tensors", worst, BAR)
    print(
        f"worst: {worst:.2f} x the largest tensor, {'within' if worst <= BAR else 'ABOVE'} the bar of {BAR:g}"
    )
    return 0 if worst <= BAR else 1


if __name__ == "__main__":
    sys.exit(main())
