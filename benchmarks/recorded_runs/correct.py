"""Correct pairs: the sides of the benchmark in all frameworks, and the same computed or trained otherwise."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from benchmarks.recorded_runs.mistakes import LOGGING, NESTEROV, RANKS, WARM
from benchmarks.recorded_runs.pairs import CONVOLUTIONAL, LLAMA, PERCEPTRON, SIDES, TAGGER, Side
from benchmarks.recorded_runs.running import Case

DIRECTIONS = (("torch", "paddle"), ("torch", "torch"), ("paddle", "paddle"))
ALL_DIRECTIONS = (*DIRECTIONS, ("paddle", "torch"))
TENSORS = ("full", "sketch")
SEEDS = (0, 1)
OTHER_NAMES = {"layers": "blocks", "attention": "mixer", "feed": "mlp"}

# What the port does otherwise, and rightly.
OTHERWISE: tuple[tuple[str, Side, Side], ...] = (
    ("other names and nesting", PERCEPTRON, replace(PERCEPTRON, model="nested_perceptron")),
    ("other names of blocks", LLAMA, replace(LLAMA, changes={"names": OTHER_NAMES})),
    ("tables of every sample", LLAMA, replace(LLAMA, changes={"tables": "of every sample"})),
)
CHANNELS_LAST = replace(CONVOLUTIONAL, changes={"last": True})  # only one framework has it
# What both sides do.
BOTH: tuple[tuple[str, Side], ...] = (
    *(
        (f"{name}, evaluated", replace(side, training=False, rule=None, clip=None))
        for name, side in SIDES.items()
    ),
    *((f"{name}, no optimizer", replace(side, rule=None)) for name, side in SIDES.items()),
    ("nesterov", NESTEROV),
    ("warm-up", WARM),
    ("logged values", LOGGING),
    ("two ranks", RANKS),
    ("both clip by value", replace(LLAMA, clip=("value", 0.05))),
    ("a frozen layer", replace(PERCEPTRON, frozen="wide.weight")),
    ("state of everything", replace(TAGGER, state=("parameter", "buffer", "gradient", "optimizer"))),
    ("gradients of two passes", replace(PERCEPTRON, backward_passes=2)),
    ("a tied head", replace(LLAMA, changes={"tied": True})),
)


def correct_cases() -> Iterator[Case]:
    for name, side in SIDES.items():
        for kits in ALL_DIRECTIONS:
            for tensors in TENSORS:
                for seed in SEEDS:
                    yield Case(f"{name}, seed {seed}", side, side, kits, tensors, seed)
    for tensors in TENSORS:
        for name, reference, port in OTHERWISE:
            for kits in DIRECTIONS:
                yield Case(name, reference, port, kits, tensors)
        yield Case("channels last", CONVOLUTIONAL, CHANNELS_LAST, ("torch", "paddle"), tensors)
        yield Case("channels last", CONVOLUTIONAL, CHANNELS_LAST, ("paddle", "paddle"), tensors)
        for name, side in BOTH:
            yield Case(name, side, side, ("torch", "paddle"), tensors)
