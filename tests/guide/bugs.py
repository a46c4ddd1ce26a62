"""Mistakes for the bundled pair: what the port has instead, and the step and code that must tell it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Bug:
    step: str
    code: str
    right: str
    wrong: str


BUGS = (
    Bug("model", "config.epsilon", "epsilon=1e-5", "epsilon=1e-3"),
    Bug("model", "op.activation", "nn.functional.relu(self", "nn.functional.gelu(self"),
    Bug(
        "evaluation_data",
        "data.normalisation",
        "return _pictures(seed=1, count=64)",
        "return [((picture - 0.5) / 0.25, kind) for picture, kind in _pictures(seed=1, count=64)]",
    ),
    Bug("evaluation_data", "data.length", "seed=1, count=64", "seed=1, count=60"),
    Bug("metric", "metric.unit", '{"top1": (', '{"top1": 100 * ('),
    Bug(
        "loss",
        "loss.reduction",
        "cross_entropy(output, label)",
        'cross_entropy(output, label, reduction="sum")',
    ),
    Bug(
        "loss",
        "loss.label_smoothing",
        "cross_entropy(output, label)",
        "cross_entropy(output, label, label_smoothing=0.1)",
    ),
    Bug("optimizer", "optim.momentum", "momentum=0.9, weight", "momentum=0.8, weight"),
    Bug("optimizer", "optim.momentum", "weight_decay=1e-3,", "weight_decay=1e-3, use_nesterov=True,"),
    Bug("learning_rate", "lr.value", "gamma=0.8", "gamma=0.9"),
    Bug("regularisation", "optim.weight_decay", "weight_decay=1e-3", "weight_decay=1e-2"),
    Bug(
        "regularisation",
        "optim.weight_decay",
        "weight_decay=1e-3",
        "weight_decay=paddle.regularizer.L1Decay(1e-3)",
    ),
    Bug("backward", "grad.detached", "self.head(x.flatten(1))", "self.head(x.flatten(1).detach())"),
    Bug(
        "training_data",
        "data.order",
        "np.random.default_rng(0).permutation",
        "np.random.default_rng(1).permutation",
    ),
    Bug(
        "training_data",
        "data.label",
        "return [pictures[index] for index in order]",
        "return [(pictures[index][0], 3 - pictures[index][1]) for index in order]",
    ),
    Bug("initialisation", "init.scale", "negative_slope=math.sqrt(5)", "negative_slope=0.0"),
    Bug(
        "initialisation", "init.bias", "nn.initializer.Uniform(-bound, bound)", "nn.initializer.Constant(0.0)"
    ),
    Bug("training", "config.momentum", "momentum=0.9, epsilon", "momentum=0.99, epsilon"),
)
