"""Pictures with a mask each, made one size and normalised."""

from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch.utils.data import DataLoader, Dataset

SIZE = (16, 16)
MEAN = torch.tensor([0.42, 0.42, 0.36])
STD = torch.tensor([0.19, 0.13, 0.20])


class Scenes(Dataset):
    def __init__(self, folder):
        self.pictures = sorted(Path(folder, "pictures").glob("*.png"))

    def __len__(self):
        return len(self.pictures)

    def __getitem__(self, index):
        path = self.pictures[index]
        picture = Image.open(path).convert("RGB").resize(SIZE, Image.BILINEAR)
        mask = Image.open(path.parent.parent / "masks" / path.name).resize(SIZE, Image.NEAREST)
        x = torch.from_numpy(np.array(picture)).permute(2, 0, 1).float() / 255
        x = (x - MEAN[:, None, None]) / STD[:, None, None]
        return x, torch.from_numpy(np.array(mask)).long()


def loader(folder, order=None):
    return DataLoader(Scenes(folder), batch_size=8, sampler=order)
