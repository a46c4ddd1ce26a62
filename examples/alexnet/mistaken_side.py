"""The port's optimizer before it was mended: paddle's SGD has no momentum."""

import paddle


def optimizer(model):
    rate = paddle.optimizer.lr.StepDecay(learning_rate=0.002, step_size=96, gamma=0.1)
    return paddle.optimizer.SGD(rate, weight_decay=1e-4, parameters=model.parameters())
