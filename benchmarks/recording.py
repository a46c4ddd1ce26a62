"""What recording costs: ``python -m benchmarks.recording``.

Times are ratios to the bare forward and backward pass of the same model, all variants taken
in turns in one process, the best of all rounds. Memory is the peak resident size of a process
of its own for each variant, again as a ratio to the bare one.

On a machine that is busy otherwise, wall time says little: ``--cpu`` counts the processor time
of everything this process does instead, with one thread for the framework.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack, nullcontext
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.bars import has_time_bars, note
from benchmarks.memory import peak_bytes
from parfocal.backends import registry
from parfocal.capture.recording import record
from parfocal.native.library import path_in_use

Bars = dict[str, tuple[float | None, float | None]]  # variant -> time and memory


def bars(sketch: float, full: float) -> Bars:
    """Of a model: what its two kinds of recording may take at most of the bare time."""
    return {
        "hooks": (1.05, None),
        "sketch": (sketch, 1.1),
        "stats": (None, None),
        "full": (full, 1.3),
        "check": (None, None),
    }


RESNET, ENCODER = "ResNet-50 4x3x224x224", "encoder 12x768, 4x128"
BARS = {RESNET: bars(1.2, 1.35), ENCODER: bars(1.05, 1.15)}
VARIANTS = tuple(BARS[RESNET])
PROCESSES = 3  # of which the smallest peak counts, where there is a bar
STEPS_OF_A_PEAK = 3

Step = Callable[[], None]


def resnet50(framework: str) -> tuple[Any, Any]:
    images = np.random.default_rng(0).normal(size=(4, 3, 224, 224)).astype("float32")
    if framework == "paddle":
        import paddle

        return paddle.vision.models.resnet50(), paddle.to_tensor(images)
    import torch

    return torch_resnet50(), torch.from_numpy(images)


def torch_resnet50() -> Any:
    """ResNet-50 with in-place ReLUs, as torchvision has it."""
    from torch import nn

    class Bottleneck(nn.Module):
        def __init__(self, inputs: int, width: int, stride: int) -> None:
            super().__init__()
            self.conv1 = nn.Conv2d(inputs, width, 1, bias=False)
            self.bn1 = nn.BatchNorm2d(width)
            self.conv2 = nn.Conv2d(width, width, 3, stride, 1, bias=False)
            self.bn2 = nn.BatchNorm2d(width)
            self.conv3 = nn.Conv2d(width, 4 * width, 1, bias=False)
            self.bn3 = nn.BatchNorm2d(4 * width)
            self.relu = nn.ReLU(inplace=True)
            self.downsample = (
                None
                if inputs == 4 * width
                else nn.Sequential(
                    nn.Conv2d(inputs, 4 * width, 1, stride, bias=False), nn.BatchNorm2d(4 * width)
                )
            )

        def forward(self, x: Any) -> Any:
            shortcut = x if self.downsample is None else self.downsample(x)
            x = self.relu(self.bn1(self.conv1(x)))
            x = self.relu(self.bn2(self.conv2(x)))
            x = self.bn3(self.conv3(x))
            x += shortcut
            return self.relu(x)

    stages: list[Any] = []
    inputs = 64
    for width, blocks, stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
        for block in range(blocks):
            stages.append(Bottleneck(inputs, width, stride if block == 0 else 1))
            inputs = 4 * width
    return nn.Sequential(
        nn.Conv2d(3, 64, 7, 2, 3, bias=False),
        nn.BatchNorm2d(64),
        nn.ReLU(inplace=True),
        nn.MaxPool2d(3, 2, 1),
        *stages,
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(2048, 1000),
    )


def encoder(framework: str) -> tuple[Any, Any]:
    tokens = np.random.default_rng(0).normal(size=(4, 128, 768)).astype("float32")
    if framework == "paddle":
        import paddle

        layer = paddle.nn.TransformerEncoderLayer(768, 12, 3072, dropout=0.0)
        return paddle.nn.TransformerEncoder(layer, 12), paddle.to_tensor(tokens)
    import torch

    layer = torch.nn.TransformerEncoderLayer(768, 12, 3072, dropout=0.0, batch_first=True)
    return torch.nn.TransformerEncoder(layer, 12, enable_nested_tensor=False), torch.from_numpy(tokens)


MODELS = {RESNET: resnet50, ENCODER: encoder}


def watching(variant: str, model: Any, folder: Path) -> AbstractContextManager[Any]:
    """What stands around a step in a variant."""
    if variant == "bare":
        return nullcontext()
    if variant == "hooks":
        return registry.of(model).watch(model, lambda call: None, lambda call, output: None)
    if variant == "check":
        return record(model, folder / "run", tensors="stats", check=True)
    return record(model, folder / "run", tensors=variant)


def step_of(model: Any, inputs: Any) -> Step:
    backend = registry.of(model)

    def step() -> None:
        (model(inputs) ** 2).mean().backward()
        backend.clear_gradients(model)

    return step


def times(
    build: Callable[[str], tuple[Any, Any]], framework: str, rounds: int, clock: Callable[[], float]
) -> dict[str, float]:
    """The shortest step of each variant in seconds; entering and leaving a recording is not counted."""
    model, inputs = build(framework)
    step = step_of(model, inputs)
    step()
    best = dict.fromkeys(["bare", *VARIANTS], float("inf"))
    for _ in range(rounds):
        for variant in best:
            with ExitStack() as around:
                folder = Path(tempfile.mkdtemp(prefix="parfocal-benchmark-"))
                around.callback(shutil.rmtree, folder)
                around.enter_context(watching(variant, model, folder))
                start = clock()
                step()
                best[variant] = min(best[variant], clock() - start)
    return best


def peak(model_name: str, framework: str, variant: str, processes: int) -> float:
    """The peak resident megabytes of a process that makes a few steps; the least of a few processes.

    What an allocator keeps differs from one process to the next: by a tenth for ResNet-50.
    """
    command = [sys.executable, "-m", "benchmarks.recording", "--peak", model_name, framework, variant]
    runs = [subprocess.run(command, capture_output=True, text=True, check=True) for _ in range(processes)]
    return min(float(done.stdout.split()[-1]) for done in runs)


def print_peak(model_name: str, framework: str, variant: str) -> None:
    model, inputs = MODELS[model_name](framework)
    step = step_of(model, inputs)
    with (
        tempfile.TemporaryDirectory(prefix="parfocal-benchmark-") as folder,
        watching(variant, model, Path(folder)),
    ):
        for _ in range(STEPS_OF_A_PEAK):
            step()
    print(peak_bytes() / 2**20)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--framework", choices=("torch", "paddle"), default="torch")
    parser.add_argument("--no-memory", action="store_true")
    parser.add_argument("--cpu", action="store_true", help="processor time, one thread")
    parser.add_argument("--peak", nargs=3, metavar=("MODEL", "FRAMEWORK", "VARIANT"))
    options = parser.parse_args()
    if options.peak:
        print_peak(*options.peak)
        return
    if options.cpu:
        os.environ["OMP_NUM_THREADS"] = "1"  # read when the framework is loaded
    clock = time.process_time if options.cpu else time.perf_counter
    for name, build in MODELS.items():
        found = times(build, options.framework, options.rounds, clock)
        peaks = {}
        if not options.no_memory:
            with_bar = {"bare"} | {variant for variant, (_, memory) in BARS[name].items() if memory}
            for variant in found:
                processes = PROCESSES if variant in with_bar else 1
                peaks[variant] = peak(name, options.framework, variant, processes)
        print(f"{name} ({options.framework}): bare {found['bare']:.3f} s")
        for variant, (time_bar, memory_bar) in BARS[name].items():
            ratio = found[variant] / found["bare"]
            time_bar = time_bar if has_time_bars(path_in_use()) else None
            note(f"record {name}, {variant}", ratio, time_bar)
            line = f"  {variant:7} time {ratio:5.2f}x" + (f" (at most {time_bar}x)" if time_bar else "")
            if peaks:
                more = peaks[variant] / peaks["bare"]
                line += f"   peak {peaks[variant]:6.0f} MB {more:5.2f}x"
                line += f" (at most {memory_bar}x)" if memory_bar else ""
                note(f"record {name}, {variant}: memory", more, memory_bar)
            print(line, flush=True)


if __name__ == "__main__":
    main()
