"""Composite ops, taken apart into the steps that they compute.

A port may write by hand what the reference leaves to one function. With the steps of that function
known, its mistakes are found like any other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy  # loads its parts when they are first used

from parfocal.backends.protocol import Array
from parfocal.explain.ops.values import same


@dataclass(frozen=True, slots=True)
class ArrayOp:
    """One op on arrays; ``scalar`` is its number, if it has one."""

    name: str
    inputs: tuple[Array, ...]
    output: Array
    scalar: float | None = None
    words: Mapping[str, Any] = field(default_factory=dict)


FILLS = "fills"  # said with an op that hides: how the port does, if not by adding to what is hidden
FILLED, HIDES, KEEPS = "masked_fill", "where hidden", "where kept"
Tensors = Sequence[Array]
Words = Mapping[str, Any]
Taking = Callable[[Tensors, Words], "list[ArrayOp] | None"]


def steps(name: str, tensors: Tensors, words: Words, output: Array) -> list[ArrayOp]:
    """The steps of an op; none when it has none, or when they do not lead to what it gave."""
    taking = COMPOSITES.get(name)
    if taking is None or not tensors or any(array.dtype.kind not in "fb" for array in tensors):
        return []
    with np.errstate(all="ignore"):
        found = taking([_wide(array) for array in tensors], words)
    if not found or not same(found[-1].output.astype(output.dtype), output):
        return []
    narrow = [_narrowed(step, output.dtype) for step in found]
    last = narrow[-1]
    return [*narrow[:-1], ArrayOp(last.name, last.inputs, output, last.scalar, last.words)]


def _wide(array: Array) -> Array:
    return array if array.dtype == np.bool_ else array.astype(np.float64)


def _narrowed(step: ArrayOp, dtype: Any) -> ArrayOp:
    inputs = tuple(a if a.dtype == np.bool_ else a.astype(dtype) for a in step.inputs)
    output = step.output if step.output.dtype == np.bool_ else step.output.astype(dtype)
    return ArrayOp(step.name, inputs, output, step.scalar, step.words)


def _linear(tensors: Tensors, words: Words) -> list[ArrayOp] | None:
    if len(tensors) != 3:
        return None
    x, weight, bias = tensors
    if weight.ndim != 2 or bias.ndim != 1:
        return None
    product = x @ (weight.T if weight.shape == (bias.size, x.shape[-1]) else weight)
    return [ArrayOp("matmul", (x, weight), product), ArrayOp("add", (product, bias), product + bias)]


def _leaky_relu(tensors: Tensors, words: Words) -> list[ArrayOp] | None:
    (x,) = tensors
    slope = float(words.get("negative_slope", 0.01))
    positive = x > 0
    return [
        ArrayOp("greater_than", (x,), positive, 0.0),
        ArrayOp("mul", (x,), slope * x, slope),
        ArrayOp("where", (positive, x, slope * x), np.where(positive, x, slope * x)),
    ]


def _layer_norm(tensors: Tensors, words: Words) -> list[ArrayOp] | None:
    x, affine = tensors[0], tensors[1:]
    count = affine[0].ndim if affine else len(words.get("normalized_shape", (1,)))
    axes = tuple(range(x.ndim - count, x.ndim))
    mean = x.mean(axes, keepdims=True)
    centred = x - mean
    along = {"axis": axes if len(axes) > 1 else axes[0]}
    found = [ArrayOp("mean", (x,), mean, words=along), ArrayOp("sub", (x, mean), centred)]
    return found + _normalised(centred, along, words, affine)


def _rms_norm(tensors: Tensors, words: Words) -> list[ArrayOp] | None:
    x, affine = tensors[0], tensors[1:]
    return _normalised(x, {"axis": x.ndim - 1}, words, affine)


def _normalised(x: Array, along: dict[str, Any], words: Words, affine: Tensors) -> list[ArrayOp]:
    """Divided by the root of the mean square, then scaled and shifted."""
    epsilon = words.get("epsilon")
    epsilon = 1e-5 if epsilon is None else float(epsilon)
    squared = x * x
    mean = squared.mean(along["axis"], keepdims=True)
    raised = mean + epsilon
    root = np.sqrt(raised)
    found = [
        ArrayOp("square", (x,), squared),
        ArrayOp("mean", (squared,), mean, words=along),
        ArrayOp("add", (mean,), raised, epsilon),
        ArrayOp("rsqrt", (raised,), 1.0 / root),
        ArrayOp("sqrt", (raised,), root),
        ArrayOp("div", (x, root), x / root),
    ]
    for name, other in zip(("mul", "add"), affine, strict=False):
        before = found[-1].output
        found.append(ArrayOp(name, (before, other), before * other if name == "mul" else before + other))
    return found


def _attention(tensors: Tensors, words: Words) -> list[ArrayOp] | None:
    query, key, value = tensors[:3]
    scale = words.get("scale")
    scale = query.shape[-1] ** -0.5 if scale is None else float(scale)
    found = []
    if query.ndim == 4 and key.shape[1] != query.shape[1]:  # heads that share keys and values
        shared = query.shape[1] // key.shape[1]
        for each in (key, value):
            repeated = np.repeat(each, shared, 1)
            words_of_it = {"repeats": shared, "axis": 1}
            found.append(ArrayOp("repeat_interleave", (each,), repeated, words=words_of_it))
        key, value = found[0].output, found[1].output
    scores = query @ np.swapaxes(key, -1, -2)
    found += [ArrayOp("matmul", (query, key), scores), ArrayOp("mul", (scores,), scores * scale, scale)]
    scaled = found[-1].output
    if words.get("is_causal"):
        found += _hidden_after(scaled, words)
    elif len(tensors) > 3 and tensors[3].dtype == np.bool_:
        found += _masked(scaled, tensors[3], words)
    elif len(tensors) > 3:
        found.append(ArrayOp("add", (scaled, tensors[3]), scaled + tensors[3]))
    shares = scipy.special.softmax(found[-1].output, -1)
    found.append(ArrayOp("softmax", (found[-1].output,), shares, words={"axis": -1}))
    found.append(ArrayOp("matmul", (shares, value), shares @ value))
    return found


def _hidden_after(scaled: Array, words: Words) -> list[ArrayOp]:
    """A causal mask: a triangle, filled with the value that the port masks with."""
    way, shape = words.get(FILLS), scaled.shape[-2:]
    hidden = np.triu(np.ones(shape, np.bool_), 1)
    if way is None:
        whole, mask = np.full(shape, -np.inf), np.where(hidden, -np.inf, 0.0)
        return [
            ArrayOp("full", (), whole),
            ArrayOp("triu", (whole,), mask, words={"diagonal": 1}),
            *_added(scaled, mask),
        ]
    whole = np.ones(shape, np.bool_)
    half = ("tril", ~hidden, 0) if way == KEEPS else ("triu", hidden, 1)
    made = ArrayOp(half[0], (whole,), half[1], words={"diagonal": half[2]})
    return [ArrayOp("ones", (), whole), made, *_filled(scaled, half[1], way)]


def _masked(scaled: Array, kept: Array, words: Words) -> list[ArrayOp]:
    """Masking as the port does it: by filling where a mask is true, where it is false, or by adding."""
    way, hidden = words.get(FILLS), ~kept
    if way == KEEPS:
        return _filled(scaled, kept, way)
    inverted = ArrayOp("logical_not", (kept,), hidden)
    if way is None:
        return [inverted, *_added(scaled, np.where(hidden, -np.inf, 0.0))]
    return [inverted, *_filled(scaled, hidden, way)]


def _added(scaled: Array, mask: Array) -> list[ArrayOp]:
    return [ArrayOp("add", (scaled, mask), scaled + mask)]


def _filled(scaled: Array, mask: Array, way: str) -> list[ArrayOp]:
    low = np.array(-np.inf)
    if way == FILLED:
        return [ArrayOp("masked_fill", (scaled, mask), np.where(mask, low, scaled))]
    chosen = (scaled, low) if way == KEEPS else (low, scaled)
    return [ArrayOp("full", (), low), ArrayOp("where", (mask, *chosen), np.where(mask, *chosen))]


def complex_steps(name: str, tensors: Tensors, output: Array) -> list[ArrayOp]:
    """A product of complex numbers by their parts, and a row of pairs joined of both parts."""
    if name == "view_as_real" and len(tensors) == 1:
        parts = _parts(tensors[0])
        return [*parts, ArrayOp("stack", (parts[0].output, parts[1].output), output, words={"axis": -1})]
    if name != "mul" or len(tensors) != 2 or any(array.dtype.kind != "c" for array in (*tensors, output)):
        return []
    found = [*_parts(tensors[0]), *_parts(tensors[1])]
    (a, b), (c, d) = (found[0].output, found[1].output), (found[2].output, found[3].output)
    for joining, one, other, part in (
        ("sub", (a, c), (b, d), output.real),
        ("add", (a, d), (b, c), output.imag),
    ):
        products = [ArrayOp("mul", pair, pair[0] * pair[1]) for pair in (one, other)]
        found += [*products, ArrayOp(joining, (products[0].output, products[1].output), part)]
    return [*found, ArrayOp("complex", (output.real, output.imag), output)]


def _parts(array: Array) -> list[ArrayOp]:
    return [ArrayOp("real", (array,), array.real), ArrayOp("imag", (array,), array.imag)]


COMPOSITES: dict[str, Taking] = {
    "linear": _linear,
    "leaky_relu": _leaky_relu,
    "layer_norm": _layer_norm,
    "rms_norm": _rms_norm,
    "scaled_dot_product_attention": _attention,
}
