"""Make a small set of clips on disk: a square that moves in one of four directions, one folder each.

``python make_clips.py [FOLDER] [--training N] [--evaluation N]`` writes
``FOLDER/train/<direction>/<number>.npy`` and ``FOLDER/val/<direction>/<number>.npy``: 8 frames of 32x32
pixels, three bytes each. One frame alone does not tell the direction. As in sets that people made, a few
clips to evaluate with are filed under another direction: the first of each.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

FRAMES, SIZE, SQUARE = 8, 32, 8
DIRECTIONS = {"down": (1, 0), "left": (0, -1), "right": (0, 1), "up": (-1, 0)}
NOISE = 10.0  # of 255 shades


def film(direction: str, generator: np.random.Generator) -> np.ndarray:
    """One clip: the square starts anywhere, and comes back on the other edge."""
    place, speed = generator.integers(0, SIZE, 2), int(generator.integers(2, 4))
    ground, square = generator.integers(0, 70, 3), generator.integers(150, 256, 3)
    clip = np.empty((FRAMES, SIZE, SIZE, 3))
    clip[:] = ground
    for number in range(FRAMES):
        row, column = place + number * speed * np.array(DIRECTIONS[direction])
        rows, columns = (np.arange(start, start + SQUARE) % SIZE for start in (row, column))
        clip[number, rows[:, None], columns] = square
    clip += generator.normal(0, NOISE, clip.shape)
    return clip.round().clip(0, 255).astype(np.uint8)


def make_clips(folder: Path, training: int, evaluation: int) -> None:
    """Both parts of the set, with that many clips of each direction."""
    for part, (name, count) in enumerate((("train", training), ("val", evaluation))):
        for number, direction in enumerate(DIRECTIONS):
            (folder / name / direction).mkdir(parents=True, exist_ok=True)
            for index in range(count):
                filed_wrongly = name == "val" and index == 0
                shown = list(DIRECTIONS)[number - 1] if filed_wrongly else direction
                clip = film(shown, np.random.default_rng((part, number, index)))
                np.save(folder / name / direction / f"{index:03}.npy", clip)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=Path(__file__).parent / "clips")
    parser.add_argument("--training", type=int, default=32, help="clips of each direction to train with")
    parser.add_argument("--evaluation", type=int, default=12, help="clips of each direction to evaluate with")
    given = parser.parse_args()
    make_clips(given.folder, given.training, given.evaluation)
    print(f"{len(DIRECTIONS) * (given.training + given.evaluation)} clips in {given.folder.name}")
