"""Rows of the table that were verified: both frameworks run, and the stated difference is there.

``CHECKS`` has one small function for each id; its name is the id with underscores.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np
import paddle
import paddle.nn.functional as P
import pytest
import torch
import torch.nn.functional as T

from parfocal.backends.gaps import Status, gaps

CHECKS: dict[str, Callable[[], None]] = {}


def check(function: Callable[[], None]) -> Callable[[], None]:
    CHECKS[function.__name__.replace("_", "-")] = function
    return function


def random(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape).astype("float32")


def both(array: object) -> tuple[torch.Tensor, paddle.Tensor]:
    return torch.tensor(array), paddle.to_tensor(array)


def apart(ours: torch.Tensor, theirs: paddle.Tensor) -> float:
    return float(np.abs(ours.detach().numpy() - theirs.numpy()).max())


@check
def linear_weight_layout() -> None:
    assert list(torch.nn.Linear(3, 5).weight.shape) == [5, 3]
    assert paddle.nn.Linear(3, 5).weight.shape == [3, 5]


@check
def linear_square_weight() -> None:
    ours, theirs = torch.nn.Linear(4, 4), paddle.nn.Linear(4, 4)
    assert theirs.set_state_dict({k: v.detach().numpy() for k, v in ours.state_dict().items()}) == ([], [])
    x = both(random(2, 4))
    assert apart(ours(x[0]), theirs(x[1])) > 0.01
    theirs.weight.set_value(ours.weight.detach().numpy().T.copy())
    assert apart(ours(x[0]), theirs(x[1])) < 1e-5


@check
def state_dict_strictness() -> None:
    with pytest.raises(RuntimeError):
        torch.nn.Linear(2, 2).load_state_dict({})
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        missing, _ = paddle.nn.Linear(2, 2).set_state_dict({})
    assert missing == ["weight", "bias"]
    assert any("Skip loading" in str(each.message) for each in told)


@check
def batch_norm_buffer_names() -> None:
    assert {"running_mean", "running_var", "num_batches_tracked"} <= set(torch.nn.BatchNorm2d(2).state_dict())
    assert set(paddle.nn.BatchNorm2D(2).state_dict()) == {"weight", "bias", "_mean", "_variance"}


@check
def batch_norm_buffers_as_parameters() -> None:
    assert len(list(torch.nn.BatchNorm2d(8).parameters())) == 2
    assert [p.trainable for p in paddle.nn.BatchNorm2D(8).parameters()] == [True, True, False, False]


@check
def prelu_weight_name() -> None:
    assert list(torch.nn.PReLU().state_dict()) == ["weight"]
    assert list(paddle.nn.PReLU().state_dict()) == ["_weight"]


@check
def instance_norm_affine() -> None:
    assert list(torch.nn.InstanceNorm2d(3).parameters()) == []
    assert sorted(paddle.nn.InstanceNorm2D(3).state_dict()) == ["bias", "scale"]


@check
def layer_norm_weight_shape() -> None:
    assert list(torch.nn.LayerNorm([3, 4]).weight.shape) == [3, 4]
    assert paddle.nn.LayerNorm([3, 4]).weight.shape == [12]


@check
def bilinear_bias_shape() -> None:
    assert list(torch.nn.Bilinear(2, 3, 4).bias.shape) == [4]
    assert paddle.nn.Bilinear(2, 3, 4).bias.shape == [1, 4]


@check
def weight_norm_shape() -> None:
    ours = torch.nn.utils.parametrizations.weight_norm(torch.nn.Linear(2, 3))
    assert list(ours.parametrizations.weight.original0.shape) == [3, 1]
    assert paddle.nn.utils.weight_norm(paddle.nn.Linear(2, 3)).weight_g.shape == [2]


@check
def recurrent_duplicate_keys() -> None:
    assert len(torch.nn.LSTM(2, 3).state_dict()) == 4
    keys = paddle.nn.LSTM(2, 3).state_dict()
    assert len(keys) == 8
    assert "0.cell.weight_ih" in keys


@check
def attention_packed_projections() -> None:
    assert list(torch.nn.MultiheadAttention(4, 2).in_proj_weight.shape) == [12, 4]
    assert paddle.nn.MultiHeadAttention(4, 2).q_proj.weight.shape == [4, 4]


@check
def batch_norm_momentum() -> None:
    ours, theirs = torch.nn.BatchNorm1d(2, momentum=0.3), paddle.nn.BatchNorm1D(2, momentum=0.7)
    same_number = paddle.nn.BatchNorm1D(2, momentum=0.3)
    x = both(random(8, 2) + 3)
    ours(x[0]), theirs(x[1]), same_number(x[1])
    assert apart(ours.running_mean, theirs._mean) < 1e-5
    assert apart(ours.running_mean, same_number._mean) > 0.5


@check
def batch_norm_running_variance() -> None:
    ours, theirs = torch.nn.BatchNorm1d(1), paddle.nn.BatchNorm1D(1)
    x = both(np.array([[0.0], [2.0]], "float32"))
    ours(x[0]), theirs(x[1])
    assert ours.running_var.item() == pytest.approx(1.1, abs=1e-5)
    assert theirs._variance.item() == pytest.approx(1.0, abs=1e-5)


@check
def batch_norm_positions() -> None:
    assert torch.nn.BatchNorm2d(2, 0.25).eps == 0.25
    assert paddle.nn.BatchNorm2D(2, 0.25)._momentum == 0.25


@check
def batch_norm_epsilon_keyword() -> None:
    assert torch.nn.BatchNorm2d(2, eps=0.1).eps == 0.1
    with pytest.raises(TypeError):
        paddle.nn.BatchNorm2D(2, eps=0.1)


@check
def batch_norm_single_value() -> None:
    x = both(random(1, 3))
    with pytest.raises(ValueError, match="more than 1 value"):
        torch.nn.BatchNorm1d(3)(x[0])
    assert paddle.nn.BatchNorm1D(3)(x[1]).shape == [1, 3]


@check
def batch_norm_frozen() -> None:
    theirs = paddle.nn.BatchNorm1D(3, use_global_stats=True)
    theirs.train()
    x = both(random(8, 3) + 5)
    assert apart(torch.nn.BatchNorm1d(3).eval()(x[0]), theirs(x[1])) < 1e-5


@check
def rms_norm() -> None:
    assert torch.nn.RMSNorm(4).eps is None
    assert not hasattr(paddle.nn, "RMSNorm")
    x = both(random(3, 4))
    scale = paddle.rsqrt(x[1].square().mean(-1, keepdim=True) + float(np.finfo("float32").eps))
    assert apart(torch.nn.RMSNorm(4)(x[0]), x[1] * scale) < 1e-5


@check
def average_pool_padding() -> None:
    x = both(np.ones((1, 1, 4, 4), "float32"))
    ours = T.avg_pool2d(x[0], 3, 1, 1)
    assert apart(ours, P.avg_pool2d(x[1], 3, 1, 1)) == pytest.approx(1 - 4 / 9, abs=1e-5)
    assert apart(ours, P.avg_pool2d(x[1], 3, 1, 1, exclusive=False)) < 1e-6


@check
def max_pool_ceil_mode() -> None:
    x = both(random(1, 1, 5, 5))
    assert T.max_pool2d(x[0], 2, 2, 1, ceil_mode=True).shape[-1] == 3
    assert P.max_pool2d(x[1], 2, 2, 1, ceil_mode=True).shape[-1] == 4


@check
def max_pool_dilation() -> None:
    assert torch.nn.MaxPool2d(2, dilation=2).dilation == 2
    with pytest.raises(TypeError):
        paddle.nn.MaxPool2D(2, dilation=2)


@check
def max_pool_positions() -> None:
    assert torch.nn.MaxPool2d(2, 2, 0, 1).dilation == 1
    assert paddle.nn.MaxPool2D(2, 2, 0, True).return_mask is True


@check
def pool_index_dtype() -> None:
    x = both(random(1, 1, 4, 4))
    assert T.max_pool2d(x[0], 2, return_indices=True)[1].dtype == torch.int64
    assert P.max_pool2d(x[1], 2, return_mask=True)[1].dtype == paddle.int32


@check
def same_padding_with_stride() -> None:
    with pytest.raises(ValueError, match="strided"):
        torch.nn.Conv2d(1, 1, 3, stride=2, padding="same")
    assert paddle.nn.Conv2D(1, 1, 3, stride=2, padding="same")(paddle.ones([1, 1, 6, 6])).shape[-1] == 3


@check
def interpolate_align_mode() -> None:
    x = both(random(1, 1, 4, 4))
    ours = T.interpolate(x[0], size=(8, 8), mode="bilinear")
    assert apart(ours, P.interpolate(x[1], size=[8, 8], mode="bilinear")) < 1e-5
    assert apart(ours, P.interpolate(x[1], size=[8, 8], mode="bilinear", align_mode=1)) > 0.05


@check
def grid_sample_align_corners() -> None:
    x, grid = both(random(1, 1, 4, 4)), both(random(1, 3, 3, 2, seed=1).clip(-0.9, 0.9))
    ours = T.grid_sample(x[0], grid[0], align_corners=False)
    assert apart(ours, P.grid_sample(x[1], grid[1])) > 0.01
    assert apart(ours, P.grid_sample(x[1], grid[1], align_corners=False)) < 1e-5


@check
def grid_sample_bicubic() -> None:
    x, grid = both(random(1, 1, 4, 4)), both(np.zeros((1, 2, 2, 2), "float32"))
    assert T.grid_sample(x[0], grid[0], mode="bicubic", align_corners=False).shape[-1] == 2
    with pytest.raises(ValueError):
        P.grid_sample(x[1], grid[1], mode="bicubic")


@check
def affine_grid_align_corners() -> None:
    theta = both(np.array([[[1.0, 0, 0], [0, 1, 0]]], "float32"))
    ours = T.affine_grid(theta[0], [1, 1, 4, 4], align_corners=False)
    assert apart(ours, P.affine_grid(theta[1], [1, 1, 4, 4])) > 0.1
    assert apart(ours, P.affine_grid(theta[1], [1, 1, 4, 4], align_corners=False)) < 1e-6


@check
def pad_order() -> None:
    x = both(random(2, 3))
    assert list(T.pad(x[0], (1, 0, 0, 0)).shape) == [2, 4]
    assert P.pad(x[1], [1, 0, 0, 0]).shape == [3, 3]
    assert P.pad(x[1], [1, 0, 0, 0], pad_from_left_axis=False).shape == [2, 4]


@check
def gelu_approximation() -> None:
    x = both(random(100))
    assert apart(T.gelu(x[0]), P.gelu(x[1])) < 1e-5
    assert apart(T.gelu(x[0], approximate="tanh"), P.gelu(x[1], approximate=True)) < 1e-5
    assert apart(T.gelu(x[0]), P.gelu(x[1], approximate=True)) > 1e-4


@check
def hardsigmoid_slope() -> None:
    x = both(np.linspace(-4, 4, 50, dtype="float32"))
    assert apart(T.hardsigmoid(x[0]), P.hardsigmoid(x[1])) < 1e-5
    assert 0.05 < apart(T.hardsigmoid(x[0]), P.hardsigmoid(x[1], slope=0.2)) < 0.101


@check
def softmax_default_axis() -> None:
    x = both(random(2, 3, 4))
    with pytest.warns(UserWarning, match="Implicit dimension"):
        ours = torch.nn.Softmax()(x[0])
    assert apart(ours.sum(0), paddle.ones([3, 4])) < 1e-5
    assert apart(torch.ones(2, 3), paddle.nn.Softmax()(x[1]).sum(-1)) < 1e-5


@check
def leaky_relu_gradient_at_zero() -> None:
    x = both(np.zeros(1, "float32"))
    x[0].requires_grad_()
    x[1].stop_gradient = False
    T.leaky_relu(x[0]).sum().backward()
    P.leaky_relu(x[1]).sum().backward()
    assert x[0].grad.item() == pytest.approx(0.01)
    assert x[1].grad.item() == 1.0


@check
def maximum_gradient_of_ties() -> None:
    x = both(np.array([2.0, 2.0], "float32"))
    x[0].requires_grad_()
    x[1].stop_gradient = False
    torch.max(x[0], 0).values.backward()
    paddle.max(x[1], 0).backward()
    assert sorted(x[0].grad.tolist()) == [0.0, 1.0]
    assert x[1].grad.tolist() == [0.5, 0.5]


@check
def product_gradient_with_zero() -> None:
    x = both(np.array([0.0, 2.0, 3.0], "float32"))
    x[0].requires_grad_()
    x[1].stop_gradient = False
    x[0].prod().backward()
    x[1].prod().backward()
    assert x[0].grad.tolist() == [6.0, 0.0, 0.0]
    assert np.isnan(x[1].grad.numpy()[0])


@check
def dropout_mode() -> None:
    x = both(random(2, 5))
    halved = paddle.nn.Dropout(0.5, mode="downscale_in_infer")
    halved.eval()
    assert apart(T.dropout(x[0], 0.5, False), P.dropout(x[1], 0.5, training=False)) == 0
    assert apart(x[0] / 2, halved(x[1])) < 1e-6


@check
def dropout_positions() -> None:
    x = both(np.ones(1000, "float32"))
    assert apart(T.dropout(x[0], 0.5, False), x[1]) == 0
    assert 0.0 in P.dropout(x[1], 0.5, False).tolist()


@check
def random_streams() -> None:
    torch.manual_seed(0), paddle.seed(0)
    assert apart(torch.rand(10), paddle.rand([10])) > 0.01


@check
def cross_entropy_ignored_mean() -> None:
    x, y = both(random(6, 3)), both(np.array([0, -100, -100, 1, -100, 2]))
    ours, theirs = T.cross_entropy(x[0], y[0]), P.cross_entropy(x[1], y[1])
    assert theirs.item() == pytest.approx(ours.item() / 2, rel=1e-4)


@check
def cross_entropy_all_ignored() -> None:
    x, y = both(random(2, 3)), both(np.array([-100, -100]))
    assert torch.isnan(T.cross_entropy(x[0], y[0]))
    assert P.cross_entropy(x[1], y[1]).item() == 0.0


@check
def cross_entropy_class_axis() -> None:
    x, y = both(random(2, 3, 3)), both(np.array([[0, 1, 2], [2, 1, 1]]))
    ours = T.cross_entropy(x[0], y[0])
    assert abs(ours.item() - P.cross_entropy(x[1], y[1]).item()) > 1e-3
    assert ours.item() == pytest.approx(P.cross_entropy(x[1], y[1], axis=1).item(), rel=1e-4)


@check
def cross_entropy_soft_labels() -> None:
    x, y = both(random(4, 3)), both(np.full((4, 3), 1 / 3, "float32"))
    ours = T.cross_entropy(x[0], y[0])
    assert ours.item() == pytest.approx(P.cross_entropy(x[1], y[1], soft_label=True).item(), rel=1e-4)
    with pytest.raises(Exception, match=r"."):
        P.cross_entropy(x[1], y[1])


@check
def cross_entropy_soft_labels_weight() -> None:
    x, w = both(random(4, 3)), both(np.array([1.0, 2.0, 5.0], "float32"))
    soft = random(4, 3, seed=1)
    y = both(np.exp(soft) / np.exp(soft).sum(-1, keepdims=True))
    ours = T.cross_entropy(x[0], y[0], weight=w[0])
    theirs = P.cross_entropy(x[1], y[1], weight=w[1], soft_label=True)
    assert abs(ours.item() - theirs.item()) > 0.01
    fixed = -(y[1] * w[1] * P.log_softmax(x[1])).sum(-1).mean()
    assert ours.item() == pytest.approx(fixed.item(), rel=1e-4)


@check
def smooth_l1_huber() -> None:
    x, y = both(random(20)), both(random(20, seed=1))
    ours = T.smooth_l1_loss(x[0], y[0], beta=0.5).item()
    assert P.smooth_l1_loss(x[1], y[1], delta=0.5).item() == pytest.approx(0.5 * ours, rel=1e-4)
    assert P.smooth_l1_loss(x[1], y[1], delta=0.5, is_huber=False).item() == pytest.approx(ours, rel=1e-4)


@check
def recurrent_layout() -> None:
    x = both(random(5, 2, 3))
    assert list(torch.nn.GRU(3, 4)(x[0])[1].shape) == [1, 2, 4]
    assert paddle.nn.GRU(3, 4)(x[1])[1].shape == [1, 5, 4]


@check
def lstm_cell_return() -> None:
    x = both(random(2, 3))
    assert torch.nn.LSTMCell(3, 4)(x[0])[1].shape == (2, 4)
    assert len(paddle.nn.LSTMCell(3, 4)(x[1])[1]) == 2


@check
def attention_return() -> None:
    x = both(random(2, 3, 4))
    assert len(torch.nn.MultiheadAttention(4, 2)(x[0], x[0], x[0])) == 2
    assert paddle.nn.MultiHeadAttention(4, 2)(x[1], x[1], x[1]).shape == [2, 3, 4]


@check
def attention_function_layout() -> None:
    x = both(random(1, 2, 3, 4))
    ours = T.scaled_dot_product_attention(x[0], x[0], x[0])
    assert apart(ours, P.scaled_dot_product_attention(x[1], x[1], x[1])) > 0.01
    turned = x[1].transpose([0, 2, 1, 3])
    assert apart(ours, P.scaled_dot_product_attention(turned, turned, turned).transpose([0, 2, 1, 3])) < 1e-5


@check
def embedding_padding_row() -> None:
    x = both(np.array([1]))
    w = both(np.ones((3, 2), "float32"))
    assert T.embedding(x[0], w[0], padding_idx=1).tolist() == [[1.0, 1.0]]
    assert P.embedding(x[1], w[1], padding_idx=1).tolist() == [[0.0, 0.0]]


@check
def linear_initialiser() -> None:
    ours, theirs = torch.nn.Linear(512, 512), paddle.nn.Linear(512, 512)
    assert ours.weight.std().item() == pytest.approx((1 / (3 * 512)) ** 0.5, rel=0.05)
    assert theirs.weight.std().item() == pytest.approx((1 / 512) ** 0.5, rel=0.05)
    assert theirs.bias.abs().max().item() == 0 < ours.bias.abs().max().item()


@check
def embedding_initialiser() -> None:
    assert torch.nn.Embedding(500, 500).weight.std().item() == pytest.approx(1, rel=0.05)
    assert paddle.nn.Embedding(500, 500).weight.std().item() < 0.1


@check
def uniform_initialiser_range() -> None:
    tensor = paddle.zeros([1000])
    paddle.nn.initializer.Uniform()(tensor)
    assert tensor.min().item() < -0.5
    assert torch.nn.init.uniform_(torch.zeros(1000)).min().item() >= 0


@check
def cleared_gradients() -> None:
    ours, theirs = torch.nn.Linear(1, 1), paddle.nn.Linear(1, 1)
    ours(torch.ones(1, 1)).sum().backward()
    theirs(paddle.ones([1, 1])).sum().backward()
    torch.optim.SGD(ours.parameters(), 0.1).zero_grad()
    paddle.optimizer.SGD(parameters=theirs.parameters()).clear_grad()
    assert ours.weight.grad is None
    assert theirs.weight.grad.item() == 0.0


@check
def scheduler_wiring() -> None:
    schedule = paddle.optimizer.lr.StepDecay(0.1, 1)
    parameters = paddle.nn.Linear(1, 1).parameters()
    held = paddle.optimizer.SGD(schedule, parameters)
    number = paddle.optimizer.SGD(0.1, parameters)
    schedule.step()
    assert held.get_lr() == pytest.approx(0.01)
    assert number.get_lr() == pytest.approx(0.1)


@check
def polynomial_end() -> None:
    ours = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.1)
    schedule = torch.optim.lr_scheduler.PolynomialLR(ours, 2)
    theirs = paddle.optimizer.lr.PolynomialDecay(0.1, 2)
    for _ in range(2):
        ours.step(), schedule.step(), theirs.step()
    assert schedule.get_last_lr() == [0.0]
    assert theirs() == pytest.approx(1e-4)


@check
def gather_and_scatter() -> None:
    x, index = both(random(3, 2)), both(np.array([[0, 1], [1, 0], [1, 1]]))
    ours = torch.gather(x[0], 1, index[0])
    assert apart(ours, paddle.take_along_axis(x[1], index[1], 1)) == 0
    assert paddle.gather(x[1], paddle.to_tensor([0, 2])).shape == [2, 2]


@check
def maximum_and_sort_return() -> None:
    x = both(random(2, 3))
    assert len(torch.max(x[0], 1)) == len(torch.sort(x[0])) == 2
    assert paddle.max(x[1], 1).shape == [2]
    assert paddle.sort(x[1]).shape == [2, 3]


@check
def split_and_chunk() -> None:
    x = both(random(6))
    assert len(torch.split(x[0], 2)) == 3
    assert len(paddle.split(x[1], 2)) == 2


@check
def median_of_even_number() -> None:
    x = both(np.array([1.0, 2.0, 3.0, 4.0], "float32"))
    assert torch.median(x[0]).item() == 2.0
    assert paddle.median(x[1]).item() == 2.5


@check
def integer_results() -> None:
    x = both(np.array([1, 2]))
    with pytest.raises(RuntimeError):
        torch.mean(x[0])
    assert "int" in str(paddle.mean(x[1]).dtype)
    assert T.one_hot(x[0], 3).dtype == torch.int64
    assert P.one_hot(x[1], 3).dtype == paddle.float32


@check
def slice_in_place() -> None:
    x = both(np.zeros((2, 2), "float32"))
    ours, theirs = x[0][0], x[1][0]
    ours += 1
    theirs += 1
    assert x[0].sum().item() == 2.0
    assert x[1].sum().item() == 0.0


@check
def bfloat16_to_numpy() -> None:
    with pytest.raises(TypeError):
        torch.ones(1).bfloat16().numpy()
    assert paddle.ones([1]).astype("bfloat16").numpy().tolist() == [16256]


@pytest.mark.parametrize("name", list(CHECKS))
def test_the_stated_difference_is_there(name: str) -> None:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="When training, we now always track global mean")
        CHECKS[name]()


def test_checks_are_of_verified_rows_and_many() -> None:
    verified = {gap.id for gap in gaps() if gap.status is Status.VERIFIED}
    assert set(CHECKS) <= verified
    assert len(CHECKS) >= 30
