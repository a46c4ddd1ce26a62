"""Losses, as ports have them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import paddle
import torch

import parfocal as pf
from tests.pairs.gaps.planted.row import GENERATOR, LABELS, LOGITS, Planted, raising
from tests.versions.made import made

TF, PF = torch.nn.functional, paddle.nn.functional

SOME_IGNORED = np.where(np.arange(24) % 4 == 0, -100, LABELS)
SOFT = (np.exp(LOGITS[::-1]) / np.exp(LOGITS[::-1]).sum(1, keepdims=True)).astype("float32")
WEIGHTS = np.asarray([1.0, 2.0, 0.5, 3.0, 1.5], dtype="float32")
MAPS = GENERATOR.standard_normal((4, 5, 5)).astype("float32")
WIDE_MAPS = GENERATOR.standard_normal((4, 6, 5)).astype("float32")
MAP_LABELS = GENERATOR.integers(0, 5, (4, 5))
VALUES, TARGETS = (GENERATOR.standard_normal((24, 7)).astype("float32") for _ in range(2))
FRAMES = GENERATOR.standard_normal((12, 3, 6)).astype("float32")
WORDS = GENERATOR.integers(1, 6, (3, 4)).astype("int32")


def loss(ours: Any, theirs: Any, *inputs: Any) -> Callable[[], Any]:
    return lambda: pf.compare_loss(ours, theirs, *inputs)


def mean_of_counted(logits: Any, labels: Any) -> Any:
    total = PF.cross_entropy(logits, labels, reduction="sum")
    return total / (labels != -100).astype("float32").sum()


def weighted_soft(logits: Any, targets: Any) -> Any:
    return -(targets * paddle.to_tensor(WEIGHTS) * PF.log_softmax(logits)).sum(-1).mean()


def weighted_smooth(logits: Any, labels: Any) -> Any:
    weights, logs = paddle.to_tensor(WEIGHTS), PF.log_softmax(logits)
    hard = -(weights[labels] * logs.take_along_axis(labels.unsqueeze(1), 1).squeeze(1)).sum()
    smooth = -(weights * logs).sum()
    return (0.9 * hard + 0.1 / 5 * smooth) / weights[labels].sum()


def smooth_of_counted(logits: Any, labels: Any) -> Any:
    counted = labels != -100
    return PF.cross_entropy(logits[counted], labels[counted], label_smoothing=0.1)


def each_squeezed(logits: Any, labels: Any) -> Any:
    return PF.cross_entropy(logits, labels.unsqueeze(1), reduction="none").squeeze(1)


def ctc_torch(frames: Any, words: Any) -> Any:
    return TF.ctc_loss(
        TF.log_softmax(frames, -1), words.long(), torch.tensor([12] * 3), torch.tensor([4] * 3)
    )


def ctc_paddle(squashed: Callable[[Any], Any]) -> Callable[[Any, Any], Any]:
    lengths = [12] * 3, [4] * 3

    def run(frames: Any, words: Any) -> Any:
        sizes = (paddle.to_tensor(each, dtype="int64") for each in lengths)
        return PF.ctc_loss(squashed(frames), words, *sizes)

    return run


CE, PCE = torch.nn.CrossEntropyLoss, paddle.nn.CrossEntropyLoss
OURS_WEIGHTED = CE(weight=torch.tensor(WEIGHTS))
OURS_SMOOTH = CE(weight=torch.tensor(WEIGHTS), label_smoothing=0.1)
ROWS = {
    "cross-entropy-ignored-mean": Planted(
        loss(CE(), mean_of_counted, LOGITS, SOME_IGNORED),
        loss(CE(), PCE(), LOGITS, SOME_IGNORED),
        *("loss", "loss.ignore_index"),
    ),
    "cross-entropy-all-ignored": Planted(
        loss(CE(), mean_of_counted, LOGITS, np.full(24, -100)),
        loss(CE(), PCE(), LOGITS, np.full(24, -100)),
        *("loss", "loss.ignore_index"),
    ),
    "cross-entropy-class-axis": Planted(
        loss(CE(), PCE(axis=1), MAPS, MAP_LABELS),
        loss(CE(), PCE(), MAPS, MAP_LABELS),
        *("loss", "loss.input"),
    ),
    "cross-entropy-class-axis: other sizes": raising(
        loss(CE(), PCE(axis=1), WIDE_MAPS, MAP_LABELS),
        loss(CE(), PCE(), WIDE_MAPS, MAP_LABELS),
        "the loss of the port raised",
    ),
    "cross-entropy-soft-labels": raising(
        loss(CE(), PCE(soft_label=True), LOGITS, SOFT),
        loss(CE(), PCE(), LOGITS, SOFT),
        "the loss of the port raised",
    ),
    "cross-entropy-soft-labels-weight": Planted(
        loss(OURS_WEIGHTED, weighted_soft, LOGITS, SOFT),
        loss(OURS_WEIGHTED, PCE(weight=paddle.to_tensor(WEIGHTS), soft_label=True), LOGITS, SOFT),
        *("loss", "loss.weight"),
    ),
    "cross-entropy-smoothing-weight": Planted(
        loss(OURS_SMOOTH, weighted_smooth, LOGITS, LABELS),
        loss(OURS_SMOOTH, PCE(weight=paddle.to_tensor(WEIGHTS), label_smoothing=0.1), LOGITS, LABELS),
        *("loss", "loss.weight"),
    ),
    "cross-entropy-smoothing-ignored": raising(
        loss(CE(label_smoothing=0.1), smooth_of_counted, LOGITS, SOME_IGNORED),
        loss(CE(label_smoothing=0.1), PCE(label_smoothing=0.1), LOGITS, SOME_IGNORED),
        "the loss of the port raised",
    ),
    "cross-entropy-label-shape": Planted(
        loss(CE(reduction="none"), each_squeezed, LOGITS, LABELS),
        loss(
            CE(reduction="none"),
            lambda x, y: PF.cross_entropy(x, y.unsqueeze(1), reduction="none"),
            *(LOGITS, LABELS),
        ),
        *("loss", "loss.input"),
    ),
    "smooth-l1-huber": Planted(
        loss(
            torch.nn.SmoothL1Loss(beta=0.5),
            made(paddle.nn.SmoothL1Loss, delta=0.5, is_huber=False),
            *(VALUES, TARGETS),
        ),
        loss(torch.nn.SmoothL1Loss(beta=0.5), paddle.nn.SmoothL1Loss(delta=0.5), VALUES, TARGETS),
        *("loss", "loss.beta"),
    ),
    "smooth-l1-huber: as functions": Planted(
        loss(
            lambda x, y: TF.smooth_l1_loss(x, y, beta=0.5),
            lambda x, y: PF.smooth_l1_loss(x, y, delta=0.5, is_huber=False),
            *(VALUES, TARGETS),
        ),
        loss(
            lambda x, y: TF.smooth_l1_loss(x, y, beta=0.5),
            lambda x, y: PF.smooth_l1_loss(x, y, delta=0.5),
            *(VALUES, TARGETS),
        ),
        *("loss", "loss.beta"),
    ),
    "smooth-l1-huber: Huber": Planted(
        loss(torch.nn.HuberLoss(delta=0.5), paddle.nn.SmoothL1Loss(delta=0.5), VALUES, TARGETS),
        loss(
            torch.nn.HuberLoss(delta=0.5),
            made(paddle.nn.SmoothL1Loss, delta=0.5, is_huber=False),
            *(VALUES, TARGETS),
        ),
        *("loss", "loss.beta"),
    ),
    "ctc-input": Planted(
        loss(ctc_torch, ctc_paddle(lambda frames: frames), FRAMES, WORDS),
        loss(ctc_torch, ctc_paddle(PF.softmax), FRAMES, WORDS),
        *("loss", "loss.input"),
    ),
    "ctc-input: log probabilities": Planted(  # which log_softmax leaves as they are
        loss(ctc_torch, ctc_paddle(PF.log_softmax), FRAMES, WORDS),
        loss(ctc_torch, ctc_paddle(lambda frames: PF.softmax(frames).log().exp()), FRAMES, WORDS),
        *("loss", "loss.input"),
    ),
}
