"""Mistakes in trainings: optimizer, schedule, clipping, accumulation, loss, regularisation, buffers, data."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import paddle
import torch

from benchmarks.training_faults.fault import Fault
from benchmarks.training_faults.sides import Side, Training, paddle_model, torch_model

torch_optim, paddle_optim = torch.optim, paddle.optimizer
torch_lr, paddle_lr = torch.optim.lr_scheduler, paddle.optimizer.lr
cross_entropy, paddle_entropy = torch.nn.functional.cross_entropy, paddle.nn.functional.cross_entropy
Make = Callable[..., Any]
M, A, W = paddle_optim.Momentum, paddle_optim.Adam, paddle_optim.AdamW


def ours(kind: Any, rate: float = 0.05, **settings: Any) -> Make:
    return lambda parameters: kind(parameters, lr=rate, **settings)


def theirs(kind: Any, rate: Any = 0.05, **settings: Any) -> Make:
    return lambda parameters: kind(learning_rate=rate, parameters=parameters, **settings)


BASE = Training(
    Side(torch_model(), ours(torch_optim.SGD), cross_entropy),
    Side(paddle_model(), theirs(paddle_optim.SGD), paddle_entropy),
)


def pair(left: Make, right: Make, base: Training = BASE) -> Training:
    return replace(
        base, ours=replace(base.ours, optimizer=left), theirs=replace(base.theirs, optimizer=right)
    )


def port(training: Training, **changes: Any) -> Training:
    return replace(training, theirs=replace(training.theirs, **changes))


SGD = pair(
    ours(torch_optim.SGD, momentum=0.9, weight_decay=1e-2),
    theirs(paddle_optim.Momentum, momentum=0.9, weight_decay=1e-2),
)
NESTEROV = pair(
    ours(torch_optim.SGD, momentum=0.9, nesterov=True),
    theirs(paddle_optim.Momentum, momentum=0.9, use_nesterov=True),
)
ADAM = pair(ours(torch_optim.Adam, weight_decay=0.1), theirs(paddle_optim.Adam, weight_decay=0.1))
PLAIN_ADAM = pair(ours(torch_optim.Adam), theirs(A))
ADAMW = pair(ours(torch_optim.AdamW, weight_decay=0.1), theirs(paddle_optim.AdamW, weight_decay=0.1))
AMSGRAD = pair(
    ours(torch_optim.Adam, betas=(0.9, 0.5), amsgrad=True),
    theirs(paddle_optim.Adam, beta2=0.5, amsgrad=True),
)
ADAMAX = pair(ours(torch_optim.Adamax), theirs(paddle_optim.Adamax))
ADAGRAD = pair(ours(torch_optim.Adagrad, eps=1e-6), theirs(paddle_optim.Adagrad, epsilon=1e-6))
ADADELTA = pair(
    ours(torch_optim.Adadelta, 1.0, rho=0.9, eps=1e-6),
    theirs(paddle_optim.Adadelta, 1.0, rho=0.9, epsilon=1e-6),
)
RMSPROP = pair(
    ours(torch_optim.RMSprop, alpha=0.9, eps=1e-12),
    theirs(paddle_optim.RMSProp, rho=0.9, epsilon=1e-16),
)
NADAM = pair(ours(torch_optim.NAdam, 0.01), theirs(paddle_optim.NAdam, 0.01))
RADAM = pair(ours(torch_optim.RAdam), theirs(paddle_optim.RAdam))
RPROP = pair(
    ours(torch_optim.Rprop, 0.01, step_sizes=(1e-6, 50.0)),
    theirs(paddle_optim.Rprop, 0.01, learning_rate_range=(1e-6, 50.0)),
)
TWINS = {
    "plain SGD": BASE,
    "SGD with momentum and decay": SGD,
    "Nesterov": NESTEROV,
    "Adam": ADAM,
    "Adam without decay": PLAIN_ADAM,
    "AdamW": ADAMW,
    "AMSGrad": AMSGRAD,
    "Adamax": ADAMAX,
    "Adagrad": ADAGRAD,
    "Adadelta": ADADELTA,
    "RMSProp": RMSPROP,
    "NAdam": NADAM,
    "RAdam": RADAM,
    "Rprop": RPROP,
}


def _hidden(kind: Any, before: Callable[[Any], Any]) -> Any:
    """An optimizer that does something to its parameters behind the back of its settings."""

    class Hidden(kind):  # type: ignore[misc]
        def step(self) -> None:
            with paddle.no_grad():
                for parameter in self._parameter_list:
                    before(parameter)
            super().step()

    return Hidden


def _decaying(parameter: Any) -> None:
    parameter.set_value(parameter * (1 - 0.05 * 0.4))


def groups(kind: Any, last: dict[str, Any], **settings: Any) -> Make:
    def make(parameters: Any) -> Any:
        known = list(parameters)
        split = [{"params": known[:2]}, {"params": known[2:], **last}]
        named = kind.__module__.startswith("torch")
        return kind(split, **settings) if named else kind(parameters=split, **settings)

    return make


GROUPED = pair(
    groups(torch_optim.SGD, {"lr": 0.005}, lr=0.05),
    groups(paddle_optim.SGD, {"learning_rate": 0.1}, learning_rate=0.05),
)
UNDECAYED = pair(
    groups(torch_optim.AdamW, {"weight_decay": 0.0}, lr=0.05, weight_decay=0.1),
    groups(paddle_optim.AdamW, {"weight_decay": 0.0}, learning_rate=0.05, weight_decay=0.1),
)
TWINS |= {"groups with rates": GROUPED, "groups with decay": UNDECAYED}

# name, twin, the port's optimizer, codes, step
OPTIMIZERS: tuple[tuple[str, str, Make, str, int], ...] = (
    ("momentum by default", "plain SGD", theirs(M), "optim.momentum", 1),
    (
        "no momentum",
        "SGD with momentum and decay",
        theirs(paddle_optim.SGD, weight_decay=1e-2),
        "optim.momentum",
        1,
    ),
    (
        "another momentum",
        "SGD with momentum and decay",
        theirs(M, momentum=0.99, weight_decay=1e-2),
        "optim.momentum",
        1,
    ),
    (
        "Nesterov added",
        "SGD with momentum and decay",
        theirs(M, momentum=0.9, weight_decay=1e-2, use_nesterov=True),
        "optim.momentum",
        0,
    ),
    ("Nesterov forgotten", "Nesterov", theirs(M, momentum=0.9), "optim.momentum", 0),
    ("no decay", "SGD with momentum and decay", theirs(M, momentum=0.9), "optim.weight_decay", 0),
    (
        "decay ten times",
        "SGD with momentum and decay",
        theirs(M, momentum=0.9, weight_decay=0.1),
        "optim.weight_decay",
        0,
    ),
    (
        "L1 for L2",
        "SGD with momentum and decay",
        theirs(M, momentum=0.9, weight_decay=paddle.regularizer.L1Decay(1e-2)),
        "optim.weight_decay",
        0,
    ),
    ("decoupled for coupled", "Adam", theirs(W, weight_decay=0.1), "optim.weight_decay", 0),
    ("coupled for decoupled", "AdamW", theirs(A, weight_decay=0.1), "optim.weight_decay", 0),
    ("decay by default", "AdamW", theirs(W), "optim.weight_decay", 0),
    (
        "a filter that matches nothing",
        "groups with decay",
        theirs(W, weight_decay=0.1, apply_decay_param_fun=lambda name: True),
        "optim.weight_decay",
        0,
    ),
    (
        "a filter that matches all",
        "AdamW",
        theirs(W, weight_decay=0.1, apply_decay_param_fun=lambda name: False),
        "optim.weight_decay",
        0,
    ),
    (
        "a decay that no setting tells",
        "Adam without decay",
        theirs(_hidden(A, _decaying)),
        "optim.weight_decay",
        0,
    ),
    ("first beta", "Adam", theirs(A, weight_decay=0.1, beta1=0.8), "optim.betas", 0),
    ("second beta", "Adam", theirs(A, weight_decay=0.1, beta2=0.99), "optim.betas", 0),
    ("both betas", "AdamW", theirs(W, weight_decay=0.1, beta1=0.8, beta2=0.95), "optim.betas", 0),
    ("epsilon of Adam", "Adam", theirs(A, weight_decay=0.1, epsilon=1e-3), "optim.epsilon", 0),
    ("a small epsilon of Adam", "Adam", theirs(A, weight_decay=0.1, epsilon=1e-6), "optim.epsilon", 0),
    ("AMSGrad forgotten", "AMSGrad", theirs(A, beta2=0.5), "optim.update", 1),
    ("SGD for Adam", "Adam", theirs(paddle_optim.SGD, weight_decay=0.1), "optim.kind", 0),
    ("Adam for SGD", "SGD with momentum and decay", theirs(A, weight_decay=1e-2), "optim.kind", 0),
    ("Adamax for Adam", "Adam", theirs(paddle_optim.Adamax, weight_decay=0.1), "optim.kind", 1),
    ("epsilon of Adagrad", "Adagrad", theirs(paddle_optim.Adagrad, epsilon=1e-10), "optim.epsilon", 0),
    (
        "start of Adagrad",
        "Adagrad",
        theirs(paddle_optim.Adagrad, epsilon=1e-6, initial_accumulator_value=0.1),
        "optim.update",
        0,
    ),
    (
        "rho of Adadelta",
        "Adadelta",
        theirs(paddle_optim.Adadelta, 1.0, rho=0.95, epsilon=1e-6),
        "optim.betas",
        0,
    ),
    ("rho of RMSProp", "RMSProp", theirs(paddle_optim.RMSProp, rho=0.95, epsilon=1e-16), "optim.betas", 0),
    (
        "epsilon of RMSProp",
        "RMSProp",
        theirs(paddle_optim.RMSProp, rho=0.9, epsilon=1e-4),
        "optim.epsilon",
        0,
    ),
    (
        "momentum of RMSProp",
        "RMSProp",
        theirs(paddle_optim.RMSProp, rho=0.9, epsilon=1e-16, momentum=0.9),
        "optim.momentum",
        1,
    ),
    (
        "centred RMSProp",
        "RMSProp",
        theirs(paddle_optim.RMSProp, rho=0.9, epsilon=1e-16, centered=True),
        "optim.update",
        0,
    ),
    ("betas of Adamax", "Adamax", theirs(paddle_optim.Adamax, beta1=0.8), "optim.betas", 0),
    ("betas of NAdam", "NAdam", theirs(paddle_optim.NAdam, 0.01, beta1=0.8), "optim.betas", 0),
    ("betas of RAdam", "RAdam", theirs(paddle_optim.RAdam, beta1=0.8), "optim.betas", 0),
    (
        "step sizes of Rprop",
        "Rprop",
        theirs(paddle_optim.Rprop, 0.01, learning_rate_range=(0.009, 0.011)),
        "optim.update",
        1,
    ),
    (
        "a parameter left out",
        "plain SGD",
        lambda p: paddle_optim.SGD(0.05, parameters=list(p)[:-1]),
        "optim.lr_group",
        0,
    ),
)


def _optimizers() -> Iterator[Fault]:
    for name, twin, optimizer, code, step in OPTIMIZERS:
        wrong = port(TWINS[twin], optimizer=optimizer)
        yield Fault("optimizer", name, wrong.compare, (twin, TWINS[twin].compare), (code,), "optimizer", step)
    wrong = port(GROUPED, optimizer=groups(paddle_optim.SGD, {"learning_rate": 0.005}, learning_rate=0.05))
    yield Fault(
        *("optimizer", "a group's factor taken for a rate", wrong.compare),
        *(("groups with rates", GROUPED.compare), ("optim.lr_group",), "lr"),
    )
    wrong = port(BASE, optimizer=theirs(paddle_optim.SGD, 0.1))
    yield Fault(
        *("optimizer", "twice the rate", wrong.compare, ("plain SGD", BASE.compare), ("lr.value",), "lr")
    )


# name -> torch's scheduler, paddle's right one
RIGHT_SCHEDULES: dict[str, tuple[Make, Make]] = {
    "steps": (lambda o: torch_lr.StepLR(o, 3, 0.5), lambda: paddle_lr.StepDecay(0.05, 3, 0.5)),
    "cosine": (
        lambda o: torch_lr.CosineAnnealingLR(o, 8),
        lambda: paddle_lr.CosineAnnealingDecay(0.05, 8),
    ),
    "polynomial": (
        lambda o: torch_lr.PolynomialLR(o, 8, 1.0),
        lambda: paddle_lr.PolynomialDecay(0.05, 8, 0.0, 1.0),
    ),
    "exponential": (lambda o: torch_lr.ExponentialLR(o, 0.9), lambda: paddle_lr.ExponentialDecay(0.05, 0.9)),
    "warm-up": (
        lambda o: torch_lr.LambdaLR(o, lambda n: min(1.0, (n + 1) / 4)),
        lambda: paddle_lr.LambdaDecay(0.05, lambda n: min(1.0, (n + 1) / 4)),
    ),
}


def _moved(scheduler: Any) -> Any:
    scheduler.step()
    return scheduler


# name, twin, paddle's scheduler, whether the optimizer is given a number instead, codes, step
WRONG_SCHEDULES: tuple[tuple[str, str, Make | None, bool, tuple[str, ...], int], ...] = (
    ("given a number", "cosine", RIGHT_SCHEDULES["cosine"][1], True, ("lr.constant",), 1),
    ("no scheduler", "steps", None, True, ("lr.constant",), 3),
    ("another factor", "steps", lambda: paddle_lr.StepDecay(0.05, 3, 0.1), False, ("lr.value",), 3),
    ("other milestones", "steps", lambda: paddle_lr.StepDecay(0.05, 2, 0.5), False, ("lr.value",), 2),
    (
        "another length",
        "cosine",
        lambda: paddle_lr.CosineAnnealingDecay(0.05, 16),
        False,
        ("lr.value", "lr.end"),
        1,
    ),
    (
        "one step ahead",
        "exponential",
        lambda: _moved(paddle_lr.ExponentialDecay(0.05, 0.9)),
        False,
        ("lr.offset",),
        0,
    ),
    (
        "one step ahead of a cosine",
        "cosine",
        lambda: _moved(paddle_lr.CosineAnnealingDecay(0.05, 8)),
        False,
        ("lr.offset",),
        0,
    ),
    (
        "end of a polynomial",
        "polynomial",
        lambda: paddle_lr.PolynomialDecay(0.05, 8, 0.01, 1.0),
        False,
        ("lr.end",),
        1,
    ),
    (
        "power of a polynomial",
        "polynomial",
        lambda: paddle_lr.PolynomialDecay(0.05, 8, 0.0, 2.0),
        False,
        ("lr.value",),
        1,
    ),
    (
        "natural exponential",
        "exponential",
        lambda: paddle_lr.NaturalExpDecay(0.05, 0.9),
        False,
        ("lr.value",),
        1,
    ),
    (
        "rate of a schedule",
        "exponential",
        lambda: paddle_lr.ExponentialDecay(0.02, 0.9),
        False,
        ("lr.value",),
        0,
    ),
    (
        "no warm-up",
        "warm-up",
        lambda: paddle_lr.LambdaDecay(0.05, lambda n: 1.0),
        False,
        ("lr.constant", "lr.value"),
        0,
    ),
)


def _scheduled(left: Make, right: Make | None, number: bool) -> Callable[[int], Any]:
    def compare(seed: int) -> Any:
        scheduler = None if right is None else right()
        rate = 0.05 if number or scheduler is None else scheduler
        training = replace(
            pair(ours(torch_optim.SGD), theirs(paddle_optim.SGD, rate)),
            ours=replace(BASE.ours, scheduler=left),
        )
        stepped = None if scheduler is None else (lambda optimizer: scheduler)
        return port(training, optimizer=theirs(paddle_optim.SGD, rate), scheduler=stepped).compare(seed)

    return compare


def _schedules() -> Iterator[Fault]:
    for name, twin, scheduler, number, codes, step in WRONG_SCHEDULES:
        left, right = RIGHT_SCHEDULES[twin]
        clean = (f"schedule: {twin}", _scheduled(left, right, False))
        yield Fault("schedule", name, _scheduled(left, scheduler, number), clean, codes, "lr", step)


def _norm(limit: float) -> Make:
    return lambda parameters: torch.nn.utils.clip_grad_norm_(parameters, limit)


def _value(limit: float) -> Make:
    return lambda parameters: torch.nn.utils.clip_grad_value_(parameters, limit)


NORM = replace(
    port(BASE, optimizer=theirs(paddle_optim.SGD, grad_clip=paddle.nn.ClipGradByGlobalNorm(0.1))),
    ours=replace(BASE.ours, clip=_norm(0.1)),
)
VALUE = replace(
    port(BASE, optimizer=theirs(paddle_optim.SGD, grad_clip=paddle.nn.ClipGradByValue(0.02))),
    ours=replace(BASE.ours, clip=_value(0.02)),
)
CLIPS: tuple[tuple[str, Training, Any], ...] = (
    ("no clipping", NORM, None),
    ("each by itself", NORM, paddle.nn.ClipGradByNorm(0.1)),
    ("by value for by norm", NORM, paddle.nn.ClipGradByValue(0.1)),
    ("another norm", NORM, paddle.nn.ClipGradByGlobalNorm(0.2)),
    ("another value", VALUE, paddle.nn.ClipGradByValue(0.01)),
    ("by norm for by value", VALUE, paddle.nn.ClipGradByGlobalNorm(0.02)),
)


def _clips() -> Iterator[Fault]:
    for name, right, clip in CLIPS:
        wrong = port(right, optimizer=theirs(paddle_optim.SGD, grad_clip=clip))
        twin = "clipped by norm" if right is NORM else "clipped by value"
        yield Fault("clip", name, wrong.compare, (twin, right.compare), ("grad.clip",), "gradient")
    wrong = port(BASE, optimizer=theirs(paddle_optim.SGD, grad_clip=paddle.nn.ClipGradByGlobalNorm(0.1)))
    yield Fault(
        *("clip", "clipped in the port only", wrong.compare, ("plain SGD", BASE.compare)),
        *(("grad.clip",), "gradient"),
    )


def _uncleared(parameters: Any) -> Any:
    optimizer = paddle_optim.SGD(0.05, parameters=parameters)
    optimizer.clear_grad = lambda: None
    return optimizer


def _accumulations() -> Iterator[Fault]:
    several = replace(BASE, ours=replace(BASE.ours, accumulate=3), theirs=replace(BASE.theirs, accumulate=3))
    twin = "three batches an update", several.compare
    code, phase = ("grad.accumulated",), "gradient"
    yield Fault("accumulation", "one batch for three", port(several, accumulate=1).compare, twin, code, phase)
    yield Fault(
        "accumulation", "two batches for three", port(several, accumulate=2).compare, twin, code, phase
    )
    plain = "plain SGD", BASE.compare
    yield Fault("accumulation", "two batches for one", port(BASE, accumulate=2).compare, plain, code, phase)
    yield Fault(
        "accumulation", "never cleared", port(BASE, optimizer=_uncleared).compare, plain, code, phase, 1
    )
    third = port(several, loss=lambda output, label: paddle_entropy(output, label) / 3)
    yield Fault("accumulation", "divided by three", third.compare, twin, ("loss.reduction",), "loss")


def _losses() -> Iterator[Fault]:
    twin = "plain SGD", BASE.compare
    mistakes: tuple[tuple[str, Make, tuple[str, ...]], ...] = (
        ("a sum for a mean", lambda o, y: paddle_entropy(o, y, reduction="sum"), ("loss.reduction",)),
        (
            "label smoothing",
            lambda o, y: paddle_entropy(o, y, label_smoothing=0.1),
            ("loss.label_smoothing",),
        ),
        (
            "probabilities for logits",
            lambda o, y: paddle_entropy(paddle.nn.functional.softmax(o), y),
            ("loss.input",),
        ),
        (
            "weights of classes",
            lambda o, y: paddle_entropy(o, y, weight=paddle.to_tensor([1.0, 2.0, 3.0, 4.0])),
            ("loss.weight",),
        ),
        ("half of it", lambda o, y: 0.5 * paddle_entropy(o, y), ("loss.reduction",)),
        ("an ignored class", lambda o, y: paddle_entropy(o, y, ignore_index=1), ("loss.ignore_index",)),
        (
            "squares for entropy",
            lambda o, y: ((o - paddle.nn.functional.one_hot(y, 4)) ** 2).mean(),
            ("loss.input", "op.kind"),
        ),
    )
    for name, loss, codes in mistakes:
        yield Fault("loss", name, port(BASE, loss=loss).compare, twin, codes, "loss")


DROPPING = replace(
    BASE,
    ours=replace(BASE.ours, model=torch_model(drop=0.3)),
    theirs=replace(BASE.theirs, model=paddle_model(drop=0.3)),
)
NORMED = replace(
    BASE,
    ours=replace(BASE.ours, model=torch_model(torch.nn.BatchNorm1d)),
    theirs=replace(BASE.theirs, model=paddle_model(paddle.nn.BatchNorm1D)),
    samples=4096,
)


def _regularisations() -> Iterator[Fault]:
    twin = "dropout", DROPPING.compare
    for name, drop in (("another rate of dropout", 0.5), ("a rate that keeps", 0.7)):
        wrong = port(DROPPING, model=paddle_model(drop=drop))
        yield Fault("regularisation", name, wrong.compare, twin, ("random.dropout",), "forward")
    wrong = port(BASE, model=paddle_model(drop=0.3))
    yield Fault(
        *("regularisation", "dropout added", wrong.compare, ("plain SGD", BASE.compare)),
        *(("random.dropout",), "forward"),
    )
    wrong = port(NORMED, model=paddle_model(paddle.nn.BatchNorm1D, epsilon=1e-3))
    yield Fault(
        *("regularisation", "epsilon of a norm", wrong.compare, ("normalised", NORMED.compare)),
        *(("config.epsilon",), "forward"),
    )
    wrong = port(BASE, model=paddle_model(activation=paddle.nn.GELU))
    yield Fault(
        *("regularisation", "another activation", wrong.compare, ("plain SGD", BASE.compare)),
        *(("op.activation",), "forward"),
    )


def _buffers() -> Iterator[Fault]:
    twin = "normalised", NORMED.compare
    for name, momentum in (("momentum as in torch", 0.1), ("momentum 0.99", 0.99), ("momentum 0.5", 0.5)):
        wrong = port(NORMED, model=paddle_model(paddle.nn.BatchNorm1D, momentum=momentum))
        codes = ("config.momentum", "buffer.momentum")
        yield Fault("buffers", name, wrong.compare, twin, codes, "buffer")
    small = replace(NORMED, samples=6)
    yield Fault(
        *("buffers", "variance of small batches", small.compare, twin),
        *(("buffer.running_variance",), "buffer"),
    )


def _datas() -> Iterator[Fault]:
    def turned(batch: Any) -> Any:
        return batch[0][::-1].copy(), batch[1][::-1].copy()

    def labels(batch: Any) -> Any:
        return batch[0], (batch[1] + 1) % 4

    def shuffled(batch: Any) -> Any:
        order = np.random.default_rng(0).permutation(len(batch[0]))
        return batch[0][order], batch[1]

    twin = "plain SGD", BASE.compare
    mistakes: tuple[tuple[str, Make, tuple[str, ...]], ...] = (
        ("normalised twice", lambda b: ((b[0] - 0.5) / 0.5, b[1]), ("data.normalisation",)),
        ("another scale", lambda b: (b[0] * np.float32(255), b[1]), ("data.normalisation",)),
        ("samples in another order", turned, ("data.order",)),
        ("inputs shuffled alone", shuffled, ("data.order",)),
        ("labels by another numbering", labels, ("data.label",)),
        ("an offset", lambda b: (b[0] + np.float32(0.1), b[1]), ("data.normalisation",)),
    )
    for name, change, codes in mistakes:
        yield Fault("data", name, port(BASE, data=change).compare, twin, codes, "data")


def faults() -> Iterator[Fault]:
    for family in (
        _optimizers,
        _schedules,
        _clips,
        _accumulations,
        _losses,
        _regularisations,
        _buffers,
        _datas,
    ):
        yield from family()
