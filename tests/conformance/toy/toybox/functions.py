"""What can be computed. Every function goes through ``visible``, where somebody may listen."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
from scipy.special import erf as _erf
from toybox import tape
from toybox.tape import Handle, Tensor, keep

__all__ = [
    *("add", "sub", "rsub", "mul", "div", "rdiv", "pow", "neg", "matmul", "sum", "mean", "reshape", "swap"),
    *("take", "astype", "exp", "sqrt", "sigmoid", "tanh", "relu", "gelu", "softmax", "dropout", "layer_norm"),
    *("convolve", "lookup", "arange", "random", "clone"),
]

# Called as listener(function, name, *args, **kwargs) in place of a function; the newest one hears first.
listeners: list[Callable[..., Any]] = []


class _Inside(threading.local):
    function = False


_inside = _Inside()


def visible(name: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Lets listeners hear of calls; what a function calls in turn is part of it."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def quiet(*args: Any, **kwargs: Any) -> Any:
            before, _inside.function = _inside.function, True
            try:
                return function(*args, **kwargs)
            finally:
                _inside.function = before

        @functools.wraps(function)
        def called(*args: Any, **kwargs: Any) -> Any:
            if _inside.function or not listeners:
                return quiet(*args, **kwargs)
            chain = quiet
            for listener in listeners:
                chain = functools.partial(listener, chain, name)
            return chain(*args, **kwargs)

        return called

    return decorate


def _tensor(value: Any, like: Tensor) -> Tensor:
    if isinstance(value, Tensor):
        return value
    data = np.asarray(value)
    floats = like.data.dtype.kind in "fcV" or data.dtype.kind in "iub"
    return Tensor(data.astype(like.dtype) if floats else data)


def _fitting(gradient: Any, shape: tuple[int, ...]) -> Any:
    """The gradient of a value that was broadcast: summed over the axes that it did not have."""
    extra = gradient.ndim - len(shape)
    if extra:
        gradient = gradient.sum(axis=tuple(range(extra)))
    axes = tuple(axis for axis, size in enumerate(shape) if size == 1 and gradient.shape[axis] != 1)
    return gradient.sum(axis=axes, keepdims=True) if axes else gradient


def _binary(name: str, compute: Any, left: Any, right: Any) -> Callable[..., Any]:
    """``left`` and ``right`` give the derivatives by either factor, of (gradient, x(), y())."""

    @visible(name)
    def function(x: Tensor, y: Any) -> Tensor:
        y = _tensor(y, x)
        a, b = keep(x), keep(y)
        shapes = x.shape, y.shape
        wanted = x.requires_grad, y.requires_grad  # what is not asked for needs no value

        def back(gradient: Any) -> tuple[Any, Any]:
            to_x, to_y = (
                _fitting(derivative(gradient, a, b), shape) if asked else None
                for derivative, shape, asked in zip((left, right), shapes, wanted, strict=True)
            )
            return to_x, to_y

        return Tensor(compute(x.data, y.data), made=((x, y), back))

    return function


add = _binary("add", np.add, lambda g, x, y: g, lambda g, x, y: g)
sub = _binary("sub", np.subtract, lambda g, x, y: g, lambda g, x, y: -g)
rsub = _binary("rsub", lambda x, y: y - x, lambda g, x, y: -g, lambda g, x, y: g)
mul = _binary("mul", np.multiply, lambda g, x, y: g * y(), lambda g, x, y: g * x())
div = _binary("div", np.divide, lambda g, x, y: g / y(), lambda g, x, y: -g * x() / (y() * y()))
rdiv = _binary("rdiv", lambda x, y: y / x, lambda g, x, y: -g * y() / (x() * x()), lambda g, x, y: g / x())


@visible("pow")
def pow(x: Tensor, power: float) -> Tensor:
    kept = keep(x)
    return Tensor(x.data**power, made=((x,), lambda g: (g * power * kept() ** (power - 1),)))


@visible("matmul")
def matmul(x: Tensor, y: Tensor) -> Tensor:
    one, other = keep(x), keep(y)

    def back(gradient: Any) -> tuple[Any, Any]:
        a, b = one(), other()
        to_x = gradient @ np.swapaxes(b, -1, -2)
        if b.ndim == 2:  # one matrix for a whole batch
            rows = a.reshape(-1, a.shape[-1])
            return to_x, rows.T @ gradient.reshape(-1, gradient.shape[-1])
        return _fitting(to_x, a.shape), _fitting(np.swapaxes(a, -1, -2) @ gradient, b.shape)

    return Tensor(x.data @ y.data, made=((x, y), back))


def _by_output(name: str, compute: Any, derivative: Any) -> Callable[..., Any]:
    """A function of each number whose derivative is told from its result."""

    @visible(name)
    def function(x: Tensor) -> Tensor:
        result = Tensor(compute(x.data).astype(x.dtype, copy=False))
        output = result.data
        return Tensor(output, made=((x,), lambda g: (g * derivative(output),)), changes=result.changes)

    return function


exp = _by_output("exp", np.exp, lambda y: y)
sqrt = _by_output("sqrt", np.sqrt, lambda y: 0.5 / y)
neg = _by_output("neg", np.negative, lambda y: -1)
sigmoid = _by_output("sigmoid", lambda x: 1 / (1 + np.exp(-x)), lambda y: y * (1 - y))
tanh = _by_output("tanh", np.tanh, lambda y: 1 - y * y)
relu = _by_output("relu", lambda x: np.maximum(x, 0), lambda y: y > 0)


@visible("gelu")
def gelu(x: Tensor) -> Tensor:
    kept = keep(x)

    def back(gradient: Any) -> tuple[Any]:
        a = kept()
        density = np.exp(-0.5 * a * a) / a.dtype.type(np.sqrt(2 * np.pi))
        return (gradient * (_below(a) + a * density),)

    return Tensor(x.data * _below(x.data), made=((x,), back))


def _below(array: Any) -> Any:
    """The share of a normal distribution below each number."""
    return (0.5 * (1 + _erf(array / array.dtype.type(np.sqrt(2))))).astype(array.dtype)


@visible("softmax")
def softmax(x: Tensor, axis: int = -1) -> Tensor:
    powers = np.exp(x.data - x.data.max(axis=axis, keepdims=True))
    output = powers / powers.sum(axis=axis, keepdims=True)
    return Tensor(output, made=((x,), lambda g: (output * (g - (g * output).sum(axis=axis, keepdims=True)),)))


def _reduction(name: str, compute: Any, share: Callable[[Any, int], Any]) -> Callable[..., Any]:
    @visible(name)
    def function(x: Tensor, axis: Any = None, keepdims: bool = False) -> Tensor:
        shape, dtype = x.shape, x.dtype
        output = np.asarray(compute(x.data, axis=axis, keepdims=keepdims))

        def back(gradient: Any) -> tuple[Any]:
            if not keepdims and axis is not None:
                gradient = np.expand_dims(gradient, axis)
            count = int(np.prod(shape)) // max(output.size, 1)
            return (np.broadcast_to(share(gradient, count), shape).astype(dtype),)

        return Tensor(output, made=((x,), back))

    return function


sum = _reduction("sum", np.sum, lambda g, count: g)
mean = _reduction("mean", np.mean, lambda g, count: g / count)


@visible("reshape")
def reshape(x: Tensor, *shape: Any) -> Tensor:
    wanted = shape[0] if len(shape) == 1 and not isinstance(shape[0], int) else shape
    before = x.shape
    return Tensor(x.data.reshape(wanted), made=((x,), lambda g: (g.reshape(before),)), changes=x.changes)


@visible("swap")
def swap(x: Tensor, first: int = -2, second: int = -1) -> Tensor:
    """Two axes change places."""
    return Tensor(
        np.swapaxes(x.data, first, second),
        made=((x,), lambda g: (np.swapaxes(g, first, second),)),
        changes=x.changes,
    )


@visible("take")
def take(x: Tensor, key: Any) -> Tensor:
    def back(gradient: Any) -> tuple[Any]:
        whole = np.zeros(x.shape, gradient.dtype)
        np.add.at(whole, key, gradient)
        return (whole,)

    return Tensor(x.data[key], made=((x,), back), changes=x.changes)


def dtype_of(name: Any) -> Any:
    """What is meant by a name; the one place where code that asks for a dtype is answered."""
    return np.dtype(getattr(ml_dtypes, name, name) if isinstance(name, str) else name)


@visible("astype")
def astype(x: Tensor, dtype: Any) -> Tensor:
    before = x.dtype
    return Tensor(x.data.astype(dtype_of(dtype)), made=((x,), lambda g: (g.astype(before),)))


@visible("arange")
def arange(count: int, dtype: Any = "float32") -> Tensor:
    return Tensor(np.arange(count).astype(dtype_of(dtype)))


@visible("random")
def random(*shape: int) -> Tensor:
    return Tensor(tape.generator.random(shape, dtype=np.float32))


@visible("clone")
def clone(x: Tensor) -> Tensor:
    return Tensor(x.data.copy(), made=((x,), lambda g: (g,)))


@visible("dropout")
def dropout(x: Tensor, p: float = 0.5, training: bool = True) -> Tensor:
    if not training or p == 0:
        return Tensor(x.data, made=((x,), lambda g: (g,)), changes=x.changes)
    kept = (tape.generator.random(x.shape) >= p).astype(x.dtype) / x.dtype.type(1 - p)
    return Tensor(x.data * kept, made=((x,), lambda g: (g * kept,)))


@visible("layer_norm")
def layer_norm(x: Tensor, weight: Tensor, bias: Tensor, tiny: float) -> Tensor:
    """Over the last axis."""
    centred = x.data - x.data.mean(-1, keepdims=True)
    factor = 1 / np.sqrt((centred * centred).mean(-1, keepdims=True) + x.dtype.type(tiny))
    normal, scale = centred * factor, keep(weight)
    above = tuple(range(x.data.ndim - 1))

    def back(gradient: Any) -> tuple[Any, Any, Any]:
        inner = gradient * scale()
        to_x = inner - inner.mean(-1, keepdims=True) - normal * (inner * normal).mean(-1, keepdims=True)
        return to_x * factor, (gradient * normal).sum(above), gradient.sum(above)

    return Tensor(normal * weight.data + bias.data, made=((x, weight, bias), back))


@visible("convolve")
def convolve(x: Tensor, weight: Tensor, bias: Tensor, stride: int = 1, border: int = 0) -> Tensor:
    """Images (batch, channels, rows, columns) with a weight (out, in, rows, columns)."""
    padded = np.pad(x.data, ((0, 0), (0, 0), (border, border), (border, border)))
    tall, wide = weight.shape[2:]
    windows = np.lib.stride_tricks.sliding_window_view(padded, (tall, wide), (2, 3))
    windows = windows[:, :, ::stride, ::stride]
    output = np.ascontiguousarray(np.einsum("bcijkl,ockl->boij", windows, weight.data, optimize=True))
    kernel = keep(weight)

    def back(gradient: Any) -> tuple[Any, Any, Any]:
        spread = np.zeros_like(padded, dtype=gradient.dtype)
        parts = np.einsum("boij,ockl->bcijkl", gradient, kernel(), optimize=True)
        rows, columns = gradient.shape[2:]
        for k in range(tall):
            for m in range(wide):
                spread[:, :, k : k + rows * stride : stride, m : m + columns * stride : stride] += parts[
                    ..., k, m
                ]
        inner = spread[:, :, border : spread.shape[2] - border, border : spread.shape[3] - border]
        to_weight = np.einsum("boij,bcijkl->ockl", gradient, windows, optimize=True)
        return inner, to_weight, gradient.sum((0, 2, 3))

    return Tensor(output + bias.data[:, None, None], made=((x, weight, bias), back))


@visible("lookup")
def lookup(table: Tensor, rows: Tensor) -> Tensor:
    def back(gradient: Any) -> tuple[Any, None]:
        whole = np.zeros(table.shape, gradient.dtype)
        np.add.at(whole, rows.data, gradient)
        return whole, None

    return Tensor(table.data[rows.data], made=((table, rows), back))


def _changing(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """The form of a function that writes its result into its first argument."""

    @visible(name)
    def changing(x: Tensor, *others: Any) -> Tensor:
        _refuse_leaf(x)
        result = function(_before(x), *others)
        return _become(x, result)

    return changing


def _refuse_leaf(x: Tensor) -> None:
    if x.origin is not None and x.is_leaf and tape.recording():
        raise RuntimeError("a tensor whose own gradient is wanted cannot be changed in place")


def _before(x: Tensor) -> Tensor:
    """The value as it is, for the tape: what is written over it later does not reach it."""
    before = Tensor(x.data.copy())
    before.origin = x.origin
    return before


def _become(x: Tensor, result: Tensor) -> Tensor:
    np.copyto(x.data, result.data.astype(x.dtype, copy=False))
    x.changes.count += 1
    x.origin = result.origin
    return x


@visible("relu_")
def relu_(x: Tensor) -> Tensor:
    """Its gradient is told from its result, which is what the tensor holds afterwards."""
    _refuse_leaf(x)
    before = _before(x)
    np.maximum(x.data, 0, out=x.data)
    x.changes.count += 1
    output = x.data
    x.origin = Tensor(output, made=((before,), lambda g: (g * (output > 0),))).origin
    return x


@visible("Tensor.__setitem__")
def _put(x: Tensor, key: Any, value: Any) -> None:
    _refuse_leaf(x)
    value = _tensor(value, x)
    before = _before(x)
    array = x.data.copy()
    array[key] = value.data

    def back(gradient: Any) -> tuple[Any, Any]:
        rest = gradient.copy()
        rest[key] = 0
        return rest, _fitting(gradient[key], value.shape)

    _become(x, Tensor(array, made=((before, value), back)))


@visible("register_hook")
def _hook(x: Tensor, hook: Callable[[Tensor], Any]) -> Handle:
    if x.origin is None:
        raise RuntimeError("a tensor without a gradient has no use for a hook")
    return tape.hook_on(x.origin.hooks, hook)


@visible("assign_")
def _assign(x: Tensor, value: Tensor) -> Tensor:
    return _become(x, clone(value))


_NO_METHODS = ("arange", "random", "lookup", "swap", "take")
METHODS: dict[str, Any] = {
    **{name: globals()[name] for name in __all__ if name not in _NO_METHODS},
    "__add__": add, "__radd__": add, "__sub__": sub, "__rsub__": rsub, "__mul__": mul, "__rmul__": mul,
    "__truediv__": div, "__rtruediv__": rdiv, "__pow__": pow, "__neg__": neg, "__matmul__": matmul,
    "__getitem__": take, "__setitem__": _put, "register_hook": _hook, "assign_": _assign,
    "add_": _changing("add_", add), "mul_": _changing("mul_", mul), "multiply_": _changing("mul_", mul),
    "relu_": relu_, "T": property(lambda self: swap(self)),
}  # fmt: skip
METHODS |= {"__iadd__": METHODS["add_"], "__imul__": METHODS["mul_"]}
for _name, _function in METHODS.items():
    setattr(Tensor, _name, _function)
