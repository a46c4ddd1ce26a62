"""The pictures, cropped, flipped and coloured at random for the training."""

from paddle.io import BatchSampler, DataLoader
from paddle.vision import transforms
from paddle.vision.datasets import DatasetFolder

NORMALIZE = transforms.Normalize(mean=[0.46, 0.43, 0.39], std=[0.23, 0.21, 0.22])

TRAIN = transforms.Compose(
    [
        transforms.RandomResizedCrop(16, scale=(0.5, 1.0)),
        transforms.RandomHorizontalFlip(),
        transforms.ColorJitter(brightness=0.3, contrast=0.3, saturation=0.2),
        transforms.ToTensor(),
        NORMALIZE,
    ]
)
TEST = transforms.Compose(
    [transforms.Resize(18), transforms.CenterCrop(16), transforms.ToTensor(), NORMALIZE]
)


def loader(folder, part, order=None):
    data = DatasetFolder(f"{folder}/{part}", transform=TRAIN if part == "train" else TEST)
    batches = (
        BatchSampler(data, batch_size=16) if order is None else BatchSampler(sampler=order, batch_size=16)
    )
    return DataLoader(data, batch_sampler=batches)
