"""Loss, top-k accuracies, SGD with momentum, a decay for weights only, a rate that falls at two epochs."""

import torch
from torch import nn


def loss(output, label):
    return nn.functional.cross_entropy(output, label, label_smoothing=0.1)


def metric(outputs, labels):
    found = outputs.topk(2, dim=1).indices
    right = found == labels[:, None]
    return {"top1": right[:, 0].float().mean().item(), "top2": right.any(1).float().mean().item()}


def optimizer(model):
    weights = [each for each in model.parameters() if each.ndim > 1]
    others = [each for each in model.parameters() if each.ndim <= 1]
    groups = [{"params": weights, "weight_decay": 1e-3}, {"params": others, "weight_decay": 0.0}]
    return torch.optim.SGD(groups, lr=0.05, momentum=0.9, nesterov=True)


def scheduler(optimizer):
    return torch.optim.lr_scheduler.MultiStepLR(optimizer, milestones=[2, 3], gamma=0.2)
