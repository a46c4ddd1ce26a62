"""The reference: one function for every step of the guide."""

from pathlib import Path

import numpy as np
import torch
from network_torch import ActionNet
from torch import nn
from torch.utils.data import DataLoader, Dataset

CLIPS = Path(__file__).parent / "clips"
DIRECTIONS = 4


class Clips(Dataset):
    """The clips of a folder: those of one direction lie in a folder of that name."""

    def __init__(self, part):
        folders = sorted(path for path in (CLIPS / part).iterdir() if path.is_dir())
        self.samples = [
            (file, label) for label, each in enumerate(folders) for file in sorted(each.glob("*.npy"))
        ]

    def __len__(self):
        return len(self.samples)

    def __getitem__(self, index):
        file, label = self.samples[index]
        clip = (np.load(file).astype(np.float32) / 255 - 0.5) / 0.25
        return torch.from_numpy(np.ascontiguousarray(clip.transpose(0, 3, 1, 2))), label


def model():
    """Step 1: the model."""
    return ActionNet(DIRECTIONS)


def evaluation_data():
    """Step 2: in the order of the files."""
    return DataLoader(Clips("val"), batch_size=12)


def metric(outputs, labels):
    """Step 3: of all clips, and of each direction averaged over the directions."""
    right = (outputs["logits"].argmax(1) == labels).float()
    return {
        "top1_acc": right.mean(),
        "mean_class_accuracy": torch.stack(
            [right[labels == label].mean() for label in labels.unique()]
        ).mean(),
    }


def loss(output, label):
    """Step 4."""
    return nn.functional.cross_entropy(output["logits"], label)


def optimizer(model):
    """Steps 5, 7 and 8."""
    return torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, nesterov=True, weight_decay=1e-4)
