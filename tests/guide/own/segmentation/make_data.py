"""Small made-up scenes as PNG files: a disc, a box and a bar on a ground, and masks with an unsure rim."""

from pathlib import Path

import numpy as np
from PIL import Image

HEIGHT, WIDTH = 24, 30
COLOURS = np.array([[90, 110, 70], [200, 80, 60], [60, 90, 210], [190, 190, 90]])
UNSURE = 255


def shapes(generator):
    """The mask of every object, the one in front last."""
    y, x = np.mgrid[:HEIGHT, :WIDTH]
    for kind in generator.permutation([1, 2, 3])[: generator.integers(1, 4)]:
        top, left = generator.integers(5, HEIGHT - 5), generator.integers(5, WIDTH - 5)
        size = generator.integers(3, 7)
        far = {
            1: np.hypot(y - top, x - left),
            2: np.maximum(abs(y - top), abs(x - left)),
            3: np.maximum(abs(y - top) * 2.0, abs(x - left) * 0.6),
        }[int(kind)]
        yield int(kind), far - size


def scene(generator):
    mask = np.zeros((HEIGHT, WIDTH), np.uint8)
    for kind, far in shapes(generator):
        mask[far < 1] = UNSURE
        mask[far < 0] = kind
    seen = np.where(mask == UNSURE, 0, mask)
    picture = COLOURS[seen] + generator.normal(0, 22, (HEIGHT, WIDTH, 3))
    return np.clip(picture, 0, 255).astype(np.uint8), mask


def write(folder, count, seed):
    generator = np.random.default_rng(seed)
    for part in ("pictures", "masks"):
        (folder / part).mkdir(parents=True, exist_ok=True)
    for index in range(count):
        picture, mask = scene(generator)
        Image.fromarray(picture).save(folder / "pictures" / f"{index:03}.png")
        Image.fromarray(mask).save(folder / "masks" / f"{index:03}.png")


if __name__ == "__main__":
    write(Path("scenes/train"), 60, seed=1)
    write(Path("scenes/val"), 21, seed=2)
