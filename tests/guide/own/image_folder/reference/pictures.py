"""The pictures, cropped, flipped and coloured at random for the training."""

from torch.utils.data import DataLoader
from vision import datasets, transforms

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
    data = datasets.ImageFolder(f"{folder}/{part}", TRAIN if part == "train" else TEST)
    return DataLoader(data, batch_size=16, sampler=order)
