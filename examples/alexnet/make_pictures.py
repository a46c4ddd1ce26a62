"""Make a small set of pictures on disk: four kinds of pattern, one folder each, the same on every machine.

``python make_pictures.py [FOLDER] [--training N] [--evaluation N]`` writes
``FOLDER/train/<kind>/<number>.npy`` and ``FOLDER/val/<kind>/<number>.npy``: 64x64 pixels, three bytes each.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

SIZE = 64
KINDS = ("checks", "disc", "horizontal", "vertical")
NOISE = 12.0  # of 255 shades


def draw(kind: str, generator: np.random.Generator) -> np.ndarray:
    """One picture: a light pattern on a dark ground, in colours, a place and a width of its own."""
    rows, columns = np.mgrid[:SIZE, :SIZE]
    width = int(generator.integers(6, 11))
    row_offset, column_offset = (int(each) for each in generator.integers(0, 2 * width, 2))
    across = (rows + row_offset) // width % 2
    along = (columns + column_offset) // width % 2
    if kind == "disc":
        row, column = generator.integers(20, SIZE - 20, 2)
        inside = (rows - row) ** 2 + (columns - column) ** 2 < generator.integers(12, 19) ** 2
    else:
        inside = {"horizontal": across, "vertical": along, "checks": across ^ along}[kind] == 1
    ground, pattern = generator.integers(0, 70, 3), generator.integers(150, 256, 3)
    picture = np.where(inside[..., None], pattern, ground) + generator.normal(0, NOISE, (SIZE, SIZE, 3))
    return picture.round().clip(0, 255).astype(np.uint8)


def make_pictures(folder: Path, training: int, evaluation: int) -> None:
    """Both parts of the set, with that many pictures of each kind."""
    for part, (name, count) in enumerate((("train", training), ("val", evaluation))):
        for number, kind in enumerate(KINDS):
            (folder / name / kind).mkdir(parents=True, exist_ok=True)
            for index in range(count):
                picture = draw(kind, np.random.default_rng((part, number, index)))
                np.save(folder / name / kind / f"{index:03}.npy", picture)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=Path(__file__).parent / "pictures")
    parser.add_argument("--training", type=int, default=64, help="pictures of each kind to train with")
    parser.add_argument("--evaluation", type=int, default=25, help="pictures of each kind to evaluate with")
    given = parser.parse_args()
    make_pictures(given.folder, given.training, given.evaluation)
    count = len(KINDS) * (given.training + given.evaluation)
    print(f"{count} pictures in {given.folder.name}")
