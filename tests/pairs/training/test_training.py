"""Trainings in lockstep: which step and phase parts first, and what is said of it."""

from __future__ import annotations

import math
import types
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import paddle
import pytest
import torch

import parfocal as pf
from parfocal.errors import EmptyComparisonError, InputError, UnsupportedError
from parfocal.workflow.training.batches import read_batches
from parfocal.workflow.training.comparing import TrainingOptions, run_training
from parfocal.workflow.training.free_running import horizon_of
from tests.pairs.training.test_schedules import CORRECT as SCHEDULES
from tests.pairs.training.tools import LOSSES, batches, compare, paddle_optim, perceptron, torch_optim

pytestmark = pytest.mark.filterwarnings("ignore:When training, we now always track:UserWarning")
torch_lr, paddle_lr = torch.optim.lr_scheduler, paddle.optimizer.lr


def sgd(rate: float = 0.1, **settings: Any) -> Callable[[Any], Any]:
    return lambda parameters: torch_optim.SGD(parameters, rate, **settings)


def paddle_sgd(rate: Any = 0.1, **settings: Any) -> Callable[[Any], Any]:
    return lambda parameters: paddle_optim.SGD(rate, parameters=parameters, **settings)


def momentum(**settings: Any) -> tuple[Callable[[Any], Any], Callable[[Any], Any]]:
    return (
        lambda p: torch_optim.SGD(p, 0.1, momentum=0.9, **settings),
        lambda p: paddle_optim.Momentum(0.1, 0.9, parameters=p, **settings),
    )


def check(report: Any, code: str, phase: str, step: int) -> None:
    first = report.first
    assert first is not None, report
    assert first.cause is not None, report
    assert (first.cause.code, first.phase, first.step) == (code, phase, step), str(report)
    assert first.cause.fix


@pytest.mark.parametrize("name", SCHEDULES)
@pytest.mark.filterwarnings("ignore")
def test_schedules_of_both_frameworks_train_alike(name: str) -> None:
    ours, theirs = SCHEDULES[name]
    scheduler = theirs()
    settings = {"momentum": 0.9} if name == "one cycle" else {}
    if name == "one cycle":

        def ours(optimizer: Any) -> Any:
            return torch_lr.OneCycleLR(optimizer, 0.1, total_steps=60, cycle_momentum=False)

    report = compare(
        sgd(**settings),
        lambda p: (
            paddle_optim.Momentum(scheduler, 0.9, parameters=p)
            if settings
            else paddle_optim.SGD(scheduler, parameters=p)
        ),
        steps=50,
        schedulers=(ours, lambda optimizer: scheduler),
    )
    assert report.ok, report


def decayed(optimizer: Any) -> Any:
    return torch_lr.StepLR(optimizer, 2, 0.5)


SCHEDULE_MISTAKES: dict[str, tuple[Callable[[], tuple[Any, Any]], str, int]] = {
    "given a number": (lambda: (0.1, paddle_lr.StepDecay(0.1, 2, 0.5)), "lr.constant", 2),
    "another factor": (lambda: (paddle_lr.StepDecay(0.1, 2, 0.1),) * 2, "lr.value", 2),
    "other milestones": (lambda: (paddle_lr.StepDecay(0.1, 3, 0.5),) * 2, "lr.value", 2),
    "another rate": (lambda: (paddle_lr.StepDecay(0.03, 2, 0.5),) * 2, "lr.value", 0),
}


@pytest.mark.parametrize("name", SCHEDULE_MISTAKES)
def test_a_mistake_in_a_schedule_is_named(name: str) -> None:
    make, code, step = SCHEDULE_MISTAKES[name]
    rate, scheduler = make()
    report = compare(sgd(), paddle_sgd(rate), steps=8, schedulers=(decayed, scheduler))
    check(report, code, "lr", step)
    assert all(each.phase == "lr" for each in report.divergences)  # the updates themselves are right


def test_a_scheduler_that_is_never_stepped() -> None:
    scheduler = paddle_lr.StepDecay(0.1, 2, 0.5)
    check(compare(sgd(), paddle_sgd(scheduler), steps=8, schedulers=(decayed, None)), "lr.constant", "lr", 2)


def test_one_cycle_moves_the_momentum_too() -> None:
    scheduler = paddle_lr.OneCycleLR(0.1, total_steps=60, end_learning_rate=0.1 / 25 / 1e4)
    report = compare(
        sgd(momentum=0.9),
        lambda p: paddle_optim.Momentum(scheduler, 0.9, parameters=p),
        schedulers=(lambda o: torch_lr.OneCycleLR(o, 0.1, total_steps=60), scheduler),
    )
    check(report, "optim.momentum", "optimizer", 1)


def by_norm(limit: float) -> Callable[[Any], Any]:
    return lambda parameters: torch.nn.utils.clip_grad_norm_(parameters, limit)


def by_value(limit: float) -> Callable[[Any], Any]:
    return lambda parameters: torch.nn.utils.clip_grad_value_(parameters, limit)


CLIPS: dict[str, tuple[Any, Any, bool]] = {
    "global norm": (by_norm(0.1), paddle.nn.ClipGradByGlobalNorm(0.1), True),
    "value": (by_value(0.01), paddle.nn.ClipGradByValue(0.01), True),
    "never reached": (by_norm(1e6), None, True),
    "each by itself": (by_norm(0.1), paddle.nn.ClipGradByNorm(0.1), False),
    "value for norm": (by_norm(0.1), paddle.nn.ClipGradByValue(0.1), False),
    "another norm": (by_norm(0.1), paddle.nn.ClipGradByGlobalNorm(0.2), False),
    "not at all": (by_norm(0.1), None, False),
    "only in the port": (None, paddle.nn.ClipGradByGlobalNorm(0.1), False),
}


@pytest.mark.parametrize("name", CLIPS)
def test_clipping(name: str) -> None:
    ours, theirs, right = CLIPS[name]
    report = compare(*_clipped(theirs), clip=(ours, None), steps=4)
    if right:
        assert report.ok, report
    else:
        check(report, "grad.clip", "gradient", 0)
        assert all(each.phase == "gradient" for each in report.divergences)


def _clipped(clip: Any) -> tuple[Callable[[Any], Any], Callable[[Any], Any]]:
    return (
        lambda p: torch_optim.Adam(p, 0.01),
        lambda p: paddle_optim.Adam(0.01, parameters=p, grad_clip=clip),
    )


class _Branching(torch.nn.Module):
    """Its second branch is used only where inputs are large."""

    def __init__(self) -> None:
        super().__init__()
        self.always, self.sometimes = torch.nn.Linear(8, 4), torch.nn.Linear(8, 4)

    def forward(self, x: Any) -> Any:
        return self.always(x) + (self.sometimes(x) if float(x.abs().max()) > 1 else 0)


class _BranchingPort(paddle.nn.Layer):
    def __init__(self) -> None:
        super().__init__()
        self.always, self.sometimes = paddle.nn.Linear(8, 4), paddle.nn.Linear(8, 4)

    def forward(self, x: Any) -> Any:
        return self.always(x) + (self.sometimes(x) if float(x.abs().max().item()) > 1 else 0)


def _now_and_then() -> list[tuple[Any, Any]]:
    found = batches(6)
    return [(x * (2 if number in (0, 1, 4) else 0.1), label) for number, (x, label) in enumerate(found)]


@pytest.mark.parametrize("clears", [False, True])
def test_gradients_of_zero_go_on_moving_what_has_no_part(clears: bool) -> None:
    def theirs(parameters: Any) -> Any:
        optimizer = paddle_optim.Momentum(0.1, 0.9, parameters=parameters)
        if clears:
            plain = optimizer.clear_grad
            optimizer.clear_grad = lambda: plain(set_to_zero=False)
        return optimizer

    models = _Branching(), _BranchingPort()
    report = compare(momentum()[0], theirs, models=models, data=_now_and_then())
    if clears:
        assert report.ok, report
    else:
        check(report, "optim.update", "optimizer", 2)
        assert "clear_grad(set_to_zero=False)" in report.first.cause.fix


def test_gradients_that_are_not_cleared() -> None:
    def theirs(parameters: Any) -> Any:
        optimizer = paddle_optim.SGD(0.1, parameters=parameters)
        optimizer.clear_grad = lambda: None
        return optimizer

    check(compare(sgd(), theirs), "grad.accumulated", "gradient", 1)


def test_accumulation() -> None:
    assert compare(sgd(), paddle_sgd(), accumulate=3, passes=3).ok
    report = compare(sgd(), paddle_sgd(), accumulate=(3, 1), passes=3)
    check(report, "grad.accumulated", "gradient", 0)
    assert "3 batches in the reference, of 1 in the port" in report.first.cause.message


def test_a_loss_that_is_divided_otherwise() -> None:
    loss = LOSSES[0], lambda output, label: LOSSES[1](output, label, reduction="sum")
    check(compare(sgd(), paddle_sgd(), loss=loss), "loss.reduction", "loss", 0)


def test_a_wrong_layer_is_named() -> None:
    reference, _ = perceptron()
    port = paddle.nn.Sequential(paddle.nn.Linear(8, 16), paddle.nn.GELU(), paddle.nn.Linear(16, 4))
    report = compare(sgd(), paddle_sgd(), models=(reference, port))
    check(report, "op.activation", "forward", 0)
    assert report.first.port.path == "1"


@pytest.mark.parametrize(("rates", "right"), [((0.3, 0.3), True), ((0.3, 0.5), False), ((0.0, 0.3), False)])
def test_dropout_is_read(rates: tuple[float, float], right: bool) -> None:
    models = [
        nn.Sequential(nn.Linear(8, 16), nn.ReLU(), *([nn.Dropout(rate)] if rate else []), nn.Linear(16, 4))
        for nn, rate in zip((torch.nn, paddle.nn), rates, strict=True)
    ]
    report = compare(sgd(), paddle_sgd(), models=tuple(models))
    if right:
        assert report.ok, report
    else:
        check(report, "random.dropout", "forward", 0)


class _AsksForDropout(paddle.nn.Layer):
    """The same dropout, asked of a function."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = paddle.nn.Linear(8, 16), paddle.nn.Linear(16, 4)

    def forward(self, x: Any) -> Any:
        x = paddle.nn.functional.relu(self.first(x))
        return self.last(paddle.nn.functional.dropout(x, 0.3, training=self.training))


def test_dropout_by_a_function_is_dropout() -> None:
    nn = torch.nn
    reference = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Dropout(0.3), nn.Linear(16, 4))
    report = compare(sgd(), paddle_sgd(), models=(reference, _AsksForDropout()))
    assert report.ok, report


def test_an_error_in_a_later_step_is_found_beside_an_earlier_one() -> None:
    """Step 0: another decay. Step 3: the port's rate falls one step early."""
    scheduler = paddle_lr.StepDecay(0.1, 3, 0.5)
    report = compare(
        sgd(weight_decay=1e-2),
        paddle_sgd(scheduler, weight_decay=1e-3),
        steps=10,
        schedulers=(lambda o: torch_lr.StepLR(o, 4, 0.5), scheduler),
    )
    found = {(each.cause.code, each.phase, each.step) for each in report.divergences}
    assert found == {("optim.weight_decay", "optimizer", 0), ("lr.value", "lr", 3)}, str(report)


class _Hidden(paddle_optim.Adam):
    """Decays weights behind the back of its settings."""

    def step(self) -> None:
        with paddle.no_grad():
            for parameter in self._parameter_list:
                parameter.set_value(parameter * (1 - 0.01 * 0.3))
        super().step()


class _Uncorrected(torch.optim.Optimizer):
    """Adam without the correction of its moments, and it says nothing of itself."""

    def __init__(self, parameters: Any) -> None:
        super().__init__(parameters, {"lr": 0.01})

    def step(self) -> None:  # type: ignore[override]
        with torch.no_grad():
            for parameter in self.param_groups[0]["params"]:
                parameter -= 0.01 * parameter.grad.sign()


def test_a_decay_that_no_setting_tells_is_solved_for() -> None:
    report = compare(
        lambda p: torch_optim.AdamW(p, 0.01, weight_decay=0.1),
        lambda p: _Hidden(0.01, parameters=p),
    )
    check(report, "optim.weight_decay", "optimizer", 0)
    assert "show 0.3" in report.first.cause.message


def test_an_unknown_rule_is_found() -> None:
    report = compare(lambda p: _Uncorrected(p), lambda p: paddle_optim.SGD(0.01, parameters=p))
    assert report.first.phase == "optimizer"
    assert report.first.step == 0


# Few units in the last place of a loss near 1: what 30 steps of rounding make of it, on any processor.
LOSSES_AGREE = 4 * 2.0**-23


def _farthest(losses: tuple[Any, Any]) -> float:
    return max(abs(ours - theirs) / abs(ours) for ours, theirs in zip(*losses, strict=True))


def test_running_variances_part_in_evaluation_only() -> None:
    """Thirty steps whose losses agree to some 1e-7, and outputs in evaluation that differ by 0.03."""
    data = batches(30, size=16)
    report = compare(
        lambda p: torch_optim.SGD(p, 0.02, momentum=0.9),
        lambda p: paddle_optim.Momentum(0.02, 0.9, parameters=p),
        models=perceptron(norm=True),
        steps=30,
        data=data,
    )
    check(report, "buffer.running_variance", "buffer", 0)
    assert len(_loss(report)[0]) == 30
    assert _farthest(_loss(report)) < LOSSES_AGREE
    assert "n of about 16" in report.first.cause.message
    assert report.first.what == "output 0 in evaluation after the training"
    assert 0.02 < report.first.error.max_abs < 0.04
    assert len(report.divergences) == 1


def test_running_variances_are_a_note_only_where_whole_trainings_decide() -> None:
    """As in the guide, which trains both sides and holds their metrics against each other."""
    models = perceptron(norm=True)
    options = TrainingOptions(
        LOSSES,
        (
            lambda model: torch_optim.SGD(model.parameters(), 0.02, momentum=0.9),
            lambda model: paddle_optim.Momentum(0.02, 0.9, parameters=model.parameters()),
        ),
        steps=30,
        variance_told=math.inf,
    )
    report = run_training(*models, partial(read_batches, batches(30, size=16)), options)
    assert report.ok, report
    (note,) = [each for each in report.findings if each.code == "buffer.running_variance"]
    assert not note.diverged
    assert "in evaluation the outputs differ by 0.0" in note.message


def test_that_is_so_without_this_tool() -> None:
    """The same trainings, each by its own framework alone."""
    ours, theirs = perceptron(norm=True)
    pf.transfer(ours, theirs)
    optimizers = (
        torch_optim.SGD(ours.parameters(), 0.02, momentum=0.9),
        paddle_optim.Momentum(0.02, 0.9, parameters=theirs.parameters()),
    )
    losses: tuple[list[float], list[float]] = [], []
    for x, label in batches(30, size=16):
        for side, (model, tensor) in enumerate(((ours, torch.tensor), (theirs, paddle.to_tensor))):
            loss = LOSSES[side](model(tensor(x)), tensor(label))
            loss.backward()
            optimizers[side].step()
            (optimizers[side].clear_grad if side else optimizers[side].zero_grad)()
            losses[side].append(loss.item())
    assert _farthest(losses) < LOSSES_AGREE
    x = batches(1, size=64, seed=99)[0][0]

    def apart() -> float:
        return float(
            np.abs(ours(torch.tensor(x)).detach().numpy() - theirs(paddle.to_tensor(x)).numpy()).max()
        )

    ours.eval(), theirs.eval()
    assert 0.025 < apart() < 0.035
    with torch.no_grad():  # with the same variances the same outputs
        ours[1].running_var.copy_(torch.tensor(theirs[1]._variance.numpy()))
    assert apart() < 1e-5


def test_a_wrong_setting_comes_before_the_convention_of_a_running_variance() -> None:
    """And is told once, of all parameters: the norm's bias begins at 0, where decay shows a step later."""
    report = compare(
        lambda p: torch_optim.AdamW(p, 0.001, weight_decay=0.01),
        lambda p: paddle_optim.AdamW(0.001, parameters=p, weight_decay=0.1),
        models=perceptron(norm=True),
        data=batches(6, size=6),
    )
    assert [(each.phase, each.step) for each in report.divergences] == [("optimizer", 0), ("buffer", 0)]
    assert report.first.cause.message == "the weight decay is 0.01 in the reference and 0.1 in the port"
    text = str(report)
    assert text.count("divided by n on one side") == 1  # as a cause, and not as a note besides
    assert "output 0 in evaluation after the training" in text


def test_a_setting_of_some_parameters_is_told_of_these_only() -> None:
    report = compare(
        lambda p: torch_optim.AdamW(p, 0.001, weight_decay=0.01),
        lambda p: paddle_optim.AdamW(
            0.001, parameters=p, weight_decay=0.01, apply_decay_param_fun=lambda name: "b_0" not in name
        ),
        models=perceptron(norm=True),
        data=batches(6, size=4096),
    )
    assert [each.phase for each in report.divergences] == ["optimizer"]
    message = report.first.cause.message
    assert message == "the weight decay of 0.bias and 2 more is 0.01 in the reference and 0 in the port"


# which parameters are not decayed in the reference, and how the fix picks them
LEFT_OUT: dict[str, tuple[Callable[[str, Any], bool], str]] = {
    "those of one dimension": (
        lambda name, value: value.ndim <= 1,
        "[p for p in port.parameters() if p.ndim <= 1]",
    ),
    "biases": (
        lambda name, value: name.endswith("bias"),
        '[p for n, p in port.named_parameters() if n.endswith("bias")]',
    ),
    "one": (
        lambda name, value: name == "1.weight",
        '[p for n, p in port.named_parameters() if n in {"1.weight"}]',
    ),
}


@pytest.mark.parametrize("which", LEFT_OUT)
def test_the_fix_for_some_parameters_is_a_group_that_works(which: str) -> None:
    """The code that picks them is run as it is printed, and the pair is the same then."""
    left_out, code = LEFT_OUT[which]

    def grouped(model: Any) -> Any:
        named = dict(model.named_parameters())
        few = [value for name, value in named.items() if left_out(name, value)]
        others = [value for name, value in named.items() if not left_out(name, value)]
        return torch_optim.AdamW([{"params": others}, {"params": few, "weight_decay": 0.0}], 0.001)

    def plain(port: Any) -> Any:
        return paddle_optim.AdamW(0.001, parameters=port.parameters(), weight_decay=0.01)

    def mended(port: Any) -> Any:
        few = eval(code, {"port": port})
        names = {each.name for each in few}
        others = [each for each in port.parameters() if each.name not in names]
        groups = [{"params": others}, {"params": few, "weight_decay": 0.0}]
        return paddle_optim.AdamW(0.001, parameters=groups, weight_decay=0.01)

    def report(port: Any) -> Any:
        reference, ours = perceptron(norm=True)
        data = batches(6, size=4096)
        return pf.compare_training(reference, ours, data, loss=LOSSES, optimizers=(grouped, port))

    wrong = report(plain)
    assert wrong.first.cause.code == "optim.weight_decay"
    assert wrong.first.cause.fix == (
        f"give {code} a group of its own, set as paddle.optimizer.AdamW(..., weight_decay=0.0)"
    )
    assert report(mended).ok


def test_large_batches_leave_only_a_note_of_running_variances() -> None:
    report = compare(*momentum(), models=perceptron(norm=True), data=batches(6, size=4096))
    assert report.ok, report
    assert [each.code for each in report.findings if each.code.startswith("buffer")] == [
        "buffer.running_variance"
    ]


def _loss(report: Any) -> tuple[Any, Any]:
    curve = next(each for each in report.curves if each.name == "loss")
    return curve.reference, curve.port


def test_the_report_tells_the_chaos_horizon() -> None:
    report = compare(sgd(), paddle_sgd())
    assert any("does not part" in each.message for each in report.findings)
    # saturated: the gradient is little more than rounding
    wild = compare(sgd(1.0), paddle_sgd(1.0), steps=40, loss=lambda o, y: ((o.tanh() * 3).sin() ** 2).sum())
    assert wild.ok, wild
    assert [each.code for each in wild.findings] == ["training.horizon"]
    assert [each.name for each in wild.curves][-1] == "loss, each side by itself"
    assert len(wild.curves[-1].port) == 5


def test_the_horizon_is_seen_or_follows_from_growth() -> None:
    flat = [1.0] * 20
    assert horizon_of(flat, flat) == (None, False)
    assert horizon_of(flat, [1.0] * 7 + [1.1] * 13) == (7, True)
    growing = [1.0 + 1e-9 * 2.0**n for n in range(12)]  # 1e-3 is reached after 20 doublings
    step, seen = horizon_of(flat, growing)
    assert not seen
    assert step in range(18, 27)


def test_both_models_are_trained() -> None:
    reference, port = perceptron()
    before = reference[0].weight.detach().numpy().copy()
    compare(sgd(), paddle_sgd(), models=(reference, port))
    after = reference[0].weight.detach().numpy()
    assert np.abs(after - before).max() > 1e-3
    assert np.array_equal(after.T, port[0].weight.numpy())


def test_align_with_optimizers_looks_into_the_calls_too() -> None:
    x, label = batches(1)[0]
    loss = (
        lambda output: LOSSES[0](output, torch.tensor(label)),
        lambda output: LOSSES[1](output, paddle.to_tensor(label)),
    )
    optimizers = (
        lambda model: torch_optim.SGD(model.parameters(), 0.1),
        lambda model: paddle_optim.SGD(0.1, parameters=model.parameters()),
    )
    reference, port = perceptron()
    report = pf.align(reference, port, x, loss=loss, optimizers=optimizers, steps=3, mode="train")
    assert report.ok, report
    assert len(report.pairs) == 4
    assert report.coverage.count("steps") == 3
    with pytest.raises(InputError, match="need optimizers"):
        pf.align(reference, port, x, loss=loss, steps=3)
    with pytest.raises(InputError, match="gradients of a loss"):
        pf.align(reference, port, x, optimizers=optimizers)


def _iterator(count: int) -> Iterator[Any]:
    yield from batches(count)


WRONG_CALLS: dict[str, tuple[dict[str, Any], type[Exception], str]] = {
    "ends too early": ({"data": _iterator(3)}, InputError, "ended after 3 of the 6 batches"),
    "no batches": ({"data": types.SimpleNamespace(__iter__=None)}, InputError, "not an iterable"),
    "no label": ({"data": [(np.ones((2, 8), "f4"),)] * 6}, InputError, "no label beside the input"),
    "unequal": (
        {"data": [pf.sides(batches(1, 5)[0], batches(1, 6)[0])] * 6},
        InputError,
        "5 samples for the reference and 6 for the port",
    ),
    "amp": ({"amp": "float16"}, UnsupportedError, "loss scaled"),
    "steps": ({"steps": 0}, InputError, "not a number of updates"),
    "tolerance": ({"tolerance": 1e-3}, InputError, "not a pf.Tolerance"),
    "a loss of many numbers": (
        {"loss": (lambda o, y: o, lambda o, y: o)},
        InputError,
        "the loss of the reference gives a tensor",
    ),
    "accumulate": ({"accumulate": 0}, InputError, "accumulate=0"),
}


@pytest.mark.parametrize("name", WRONG_CALLS)
def test_bad_input_is_one_clear_error(name: str) -> None:
    options, error, words = WRONG_CALLS[name]
    with pytest.raises(error, match=words):
        compare(sgd(), paddle_sgd(), **options)


def test_an_empty_iterator_compares_nothing() -> None:
    reference, port = perceptron()
    with pytest.raises(EmptyComparisonError, match="no batch"):
        pf.compare_training(reference, port, iter([]), loss=LOSSES, optimizers=(sgd(), paddle_sgd()))


def test_optimizers_and_schedulers_of_others_are_refused() -> None:
    other = torch.nn.Linear(2, 2)
    with pytest.raises(InputError, match="is a parameter of this"):
        compare(lambda p: torch_optim.SGD(other.parameters(), 0.1), paddle_sgd())
    with pytest.raises(InputError, match="are not parameters of"):
        compare(lambda p: torch_optim.SGD([*p, *other.parameters()], 0.1), paddle_sgd())
    foreign = torch_lr.StepLR(torch_optim.SGD(other.parameters(), 0.1), 2)
    with pytest.raises(InputError, match="belongs to another optimizer"):
        compare(sgd(), paddle_sgd(), schedulers=(foreign, None))
    with pytest.raises(InputError, match="reads its rate from another scheduler"):
        compare(
            sgd(),
            paddle_sgd(paddle_lr.StepDecay(0.1, 2)),
            schedulers=(decayed, paddle_lr.StepDecay(0.1, 2)),
        )


def _poisoned(at: int) -> list[tuple[Any, Any]]:
    found = batches(6)
    found[at][0][0, 0] = math.nan
    return found


def test_a_loss_that_is_not_a_number_is_named_with_its_step() -> None:
    with pytest.raises(InputError, match="at step 2; the first that is not finite is input 0"):
        compare(sgd(), paddle_sgd(), data=_poisoned(2))
    port = paddle.nn.Sequential(paddle.nn.Linear(8, 16), paddle.nn.ReLU(), paddle.nn.Linear(16, 4))
    loss = LOSSES[0], lambda output, label: LOSSES[1](output, label) / (output.sum() * 0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        report = compare(sgd(), paddle_sgd(), models=(perceptron()[0], port), loss=loss)
    first = report.first
    assert (first.phase, first.step) == ("loss", 0)
    assert "not finite is the loss of the port itself" in first.message


class _Masked(torch.nn.Module):
    """Hides scores by minus infinity, which is no mistake, and then takes a logarithm that may be one."""

    def __init__(self, wrong: bool) -> None:
        super().__init__()
        self.scores, self.last, self.wrong = torch.nn.Linear(8, 4), torch.nn.Linear(4, 4), wrong

    def forward(self, x: Any) -> Any:
        hidden = torch.zeros(4).masked_fill(torch.arange(4) == 3, -math.inf)
        shares = torch.softmax(self.scores(x) + hidden, -1)
        return self.last(torch.log(shares - 0.5) if self.wrong else shares)


class _MaskedPort(paddle.nn.Layer):
    def __init__(self, wrong: bool) -> None:
        super().__init__()
        self.scores, self.last, self.wrong = paddle.nn.Linear(8, 4), paddle.nn.Linear(4, 4), wrong

    def forward(self, x: Any) -> Any:
        hidden = paddle.to_tensor([0.0, 0.0, 0.0, -math.inf])
        shares = paddle.nn.functional.softmax(self.scores(x) + hidden, -1)
        return self.last(paddle.log(shares - 0.5) if self.wrong else shares)


def test_the_op_that_gives_the_first_nan_is_named() -> None:
    assert compare(sgd(), paddle_sgd(), models=(_Masked(False), _MaskedPort(False))).ok
    with pytest.raises(
        InputError, match="at step 0; the first that is not finite is the result of log in the"
    ):
        compare(sgd(), paddle_sgd(), models=(_Masked(True), _MaskedPort(True)))


def _attributed(**attributes: Any) -> tuple[Any, Any]:
    """The port's last weight has attributes of its own."""
    reference, _ = perceptron()
    nn = paddle.nn
    last = nn.Linear(16, 4, weight_attr=paddle.ParamAttr(**attributes))
    return reference, nn.Sequential(nn.Linear(8, 16), nn.ReLU(), last)


def test_attributes_of_a_parameter_count() -> None:
    report = compare(sgd(), paddle_sgd(), models=_attributed(learning_rate=0.5))
    check(report, "optim.lr_group", "lr", 0)
    assert report.first.port.path == "2.weight"
    regularizer = paddle.regularizer.L2Decay(0.1)
    report = compare(
        sgd(weight_decay=0.01), paddle_sgd(weight_decay=0.01), models=_attributed(regularizer=regularizer)
    )
    check(report, "optim.weight_decay", "optimizer", 0)
    assert "2.weight" in report.first.cause.message


def test_a_regularizer_of_a_parameter_comes_on_top_of_decoupled_decay() -> None:
    report = compare(
        lambda p: torch_optim.AdamW(p, 0.01, weight_decay=0.01),
        lambda p: paddle_optim.AdamW(0.01, parameters=p, weight_decay=0.01),
        models=_attributed(regularizer=paddle.regularizer.L2Decay(0.1)),
    )
    check(report, "optim.weight_decay", "optimizer", 0)
    assert "show 0.1" in report.first.cause.message
    assert "2.weight" in report.first.cause.message


def test_averaged_descent_is_another_rule_in_every_framework() -> None:
    report = compare(
        lambda p: torch_optim.ASGD(p, 0.1, lambd=0.1),
        lambda p: paddle_optim.ASGD(0.1, 1, parameters=p),
    )
    assert report.first.phase == "optimizer"
    assert report.first.step == 0


def test_a_schedule_that_starts_at_zero() -> None:
    scheduler = paddle_lr.NoamDecay(16, 4, learning_rate=1.0)

    def noam(step: int) -> float:
        return 16**-0.5 * min((step + 1) ** -0.5, (step + 1) * 4**-1.5)

    report = compare(
        sgd(1.0),
        paddle_sgd(scheduler),
        steps=8,
        schedulers=(lambda o: torch_lr.LambdaLR(o, noam), scheduler),
    )
    check(report, "lr.offset", "lr", 0)
