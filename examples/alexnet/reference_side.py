"""The reference: one function for every step of the guide."""

from pathlib import Path

import numpy as np
import torch
from alexnet_torch import AlexNet
from torch import nn
from torch.utils.data import DataLoader, Dataset

PICTURES = Path(__file__).parent / "pictures"
MEAN = np.array([0.485, 0.456, 0.406], np.float32)
SPREAD = np.array([0.229, 0.224, 0.225], np.float32)
BORDER = 4  # pixels around a training picture, of which a part of the old size is cut


class Pictures(Dataset):
    """The pictures of a folder: those of one kind lie in a folder of that name."""

    def __init__(self, part, augment=False):
        folders = sorted(path for path in (PICTURES / part).iterdir() if path.is_dir())
        self.samples = [
            (file, kind) for kind, folder in enumerate(folders) for file in sorted(folder.glob("*.npy"))
        ]
        self.augment = augment

    def __len__(self):
        return len(self.samples)

    def __getitem__(self, index):
        file, kind = self.samples[index]
        picture = np.load(file)
        if self.augment:
            picture = self.cut_and_flip(picture, np.random.default_rng(index))
        picture = (picture.astype(np.float32) / 255 - MEAN) / SPREAD
        return torch.from_numpy(np.ascontiguousarray(picture.transpose(2, 0, 1))), kind

    def cut_and_flip(self, picture, generator):
        """By NumPy's random numbers: those of the two frameworks are not the same."""
        height, width, _ = picture.shape
        row, column = generator.integers(0, 2 * BORDER + 1, 2)
        picture = np.pad(picture, ((BORDER, BORDER), (BORDER, BORDER), (0, 0)))
        picture = picture[row : row + height, column : column + width]
        return picture[:, ::-1] if generator.random() < 0.5 else picture


def model():
    """Steps 1 and 10: the model, initialised as it is for training. A quarter of AlexNet's width."""
    return AlexNet(num_classes=4, width=16)


def evaluation_data():
    """Step 2: in the order of the files."""
    return DataLoader(Pictures("val"), batch_size=32)


def metric(outputs, labels):
    """Step 3: the share of pictures whose kind is told right."""
    return {"top1": (outputs.argmax(1) == labels).float().mean()}


def loss(output, label):
    """Step 4."""
    return nn.functional.cross_entropy(output, label)


def optimizer(model):
    """Steps 5 and 7: the optimizer with its regularisation."""
    return torch.optim.SGD(model.parameters(), lr=0.002, momentum=0.9, weight_decay=1e-4)


def scheduler(optimizer):
    """Step 6: a tenth of the rate after 96 updates."""
    return torch.optim.lr_scheduler.StepLR(optimizer, step_size=96, gamma=0.1)


def training_data():
    """Step 9: shuffled by NumPy, so that both sides see the same order."""
    pictures = Pictures("train", augment=True)
    order = np.random.default_rng(0).permutation(len(pictures)).tolist()
    return DataLoader(pictures, batch_size=16, sampler=order)
