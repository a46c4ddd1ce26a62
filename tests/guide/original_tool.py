"""The scripts of the worked example, written by hand for the original ``reprod_log``, and its own check.

``original_tool.py torch FOLDER``, ``original_tool.py paddle FOLDER``: both sides of all checkpoints;
``original_tool.py check FOLDER LOGS THRESHOLDS``: its logs of every pair of files.
Nothing of parfocal is used.
"""

from __future__ import annotations

import json
import logging
import os
import sys
from importlib import metadata

import numpy as np
from reprod_log import ReprodDiffHelper, ReprodLogger

STEPS, CLIPS, FRAMES, CHANNELS, CLASSES = 5, 4, 8, 12, 6
GENERATOR = np.random.default_rng(0)
DATA = GENERATOR.normal(size=(CLIPS, FRAMES, CHANNELS)).astype("float32")
LABELS = np.array([0, 5, 2, 2])
FIRST = (0.3 * GENERATOR.normal(size=(CHANNELS, 16))).astype("float32")
SECOND = (0.3 * GENERATOR.normal(size=(16, CLASSES))).astype("float32")


def save(path, **values):
    logger = ReprodLogger()
    for name, value in values.items():
        logger.add(name, np.asarray(value))
    logger.save(path)


def write_torch(folder):
    import torch

    first, second = (torch.tensor(each, requires_grad=True) for each in (FIRST, SECOND))
    optimizer = torch.optim.SGD([first, second], lr=0.1, momentum=0.9)

    def forward():
        return torch.relu(torch.tensor(DATA) @ first).mean(1) @ second

    def loss_of(logits):
        return torch.nn.functional.cross_entropy(logits, torch.tensor(LABELS))

    write(folder, "torch", forward, loss_of, optimizer, lambda value: value.detach().numpy())


def write_paddle(folder):
    import paddle

    first, second = (paddle.to_tensor(each, stop_gradient=False) for each in (FIRST, SECOND))
    optimizer = paddle.optimizer.Momentum(0.1, momentum=0.9, parameters=[first, second])

    def forward():
        return paddle.nn.functional.relu(paddle.to_tensor(DATA) @ first).mean(1) @ second

    def loss_of(logits):
        return paddle.nn.functional.cross_entropy(logits, paddle.to_tensor(LABELS))

    write(folder, "paddle", forward, loss_of, optimizer, lambda value: value.numpy())


def write(folder, side, forward, loss_of, optimizer, array):
    """Steps 1 to 4 of the worked example, and the metric after training."""

    def top1():
        return np.float32((array(forward()).argmax(1) == LABELS).mean())

    logits = forward()
    save(os.path.join(folder, f"forward_{side}.npy"), logits=array(logits))
    save(os.path.join(folder, f"metric_{side}.npy"), top1_acc=top1())
    save(os.path.join(folder, f"loss_{side}.npy"), loss=array(loss_of(logits)))
    losses = {}
    for step in range(STEPS):
        loss = loss_of(forward())
        losses[f"loss_{step}"] = array(loss)
        loss.backward()
        optimizer.step()
        getattr(optimizer, "zero_grad", getattr(optimizer, "clear_grad", None))()
    save(os.path.join(folder, f"bp_align_{side}.npy"), **losses)
    name = "benchmark" if side == "torch" else side
    save(os.path.join(folder, f"train_align_{name}.npy"), top1_acc=top1())


def check(folder, logs, thresholds):
    assert metadata.version("reprod_log") == "1.0.1"
    for name, threshold in json.loads(thresholds).items():
        side = "benchmark" if name == "train_align" else "torch"
        helper = ReprodDiffHelper()
        reference, port = (
            helper.load_info(os.path.join(folder, f"{name}_{each}.npy")) for each in (side, "paddle")
        )
        helper.compare_info(reference, port)
        logging.getLogger("root").handlers.clear()  # as in a script for each: it writes to all logs it had
        helper.report(path=os.path.join(logs, f"{name}_diff.log"), diff_threshold=threshold)


if __name__ == "__main__":
    {"torch": write_torch, "paddle": write_paddle, "check": check}[sys.argv[1]](*sys.argv[2:])
