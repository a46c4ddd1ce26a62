"""Pictures with a mask each, made one size and normalised."""

from pathlib import Path

import numpy as np
from paddle.io import BatchSampler, DataLoader, Dataset
from PIL import Image

SIZE = (16, 16)
MEAN = np.array([0.42, 0.42, 0.36], "float32")
STD = np.array([0.19, 0.13, 0.20], "float32")


class Scenes(Dataset):
    def __init__(self, folder):
        self.pictures = sorted(Path(folder, "pictures").glob("*.png"))

    def __len__(self):
        return len(self.pictures)

    def __getitem__(self, index):
        path = self.pictures[index]
        picture = Image.open(path).convert("RGB").resize(SIZE, Image.BILINEAR)
        mask = Image.open(path.parent.parent / "masks" / path.name).resize(SIZE, Image.NEAREST)
        x = (np.array(picture, "float32") / 255 - MEAN) / STD
        return x.transpose(2, 0, 1), np.array(mask, "int64")


def loader(folder, order=None):
    data = Scenes(folder)
    batches = BatchSampler(data, batch_size=8) if order is None else BatchSampler(sampler=order, batch_size=8)
    return DataLoader(data, batch_sampler=batches)
