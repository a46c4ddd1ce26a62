"""Cross entropy and Dice, mean IoU, AdamW, and a polynomial schedule with a warm-up, a step per update."""

import torch
from torch import nn

CLASSES, IGNORED = 4, 255
WEIGHTS = torch.tensor([0.5, 1.0, 1.0, 1.5])
WARM, ALL, POWER = 4, 40, 0.9


def dice(output, label, smooth=1.0):
    there = (label != IGNORED).float()[:, None]
    wanted = nn.functional.one_hot(label.where(label != IGNORED, 0), CLASSES).permute(0, 3, 1, 2) * there
    shares = output.softmax(1) * there
    both = (shares * wanted).sum((0, 2, 3))
    each = (shares + wanted).sum((0, 2, 3))
    return 1 - ((2 * both + smooth) / (each + smooth)).mean()


def loss(output, label):
    entropy = nn.functional.cross_entropy(output, label, weight=WEIGHTS, ignore_index=IGNORED)
    return entropy + 0.5 * dice(output, label)


def metric(outputs, labels):
    found, there = outputs.argmax(1), labels != IGNORED
    pairs = labels[there] * CLASSES + found[there]
    counts = torch.bincount(pairs, minlength=CLASSES**2).reshape(CLASSES, CLASSES).double()
    both = counts.diag()
    either = counts.sum(0) + counts.sum(1) - both
    seen = either > 0
    return {
        "miou": (both[seen] / either[seen]).mean().item(),
        "accuracy": (both.sum() / counts.sum()).item(),
    }


def clip(parameters):
    nn.utils.clip_grad_norm_(parameters, 1.0)


def optimizer(model):
    return torch.optim.AdamW(model.parameters(), lr=1e-2, betas=(0.9, 0.99), weight_decay=0.01)


def factor(step):
    return (step + 1) / WARM if step < WARM else (1 - (step - WARM) / (ALL - WARM)) ** POWER


def scheduler(optimizer):
    return torch.optim.lr_scheduler.LambdaLR(optimizer, factor)
