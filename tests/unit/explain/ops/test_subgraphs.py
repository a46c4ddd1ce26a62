"""Values that are one, masks, steps of composites and cones of ops, without any framework."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import special

from parfocal.explain.ops.composites import FILLED, FILLS, HIDES, KEEPS, steps
from parfocal.explain.ops.log import Op, OpLog, key_of
from parfocal.explain.ops.names import name_of_kind
from parfocal.explain.ops.values import covered, is_mask, match, rearranged, same

RANDOM = np.random.default_rng(5)


def _numbers(*shape: int) -> Any:
    return RANDOM.standard_normal(shape).astype(np.float32)


X = _numbers(3, 4, 5)


@pytest.mark.parametrize(
    "other",
    [
        X,
        X.reshape(12, 5),
        X.transpose(0, 2, 1),
        X * np.float32(1.0 + 2e-7),
        X.reshape(3, 2, 2, 5),
    ],
    ids=("itself", "flattened", "axes moved", "rounded otherwise", "an axis split"),
)
def test_the_same_value(other: Any) -> None:
    assert same(X, other)


@pytest.mark.parametrize(
    "other",
    [X[::-1], np.roll(X, 1, 1), X * np.float32(1.0001), X.transpose(0, 2, 1).reshape(3, 20), -X],
    ids=("reversed", "shifted", "scaled", "moved and flattened", "negative"),
)
def test_another_value(other: Any) -> None:
    assert not same(X, np.ascontiguousarray(other))


def test_the_same_numbers_in_another_order_are_rearranged() -> None:
    assert rearranged(X, X[::-1])
    assert not rearranged(X, X + 1)


def test_matches_go_both_ways_and_know_every_pair() -> None:
    port = {b"a": X, b"b": X.reshape(-1), b"c": X + 1}
    reference = {b"d": X.transpose(1, 0, 2), b"e": X}
    found = match(port, reference)
    assert found.are_one(b"a", b"d")
    assert found.are_one(b"b", b"e")
    assert not found.are_one(b"b", b"d")  # flattened and moved: not known to be one
    assert b"c" not in found.to_reference


@pytest.mark.parametrize(
    ("array", "wanted"),
    [
        (np.array([True, False]), True),
        (np.array([0.0, 1.0, 1.0], np.float32), True),
        (np.array([0.0, -np.inf], np.float32), True),
        (np.array([0.0, -1e9, 0.0], np.float32), True),
        (np.array([0.0, -3.0], np.float32), False),
        (np.array([0.5, 1.0], np.float32), False),
        (np.array([np.nan, 0.0], np.float32), False),
    ],
)
def test_what_a_mask_is(array: Any, wanted: bool) -> None:
    assert is_mask(array) is wanted


def test_places_that_masks_cover() -> None:
    assert covered(np.array([0.0, -np.inf])).tolist() == [False, True]
    assert covered(np.array([0, 1])).tolist() == [False, True]


def test_steps_of_a_norm_lead_to_what_it_gave() -> None:
    x, weight, bias = _numbers(2, 3, 8), _numbers(8), _numbers(8)
    wide = x.astype(np.float64)
    centred = wide - wide.mean(-1, keepdims=True)
    root = np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-3)
    output = (centred / root * weight + bias).astype(np.float32)
    found = steps("layer_norm", [x, weight, bias], {"epsilon": 1e-3}, output)
    assert [step.name for step in found] == [
        *("mean", "sub", "square", "mean", "add", "rsqrt", "sqrt", "div", "mul", "add")
    ]
    assert found[4].scalar == 1e-3
    assert steps("layer_norm", [x, weight, bias], {"epsilon": 1.0}, output) == []  # leads elsewhere


def test_steps_of_attention_lead_to_what_it_gave() -> None:
    query, key, value = (_numbers(2, 4, 6) for _ in range(3))
    hidden = np.triu(np.full((4, 4), -np.inf), 1)
    scores = query.astype(np.float64) @ key.swapaxes(-1, -2) * 6**-0.5 + hidden
    output = (special.softmax(scores, -1) @ value).astype(np.float32)
    name, words = "scaled_dot_product_attention", {"is_causal": True}
    found = steps(name, [query, key, value], words, output)
    assert [step.name for step in found] == ["matmul", "mul", "full", "triu", "add", "softmax", "matmul"]
    assert steps(name, [query, key, value], {}, output) == []  # not without its mask


def test_an_op_without_steps_has_none() -> None:
    assert steps("relu", [X], {}, np.maximum(X, 0)) == []


def _op(log: OpLog, name: str, inputs: list[Any], output: Any) -> Op:
    for array in (*inputs, output):
        log.values.setdefault(key_of(array), array)
    keys = {str(index): key_of(array) for index, array in enumerate(inputs)}
    op = Op(len(log.ops), name, (), {}, keys, {"0": key_of(output)}, "model.py", 10 + len(log.ops))
    log.add(op)
    return op


def test_a_cone_ends_at_what_is_known() -> None:
    log = OpLog()
    first = _op(log, "relu", [X], np.maximum(X, 0))
    second = _op(log, "exp", [np.maximum(X, 0)], np.exp(np.maximum(X, 0)))
    _op(log, "neg", [X], -X)  # leads elsewhere
    assert log.cone(second, lambda key: False) == [first, second]
    known = key_of(np.maximum(X, 0))
    assert log.cone(second, lambda key: key == known) == [second]


def test_taking_all_of_a_tensor_only_moves_it() -> None:
    log = OpLog()
    assert log.only_moves(_op(log, "getitem", [X], X[:, :, None]))
    assert not log.only_moves(_op(log, "getitem", [X], X[:, 1]))
    assert log.only_moves(_op(log, "transpose", [X], X.transpose(0, 2, 1)))


def test_layers_are_the_ops_they_do() -> None:
    assert name_of_kind("ReLU") == "relu"
    assert name_of_kind("BatchNorm2d") == "batch_norm"
    assert name_of_kind("MyBlock") == "MyBlock"


def attention_of(query: np.ndarray, key: np.ndarray, value: np.ndarray, hidden: np.ndarray) -> np.ndarray:
    scores = np.where(hidden, -np.inf, query @ np.swapaxes(key, -1, -2) * query.shape[-1] ** -0.5)
    return (special.softmax(scores, -1) @ value).astype(np.float32)


@pytest.mark.parametrize(
    ("fills", "causal", "hiding"),
    [
        (None, True, ["full", "triu", "add"]),
        (FILLED, True, ["ones", "triu", "masked_fill"]),
        (HIDES, True, ["ones", "triu", "full", "where"]),
        (KEEPS, True, ["ones", "tril", "full", "where"]),
        (None, False, ["logical_not", "add"]),
        (FILLED, False, ["logical_not", "masked_fill"]),
        (HIDES, False, ["logical_not", "full", "where"]),
        (KEEPS, False, ["full", "where"]),
    ],
)
def test_an_attention_hides_as_the_port_does(fills: str | None, causal: bool, hiding: list[str]) -> None:
    query, key, value = np.random.default_rng(0).standard_normal((3, 2, 2, 4, 3)).astype(np.float32)
    allowed = np.tri(4, dtype=np.bool_)
    tensors = [query, key, value, *([] if causal else [allowed])]
    found = steps(
        "scaled_dot_product_attention",
        tensors,
        {"is_causal": causal, FILLS: fills},
        attention_of(query, key, value, ~allowed),
    )
    assert [step.name for step in found] == ["matmul", "mul", *hiding, "softmax", "matmul"]


def test_an_attention_whose_heads_share_keys_repeats_them() -> None:
    numbers = np.random.default_rng(1)
    query = numbers.standard_normal((2, 4, 5, 3)).astype(np.float32)
    key, value = numbers.standard_normal((2, 2, 2, 5, 3)).astype(np.float32)
    given = attention_of(query, np.repeat(key, 2, 1), np.repeat(value, 2, 1), np.zeros((5, 5), np.bool_))
    found = steps("scaled_dot_product_attention", [query, key, value], {}, given)
    assert [step.name for step in found][:3] == ["repeat_interleave", "repeat_interleave", "matmul"]
    tiled = attention_of(
        query, np.tile(key, (1, 2, 1, 1)), np.tile(value, (1, 2, 1, 1)), np.zeros((5, 5), bool)
    )
    assert steps("scaled_dot_product_attention", [query, key, value], {}, tiled) == []
