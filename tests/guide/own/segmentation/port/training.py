"""Cross entropy and Dice, mean IoU, AdamW, and a polynomial schedule with a warm-up, a step per update."""

import paddle
from paddle import nn

CLASSES, IGNORED = 4, 255
WEIGHTS = paddle.to_tensor([0.5, 1.0, 1.0, 1.5])
WARM, ALL, POWER = 4, 40, 0.9


def dice(output, label, smooth=1.0):
    there = (label != IGNORED).astype("float32").unsqueeze(1)
    known = paddle.where(label != IGNORED, label, paddle.zeros_like(label))
    wanted = nn.functional.one_hot(known, CLASSES).transpose([0, 3, 1, 2]) * there
    shares = nn.functional.softmax(output, axis=1) * there
    both = (shares * wanted).sum(axis=[0, 2, 3])
    each = (shares + wanted).sum(axis=[0, 2, 3])
    return 1 - ((2 * both + smooth) / (each + smooth)).mean()


def loss(output, label):
    entropy = nn.functional.cross_entropy(output, label, weight=WEIGHTS, ignore_index=IGNORED, axis=1)
    return entropy + 0.5 * dice(output, label)


def metric(outputs, labels):
    found, there = outputs.argmax(1), labels != IGNORED
    pairs = labels[there] * CLASSES + found[there]
    counts = paddle.bincount(pairs, minlength=CLASSES**2).reshape([CLASSES, CLASSES]).astype("float64")
    both = counts.diag()
    either = counts.sum(0) + counts.sum(1) - both
    seen = either > 0
    return {
        "miou": float((both[seen] / either[seen]).mean()),
        "accuracy": float(both.sum() / counts.sum()),
    }


def clip(parameters):
    nn.utils.clip_grad_norm_(parameters, 1.0)


def optimizer(model):
    rate = paddle.optimizer.lr.LambdaDecay(1e-2, factor)
    return paddle.optimizer.AdamW(
        rate, beta1=0.9, beta2=0.99, parameters=model.parameters(), weight_decay=0.01
    )


def factor(step):
    return (step + 1) / WARM if step < WARM else (1 - (step - WARM) / (ALL - WARM)) ** POWER


def scheduler(optimizer):
    return optimizer._learning_rate
