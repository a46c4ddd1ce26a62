"""The port: one function for every step of the guide."""

from pathlib import Path

import numpy as np
import paddle
from network_paddle import ActionNet
from paddle import nn
from paddle.io import DataLoader, Dataset

CLIPS = Path(__file__).parent / "clips"
DIRECTIONS = 4


class Clips(Dataset):
    def __init__(self, part):
        super().__init__()
        folders = sorted(path for path in (CLIPS / part).iterdir() if path.is_dir())
        self.samples = [
            (file, label) for label, each in enumerate(folders) for file in sorted(each.glob("*.npy"))
        ]

    def __len__(self):
        return len(self.samples)

    def __getitem__(self, index):
        file, label = self.samples[index]
        clip = (np.load(file).astype("float32") / 255 - 0.5) / 0.25
        return np.ascontiguousarray(clip.transpose(0, 3, 1, 2)), np.int64(label)


def model():
    """Step 1."""
    return ActionNet(DIRECTIONS)


def evaluation_data():
    """Step 2."""
    return DataLoader(Clips("val"), batch_size=12)


def metric(outputs, labels):
    """Step 3."""
    right = (outputs["logits"].argmax(1) == labels).astype("float32")
    classes = [right[labels == label].mean() for label in labels.unique()]
    return {"top1_acc": right.mean(), "mean_class_accuracy": paddle.stack(classes).mean()}


def loss(output, label):
    """Step 4."""
    return nn.functional.cross_entropy(output["logits"], label)


def optimizer(model):
    """Steps 5, 7 and 8."""
    return paddle.optimizer.Momentum(
        0.01, momentum=0.9, use_nesterov=True, weight_decay=1e-4, parameters=model.parameters()
    )
