"""Loss, top-k accuracies, SGD with momentum, a decay for weights only, a rate that falls at two epochs."""

import paddle
from paddle import nn


def loss(output, label):
    return nn.functional.cross_entropy(output, label, label_smoothing=0.1)


def metric(outputs, labels):
    _, found = outputs.topk(2, axis=1)
    right = (found == labels.unsqueeze(1)).astype("float32")
    return {"top1": float(right[:, 0].mean()), "top2": float(right.max(axis=1).mean())}


def optimizer(model):
    weights = [each for each in model.parameters() if each.ndim > 1]
    others = [each for each in model.parameters() if each.ndim <= 1]
    groups = [{"params": weights, "weight_decay": 1e-3}, {"params": others, "weight_decay": 0.0}]
    rate = paddle.optimizer.lr.MultiStepDecay(0.05, milestones=[2, 3], gamma=0.2)
    return paddle.optimizer.Momentum(rate, momentum=0.9, use_nesterov=True, parameters=groups)


def scheduler(optimizer):
    return optimizer._learning_rate
