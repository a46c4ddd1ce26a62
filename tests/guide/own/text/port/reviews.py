"""Reviews as padded rows of word numbers."""

from pathlib import Path

import numpy as np
from paddle.io import BatchSampler, DataLoader, Dataset

LABELS = ["bad", "good", "mixed"]
LONGEST = 16
PAD, UNKNOWN = 0, 1


def vocabulary(folder):
    lines = (Path(folder) / "train.tsv").read_text().splitlines()
    words = {word for line in lines for word in line.split("\t")[1].split()}
    return {word: number for number, word in enumerate(sorted(words), start=2)}


class Reviews(Dataset):
    def __init__(self, folder, part):
        self.words = vocabulary(folder)
        lines = (Path(folder) / f"{part}.tsv").read_text().splitlines()
        self.rows = [line.split("\t") for line in lines]

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        label, text = self.rows[index]
        numbers = [self.words.get(word, UNKNOWN) for word in text.split()][:LONGEST]
        return np.array(numbers, "int64"), LABELS.index(label)


def padded(samples):
    longest = max(len(ids) for ids, _ in samples)
    ids = np.stack([np.pad(ids, (0, longest - len(ids)), constant_values=PAD) for ids, _ in samples])
    return ids, np.array([label for _, label in samples], "int64")


def loader(folder, part, order=None):
    data = Reviews(folder, part)
    batches = (
        BatchSampler(data, batch_size=16) if order is None else BatchSampler(sampler=order, batch_size=16)
    )
    return DataLoader(data, batch_sampler=batches, collate_fn=padded)
