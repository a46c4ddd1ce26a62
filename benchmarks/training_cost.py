"""What a comparison of trainings costs, as ratios to the bare training of both models in one process.

    python -m benchmarks.training_cost [--rounds 3]

Times are processor times on one thread, because threads that wait for each other count as busy: the best of
several rounds of bare and compared trainings by turns. Memory is the peak of a process of its own, less what
the process has once both frameworks are imported. Bars: at most 1.5x time; 200 MB more for 1,000 steps of a
small model, 1.5x memory for 20 steps of ResNet-18 on 32x32.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.memory import peak_bytes

WAYS = ("bare", "compared")
MODELS = ("small", "resnet18")


def build(name: str) -> tuple[Any, Any, list[Any], Any]:
    """Reference, port, batches and optimizers."""
    import paddle
    import torch

    from parfocal import seed

    seed(0)
    generator = np.random.default_rng(0)
    if name == "resnet18":
        from examples.pairs.library import torchvision_models

        shape, steps = (32, 3, 32, 32), 20
        models = (
            torchvision_models().resnet18(weights=None, num_classes=10),
            paddle.vision.models.resnet18(pretrained=False, num_classes=10),
        )
        optimizers = (
            lambda model: torch.optim.SGD(model.parameters(), 0.01, momentum=0.9),
            lambda model: paddle.optimizer.Momentum(0.01, 0.9, parameters=model.parameters()),
        )
    else:
        shape, steps = (16, 32), 1000
        models = (_small(torch.nn, "ReLU"), _small(paddle.nn, "ReLU"))
        optimizers = (
            lambda model: torch.optim.Adam(model.parameters(), 1e-3),
            lambda model: paddle.optimizer.Adam(1e-3, parameters=model.parameters()),
        )
    batches = [
        (generator.standard_normal(shape).astype("float32"), generator.integers(0, 10, shape[0]))
        for _ in range(steps)
    ]
    return *models, batches, optimizers


def _small(layers: Any, activation: str) -> Any:
    active = getattr(layers, activation)
    return layers.Sequential(
        layers.Linear(32, 64), active(), layers.Linear(64, 64), active(), layers.Linear(64, 10)
    )


def losses() -> tuple[Any, Any]:
    import paddle
    import torch

    return torch.nn.functional.cross_entropy, paddle.nn.functional.cross_entropy


def train_bare(name: str) -> Callable[[], Any]:
    import paddle
    import torch

    reference, port, batches, optimizers = build(name)
    ours, theirs = losses()

    def run() -> None:
        optimizer = optimizers[0](reference)
        for given, label in batches:
            ours(reference(torch.from_numpy(given)), torch.from_numpy(label)).backward()
            optimizer.step()
            optimizer.zero_grad()
        optimizer = optimizers[1](port)
        for given, label in batches:
            theirs(port(paddle.to_tensor(given)), paddle.to_tensor(label)).backward()
            optimizer.step()
            optimizer.clear_grad()

    return run


def train_compared(name: str) -> Callable[[], Any]:
    import parfocal as pf

    reference, port, batches, optimizers = build(name)
    return lambda: pf.compare_training(
        reference, port, batches, loss=losses(), optimizers=optimizers, progress=False
    )


JOBS = {"bare": train_bare, "compared": train_compared}


def measure_time(name: str, rounds: int) -> float:
    """Compared to bare, the best of each."""
    best = dict.fromkeys(WAYS, float("inf"))
    for _ in range(rounds):
        for way in WAYS:
            job = JOBS[way](name)
            start = time.process_time()
            job()
            best[way] = min(best[way], time.process_time() - start)
    return best["compared"] / best["bare"]


def measure_memory(name: str) -> tuple[float, float, float]:
    """More than bare in bytes, the ratio of whole processes, and of what both take beyond the frameworks."""
    peaks = {}
    for way in ("nothing", *WAYS):
        command = [sys.executable, "-m", "benchmarks.training_cost", "--peak", way, name]
        environment = {**os.environ, "PYTHONWARNINGS": "ignore"}
        done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
        peaks[way] = int(done.stdout.split()[-1])
    own = {way: peaks[way] - peaks["nothing"] for way in WAYS}
    whole = peaks["compared"] / peaks["bare"]
    return peaks["compared"] - peaks["bare"], whole, own["compared"] / max(1, own["bare"])


def main() -> None:
    os.environ["OMP_NUM_THREADS"] = "1"  # before a framework is imported
    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--peak", nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.peak is not None:
        way, name = given.peak
        if way == "nothing":
            import paddle  # noqa: F401
            import torch  # noqa: F401
        else:
            JOBS[way](name)()
        print(peak_bytes())
        return
    JOBS["compared"]("small")()  # imports and first calls
    print("| model | time | more memory | whole process | beyond the frameworks |")
    print("| --- | ---: | ---: | ---: | ---: |")
    for name in MODELS:
        more, whole, beyond = measure_memory(name)
        ratio = measure_time(name, given.rounds)
        print(f"| {name} | {ratio:.2f}x | {more / 1e6:.0f} MB | {whole:.2f}x | {beyond:.2f}x |", flush=True)


if __name__ == "__main__":
    main()
