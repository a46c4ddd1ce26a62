"""Nested values: slots, shapes, live replacement and rebuilding."""

from __future__ import annotations

from collections import OrderedDict, UserDict, namedtuple
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parfocal.capture.nested_values import (
    MAX_DEPTH,
    flatten,
    flatten_call,
    rebuild,
    replace,
    replace_call,
)

Pair = namedtuple("Pair", "left right")


@dataclass
class Output:
    hidden: Any
    states: Any = None


@dataclass(frozen=True)
class Frozen:
    value: Any


@dataclass
class Late:
    known: int = 1
    unset: int = field(init=False)


def test_a_bare_leaf_has_slot_zero():
    flat = flatten(5)
    assert (flat.leaves, flat.shape) == ({"0": 5}, "0")


def test_none_is_a_leaf_and_empty_containers_have_none():
    assert flatten(None).leaves == {"0": None}
    assert flatten(()).shape == ["tuple", []]
    assert flatten({}).leaves == {}


@pytest.mark.parametrize(
    ("value", "leaves", "shape"),
    [
        ((1, [2, 3]), {"0": 1, "1.0": 2, "1.1": 3}, ["tuple", ["0", ["list", ["1.0", "1.1"]]]]),
        ({"a": 1, "b": (2,)}, {"a": 1, "b.0": 2}, ["dict", {"a": "a", "b": ["tuple", ["b.0"]]}]),
        (Pair(1, 2), {"left": 1, "right": 2}, ["object", "Pair", {"left": "left", "right": "right"}]),
        (
            Output(1, (2, None)),
            {"hidden": 1, "states.0": 2, "states.1": None},
            ["object", "Output", {"hidden": "hidden", "states": ["tuple", ["states.0", "states.1"]]}],
        ),
        (Late(), {"known": 1}, ["object", "Late", {"known": "known"}]),
        (UserDict(a=1), {"a": 1}, ["dict", {"a": "a"}]),
    ],
)
def test_every_kind_of_container(value, leaves, shape):
    flat = flatten(value)
    assert flat.leaves == leaves
    assert flat.shape == shape


def test_a_class_is_a_leaf_even_if_it_is_a_dataclass():
    assert flatten(Output).leaves == {"0": Output}


def test_keys_that_would_read_alike_stay_apart():
    value = {"a.b": 1, "a": {"b": 2}, 0: 3, "0": 4, "": 5}
    flat = flatten(value)
    assert len(flat.leaves) == 5
    assert sorted(flat.leaves.values()) == [1, 2, 3, 4, 5]


def test_a_call_has_positions_and_keywords():
    flat = flatten_call((1, (2, 3)), {"mask": 4})
    assert flat.leaves == {"0": 1, "1.0": 2, "1.1": 3, "mask": 4}
    assert rebuild(flat.shape, flat.leaves) == ((1, (2, 3)), {"mask": 4})


def test_a_keyword_that_looks_like_a_position():
    flat = flatten_call((1,), {"0": 2})
    assert sorted(flat.leaves.values()) == [1, 2]


def test_replacing_leaves_in_live_values():
    assert replace((1, [2, 3]), {"1.0": 9}) == (1, [9, 3])
    assert replace(Pair(1, 2), {"left": 9}) == Pair(9, 2)
    assert replace(Output(1, 2), {"states": 9}) == Output(1, 9)
    assert replace(Frozen(1), {"value": 9}) == Frozen(9)
    assert replace(5, {"0": 9}) == 9
    assert replace_call((1,), {"mask": 2}, {"mask": 9}) == ((1,), {"mask": 9})


@pytest.mark.parametrize("kind", [dict, OrderedDict, UserDict, MappingProxyType])
def test_replacing_in_mappings_leaves_the_original_alone(kind):
    value = kind({"a": 1, "b": 2})
    changed = replace(value, {"a": 9})
    assert dict(changed) == {"a": 9, "b": 2}
    assert dict(value) == {"a": 1, "b": 2}


def test_what_does_not_change_is_the_same_object():
    inner = [1, 2]
    value = (inner, {"a": 3})
    changed = replace(value, {"1.a": 9})
    assert changed[0] is inner
    assert replace(value, {"nowhere": 9}) is value


def test_a_list_that_holds_itself_ends():
    value: list[Any] = [1]
    value.append(value)
    flat = flatten(value)
    assert len(flat.leaves) == MAX_DEPTH + 1


def test_rebuild_refuses_a_shape_that_is_none():
    with pytest.raises(ValueError, match="neither a slot nor a container"):
        rebuild(["set", []], {})


NESTED = st.recursive(
    st.integers() | st.none() | st.text(max_size=3),
    lambda children: (
        st.lists(children, max_size=4)
        | st.lists(children, max_size=4).map(tuple)
        | st.dictionaries(st.text("ab.\\0", max_size=4), children, max_size=4)
    ),
    max_leaves=20,
)


@given(NESTED)
def test_flatten_keeps_every_leaf_and_replace_finds_it(value):
    flat = flatten(value)
    marked = replace(value, {slot: ("leaf", slot) for slot in flat.leaves})
    # The marks are tuples themselves: two more leaves each.
    assert len(flatten(marked).leaves) == 2 * len(flat.leaves)
    assert replace(value, dict(flat.leaves)) == value


@given(NESTED)
def test_rebuild_is_the_inverse_of_flatten_for_plain_containers(value):
    flat = flatten_call((value,), {"key.word": value})
    renamed = _with_named_keys(value)
    assert rebuild(flat.shape, flat.leaves) == ((renamed,), {"key.word": renamed})


def _with_named_keys(value: Any) -> Any:
    """Slots cannot be empty: an empty key is recorded as its repr."""
    if isinstance(value, dict):
        return {key or "''": _with_named_keys(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(_with_named_keys(item) for item in value)
    return value
