"""More verified rows, those of training and of fixes: both frameworks run, and the fix does what it says."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable

import numpy as np
import paddle
import paddle.nn.functional as P
import pytest
import torch
import torch.nn.functional as T

from parfocal.backends.gaps import Status, gaps
from tests.pairs.gaps.test_differences import CHECKS as OTHERS
from tests.pairs.gaps.test_differences import apart, both, random

CHECKS: dict[str, Callable[[], None]] = {}


def check(function: Callable[[], None]) -> Callable[[], None]:
    CHECKS[function.__name__.replace("_", "-")] = function
    return function


def updated(ours: Callable, theirs: Callable, steps: int = 3, gradient: float = 0.5) -> tuple[float, float]:
    """One parameter of 1.0 after a few steps with a constant gradient, on both sides."""
    mine = torch.nn.Parameter(torch.ones(1))
    yours = paddle.create_parameter([1], "float32", default_initializer=paddle.nn.initializer.Constant(1.0))
    first, second = ours([mine]), theirs([yours])
    for _ in range(steps):
        mine.grad = torch.full((1,), gradient)
        (yours * gradient).sum().backward()
        first.step(), second.step(), second.clear_grad()
    return mine.item(), yours.item()


@check
def sgd_momentum() -> None:
    parameters = inspect.signature(paddle.optimizer.SGD.__init__).parameters
    assert "momentum" not in parameters
    mine, yours = updated(
        lambda p: torch.optim.SGD(p, 0.1, momentum=0.9),
        lambda p: paddle.optimizer.Momentum(0.1, 0.9, parameters=p),
    )
    assert mine == pytest.approx(yours, abs=1e-5)


@check
def adam_decay() -> None:
    mine, yours = updated(
        lambda p: torch.optim.Adam(p, 0.1, weight_decay=0.5),
        lambda p: paddle.optimizer.AdamW(0.1, parameters=p, weight_decay=0.5),
        steps=1,
    )
    assert abs(mine - yours) > 0.01
    mine, yours = updated(
        lambda p: torch.optim.AdamW(p, 0.1, weight_decay=0.5),
        lambda p: paddle.optimizer.AdamW(0.1, parameters=p, weight_decay=0.5),
    )
    assert mine == pytest.approx(yours, abs=1e-5)


@check
def rmsprop_formula() -> None:
    ours = lambda p: torch.optim.RMSprop(p, 0.01)  # noqa: E731
    mine, yours = updated(ours, lambda p: paddle.optimizer.RMSProp(0.01, parameters=p), steps=1)
    assert abs(mine - yours) > 0.01
    fixed = lambda p: paddle.optimizer.RMSProp(0.01, rho=0.99, epsilon=1e-16, parameters=p)  # noqa: E731
    mine, yours = updated(ours, fixed)
    assert mine == pytest.approx(yours, abs=1e-5)


@check
def adagrad_epsilon() -> None:
    defaults = [
        inspect.signature(each.__init__).parameters
        for each in (torch.optim.Adagrad, paddle.optimizer.Adagrad)
    ]
    assert (defaults[0]["eps"].default, defaults[1]["epsilon"].default) == (1e-10, 1e-6)


@check
def adadelta_defaults() -> None:
    mine, yours = updated(
        lambda p: torch.optim.Adadelta(p), lambda p: paddle.optimizer.Adadelta(1.0, 1e-6, 0.9, parameters=p)
    )
    assert mine == pytest.approx(yours, abs=1e-6)
    parameters = inspect.signature(paddle.optimizer.Adadelta.__init__).parameters
    assert (parameters["learning_rate"].default, parameters["rho"].default) == (0.001, 0.95)


@check
def adamax_learning_rate() -> None:
    defaults = [
        inspect.signature(each.__init__).parameters for each in (torch.optim.Adamax, paddle.optimizer.Adamax)
    ]
    assert (defaults[0]["lr"].default, defaults[1]["learning_rate"].default) == (0.002, 0.001)


@check
def group_learning_rate() -> None:
    mine, yours = updated(
        lambda p: torch.optim.SGD([{"params": p, "lr": 0.01}], 0.1),
        lambda p: paddle.optimizer.SGD(0.1, [{"params": p, "learning_rate": 0.01}]),
        steps=1,
    )
    assert mine == pytest.approx(1 - 0.01 * 0.5)
    assert yours == pytest.approx(1 - 0.1 * 0.01 * 0.5, abs=1e-6)


@check
def decay_filter_names() -> None:
    seen: list[str] = []
    layer = paddle.nn.Linear(1, 1)
    optimizer = paddle.optimizer.AdamW(
        0.1, parameters=layer.parameters(), apply_decay_param_fun=lambda name: bool(seen.append(name))
    )
    layer(paddle.ones([1, 1])).sum().backward()
    optimizer.step()
    assert {layer.weight.name, layer.bias.name} <= set(seen)
    assert "weight" not in seen


@check
def optimizer_state_keys() -> None:
    layer = paddle.nn.Linear(1, 1)
    optimizer = paddle.optimizer.Adam(parameters=layer.parameters())
    layer(paddle.ones([1, 1])).sum().backward()
    optimizer.step()
    assert f"{layer.weight.name}_moment1_0" in optimizer.state_dict()


@check
def natural_exponential_and_noam() -> None:
    natural = paddle.optimizer.lr.NaturalExpDecay(0.1, 0.5)
    plain = paddle.optimizer.lr.ExponentialDecay(0.1, 0.5)
    natural.step(), plain.step()
    assert natural() == pytest.approx(0.1 * np.exp(-0.5))
    assert plain() == pytest.approx(0.05)
    assert paddle.optimizer.lr.NoamDecay(64, 10)() == 0.0


@check
def one_cycle_end() -> None:
    theirs = paddle.optimizer.lr.OneCycleLR(0.1, 10)
    for _ in range(9):
        theirs.step()
    assert theirs() == pytest.approx(1e-4)
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], 0.1, momentum=0.9)
    ours = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.1, total_steps=10)
    for _ in range(9):
        optimizer.step(), ours.step()
    assert ours.get_last_lr()[0] == pytest.approx(0.1 / 25 / 1e4)


@check
def gradient_clipping() -> None:
    gradients = [3.0, 0.0], [0.0, 4.0]
    ours = [torch.zeros(2, requires_grad=True) for _ in gradients]
    for parameter, gradient in zip(ours, gradients, strict=True):
        parameter.grad = torch.tensor(gradient)
    torch.nn.utils.clip_grad_norm_(ours, 1.0)

    def clipped(clip: Callable) -> list:  # it may write to what it is given
        return clip([(paddle.create_parameter([2], "float32"), paddle.to_tensor(each)) for each in gradients])

    together, alone = clipped(paddle.nn.ClipGradByGlobalNorm(1.0)), clipped(paddle.nn.ClipGradByNorm(1.0))
    assert apart(ours[0].grad, together[0][1]) < 1e-5
    assert apart(ours[0].grad, alone[0][1]) > 0.1


@check
def cleared_gradients() -> None:
    layer = paddle.nn.Linear(1, 1)
    optimizer = paddle.optimizer.SGD(parameters=layer.parameters())
    layer(paddle.ones([1, 1])).sum().backward()
    optimizer.clear_grad(set_to_zero=False)
    assert layer.weight.grad is None


@check
def batch_norm_statistics_options() -> None:
    x = both(random(8, 2) + 3)
    theirs = paddle.nn.BatchNorm1D(2, use_global_stats=False)
    theirs.eval()
    assert apart(torch.nn.BatchNorm1d(2, track_running_stats=False).eval()(x[0]), theirs(x[1])) < 1e-5
    with pytest.raises(TypeError):
        paddle.nn.BatchNorm1D(2, momentum=None)(x[1])


@check
def transposed_convolution_positions() -> None:
    assert list(inspect.signature(torch.nn.ConvTranspose2d).parameters)[6] == "groups"
    for kind in (paddle.nn.Conv2DTranspose, paddle.nn.Conv3DTranspose):
        assert list(inspect.signature(kind.__init__).parameters)[7] == "dilation"  # self comes first


@check
def interpolate_arguments() -> None:
    x = both(random(1, 1, 4, 4))
    assert T.interpolate(x[0], size=8).shape[-1] == 8
    for wrong in ({"size": 8}, {"scale_factor": 2, "mode": "area"}):
        with pytest.raises(Exception, match=r"."):
            P.interpolate(x[1], **wrong)
    with pytest.raises(Exception, match=r"."):
        P.interpolate(paddle.ones([1, 1, 4]), size=[8], mode="nearest")


@check
def attention_boolean_mask() -> None:
    ours, theirs = torch.nn.MultiheadAttention(4, 1, batch_first=True), paddle.nn.MultiHeadAttention(4, 1)
    for number, layer in enumerate((theirs.q_proj, theirs.k_proj, theirs.v_proj)):
        rows = slice(4 * number, 4 * number + 4)
        layer.weight.set_value(ours.in_proj_weight.detach()[rows].numpy().T.copy())
        layer.bias.set_value(ours.in_proj_bias.detach()[rows].numpy())
    theirs.out_proj.weight.set_value(ours.out_proj.weight.detach().numpy().T.copy())
    theirs.out_proj.bias.set_value(ours.out_proj.bias.detach().numpy())
    x, mask = both(random(1, 3, 4)), both(np.triu(np.ones((3, 3), bool), 1))
    expected = ours(x[0], x[0], x[0], attn_mask=mask[0])[0]
    assert apart(expected, theirs(x[1], x[1], x[1], attn_mask=~mask[1])) < 1e-5
    assert apart(expected, theirs(x[1], x[1], x[1], attn_mask=mask[1])) > 1e-3


@check
def median_of_even_number() -> None:
    assert paddle.median(paddle.to_tensor([1.0, 2.0, 3.0, 4.0]), mode="min").item() == 2.0


@check
def type_promotion() -> None:
    assert (torch.ones(1) + torch.ones(1, dtype=torch.int64)).dtype == torch.float32
    with pytest.raises(TypeError):
        paddle.to_tensor([1.0]) + paddle.to_tensor([1])


@check
def split_and_chunk() -> None:
    assert [len(part) for part in torch.chunk(torch.ones(7), 3)] == [3, 3, 1]
    with pytest.raises(ValueError):
        paddle.chunk(paddle.ones([7]), 3)


@check
def embedding_initialiser() -> None:
    layer = paddle.nn.Embedding(500, 500, weight_attr=paddle.nn.initializer.Normal(0.0, 1.0))
    assert layer.weight.std().item() == pytest.approx(1, rel=0.05)


@check
def convolution_initialiser() -> None:
    ours, theirs = torch.nn.Conv2d(64, 256, 3), paddle.nn.Conv2D(64, 256, 3)
    assert ours.weight.std().item() == pytest.approx((1 / (3 * 576)) ** 0.5, rel=0.05)
    assert theirs.weight.std().item() == pytest.approx((2 / 576) ** 0.5, rel=0.05)


@check
def cross_entropy_smoothing_ignored() -> None:
    x, y = both(random(3, 4)), both(np.array([0, -100, 2]))
    assert torch.isfinite(T.cross_entropy(x[0], y[0], label_smoothing=0.1))
    with pytest.raises(Exception, match=r"."):
        P.cross_entropy(x[1], y[1], label_smoothing=0.1)


@check
def max_pool_dilation() -> None:
    x = both(random(1, 1, 6, 6))
    windows = P.unfold(x[1], 2, dilations=2).reshape([1, 1, 4, 4, 4])
    assert apart(T.max_pool2d(x[0], 2, 1, dilation=2), windows.max(2)) == 0


@check
def weight_tying() -> None:
    assert torch.nn.Embedding(7, 3).weight.shape == torch.nn.Linear(3, 7).weight.shape
    assert paddle.nn.Embedding(7, 3).weight.shape == paddle.nn.Linear(3, 7).weight.shape[::-1]


@pytest.mark.parametrize("name", list(CHECKS))
def test_the_stated_difference_is_there(name: str) -> None:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="When training, we now always track global mean")
        CHECKS[name]()


def test_most_verified_rows_are_checked() -> None:
    verified = {gap.id for gap in gaps() if gap.status is Status.VERIFIED}
    assert set(CHECKS) <= verified
    assert len(verified & {*CHECKS, *OTHERS}) >= 80
