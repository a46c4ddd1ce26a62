"""Mistakes in metrics and initialisation, compared by themselves."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import paddle
import torch

import parfocal as pf
from benchmarks.training_faults.fault import Fault


def accuracy(scores: Any, labels: Any) -> float:
    return float((scores.argmax(1) == labels).mean())


def _top(scores: Any, labels: Any, count: int) -> float:
    best = np.argsort(-scores, axis=1)[:, :count]
    return float((best == labels[:, None]).any(1).mean())


def _batchwise(scores: Any, labels: Any) -> float:
    parts = [slice(start, start + 64) for start in range(0, len(scores), 64)]
    return float(np.mean([accuracy(scores[part], labels[part]) for part in parts]))


def _metric(port: Callable[..., float]) -> Callable[[int], Any]:
    def compare(seed: int) -> Any:
        generator = np.random.default_rng(seed)
        labels = generator.integers(0, 7, 200)
        scores = np.eye(7)[labels] + generator.standard_normal((200, 7))
        return pf.compare_metric(accuracy, port, scores, labels)

    return compare


def _right(scores: Any, labels: Any) -> float:
    return float(
        sum(int(row.argmax() == label) for row, label in zip(scores, labels, strict=True)) / len(labels)
    )


def _init(port: Callable[[], Any]) -> Callable[[int], Any]:
    def compare(seed: int) -> Any:
        pf.seed(seed)
        return pf.compare_init(lambda: torch.nn.Linear(64, 48), port)

    return compare


def _linear(weight: Any, bias: Any) -> Callable[[], Any]:
    return lambda: paddle.nn.Linear(
        64, 48, weight_attr=paddle.ParamAttr(initializer=weight), bias_attr=paddle.ParamAttr(initializer=bias)
    )


def faults() -> Iterator[Fault]:
    twin = "accuracy", _metric(_right)
    for name, port, code in (
        ("percent", lambda s, y: 100 * accuracy(s, y), "metric.unit"),
        ("top 5", lambda s, y: _top(s, y, 5), "metric.topk"),
        ("top 2", lambda s, y: _top(s, y, 2), "metric.topk"),
        ("batches weighed alike", _batchwise, "metric.value"),
        ("an error rate", lambda s, y: 1 - accuracy(s, y), "metric.value"),
    ):
        yield Fault("metric", name, _metric(port), twin, (code,), "metric")
    make = paddle.nn.initializer
    edge = 1 / 8.0
    right = _linear(make.Uniform(-edge, edge), make.Uniform(-edge, edge))
    clean = "initialised alike", _init(right)
    for name, port, code in (
        ("paddle's own", lambda: paddle.nn.Linear(64, 48), "init.scale"),
        (
            "normal for uniform",
            _linear(make.Normal(0, edge / 3**0.5), make.Uniform(-edge, edge)),
            "init.distribution",
        ),
        ("a bias of zero", _linear(make.Uniform(-edge, edge), make.Constant(0.0)), "init.bias"),
        (
            "twice as wide",
            _linear(make.Uniform(-2 * edge, 2 * edge), make.Uniform(-edge, edge)),
            "init.scale",
        ),
        ("a bias of one", _linear(make.Uniform(-edge, edge), make.Constant(1.0)), "init.bias"),
    ):
        yield Fault("init", name, _init(port), clean, (code,), "init")
