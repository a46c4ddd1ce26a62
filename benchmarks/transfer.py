"""How long a transfer takes and how much memory it needs, against copying the bytes once.

Run ``python -m benchmarks.transfer``. The models are stacks of Transformer-sized Linear layers,
torch to paddle (every weight is transposed on the way) and back. Times are the best of several,
and the bars are ratios, so the machine does not matter:

- time: at most 3 times that of cloning all parameters once on each side;
- memory: at most 1.2 times the size of the larger model on top of the two models;
- depth: 4,096 parameters in at most 2 seconds of CPU time, and four times as many in at most eight times that
  (``benchmarks/depth.py``; with inputs both models run, which is part of it).
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from benchmarks.bars import note
from benchmarks.depth import Row, rows

TIME_BAR = 3.0
MEMORY_BAR = 1.2
DEPTHS = (171, 683, 2732)  # blocks: 1,026, 4,098 and 16,392 parameters
DEPTH_BAR = 2.0  # seconds for 4,098
GROWTH_BAR = 8.0  # for four times as many: n log n, and a larger heap to collect


def models(width: int, layers: int) -> tuple[Any, Any]:
    """Stacks of attention- and MLP-shaped Linear layers with norms between, as in a Transformer."""
    import paddle
    import torch

    shapes = [(width, width)] * 4 + [(width, 4 * width), (4 * width, width)]

    def stack(nn: Any) -> Any:
        blocks = (
            nn.Sequential(*(nn.Linear(*shape) for shape in shapes), nn.LayerNorm(width))
            for _ in range(layers)
        )
        return nn.Sequential(*blocks)

    return stack(torch.nn), stack(paddle.nn)


def best(function: Callable[[], Any], times: int) -> float:
    found = []
    for _ in range(times):
        start = time.perf_counter()
        function()
        found.append(time.perf_counter() - start)
    return min(found)


def measure_time(width: int, layers: int, times: int) -> dict[str, float]:
    """Seconds of both clones together, of the transfer there, and of the transfer back."""
    import paddle

    from parfocal.weights.transfer import transfer

    reference, port = models(width, layers)

    def clone_torch() -> None:
        for parameter in reference.parameters():
            parameter.detach().clone()

    def clone_paddle() -> None:
        with paddle.no_grad():
            for parameter in port.parameters():
                parameter.clone()

    return {
        "parameters": float(sum(parameter.numel() for parameter in reference.parameters())),
        "clones": best(clone_torch, times) + best(clone_paddle, times),
        "torch to paddle": best(lambda: transfer(reference, port), times),
        "paddle to torch": best(lambda: transfer(port, reference), times),
    }


def measure_memory(width: int, layers: int, with_inputs: bool) -> float:
    """Extra peak memory of one transfer, relative to the model's size. Needs a process of its own."""
    import numpy as np

    from parfocal.weights.transfer import transfer

    inputs = [np.ones((4, size), "float32") if with_inputs else None for size in (64, width)]
    transfer(*models(64, 1), inputs[0])  # whatever is loaded and allocated the first time
    reference, port = models(width, layers)
    size = sum(parameter.numel() * parameter.element_size() for parameter in reference.parameters())
    with Sampler() as sampler:
        transfer(reference, port, inputs[1])
    return sampler.extra / size


def print_depths() -> bool:
    """The table of depths; whether a bar is broken."""
    failed = False
    known: dict[tuple[int, str], Row] = {}
    print(f"{'parameters':>10}  {'written':<12}{'without inputs':>15}{'with inputs':>13}   CPU seconds")
    for row in rows(DEPTHS):
        known[row.parameters, row.writing] = row
        before = known.get((6 * DEPTHS[1], row.writing))
        broken = row.parameters == 6 * DEPTHS[1] and row.static > DEPTH_BAR
        name = f"transfer {row.parameters} parameters, {row.writing}"
        if row.parameters == 6 * DEPTHS[1]:
            note(name, row.static, DEPTH_BAR, unit=" s")
        if before is not None and row.parameters == 6 * DEPTHS[2]:
            grown = max(row.static / before.static, row.verified / before.verified)
            note(f"{name}: beside {before.parameters}", grown, GROWTH_BAR)
            broken = grown > GROWTH_BAR
        failed |= broken
        mark = " !" if broken else ""
        print(
            f"{row.parameters:>10}  {row.writing:<12}{row.static:>15.2f}{row.verified:>13.2f}{mark}",
            flush=True,
        )
    print(f"bars: {6 * DEPTHS[1]} without inputs in {DEPTH_BAR} s; {6 * DEPTHS[2]} in {GROWTH_BAR} x that")
    return failed


class Sampler:
    """Looks at the resident memory every millisecond; the kernel's own peak remembers older times."""

    def __enter__(self) -> Sampler:
        self._start = self._most = resident()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._over.wait(0.001):
            self._most = max(self._most, resident())

    @property
    def extra(self) -> int:
        return self._most - self._start


def resident() -> int:
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * resource.getpagesize()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--width", type=int, default=832)
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--times", type=int, default=5)
    parser.add_argument("--depth", action="store_true", help="print the table of depths only")
    parser.add_argument("--memory", choices=["static", "inputs"], help="print the extra memory only")
    options = parser.parse_args()
    if options.memory:
        print(measure_memory(options.width, options.layers, options.memory == "inputs"))
        return
    if options.depth:
        raise SystemExit(1 if print_depths() else 0)
    seconds = measure_time(options.width, options.layers, options.times)
    print(f"parameters                  {seconds['parameters'] / 1e6:8.1f} M")
    print(f"both clones                 {1e3 * seconds['clones']:8.1f} ms")
    failed = False
    for way in ("torch to paddle", "paddle to torch"):
        ratio = seconds[way] / seconds["clones"]
        failed |= ratio > TIME_BAR
        note(f"transfer {way}, beside clones", ratio, TIME_BAR)
        print(f"{way}             {1e3 * seconds[way]:8.1f} ms = {ratio:.2f} x clones (bar {TIME_BAR})")
    for how in ("static", "inputs"):
        command = [sys.executable, "-m", "benchmarks.transfer", "--memory", how]
        command += ["--width", str(options.width), "--layers", str(options.layers)]
        output = subprocess.run(command, capture_output=True, text=True, check=True)
        extra = float(output.stdout.strip().splitlines()[-1])
        failed |= extra > MEMORY_BAR
        note(f"transfer, {how}: extra memory in models", extra, MEMORY_BAR)
        print(f"extra memory, {how}        {extra:8.2f} x model (bar {MEMORY_BAR})")
    failed |= print_depths()
    raise SystemExit(1 if failed else 0)


if __name__ == "__main__":
    main()
