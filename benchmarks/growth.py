"""What an alignment costs as a model grows: ``python -m benchmarks.growth [--calls 64,256,1024,4096,16384]``.

Residual blocks of norm, linear, gelu and linear of width 128 on 8x16 tokens: one after another (depth), or
all on the same input and added up (width). The weights are equal and nothing is transferred. ``calls`` counts
the layers. ``bare`` is one forward and backward of both models, ``align`` the full default; both are CPU time
on one thread, the best of several, each size in a process of its own. Memory is what the alignment adds to
the peak of the bare run, per call.

Bars: at most 3 ms of our own per call at 1,024 calls, at most 4x the bare time at 4,096, and time and memory
linear in the number of calls: for four times as many calls at most 4.8 times as much of either.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from benchmarks.bars import note
from benchmarks.depth import NAMES, Writing, deep
from benchmarks.memory import peak_bytes

CALLS = (64, 256, 1024, 4096, 16384)
SHAPES = ("depth", "width")
WIDTH = 128
TOKENS = (8, 16, WIDTH)
OWN_AT, OWN_BAR = 1024, 3.0  # calls, and milliseconds of our own for each
RATIO_AT, RATIO_BAR = 4096, 4.0  # calls, and times the bare run
GROWTH_BAR = 1.2  # times as much per call as of the size before: n log n, and a larger heap to collect
ROUNDS = 3  # of every size that is set beside another: the best of more rounds would be an advantage
SMALL = 1024  # below it, what one alignment costs whatever the model shows in the figures per call


@dataclass(frozen=True, slots=True)
class Row:
    """One size: seconds of CPU time, and bytes that the alignment adds."""

    calls: int
    bare: float
    align: float
    memory: int

    @property
    def own(self) -> float:
        """Milliseconds per call."""
        return 1e3 * (self.align - self.bare) / self.calls

    @property
    def ratio(self) -> float:
        return self.align / self.bare

    @property
    def kilobytes(self) -> float:
        return self.memory / self.calls / 1024


def build(shape: str, calls: int) -> tuple[Any, Any, Any]:
    """Reference and port with the same weights, and the input."""
    import paddle
    import torch

    import parfocal as pf

    torch.set_num_threads(1)
    blocks = calls // len(NAMES)
    writing = Writing("same names")
    models = [deep(each, blocks, writing, WIDTH, parallel=shape == "width") for each in (torch, paddle)]
    pf.transfer(*models)
    return *models, np.random.default_rng(0).standard_normal(TOKENS).astype("float32")


def jobs(shape: str, calls: int) -> tuple[Callable[[], None], Callable[[], None]]:
    """The bare run and the alignment."""
    import parfocal as pf
    from parfocal.backends import registry

    reference, port, inputs = build(shape, calls)

    def bare() -> None:
        for model in (reference, port):
            backend = registry.of(model)
            with backend.mode(model, "eval"):
                output = model(backend.from_array(inputs, requires_grad=True))
                backend.backward([output], [backend.from_array(np.ones(backend.shape(output), "float32"))])
                backend.clear_gradients(model)

    def align() -> None:
        report = pf.align(reference, port, inputs, transfer=False)
        if not report.ok:
            raise SystemExit(f"{calls} calls: a correct pair is said to differ\n{report}")

    return bare, align


def best(work: Callable[[], None], rounds: int) -> float:
    found = []
    for _ in range(rounds):
        gc.collect()
        start = time.process_time()
        work()
        found.append(time.process_time() - start)
    return min(found)


def measure(shape: str, calls: int) -> Row:
    """In this process: the bare run comes first, so that the peak of the memory tells the two apart."""
    rounds = 5 if calls < SMALL else ROUNDS
    jobs(shape, len(NAMES))[1]()  # what the first time loads
    bare, align = jobs(shape, calls)
    bare()
    seconds, before = best(bare, rounds), peak_bytes()
    align()
    memory = peak_bytes() - before
    return Row(calls, seconds, best(align, rounds), memory)


def measured(shape: str, calls: int) -> Row:
    command = [sys.executable, "-m", "benchmarks.growth", "--child", shape, str(calls)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, env=environment, check=True)
    return Row(**json.loads(done.stdout.splitlines()[-1]))


def broken(row: Row, before: Row | None) -> Iterator[str]:
    """Bars that do not hold."""
    if row.calls == OWN_AT and row.own > OWN_BAR:
        yield f"own > {OWN_BAR} ms"
    if row.calls == RATIO_AT and row.ratio > RATIO_BAR:
        yield f"> {RATIO_BAR}x bare"
    if before is not None and before.calls >= SMALL:
        if row.own > GROWTH_BAR * before.own:
            yield "time grows faster"
        if row.kilobytes > GROWTH_BAR * before.kilobytes:
            yield "memory grows faster"


def hand_over(shape: str, row: Row, before: Row | None) -> None:
    """The bars of this size, for the table of all benchmarks."""
    name = f"align {row.calls} calls, {shape}"
    if row.calls == OWN_AT:
        note(f"{name}: our own per call", row.own, OWN_BAR, unit=" ms")
    if row.calls == RATIO_AT:
        note(f"{name}: beside bare", row.ratio, RATIO_BAR)
    if before is not None and before.calls >= SMALL:
        note(f"{name}: time per call beside {before.calls}", row.own / before.own, GROWTH_BAR)
        note(f"{name}: memory per call beside {before.calls}", row.kilobytes / before.kilobytes, GROWTH_BAR)


def print_table(shapes: Sequence[str], sizes: Sequence[int]) -> bool:
    """One row per size; whether a bar is broken."""
    failed = False
    print(
        f"{'shape':<6} {'calls':>6} {'bare':>8} {'per call':>9} {'align':>8} {'own per call':>13} "
        f"{'ratio':>7} {'memory':>10}"
    )
    for shape in shapes:
        before = None
        for calls in sizes:
            row = measured(shape, calls)
            wrong = list(broken(row, before))
            failed |= bool(wrong)
            print(
                f"{shape:<6} {calls:>6} {row.bare:>6.2f} s {1e3 * row.bare / calls:>6.3f} ms "
                f"{row.align:>6.2f} s {row.own:>10.2f} ms "
                f"{row.ratio:>6.2f}x {row.kilobytes:>7.0f} kB  {', '.join(wrong)}",
                flush=True,
            )
            hand_over(shape, row, before)
            before = row
    print(
        f"bars: {OWN_BAR} ms of our own per call at {OWN_AT} calls, {RATIO_BAR}x bare at {RATIO_AT}, "
        f"per call at most {GROWTH_BAR}x that of the size before from {SMALL} calls on"
    )
    return failed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", default=",".join(map(str, CALLS)))
    parser.add_argument("--shapes", default=",".join(SHAPES))
    parser.add_argument("--child", nargs=2, metavar=("SHAPE", "CALLS"))
    options = parser.parse_args()
    warnings.filterwarnings("ignore")
    if options.child:
        print(json.dumps(asdict(measure(options.child[0], int(options.child[1])))))
        return
    sizes = [int(calls) for calls in options.calls.split(",")]
    raise SystemExit(1 if print_table(options.shapes.split(","), sizes) else 0)


if __name__ == "__main__":
    main()
