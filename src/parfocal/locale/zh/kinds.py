"""What to write where there is no counterpart, by the English sentence."""

from __future__ import annotations

INSTEAD: dict[str, str] = {
    "Write torch.nn.init for its initializer, a parameter group of the optimizer for its learning_rate and regularizer, and requires_grad=False for trainable=False.": "initializer 用 torch.nn.init 写，learning_rate 和 regularizer 用优化器的参数组写，trainable=False 写 requires_grad=False。",
    "Add coeff * w.abs().sum() of every weight w to the loss.": "把每个权重 w 的 coeff * w.abs().sum() 加到损失上。",
    "Pass weight_decay=coeff to the optimizer; of Adam, not of AdamW.": "给优化器传 weight_decay=coeff；用 Adam，而不是 AdamW。",
    "Write torch.nn.utils.clip_grad_norm_([p], clip_norm) for every parameter p.": "对每个参数 p 写 torch.nn.utils.clip_grad_norm_([p], clip_norm)。",
    "Write ColorJitter(brightness=value).": "写 ColorJitter(brightness=value)。",
    "Write ColorJitter(contrast=value).": "写 ColorJitter(contrast=value)。",
    "Write ColorJitter(saturation=value).": "写 ColorJitter(saturation=value)。",
    "Write ColorJitter(hue=value).": "写 ColorJitter(hue=value)。",
    "Write paddle.nn.functional.softmax(-x, axis).": "写 paddle.nn.functional.softmax(-x, axis)。",
    "Write paddle.nn.Dropout(p, axis=[0, 1]).": "写 paddle.nn.Dropout(p, axis=[0, 1])。",
    "Write paddle.nn.functional.embedding and the sum or mean over its axis 1.": "写 paddle.nn.functional.embedding，再对其轴 1 求和或平均。",
    "Write (avg_pool3d(x ** p) * window size) ** (1 / p).": "写 (avg_pool3d(x ** p) * 窗口大小) ** (1 / p)。",
    "Reshape the channels into groups, and write torch.amax over the groups.": "把通道 reshape 成分组，再对分组写 torch.amax。",
    "Write torch.nn.utils.parametrizations.spectral_norm around the layer.": "用 torch.nn.utils.parametrizations.spectral_norm 包住该层。",
    "Write a loop over time that calls the cell.": "写一个沿时间的循环，逐步调用单元。",
    "Write two loops over time, one backwards, and torch.cat of what they give.": "写两个沿时间的循环，其中一个反向，再用 torch.cat 拼接其结果。",
    "Write paddle.optimizer.lr.LambdaDecay with a factor for the first steps.": "写 paddle.optimizer.lr.LambdaDecay，前几步乘以系数。",
    "Write paddle.optimizer.lr.LambdaDecay with the curve as a factor.": "写 paddle.optimizer.lr.LambdaDecay，以曲线为系数。",
    "Write paddle.optimizer.lr.LambdaDecay with the product of factors.": "写 paddle.optimizer.lr.LambdaDecay，以各系数之积为系数。",
    "Write LambdaLR with lambda step: 1 / (1 + gamma * step).": "写 LambdaLR，其中 lambda step: 1 / (1 + gamma * step)。",
    "Write LambdaLR with the value of each piece as a factor.": "写 LambdaLR，以每一段的值为系数。",
    "Write LambdaLR with the warm-up and what follows as one factor.": "写 LambdaLR，把预热及其后的部分合为一个系数。",
    "Write the optimizer yourself.": "自行编写该优化器。",
}
