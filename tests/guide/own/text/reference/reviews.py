"""Reviews as padded rows of word numbers."""

from pathlib import Path

import torch
from torch.utils.data import DataLoader, Dataset

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
        return torch.tensor(numbers), LABELS.index(label)


def padded(samples):
    ids = torch.nn.utils.rnn.pad_sequence([ids for ids, _ in samples], batch_first=True, padding_value=PAD)
    return ids, torch.tensor([label for _, label in samples])


def loader(folder, part, order=None):
    return DataLoader(Reviews(folder, part), batch_size=16, sampler=order, collate_fn=padded)
