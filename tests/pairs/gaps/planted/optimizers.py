"""Optimizers and clipping, as ports have them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import paddle
import torch

from tests.pairs.gaps.planted.row import Planted, Run
from tests.pairs.training.tools import batches, compare


def training(ours: Any, theirs: Any, **options: Any) -> Run:
    return lambda: compare(ours, theirs, **{"steps": 3, **options})


TO, PO = torch.optim, paddle.optimizer


def grouped(ratio: float) -> tuple[Any, Any]:
    def ours(parameters: Any) -> Any:
        first, *rest = parameters
        return TO.SGD([{"params": [first], "lr": 0.01}, {"params": rest}], 0.1)

    def theirs(parameters: Any) -> Any:
        first, *rest = parameters
        return PO.SGD(0.1, [{"params": [first], "learning_rate": ratio}, {"params": rest}])

    return ours, theirs


def no_decay_of_biases(named: bool) -> tuple[Any, Any]:
    def ours(parameters: Any) -> Any:
        every = list(parameters)
        groups = [{"params": [each for each in every if (each.ndim > 1) is wide]} for wide in (True, False)]
        groups[1]["weight_decay"] = 0.0
        return TO.AdamW(groups, 0.01, weight_decay=0.1)

    def theirs(parameters: Any) -> Any:
        meant = {each.name for each in parameters if each.ndim > 1}
        decays = (lambda name: name in meant) if named else (lambda name: "bias" not in name)
        return PO.AdamW(0.01, parameters=parameters, weight_decay=0.1, apply_decay_param_fun=decays)

    return ours, theirs


def weight_decays(amount: float) -> Any:
    """Of the first parameter, where the others have 0.01."""

    def ours(parameters: Any) -> Any:
        first, *rest = parameters
        return TO.SGD([{"params": [first], "weight_decay": amount}, {"params": rest}], 0.1, weight_decay=0.01)

    return ours


SGDS = weight_decays(0.01), lambda p: PO.SGD(0.1, parameters=p, weight_decay=0.01)
ADAMWS = (
    lambda p: TO.AdamW(p, 0.01, weight_decay=0.01),
    lambda p: PO.AdamW(0.01, parameters=p, weight_decay=0.01),
)


def attributed(optimizers: tuple[Any, Any], **attributes: Any) -> Run:
    """The port's weight has attributes of its own."""

    def run() -> Any:
        models = torch.nn.Linear(8, 4), paddle.nn.Linear(8, 4, weight_attr=paddle.ParamAttr(**attributes))
        return compare(*optimizers, steps=3, models=models)

    return run


class OneOfTwo:
    """Adds a layer to a model that only its first step uses."""

    def __init__(self, nn: Any) -> None:
        class Model(nn.Module if nn is torch.nn else nn.Layer):  # type: ignore[misc, name-defined]
            def __init__(self) -> None:
                super().__init__()
                self.first, self.second = nn.Linear(8, 4), nn.Linear(8, 4)

            def forward(self, x: Any, both: Any) -> Any:
                used = self.first(x)
                return used + self.second(x) if float(both.sum()) > 0 else used

        self.model = Model()


def unused(cleared: Callable[[Any], Any]) -> Run:
    def run() -> Any:
        models = OneOfTwo(torch.nn).model, OneOfTwo(paddle.nn).model
        flags = [np.ones(1, "float32"), np.zeros(1, "float32"), np.zeros(1, "float32")]
        given = [(x, flag, y) for (x, y), flag in zip(batches(3), flags, strict=True)]
        return compare(
            lambda p: TO.SGD(p, 0.1, momentum=0.9),
            lambda p: cleared(PO.Momentum(0.1, 0.9, parameters=p)),
            steps=3,
            models=models,
            data=given,
        )

    return run


def without_zeros(optimizer: Any) -> Any:
    clear = optimizer.clear_grad
    optimizer.clear_grad = lambda *args, **kwargs: clear(set_to_zero=False)
    return optimizer


def averaged(falls: bool, **settings: Any) -> Run:
    """torch's ASGD is SGD with a decay of its own and a rate that falls by it."""

    def run() -> Any:
        rate: Any = 0.01
        if falls:
            rate = PO.lr.LambdaDecay(0.01, lambda step: (1 + 1e-4 * 0.01 * step) ** -0.75)
        return compare(
            lambda p: TO.ASGD(p, 0.01),
            lambda p: PO.ASGD(rate, parameters=p, **settings),
            steps=12,
            schedulers=(None, rate if falls else None),
        )

    return run


def clipped(theirs: Any, decay: float = 0.0) -> Run:
    return training(
        lambda p: TO.SGD(p, 0.1, weight_decay=decay),
        lambda p: PO.SGD(0.1, parameters=p, grad_clip=theirs, weight_decay=decay or None),
        clip=(lambda p: torch.nn.utils.clip_grad_norm_(p, 0.05), None),
    )


def momentum(ours: dict[str, Any]) -> tuple[Any, Any]:
    return (
        lambda p: TO.SGD(p, 0.1, momentum=0.9, **ours),
        lambda p: PO.Momentum(0.1, 0.9, parameters=p),
    )


ROWS = {
    "sgd-momentum": Planted(
        training(*momentum({})),
        training(lambda p: TO.SGD(p, 0.1, momentum=0.9), lambda p: PO.SGD(0.1, parameters=p)),
        *("optimizer", "optim.momentum"),
    ),
    "sgd-momentum: default": Planted(
        training(lambda p: TO.SGD(p, 0.1), lambda p: PO.SGD(0.1, parameters=p)),
        training(lambda p: TO.SGD(p, 0.1), lambda p: PO.Momentum(0.1, parameters=p)),
        *("optimizer", "optim.momentum"),
    ),
    "sgd-momentum: dampening": Planted(
        training(*momentum({})), training(*momentum({"dampening": 0.5})), "optimizer", "optim.momentum"
    ),
    "adam-decay": Planted(
        training(
            lambda p: TO.AdamW(p, 0.01, weight_decay=0.1),
            lambda p: PO.AdamW(0.01, parameters=p, weight_decay=0.1),
        ),
        training(
            lambda p: TO.Adam(p, 0.01, weight_decay=0.1),
            lambda p: PO.AdamW(0.01, parameters=p, weight_decay=0.1),
        ),
        *("optimizer", "optim.weight_decay"),
    ),
    "adam-decay: Adam for AdamW": Planted(
        training(
            lambda p: TO.Adam(p, 0.01, weight_decay=0.1),
            lambda p: PO.Adam(0.01, parameters=p, weight_decay=0.1),
        ),
        training(
            lambda p: TO.AdamW(p, 0.01, weight_decay=0.1),
            lambda p: PO.Adam(0.01, parameters=p, weight_decay=0.1),
        ),
        *("optimizer", "optim.weight_decay"),
    ),
    # rounding is all that differs here: what is planted is a mistake not far above it
    "adam-rounding": Planted(
        training(lambda p: TO.Adam(p, 0.1), lambda p: PO.Adam(0.1, parameters=p), steps=12),
        training(lambda p: TO.Adam(p, 0.1), lambda p: PO.Adam(0.1, epsilon=1e-7, parameters=p), steps=12),
        *("optimizer", "optim.epsilon"),
    ),
    "decay-filter-names": Planted(
        training(*no_decay_of_biases(True)),
        training(*no_decay_of_biases(False)),
        *("optimizer", "optim.weight_decay"),
    ),
    "group-learning-rate": Planted(training(*grouped(0.1)), training(*grouped(0.01)), "lr", "optim.lr_group"),
    "parameter-attributes": Planted(
        attributed(SGDS, learning_rate=1.0), attributed(SGDS, learning_rate=0.5), "lr", "optim.lr_group"
    ),
    "parameter-attributes: regularizer": Planted(  # in place of the optimizer's own decay
        attributed((weight_decays(0.1), SGDS[1]), regularizer=paddle.regularizer.L2Decay(0.1)),
        attributed(SGDS, regularizer=paddle.regularizer.L2Decay(0.1)),
        *("optimizer", "optim.weight_decay"),
    ),
    "parameter-attributes: regularizer of AdamW": Planted(  # besides the optimizer's own decay
        attributed(ADAMWS, regularizer=None),
        attributed(ADAMWS, regularizer=paddle.regularizer.L2Decay(0.1)),
        *("optimizer", "optim.weight_decay"),
    ),
    "rmsprop-formula": Planted(
        training(lambda p: TO.RMSprop(p, 0.01), lambda p: PO.RMSProp(0.01, 0.99, 1e-16, parameters=p)),
        training(lambda p: TO.RMSprop(p, 0.01), lambda p: PO.RMSProp(0.01, parameters=p)),
        *("optimizer", "optim.betas"),
    ),
    "rmsprop-formula: place of epsilon": Planted(
        training(
            lambda p: TO.RMSprop(p, 0.01, eps=1e-12), lambda p: PO.RMSProp(0.01, 0.99, 1e-16, parameters=p)
        ),
        training(
            lambda p: TO.RMSprop(p, 0.01, eps=1e-3), lambda p: PO.RMSProp(0.01, 0.99, 1e-3, parameters=p)
        ),
        *("optimizer", "optim.epsilon"),
    ),
    "adagrad-epsilon": Planted(
        training(lambda p: TO.Adagrad(p, 0.01), lambda p: PO.Adagrad(0.01, 1e-10, parameters=p)),
        training(lambda p: TO.Adagrad(p, 0.01), lambda p: PO.Adagrad(0.01, parameters=p)),
        *("optimizer", "optim.epsilon"),
    ),
    "adadelta-defaults": Planted(
        training(lambda p: TO.Adadelta(p), lambda p: PO.Adadelta(1.0, 1e-6, 0.9, parameters=p)),
        training(lambda p: TO.Adadelta(p), lambda p: PO.Adadelta(parameters=p)),
        *("lr", "lr.value"),
    ),
    "adadelta-defaults: rho": Planted(
        training(lambda p: TO.Adadelta(p), lambda p: PO.Adadelta(1.0, 1e-6, 0.9, parameters=p)),
        training(lambda p: TO.Adadelta(p), lambda p: PO.Adadelta(1.0, parameters=p)),
        *("optimizer", "optim.betas"),
    ),
    "adamax-learning-rate": Planted(
        training(lambda p: TO.Adamax(p), lambda p: PO.Adamax(0.002, parameters=p)),
        training(lambda p: TO.Adamax(p), lambda p: PO.Adamax(parameters=p)),
        *("lr", "lr.value"),
    ),
    "asgd-rprop-defaults": Planted(
        averaged(falls=True, weight_decay=1e-4), averaged(falls=False), "optimizer", "optim.weight_decay"
    ),
    "asgd-rprop-defaults: falling rate": Planted(
        averaged(falls=True, weight_decay=1e-4),
        averaged(falls=False, weight_decay=1e-4),
        *("lr", "lr.constant"),
    ),
    "asgd-rprop-defaults: batch_num": Planted(
        training(lambda p: TO.ASGD(p, 0.1, lambd=0.0), lambda p: PO.ASGD(0.1, parameters=p)),
        training(lambda p: TO.ASGD(p, 0.1, lambd=0.0), lambda p: PO.ASGD(0.1, 3, parameters=p)),
        *("optimizer", "optim.update"),
    ),
    "asgd-rprop-defaults: rate of Rprop": Planted(
        training(lambda p: TO.Rprop(p), lambda p: PO.Rprop(0.01, (1e-6, 50.0), parameters=p)),
        training(lambda p: TO.Rprop(p), lambda p: PO.Rprop(parameters=p)),
        *("lr", "lr.value"),
    ),
    "asgd-rprop-defaults: step sizes of Rprop": Planted(
        training(lambda p: TO.Rprop(p), lambda p: PO.Rprop(0.01, (1e-6, 50.0), parameters=p), steps=30),
        training(lambda p: TO.Rprop(p), lambda p: PO.Rprop(0.01, parameters=p), steps=30),
        *("optimizer", "optim.update"),
    ),
    "cleared-gradients": Planted(
        unused(without_zeros), unused(lambda optimizer: optimizer), "optimizer", "optim.update"
    ),
    "gradient-clipping": Planted(
        clipped(paddle.nn.ClipGradByGlobalNorm(0.05)),
        clipped(paddle.nn.ClipGradByNorm(0.05)),
        *("gradient", "grad.clip"),
    ),
    "gradient-clipping: with decay": Planted(  # which comes after it in both
        clipped(paddle.nn.ClipGradByGlobalNorm(0.05), 0.1),
        clipped(paddle.nn.ClipGradByNorm(0.05), 0.1),
        *("gradient", "grad.clip"),
    ),
}
