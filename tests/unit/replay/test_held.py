"""Arrays of repeated calls are held within a limit, the last ones first."""

from __future__ import annotations

import numpy as np

from parfocal.replay.held import HeldArrays

ONE, OTHER = ("exact", (1,)), ("exact", (2,))
KILOBYTE = 1024


def array(fill=0.0):
    return np.full(KILOBYTE // 8, fill)


def place(order):
    return order, "output", "0", "forward"


def test_what_was_put_is_a_copy():
    held, given = HeldArrays(KILOBYTE), array(1.0)
    held.put(ONE, place(1), given, place(1))
    given[:] = 2.0
    assert held.get(ONE)[place(1)][0] == 1.0
    assert held.get(OTHER) == {}


def test_the_oldest_answer_goes_when_another_one_needs_its_room():
    held = HeldArrays(2 * KILOBYTE)
    held.put(ONE, place(1), array(), place(1))
    held.put(OTHER, place(2), array(), place(2))
    assert held.get(ONE)  # asked for again: now the other one is the oldest
    held.put(("exact", (3,)), place(3), array(), place(3))
    assert held.get(ONE)
    assert not held.get(OTHER)


def test_an_answer_that_does_not_fit_keeps_what_was_asked_for():
    held = HeldArrays(2 * KILOBYTE)
    for order in range(10):
        held.put(ONE, place(order), array(order), place(7))
    kept = held.get(ONE)
    assert kept[place(7)][0] == 7.0
    assert sum(each.nbytes for each in kept.values()) <= held.limit


def test_putting_many_arrays_looks_at_each_a_few_times():
    sizes = []

    class Counted(np.ndarray):
        @property
        def nbytes(self):
            sizes.append(1)
            return super().nbytes

    for count in (100, 400):
        held = HeldArrays(count * KILOBYTE)
        sizes.clear()
        for order in range(count):
            held.put(ONE, place(order), array().view(Counted), place(0))
        assert len(held.get(ONE)) == count
        assert len(sizes) <= 3 * count


def test_one_array_larger_than_the_limit_is_held_alone():
    held = HeldArrays(10)
    held.put(ONE, place(1), array(), place(1))
    held.put(ONE, place(2), array(), place(1))
    assert set(held.get(ONE)) == {place(1)}


def test_an_array_put_again_takes_the_place_of_the_old_one():
    held = HeldArrays(2 * KILOBYTE)
    for fill in range(5):
        held.put(ONE, place(1), array(fill), place(1))
    held.put(OTHER, place(2), array(), place(2))
    assert held.get(ONE)[place(1)][0] == 4.0
    assert held.get(OTHER)
