"""What a wrong pair costs beside the right one: ``python -m benchmarks.wrong_pairs [--rounds 2]``.

The same two models, once as they are and once with a mistake everywhere or in the first layer. Time is that
of the processor, in turns in one process, the best of all rounds; memory is the peak of a process of its
own. Without explanation. Bars: at most 1.5x the time and 1.2x the memory of the correct pair.
"""

from __future__ import annotations

import argparse
import gc
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.bars import note
from benchmarks.memory import peak_bytes

BARS = 1.5, 1.2  # time and memory
RIGHT = "right"


def resnet() -> tuple[Any, Any, Any]:
    import paddle
    from examples.pairs.library import torchvision_models

    images = np.random.default_rng(0).standard_normal((2, 3, 128, 128)).astype("float32")
    return torchvision_models().resnet50(weights=None), paddle.vision.models.resnet50(), images


def inception() -> tuple[Any, Any, Any]:
    """Branches of separable and plain convolutions that are joined again."""
    import paddle
    import torch

    from benchmarks.branches import build

    images = np.random.default_rng(0).standard_normal((2, 3, 96, 96)).astype("float32")
    return build(torch), build(paddle), images


def other_epsilons(port: Any) -> None:
    """In all norms."""
    for layer in port.sublayers():
        if hasattr(layer, "_epsilon"):
            layer._epsilon = 1e-3


def other_paddings(port: Any) -> None:
    """In all convolutions: everything at one end, as another framework rounds it."""
    import paddle

    for name, layer in list(port.named_sublayers()):
        padding = getattr(layer, "_padding", 0)
        width = padding if isinstance(padding, int) else padding[0]
        if not isinstance(layer, paddle.nn.Conv2D) or not width:
            continue
        owner, _, own = name.rpartition(".")
        new = paddle.nn.Conv2D(
            layer._in_channels,
            layer._out_channels,
            layer._kernel_size,
            stride=layer._stride,
            padding=[0, 2 * width, 0, 2 * width],
            dilation=layer._dilation,
            groups=layer._groups,
            bias_attr=None if layer.bias is not None else False,
        )
        around = port
        for part in filter(None, owner.split(".")):
            around = getattr(around, part)
        setattr(around, own, new)


def first_layer(port: Any) -> None:
    """The first norm alone."""
    next(layer for layer in port.sublayers() if hasattr(layer, "_epsilon"))._epsilon = 1e-2


PAIRS: dict[str, Callable[[], tuple[Any, Any, Any]]] = {"resnet50": resnet, "inception": inception}
MISTAKES: dict[str, Callable[[Any], None]] = {
    RIGHT: lambda port: None,
    "epsilons": other_epsilons,
    "paddings": other_paddings,
    "first layer": first_layer,
}


def job(pair: str, mistake: str) -> Callable[[], bool]:
    import paddle
    import torch

    import parfocal as pf

    torch.manual_seed(0)
    paddle.seed(0)
    reference, port, inputs = PAIRS[pair]()
    MISTAKES[mistake](port)
    return lambda: pf.align(reference, port, inputs, explain=False).ok


def times(pair: str, rounds: int) -> dict[str, float]:
    work = {mistake: job(pair, mistake) for mistake in MISTAKES}
    best = dict.fromkeys(MISTAKES, float("inf"))
    for _ in range(rounds + 1):  # the first sets things up
        for mistake, align in work.items():
            gc.collect()
            start = time.process_time()
            ok = align()
            best[mistake] = min(best[mistake], time.process_time() - start)
            if ok != (mistake == RIGHT):
                raise SystemExit(f"{pair} with {mistake}: align says {'same' if ok else 'different'}")
    return best


def peak_of(pair: str, mistake: str) -> int:
    command = [sys.executable, "-m", "benchmarks.wrong_pairs", "--child", pair, mistake]
    return int(subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()[-1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--pairs", default=",".join(PAIRS))
    parser.add_argument("--child", nargs=2, metavar=("PAIR", "MISTAKE"))
    options = parser.parse_args()
    warnings.filterwarnings("ignore")
    if options.child:
        job(*options.child)()
        print(peak_bytes())
        return
    print(f"{'pair':<12} {'mistake':<14} {'time':>8} {'bar':>6} {'memory':>8} {'bar':>6}", flush=True)
    for pair in options.pairs.split(","):
        best = times(pair, options.rounds)
        peaks = {mistake: peak_of(pair, mistake) for mistake in MISTAKES}
        for mistake in list(MISTAKES)[1:]:
            longer, more = best[mistake] / best[RIGHT], peaks[mistake] / peaks[RIGHT]
            print(
                f"{pair:<12} {mistake:<14} {longer:>7.2f}x {BARS[0]:>5}x {more:>7.2f}x {BARS[1]:>5}x",
                flush=True,
            )
            note(f"wrong pair {pair}, {mistake}, beside the right one", longer, BARS[0])
            note(f"wrong pair {pair}, {mistake}: memory", more, BARS[1])


if __name__ == "__main__":
    main()
