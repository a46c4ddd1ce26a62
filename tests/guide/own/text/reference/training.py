"""Loss, metrics, and AdamW with a decay for matrices only, warmed up and let down in lines."""

import torch
from torch import nn

WARM, ALL = 6, 56


def loss(output, label):
    return nn.functional.cross_entropy(output, label, label_smoothing=0.05)


def metric(outputs, labels):
    found = outputs.argmax(1)
    scores = []
    for kind in range(outputs.shape[1]):
        hits = ((found == kind) & (labels == kind)).sum().item()
        asked, there = (found == kind).sum().item(), (labels == kind).sum().item()
        scores.append(2 * hits / max(asked + there, 1))
    return {"accuracy": (found == labels).float().mean().item(), "f1": sum(scores) / len(scores)}


def optimizer(model):
    decayed = [each for each in model.parameters() if each.ndim > 1]
    plain = [each for each in model.parameters() if each.ndim <= 1]
    groups = [{"params": decayed, "weight_decay": 0.05}, {"params": plain, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=4e-3, betas=(0.9, 0.98), eps=1e-8)


def scheduler(optimizer):
    def factor(step):
        return (step + 1) / WARM if step < WARM else max(0.0, (ALL - step) / (ALL - WARM))

    return torch.optim.lr_scheduler.LambdaLR(optimizer, factor)
