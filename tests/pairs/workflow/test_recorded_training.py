"""Compare: weights, settings, rates, clipping, updates, slots and logs of recorded trainings."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import paddle
import pytest
import torch

import parfocal as pf
from tests.pairs.workflow.recordings import Side, compare_sides, digest

RANDOM = np.random.default_rng(3)
BATCHES = [
    (RANDOM.normal(size=(8, 12)).astype("float32"), RANDOM.integers(0, 5, size=8).astype("int64"))
    for _ in range(3)
]
EITHER = pytest.mark.parametrize("tensors", ["full", "sketch"])
WIDTH = 80  # a matrix of that many columns and rows is not kept in full


def torch_net() -> Any:
    torch.manual_seed(0)
    nn = torch.nn
    return nn.Sequential(
        nn.Linear(12, WIDTH),
        nn.Tanh(),
        nn.Linear(WIDTH, WIDTH),
        nn.ReLU(),
        nn.LayerNorm(WIDTH),
        nn.Linear(WIDTH, 5),
    )


def paddle_net() -> Any:
    nn = paddle.nn
    return nn.Sequential(
        nn.Linear(12, WIDTH),
        nn.Tanh(),
        nn.Linear(WIDTH, WIDTH),
        nn.ReLU(),
        nn.LayerNorm(WIDTH),
        nn.Linear(WIDTH, 5),
    )


def pair(torch_optimizer: Any = None, paddle_optimizer: Any = None, **changes: Any) -> tuple[Side, Side]:
    reference = Side(torch_net(), torch.nn.functional.cross_entropy, torch_optimizer)
    model = paddle_net()
    pf.transfer(reference.model, model)
    port = Side(model, paddle.nn.functional.cross_entropy, paddle_optimizer)
    return reference, replace(port, **changes)


def sgd(**options: Any) -> Any:
    return lambda model: torch.optim.SGD(model.parameters(), **{"lr": 0.1, **options})


def adam(kind: str = "Adam", **options: Any) -> Any:
    return lambda model: getattr(torch.optim, kind)(model.parameters(), **{"lr": 0.01, **options})


def paddle_sgd(**options: Any) -> Any:
    return lambda model: paddle.optimizer.SGD(
        parameters=model.parameters(), **{"learning_rate": 0.1, **options}
    )


def paddle_momentum(**options: Any) -> Any:
    return lambda model: paddle.optimizer.Momentum(
        parameters=model.parameters(), **{"learning_rate": 0.1, "momentum": 0.9, **options}
    )


def paddle_adam(kind: str = "Adam", **options: Any) -> Any:
    return lambda model: getattr(paddle.optimizer, kind)(
        parameters=model.parameters(), **{"learning_rate": 0.01, **options}
    )


CORRECT = {
    "sgd": (sgd(), paddle_sgd()),
    "sgd, decay": (sgd(weight_decay=0.01), paddle_sgd(weight_decay=0.01)),
    "momentum": (sgd(momentum=0.9), paddle_momentum()),
    "nesterov, decay": (
        sgd(momentum=0.9, nesterov=True, weight_decay=0.01),
        paddle_momentum(use_nesterov=True, weight_decay=0.01),
    ),
    "adam": (adam(), paddle_adam()),
    "adam, l2": (adam(weight_decay=0.01), paddle_adam(weight_decay=0.01)),
    "adamw": (adam("AdamW", weight_decay=0.1), paddle_adam("AdamW", weight_decay=0.1)),
    "adam without decay is adamw without": (adam(), paddle_adam("AdamW", weight_decay=0.0)),
}


@EITHER
@pytest.mark.parametrize("name", CORRECT)
def test_a_correct_training_is_the_same(tmp_path: Path, tensors: str, name: str) -> None:
    state = ("parameter", "optimizer") if name in ("momentum", "adamw") else ()
    report = compare_sides(tmp_path, *pair(*CORRECT[name]), BATCHES, tensors=tensors, state=state)
    assert report.ok, str(report)
    assert report.coverage.count("updates of parameters") == 3 * 8, str(report)
    assert report.coverage.count("learning rates") == 3
    assert not report.findings, str(report)
    if state:
        assert report.coverage.count("optimizer slots") >= 3 * 8


WRONG = {
    "no decay": (sgd(weight_decay=0.01), paddle_sgd(), 0, "optim.weight_decay"),
    "no decoupled decay": (
        adam("AdamW", weight_decay=0.1),
        paddle_adam("AdamW", weight_decay=0.0),
        0,
        "optim.weight_decay",
    ),
    "l2 for decoupled": (
        adam("AdamW", weight_decay=0.1),
        paddle_adam("Adam", weight_decay=0.1),
        0,
        "optim.weight_decay",
    ),
    "other momentum": (sgd(momentum=0.9), paddle_momentum(momentum=0.8), 1, "optim.momentum"),
    "no nesterov": (sgd(momentum=0.9, nesterov=True), paddle_momentum(), 0, "optim.momentum"),
    "other betas": (adam(betas=(0.9, 0.99)), paddle_adam(beta2=0.999), 1, "optim.betas"),
    "other epsilon": (adam(eps=1e-8), paddle_adam(epsilon=1e-3), 0, "optim.epsilon"),
    "other kind": (adam(), paddle_adam("Adagrad"), 0, "optim.kind"),
}


@EITHER
@pytest.mark.parametrize("name", WRONG)
def test_another_optimizer_is_named(tmp_path: Path, tensors: str, name: str) -> None:
    ours, theirs, step, code = WRONG[name]
    report = compare_sides(tmp_path, *pair(ours, theirs), BATCHES, tensors=tensors)
    found = digest(report)
    assert found is not None, str(report)
    assert (found[0], found[1], found[4]) == ("optimizer", step, code), str(report)


def by_hand(rate: float, decay: float = 0.0, momentum: float = 0.0) -> Any:
    """An update that no optimizer makes: its settings are nowhere to be read."""
    past: dict[int, Any] = {}

    def update(model: Any) -> None:
        for number, parameter in enumerate(model.parameters()):
            gradient = parameter.grad
            with paddle.no_grad() if isinstance(parameter, paddle.Tensor) else torch.no_grad():
                step = gradient + decay * parameter
                past[number] = momentum * past[number] + step if number in past else step
                new = parameter - rate * past[number]
                parameter.set_value(new) if isinstance(parameter, paddle.Tensor) else parameter.copy_(new)

    return update


@EITHER
@pytest.mark.parametrize(
    ("wrong", "step", "code"),
    [
        ({}, 0, None),
        ({"decay": 0.0}, 0, "optim.weight_decay"),
        ({"momentum": 0.5}, 1, "optim.momentum"),
        ({"rate": 0.05}, 0, "optim.update"),
    ],
)
def test_an_update_made_by_hand_is_computed_again(
    tmp_path: Path, tensors: str, wrong: dict[str, float], step: int, code: str | None
) -> None:
    right = {"rate": 0.1, "decay": 0.02, "momentum": 0.9}
    reference, port = pair()
    reference = replace(reference, after_update=by_hand(**right))
    port = replace(port, after_update=by_hand(**{**right, **wrong}))
    report = compare_sides(tmp_path, reference, port, BATCHES, tensors=tensors)
    found = digest(report)
    assert (found and (found[0], found[1], found[4])) == (code and ("optimizer", step, code)), str(report)


@EITHER
@pytest.mark.parametrize(
    ("rates", "step", "code"),
    [
        ((0.1, 0.1, 0.01), None, None),
        ((0.05, 0.05, 0.005), 0, "lr.value"),
        ((0.1, 0.1, 0.1), 2, "lr.constant"),
        ((0.1, 0.01, 0.01), 1, "lr.offset"),
        ((0.1, 0.03, 0.01), 1, "lr.value"),
    ],
)
def test_another_learning_rate_is_named(
    tmp_path: Path, tensors: str, rates: tuple[float, ...], step: int | None, code: str | None
) -> None:
    def schedule(optimizer: Any) -> Any:
        return torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: (1.0, 1.0, 0.1, 0.1)[step])

    def optimizer(model: Any) -> Any:
        scheduler = paddle.optimizer.lr.LambdaDecay(1.0, lambda step: (*rates, 0.0)[step])
        built = paddle.optimizer.SGD(scheduler, parameters=model.parameters())
        built.schedule = scheduler
        return built

    reference, port = pair(sgd(), optimizer, scheduler=lambda built: built.schedule)
    report = compare_sides(tmp_path, replace(reference, scheduler=schedule), port, BATCHES, tensors=tensors)
    found = digest(report)
    expected = None if code is None else ("lr", step, 0, "", code)
    assert found == expected, str(report)
    assert not [each for each in report.divergences[1:] if not each.inherited], str(report)


@EITHER
@pytest.mark.parametrize("limit", [0.5, 2.0, None])
def test_another_clipping_is_named(tmp_path: Path, tensors: str, limit: float | None) -> None:
    def clip(model: Any) -> None:
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)

    options = {} if limit is None else {"grad_clip": paddle.nn.ClipGradByGlobalNorm(limit)}
    reference, port = pair(sgd(), paddle_sgd(**options))
    report = compare_sides(tmp_path, replace(reference, before_update=clip), port, BATCHES, tensors=tensors)
    if limit == 0.5:
        assert report.ok, str(report)
        return
    assert digest(report) == ("gradient", 0, 0, "", "grad.clip"), str(report)


# Weights.


def swapped(model: Any) -> None:
    first, last = model[0].bias, model[2].bias
    kept = first.numpy().copy()
    first.set_value(last.numpy())
    last.set_value(paddle.to_tensor(kept))


def untransposed(model: Any) -> None:
    model[2].weight.set_value(paddle.to_tensor(model[2].weight.numpy().T.copy()))


def one_layer_anew(model: Any) -> None:
    model[5].weight.set_value(paddle.to_tensor(model[5].weight.numpy() * 1.01))


@EITHER
@pytest.mark.parametrize(
    ("change", "place", "code"),
    [
        (swapped, "0", "weight.mismatched"),
        (untransposed, "2", "weight.transposed"),
        (one_layer_anew, "5", "weight.mismatched"),
    ],
)
@pytest.mark.parametrize("state", [(), ("parameter",)])
def test_wrong_weights_are_named(
    tmp_path: Path, tensors: str, state: tuple[str, ...], change: Any, place: str, code: str
) -> None:
    reference, port = pair(sgd(), paddle_sgd())
    change(port.model)
    report = compare_sides(tmp_path, reference, port, BATCHES, tensors=tensors, state=state)
    assert digest(report) == ("weights", 0, 0, place, code), str(report)
    if change is swapped:
        assert "has the values that belong to 2.bias" in report.first.cause.message


class Tied(torch.nn.Module):
    def __init__(self, *, tied: bool) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.embedding = torch.nn.Embedding(11, 8)
        self.head = torch.nn.Linear(8, 11, bias=False)
        if tied:
            self.head.weight = self.embedding.weight

    def forward(self, x: Any) -> Any:
        return self.head(torch.tanh(self.embedding(x)))


@EITHER
@pytest.mark.parametrize("equal", [False, True])
def test_a_head_that_should_not_be_tied_is_named(tmp_path: Path, tensors: str, equal: bool) -> None:
    ids = RANDOM.integers(0, 11, size=(2, 6)).astype("int64")

    def loss(output: Any, target: Any) -> Any:
        return torch.nn.functional.cross_entropy(output, target)

    reference, port = Tied(tied=False), Tied(tied=True)
    if equal:
        reference.head.weight.data.copy_(reference.embedding.weight.data)
    sides = [Side(model, loss, sgd()) for model in (reference, port)]
    report = compare_sides(tmp_path, *sides, [(row, row) for row in ids], tensors=tensors)
    assert report.first is not None
    assert report.first.phase == ("gradient" if equal else "weights"), str(report)
    assert report.first.cause is not None
    assert report.first.cause.code == "weight.tied"


def test_weights_that_are_kept_otherwise_are_no_difference(tmp_path: Path) -> None:
    """A norm whose weight is one less, and adds one: what it computes is the same."""

    class Norm(torch.nn.Module):
        def __init__(self, shift: float) -> None:
            super().__init__()
            self.shift = shift
            self.weight = torch.nn.Parameter(torch.linspace(0.5, 1.5, 12) - shift)

        def forward(self, x: Any) -> Any:
            return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * (self.weight + self.shift)

    def side(shift: float) -> Side:
        torch.manual_seed(0)
        model = torch.nn.Sequential(Norm(shift), torch.nn.Linear(12, 5))
        return Side(model, torch.nn.functional.cross_entropy, sgd())

    report = compare_sides(tmp_path, side(0.0), side(1.0), BATCHES)
    assert report.ok, str(report)
    assert "run.weights" in {each.code for each in report.findings}


# Settings of people's own modules.


class RootMeanSquare(torch.nn.Module):
    def __init__(self, epsilon: float) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(12))
        self.variance_epsilon = epsilon

    def forward(self, x: Any) -> Any:
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.variance_epsilon) * self.weight


class PaddleRootMeanSquare(paddle.nn.Layer):
    def __init__(self, eps: float) -> None:
        super().__init__()
        self.weight = self.create_parameter([12], default_initializer=paddle.nn.initializer.Constant(1.0))
        self.eps = eps

    def forward(self, x: Any) -> Any:
        return x * paddle.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps) * self.weight


@EITHER
@pytest.mark.parametrize(
    ("eps", "told", "ok"), [(1e-6, False, True), (2e-6, True, True), (1e-2, True, False)]
)
def test_settings_of_ones_own_modules_are_compared(
    tmp_path: Path, tensors: str, eps: float, told: bool, ok: bool
) -> None:
    torch.manual_seed(0)
    reference = torch.nn.Sequential(RootMeanSquare(1e-6), torch.nn.Linear(12, 5))
    port = paddle.nn.Sequential(PaddleRootMeanSquare(eps), paddle.nn.Linear(12, 5))
    pf.transfer(reference, port)
    sides = (
        Side(reference, torch.nn.functional.cross_entropy),
        Side(port, paddle.nn.functional.cross_entropy),
    )
    report = compare_sides(tmp_path, *sides, BATCHES[:1], tensors=tensors)
    messages = [each.message for each in report.findings if each.code == "run.settings"]
    assert bool(messages) == told, messages
    assert report.ok == ok, str(report)
    if not ok:
        assert digest(report) == ("forward", 0, 0, "0", "config.epsilon")


# Logs.


@EITHER
@pytest.mark.parametrize("wrong", [False, True])
def test_logged_values_are_compared(tmp_path: Path, tensors: str, wrong: bool) -> None:
    def log(output: Any, target: Any) -> dict[str, Any]:
        hits = (output.numpy() if hasattr(output, "stop_gradient") else output.detach().numpy()).argmax(-1)
        accuracy = float((hits == np.asarray(target)).mean())
        return {"accuracy": accuracy, "output": output}

    def counted(output: Any, target: Any) -> dict[str, Any]:
        found = log(output, target)
        return {**found, "accuracy": found["accuracy"] * 100}

    reference, port = pair(sgd(), paddle_sgd())
    reference = replace(reference, log=log)
    port = replace(port, log=counted if wrong else log)
    report = compare_sides(tmp_path, reference, port, BATCHES, tensors=tensors)
    assert report.coverage.count("logged values") == 6
    if not wrong:
        assert report.ok, str(report)
        return
    assert report.first is not None
    assert (report.first.phase, report.first.what) == ("metric", "logged value accuracy")
    assert report.first.cause is None  # it is no learning rate


@pytest.mark.parametrize(
    ("rate", "logged", "code"), [(0.1, 0.1, None), (0.1, 0.09, "metric.value"), (0.09, 0.09, "lr.value")]
)
def test_another_number_logged_as_the_rate_is_told(
    tmp_path: Path, rate: float, logged: float, code: str | None
) -> None:
    reference, port = pair(sgd(), paddle_sgd(learning_rate=rate))
    reference = replace(reference, log=lambda output, target: {"rate": 0.1})
    port = replace(port, log=lambda output, target: {"rate": logged})
    report = compare_sides(tmp_path, reference, port, BATCHES)
    if code is None:
        assert report.ok, str(report)
        return
    first = report.first
    assert first is not None
    assert first.cause is not None
    assert first.cause.code == code
    told = [each for each in report.divergences if each.phase == "metric" and each.cause is not None]
    assert bool(told) == (code == "metric.value")
    if told:
        assert told[0].cause.fix == "log the rate that the optimizer uses: optimizer.get_lr()"


# Elements whose gradient is nothing but rounding.


class Scaled(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.weight = torch.nn.Parameter(torch.randn(64))

    def forward(self, x: Any) -> Any:
        return self.weight * x


def sign_descent(rate: float) -> Any:
    def update(model: Any) -> None:
        with torch.no_grad():
            for parameter in model.parameters():
                parameter -= rate * parameter.grad.sign()

    return update


@EITHER
@pytest.mark.parametrize(("rates", "ok"), [(None, True), ((0.01, 0.01), True), ((0.01, 0.02), False)])
def test_an_element_that_turns_round_is_no_other_update(
    tmp_path: Path, tensors: str, rates: tuple[float, float] | None, ok: bool
) -> None:
    """One element of the gradient is nothing, and has another sign: its whole step goes the other way."""
    values = RANDOM.normal(size=(2, 3, 64)).astype("float32")
    values[:, :, 0] = 1e-9

    def turned(batch: Any) -> Any:
        changed = batch[0].copy()
        changed[:, 0] *= -1
        return changed, batch[1]

    sides = [Side(Scaled(), lambda y, _: y.sum(), adam() if rates is None else None) for _ in range(2)]
    if rates is not None:
        sides = [
            replace(side, after_update=sign_descent(rate)) for side, rate in zip(sides, rates, strict=True)
        ]
    batches = [(each, np.zeros(1, "float32")) for each in values]
    report = compare_sides(tmp_path, sides[0], replace(sides[1], change=turned), batches, tensors=tensors)
    assert report.ok == ok, str(report)
    if not ok:
        assert report.first is not None
        assert (report.first.phase, report.first.step) == ("optimizer", 0)


def weighted(factor: float, amount: float) -> Any:
    return lambda output, label: paddle.nn.functional.cross_entropy(output, label) * factor + amount


@EITHER
@pytest.mark.parametrize(
    ("factor", "amount", "code"),
    [
        (1.0, 0.001, "loss.offset"),
        (1.0, -0.5, "loss.offset"),
        (1.0007, 0.0, "loss.weight"),
        (3.0, 0.0, "loss.weight"),
        (2.0, 0.1, None),
    ],
)
def test_a_constant_in_the_loss_is_told_from_a_factor(
    tmp_path: Path, tensors: str, factor: float, amount: float, code: str | None
) -> None:
    sides = pair(sgd(), paddle_sgd(), loss=weighted(factor, amount))
    report = compare_sides(tmp_path, *sides, BATCHES, tensors=tensors)
    first = report.first
    assert (first.phase, first.step) == ("loss", 0), str(report)
    assert (first.cause.code if first.cause is not None else None) == code, str(report)
    if code == "loss.offset":
        assert f"differs from the reference's by {amount:g} and its gradient is equal" in first.cause.message


def test_a_penalty_on_weights_is_no_constant(tmp_path: Path) -> None:
    """It is added to the loss, and what enters the model is equal; the gradients of the weights are not."""
    reference, port = pair(sgd(), paddle_sgd())

    def with_penalty(output: Any, label: Any) -> Any:
        penalty = sum((each**2).sum() for each in port.model.parameters())
        return paddle.nn.functional.cross_entropy(output, label) + 0.01 * penalty

    report = compare_sides(tmp_path, reference, replace(port, loss=with_penalty), BATCHES, tensors="full")
    assert report.first.phase == "loss", str(report)
    codes = [each.cause.code for each in report.divergences if each.cause is not None]
    assert "loss.offset" not in codes, str(report)
