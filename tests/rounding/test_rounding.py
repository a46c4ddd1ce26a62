"""The extremes of rounding, at which all tests are run: what they do, and that they leave no trace."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import paddle
import pytest
import torch
from benchmarks.rounding import on_paddle, on_torch
from benchmarks.rounding.setting import Rounding, environment
from benchmarks.rounding.table import OPS

TF, PF = torch.nn.functional, paddle.nn.functional
EQUAL, NOISY = Rounding(None), Rounding(1)


def numbers(*shapes: tuple[int, ...]) -> list[np.ndarray]:
    generator = np.random.default_rng(5)
    return [generator.standard_normal(shape).astype("float32") for shape in shapes]


SAME = (
    "exp",
    "expm1",
    "sin",
    "cos",
    "tan",
    "atan",
    "sinh",
    "cosh",
    "tanh",
    "asinh",
    "erf",
    "sigmoid",
    "digamma",
)
FEATURES, WEIGHT, BIAS = (16, 64), (64, 48), (48,)
IMAGE, KERNEL, UP = (2, 4, 9, 9), (6, 4, 3, 3), (4, 6, 3, 3)
# What is computed, by torch and by paddle, and of which shapes.
CASES: dict[str, tuple[Callable[..., Any], Callable[..., Any], list[tuple[int, ...]]]] = {
    **{name: (getattr(torch, name), getattr(paddle, name), [FEATURES]) for name in SAME},
    "linear": (lambda x, w, b: TF.linear(x, w.T, b), PF.linear, [FEATURES, WEIGHT, BIAS]),
    "matmul": (torch.matmul, paddle.matmul, [(2, *FEATURES), WEIGHT]),
    "operator": (lambda x, w: x @ w, lambda x, w: x @ w, [FEATURES, WEIGHT]),
    "bmm": (torch.bmm, paddle.bmm, [(3, 5, 64), (3, 64, 7)]),
    "addmm": (torch.addmm, paddle.addmm, [(16, 48), FEATURES, WEIGHT]),
    "einsum": (
        lambda x, w: torch.einsum("ij,jk->ik", x, w),
        lambda x, w: paddle.einsum("ij,jk->ik", x, w),
        [FEATURES, WEIGHT],
    ),
    "conv2d": (TF.conv2d, PF.conv2d, [IMAGE, KERNEL, (6,)]),
    "conv2d_transpose": (TF.conv_transpose2d, PF.conv2d_transpose, [IMAGE, UP, (6,)]),
    "mean": (lambda x: x.mean(-1), lambda x: x.mean(-1), [FEATURES]),
    "sum": (lambda x: x.sum(0), lambda x: x.sum(0), [FEATURES]),
    "mean of all": (torch.mean, paddle.mean, [FEATURES]),
    "var": (lambda x: x.var(-1), lambda x: x.var(-1), [FEATURES]),
    "norm": (lambda x: x.norm(dim=-1), lambda x: x.norm(axis=-1), [FEATURES]),
    "logsumexp": (lambda x: x.logsumexp(-1), lambda x: x.logsumexp(-1), [FEATURES]),
    "softmax": (lambda x: x.softmax(-1), lambda x: PF.softmax(x, -1), [FEATURES]),
    "log_softmax": (lambda x: x.log_softmax(-1), lambda x: PF.log_softmax(x, -1), [FEATURES]),
    "layer_norm": (
        lambda x, w, b: TF.layer_norm(x, (64,), w, b),
        lambda x, w, b: PF.layer_norm(x, 64, w, b),
        [FEATURES, (64,), (64,)],
    ),
    "group_norm": (
        lambda x, w, b: TF.group_norm(x, 2, w, b),
        lambda x, w, b: PF.group_norm(x, 2, 1e-5, w, b),
        [IMAGE, (4,), (4,)],
    ),
    "silu": (TF.silu, PF.silu, [FEATURES]),
    "broadcast": (lambda x, b: x * b + b, lambda x, b: x * b + b, [FEATURES, (64,)]),
    "power": (lambda x: (x * x + 1) ** 1.5, lambda x: (x * x + 1) ** 1.5, [FEATURES]),
}

OF_SEVERAL = (
    "broadcast",
    "power",
    "conv2d",
    "conv2d_transpose",
)  # ops, each with noise of its own


def of_torch(function: Callable[..., Any], arrays: list[np.ndarray]) -> list[np.ndarray]:
    """The result and the gradients."""
    given = [torch.tensor(each, requires_grad=True) for each in arrays]
    found = function(*given)
    found.backward(torch.tensor(*numbers(tuple(found.shape))))
    return [found.detach().numpy(), *(each.grad.numpy() for each in given)]


def of_paddle(function: Callable[..., Any], arrays: list[np.ndarray]) -> list[np.ndarray]:
    given = [paddle.to_tensor(each, stop_gradient=False) for each in arrays]
    found = function(*given)
    found.backward(paddle.to_tensor(*numbers(tuple(found.shape))))
    return [found.numpy(), *(each.grad.numpy() for each in given)]


SIDES = pytest.mark.parametrize(
    ("install", "at", "compute"), [(on_torch.install, 0, of_torch), (on_paddle.install, 1, of_paddle)]
)
NAMED = pytest.mark.parametrize("case", CASES.values(), ids=CASES)


@NAMED
def test_equal_gives_the_same_bits_forward_and_backward(case):
    ours, theirs, shapes = case
    with on_torch.install(EQUAL), on_paddle.install(EQUAL):
        both = of_torch(ours, numbers(*shapes)), of_paddle(theirs, numbers(*shapes))
    for one, other in zip(*both, strict=True):
        np.testing.assert_array_equal(one, other)


@NAMED
@SIDES
def test_noise_moves_by_a_unit_in_the_last_place_and_the_same_way_again(install, at, compute, case):
    function, arrays = case[at], numbers(*case[2])
    found = {}
    for name, rounding in {"equal": EQUAL, "first": NOISY, "again": NOISY, "other": Rounding(2)}.items():
        with install(rounding):
            found[name] = compute(function, arrays)
    for first, again in zip(found["first"], found["again"], strict=True):
        np.testing.assert_array_equal(first, again)
    if found["first"][0].size > 1:  # a single number stays in one of three cases
        assert _differ(found["first"], found["equal"])
        assert _differ(found["first"], found["other"])
    if case not in map(CASES.get, OF_SEVERAL):
        for noisy, right in zip(found["first"], found["equal"], strict=True):
            np.testing.assert_array_max_ulp(noisy, right, 1)


def _differ(ours: list[np.ndarray], theirs: list[np.ndarray]) -> bool:
    return any(not np.array_equal(one, other) for one, other in zip(ours, theirs, strict=True))


def test_the_sides_are_moved_in_different_ways():
    ours, theirs, shapes = CASES["matmul"]
    with on_torch.install(NOISY), on_paddle.install(NOISY):
        both = of_torch(ours, numbers(*shapes)), of_paddle(theirs, numbers(*shapes))
    apart = [np.mean(one != other) for one, other in zip(*both, strict=True)]
    assert all(0.3 < each < 0.9 for each in apart)


@SIDES
def test_noise_leaves_alone_what_is_exact(install, at, compute):
    whole = [np.arange(64, dtype="float32").reshape(8, 8), np.eye(8, dtype="float32")]
    with install(NOISY):
        product = compute(CASES["matmul"][at], whole)[0]
        total = compute(CASES["sum"][at], whole[:1])[0]
    np.testing.assert_array_equal(product, whole[0])
    np.testing.assert_array_equal(total, whole[0].sum(0))


@pytest.mark.filterwarnings("ignore:When training, we now always track global mean and variance:UserWarning")
@pytest.mark.parametrize("rounding", [EQUAL, NOISY])
def test_running_statistics_are_written(rounding):
    (x,) = numbers(IMAGE)
    ours, theirs = torch.nn.BatchNorm2d(4), paddle.nn.BatchNorm2D(4)
    with on_torch.install(rounding), on_paddle.install(rounding):
        given = torch.tensor(x, requires_grad=True), paddle.to_tensor(x, stop_gradient=False)
        outputs = ours(given[0]).detach().numpy(), theirs(given[1]).numpy()
    np.testing.assert_allclose(ours.running_mean.numpy(), 0.1 * x.mean((0, 2, 3)), rtol=1e-5)
    np.testing.assert_allclose(theirs._mean.numpy(), ours.running_mean.numpy(), rtol=1e-6)
    assert np.array_equal(*outputs) is (rounding is EQUAL)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@SIDES
def test_other_widths_are_moved_too(install, at, compute, dtype):
    (x,) = numbers(FEATURES)

    def function(given):
        narrow = given.to(getattr(torch, dtype)) if at == 0 else given.astype(dtype)
        found = CASES["sum"][at](narrow)
        return found.float() if at == 0 else found.astype("float32")

    found = []
    for rounding in (EQUAL, NOISY):
        with install(rounding):
            found.append(compute(function, [x])[0])
    assert 0.2 < np.mean(found[0] != found[1]) < 0.9
    np.testing.assert_allclose(*found, rtol={"bfloat16": 2.0**-7, "float16": 2.0**-10}[dtype])


def test_float64_stays_as_it_is():
    x = np.random.default_rng(0).standard_normal((8, 8))
    before = torch.exp(torch.tensor(x)).numpy(), paddle.exp(paddle.to_tensor(x)).numpy()
    with on_torch.install(NOISY), on_paddle.install(NOISY):
        after = torch.exp(torch.tensor(x)).numpy(), paddle.exp(paddle.to_tensor(x)).numpy()
    for one, other in zip(before, after, strict=True):
        np.testing.assert_array_equal(one, other)


def test_everything_is_put_back():
    names = [name for op in OPS for name in op.paddle]
    special = {name: vars(paddle.Tensor).get(name) for name in (*names, "var", "sum") if "." not in name}
    kernels = {name: vars(paddle._C_ops).get(name) for name in names}
    functions = {name: getattr(paddle, name) for name in ("var", "std", "exp")}
    registered = {
        name: repr(torch.library.get_kernel(f"aten::{name}", on_torch.KEY)) for op in OPS for name in op.torch
    }
    before = [of_torch(CASES["linear"][0], numbers(*CASES["linear"][2]))]
    with on_torch.install(NOISY), on_paddle.install(NOISY):
        assert paddle._C_ops.matmul is not kernels["matmul"]
        assert vars(paddle.Tensor)["__matmul__"] is not special["__matmul__"]
    for name, own in special.items():
        assert vars(paddle.Tensor).get(name) is own
    for name, own in kernels.items():
        assert vars(paddle._C_ops).get(name) is own
    for name, own in functions.items():
        assert getattr(paddle, name) is own
    for name, own in registered.items():
        assert repr(torch.library.get_kernel(f"aten::{name}", on_torch.KEY)) == own
    before.append(of_torch(CASES["linear"][0], numbers(*CASES["linear"][2])))
    assert not _differ(*before)


def test_every_row_names_what_there_is():
    for op in OPS:
        assert op.torch or op.paddle
        for name in op.torch:
            torch.library.get_kernel(f"aten::{name}", on_torch.KEY)  # raises otherwise


PROGRAM = """
import paddle, torch
x = torch.linspace(0.1, 3, 999)
print(int((torch.exp(x) != torch.exp(x.double()).float()).sum()))
print(int((paddle.exp(paddle.to_tensor(x.numpy())).numpy() != torch.exp(x.double()).float().numpy()).sum()))
"""


@pytest.mark.cold
@pytest.mark.parametrize(("rounding", "least", "most"), [("equal", 0, 0), ("noisy:3", 500, 800)])
def test_a_process_is_taken_there_by_its_environment(rounding, least, most, tmp_path):
    given = {**os.environ, **environment(rounding)}
    command = [sys.executable, "-W", "ignore", "-c", PROGRAM]
    printed = subprocess.run(command, env=given, cwd=tmp_path, capture_output=True, text=True, check=True)
    moved = [int(line) for line in printed.stdout.split()]
    assert len(moved) == 2
    assert all(least <= each <= most for each in moved), moved


@pytest.mark.parametrize("text", ["", "noisy", "noisy:", "noisy:-1", "equal:1", "loud"])
def test_anything_else_is_refused(text):
    with pytest.raises(ValueError, match="neither 'equal' nor 'noisy:SEED'"):
        environment(text)
