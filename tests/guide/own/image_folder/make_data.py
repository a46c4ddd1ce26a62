"""Small made-up pictures in class folders: leaves, stripes and rings, each in its own range of colours."""

from pathlib import Path

import numpy as np
from PIL import Image

SIZE = 24
COUNTS = {"train": 43, "test": 27}
COLOURS = {"leaf": (70, 150, 60), "ring": (170, 80, 60), "stripe": (90, 90, 140)}


def shape_of(kind, generator):
    rows, columns = np.mgrid[:SIZE, :SIZE] - generator.uniform(9, 14, (2, 1, 1))
    far = np.hypot(rows, columns)
    if kind == "leaf":
        return np.hypot(rows * 2, columns) < generator.uniform(7, 10)
    if kind == "ring":
        return abs(far - generator.uniform(5, 8)) < 2
    return np.sin(rows * generator.uniform(0.8, 1.2)) > 0.2


def picture(kind, generator):
    ground = generator.uniform(60, 150, 3)
    colour = np.array(COLOURS[kind]) + generator.normal(0, 25, 3)
    filled = np.where(shape_of(kind, generator)[..., None], colour, ground)
    return Image.fromarray(np.clip(filled + generator.normal(0, 18, filled.shape), 0, 255).astype("uint8"))


if __name__ == "__main__":
    generator = np.random.default_rng(3)
    for part, count in COUNTS.items():
        for kind in COLOURS:
            folder = Path("pictures") / part / kind
            folder.mkdir(parents=True, exist_ok=True)
            for number in range(count):
                picture(kind, generator).save(folder / f"{number:03}.png")
