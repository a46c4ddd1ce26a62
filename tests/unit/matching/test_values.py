"""Likeness of tensors by fingerprint, and which slot is which."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from parfocal.judge.moments import fingerprint
from parfocal.matching.values import SAME, UNLIKE, distance, nearest, tie_slots
from tests.unit.matching.traces import value


def apart(a, b):
    return distance(fingerprint(np.asarray(a)), fingerprint(np.asarray(b)))


def noise(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype("float32")


def test_equal_values_in_any_layout_are_the_same():
    x = noise(4, 5, 6)
    assert apart(x, x) == 0.0
    assert apart(x, x.transpose(2, 0, 1)) < 1e-6
    assert apart(x, x.reshape(-1)[::-1]) < 1e-6


def test_rounding_is_the_same_and_mistakes_are_not():
    x = noise(1000)
    assert apart(x, x * (1 + 1e-6 * noise(1000, seed=1))) <= SAME
    for wrong in (x * 1.01, x + 0.01, -x, np.maximum(x, 0), x**2, noise(1000, seed=2)):
        assert apart(x, wrong) > SAME


def test_other_sizes_have_nothing_in_common():
    assert apart(noise(6), noise(7)) == UNLIKE


def test_zeros_and_constants():
    assert apart(np.zeros(5), np.zeros(5)) == 0.0
    assert apart(np.zeros(5), np.ones(5)) >= 1.0 - 1e-9
    assert apart(np.ones(5), np.ones(5)) == 0.0
    assert apart(np.empty(0), np.empty(0)) == 0.0


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_values_that_are_not_finite_never_crash_and_are_not_taken_for_others(bad):
    x = noise(50)
    spoilt = x.copy()
    spoilt[3] = bad
    assert np.isfinite(apart(x, spoilt))
    assert apart(np.full(5, bad), np.ones(5)) > SAME


@given(st.integers(1, 200), st.integers(0, 100))
def test_the_order_of_values_does_not_matter(size, seed):
    x = noise(size, seed=seed)
    shuffled = np.random.default_rng(seed + 1).permutation(x)
    assert apart(x, shuffled) < SAME / 10


def test_the_nearest_of_several():
    a, b, c = (value(noise(9, seed=seed)) for seed in range(3))
    assert nearest({"0": a, "1": b}, {"0": c, "1": b}) == 0.0
    assert nearest({}, {"0": a}) == UNLIKE


def tied(port, reference):
    """Port slot -> reference slot."""
    names = {id(found): slot for slot, found in reference.items()}
    return {slot: names[id(found)] for slot, found in tie_slots(port, reference).items()}


def test_slots_are_tied_by_value_whatever_they_are_called():
    x, y = noise(9), noise(9, seed=1)
    reference = {"0": value(x), "mask": value(y)}
    assert tied({"a": value(y), "b": value(x)}, reference) == {"a": "mask", "b": "0"}


def test_equal_values_are_tied_by_name_then_position():
    x = noise(9)
    reference = {"0": value(x), "1": value(x), "2": value(x)}
    assert tied({"0": value(x), "1": value(x), "2": value(x)}, reference) == {"0": "0", "1": "1", "2": "2"}
    assert tied({"q": value(x), "k": value(x)}, reference) == {"q": "0", "k": "1"}


def test_wrong_values_are_tied_all_the_same_when_the_size_fits():
    assert tied({"0": value(noise(9))}, {"0": value(noise(9, seed=5))}) == {"0": "0"}
    assert tied({"0": value(noise(9))}, {"0": value(noise(8))}) == {}


def test_what_is_given_twice_does_not_stand_for_two_things():
    """A cell that gives its state as output too: its memory, wrong as it is, is the other one's memory."""
    state, memory = value(noise(9)), value(noise(9, seed=1))
    again = replace(state)
    reference = {"0": value(noise(9, seed=2)), "1": value(noise(9, seed=3))}
    assert tied({"0": state, "1.0": again, "1.1": memory}, reference) == {"0": "0", "1.1": "1"}
    assert tied({"0": state, "1.0": again}, reference) == {"0": "0", "1.0": "1"}


def test_a_boolean_mask_is_not_tied_to_one_of_floats():
    flags = np.tril(np.ones((4, 4), bool))
    floats = np.where(flags, 0.0, -np.inf).astype("float32")
    assert tied({"mask": value(floats)}, {"mask": value(flags)}) == {}
    assert tied({"mask": value(flags)}, {"mask": value(flags)}) == {"mask": "mask"}


def test_no_slot_is_used_twice():
    x = noise(9)
    assert len(tied({"0": value(x), "1": value(x)}, {"only": value(x)})) == 1


def test_equally_near_values_are_tied_by_name_whatever_their_last_digits():
    x = noise(9)
    reference = {"a": value(x * np.float32(1.0010005)), "b": value(x * np.float32(1.001))}
    for port in ("ab", "ba"):
        values = {"a": value(x), "b": value(x * np.float32(0.9999))}
        assert tied({slot: values[slot] for slot in port}, reference) == {"a": "a", "b": "b"}


def test_a_nearer_value_comes_before_a_name():
    x = noise(9)
    reference = {"a": value(x * np.float32(1.002)), "b": value(x)}
    assert tied({"a": value(x * np.float32(1.0005)), "b": value(x * np.float32(1.003))}, reference) == {
        "a": "b",
        "b": "a",
    }
