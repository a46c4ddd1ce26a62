"""Loss, metrics, and AdamW with a decay for matrices only, warmed up and let down in lines."""

import paddle
from paddle import nn

WARM, ALL = 6, 56


def loss(output, label):
    return nn.functional.cross_entropy(output, label, label_smoothing=0.05)


def metric(outputs, labels):
    found = outputs.argmax(1)
    scores = []
    for kind in range(outputs.shape[1]):
        hits = float(((found == kind) & (labels == kind)).astype("int64").sum())
        asked, there = (float((each == kind).astype("int64").sum()) for each in (found, labels))
        scores.append(2 * hits / max(asked + there, 1))
    return {"accuracy": float((found == labels).astype("float32").mean()), "f1": sum(scores) / len(scores)}


def optimizer(model):
    def factor(step):
        return (step + 1) / WARM if step < WARM else max(0.0, (ALL - step) / (ALL - WARM))

    decayed = [each for each in model.parameters() if each.ndim > 1]
    plain = [each for each in model.parameters() if each.ndim <= 1]
    groups = [{"params": decayed, "weight_decay": 0.05}, {"params": plain, "weight_decay": 0.0}]
    rate = paddle.optimizer.lr.LambdaDecay(4e-3, factor)
    return paddle.optimizer.AdamW(rate, beta1=0.9, beta2=0.98, epsilon=1e-8, parameters=groups)


def scheduler(optimizer):
    return optimizer._learning_rate
