"""The port: one function for every step of the guide."""

from pathlib import Path

import numpy as np
import paddle
from alexnet_paddle import AlexNet
from paddle import nn
from paddle.io import BatchSampler, DataLoader, Dataset, Sampler

PICTURES = Path(__file__).parent / "pictures"
MEAN = np.array([0.485, 0.456, 0.406], "float32")
SPREAD = np.array([0.229, 0.224, 0.225], "float32")
BORDER = 4


class Pictures(Dataset):
    def __init__(self, part, augment=False):
        super().__init__()
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
        picture = (picture.astype("float32") / 255 - MEAN) / SPREAD
        return np.ascontiguousarray(picture.transpose(2, 0, 1)), np.int64(kind)

    def cut_and_flip(self, picture, generator):
        height, width, _ = picture.shape
        row, column = generator.integers(0, 2 * BORDER + 1, 2)
        picture = np.pad(picture, ((BORDER, BORDER), (BORDER, BORDER), (0, 0)))
        picture = picture[row : row + height, column : column + width]
        return picture[:, ::-1] if generator.random() < 0.5 else picture


class Shuffled(Sampler):
    """An order that NumPy makes: paddle's own is another than torch's from the same seed."""

    def __iter__(self):
        return iter(np.random.default_rng(0).permutation(len(self.data_source)).tolist())


def model():
    """Steps 1 and 10."""
    return AlexNet(num_classes=4, width=16)


def evaluation_data():
    """Step 2."""
    return DataLoader(Pictures("val"), batch_size=32)


def metric(outputs, labels):
    """Step 3."""
    return {"top1": (outputs.argmax(1) == labels).astype("float32").mean()}


def loss(output, label):
    """Step 4."""
    return nn.functional.cross_entropy(output, label)


def optimizer(model):
    """Steps 5 and 7: paddle's SGD has no momentum, and the rate's schedule comes first."""
    rate = paddle.optimizer.lr.StepDecay(learning_rate=0.002, step_size=96, gamma=0.1)
    return paddle.optimizer.Momentum(rate, momentum=0.9, weight_decay=1e-4, parameters=model.parameters())


def scheduler(optimizer):
    """Step 6: what the optimizer was given."""
    return optimizer._learning_rate


def training_data():
    """Step 9."""
    pictures = Pictures("train", augment=True)
    return DataLoader(pictures, batch_sampler=BatchSampler(sampler=Shuffled(pictures), batch_size=16))
