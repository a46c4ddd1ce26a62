"""Objects that calls are handed: copied with their state, sharing what is no state of theirs."""

from __future__ import annotations

from typing import Any

import numpy as np

from parfocal.replay.stateful_arguments import MOST, copies_of


class Layer:
    def __init__(self) -> None:
        self.keys: Any = None


class Cache:
    """Grows with every call."""

    def __init__(self, tensor: Any) -> None:
        self.layers = [Layer()]
        self.seen: dict[str, Any] = {"tensor": tensor, "own": self}
        self.kind = Layer


class Callable:
    def __call__(self) -> None: ...


def is_array(value: Any) -> bool:
    return isinstance(value, np.ndarray)


def test_a_copy_keeps_what_was_and_shares_tensors() -> None:
    tensor = np.ones(2)
    cache = Cache(tensor)
    copy = copies_of({"cache": cache}, is_array)["cache"]
    cache.layers[0].keys = tensor
    cache.layers.append(Layer())
    cache.seen["more"] = 1
    assert len(copy.layers) == 1
    assert copy.layers[0].keys is None
    assert copy.seen.keys() == {"tensor", "own"}
    assert copy.seen["tensor"] is tensor
    assert copy.seen["own"] is copy
    assert type(copy) is Cache
    assert copy.kind is Layer


def test_one_object_in_two_places_stays_one() -> None:
    cache = Cache(None)
    found = copies_of({"a": cache, "b": cache}, is_array)
    assert found["a"] is found["b"] is not cache


def test_what_has_no_state_of_its_own_is_handed_on_as_it_is() -> None:
    leaves = {"0": np.ones(2), "1": 3, "2": "word", "3": None, "4": Layer, "5": Callable(), "6": np, "7": len}
    assert copies_of(leaves, is_array) == {}


def test_what_hangs_on_to_too_much_is_handed_on_as_it_is() -> None:
    cache = Cache(None)
    cache.seen["all"] = [Layer() for _ in range(MOST + 1)]
    assert copies_of({"large": cache}, is_array) == {}
