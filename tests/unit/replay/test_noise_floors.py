"""How values are moved, what is refused, and which arrays are held: within a limit, the last ones first."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from parfocal.judge.floors import EPSILON, NOTHING
from parfocal.replay import noise_floors
from parfocal.replay.ledger import Ledger
from parfocal.replay.noise_floors import EXACT, HeldArrays


@pytest.mark.parametrize("trial", [0, 1, 2])
@pytest.mark.parametrize("count", [0, 1, 5, 65537, 65537 * 4])
def test_signs_go_round_from_another_place_for_every_trial(count: int, trial: int) -> None:
    signs = noise_floors._signs(count, trial)
    around = (np.arange(count) + 65537 * trial) % noise_floors._SIGNS.size
    np.testing.assert_array_equal(signs, noise_floors._SIGNS[around])


class Made(noise_floors.NoiseFloors):
    """Has one array of the port in float64 at hand; what else is asked is run."""

    def __init__(self, exact: np.ndarray, dtype: str) -> None:
        value = SimpleNamespace(data=SimpleNamespace(dtype=dtype))
        node = SimpleNamespace(inputs={"0": value}, outputs={}, parent=None)
        self.port = SimpleNamespace(trace=SimpleNamespace(nodes=[node]))
        self._held = HeldArrays(2**20)
        self._held.put((noise_floors.PORT_EXACT, (0,)), PLACE, exact, PLACE)

    def port_result(self, calls: noise_floors.Calls, what: noise_floors.What) -> np.ndarray:
        return np.full(3, 7.0, "float32")


PLACE = (0, "input", "0", "forward")
ONE, OTHER, THIRD = (EXACT, (1,)), (EXACT, (2,)), (EXACT, (3,))
KILOBYTE = 1024


@pytest.mark.parametrize(
    ("exact", "dtype", "given"),
    [
        ([1.0, 1.0 / 3.0, -np.inf], "float32", np.array([1.0, 1.0 / 3.0, -np.inf], "float32")),
        ([1.0, 2.0, -1.7e308], "float32", np.full(3, 7.0, "float32")),  # the least number of float64
        ([1.0, 2.0, 3.0], "bfloat16", np.full(3, 7.0, "float32")),
    ],
    ids=["rounded", "too large", "unknown"],
)
def test_what_the_port_made_is_not_computed_again_where_it_is_at_hand(
    exact: list[float], dtype: str, given: np.ndarray
) -> None:
    made = Made(np.array(exact), dtype).port_made(0, PLACE)
    assert made is not None
    assert made.dtype == np.float32
    np.testing.assert_array_equal(made, given)


class Refusing:
    """A repeater of a framework that lacks a kernel."""

    def __init__(self) -> None:
        self.effort = None
        self.trace = SimpleNamespace(nodes=[SimpleNamespace(path="layer")])
        self.asked = 0

    def repeat(self, *_: object, **__: object) -> None:
        self.asked += 1
        raise RuntimeError("no kernel")


def test_what_is_refused_is_noted_and_not_asked_again_for_another_trial() -> None:
    ours, theirs = Refusing(), Refusing()
    floors = noise_floors.NoiseFloors(ours, theirs, {"layer.weight": np.ones(3)}, Ledger())
    for _ in range(2):
        assert floors.moved([0], "layer.weight") == NOTHING  # of few numbers: several trials
    assert (ours.asked, theirs.asked) == (1, 0)
    assert floors.still([0], "layer.weight") == NOTHING
    assert ours.asked == 2  # another question
    assert len(floors.problems) == 1
    assert "no kernel" in floors.problems[0]


@pytest.mark.parametrize("change", [noise_floors._moved, noise_floors._moved_alike])
def test_values_move_by_a_unit_and_labels_stay(change: noise_floors.Change) -> None:
    values = np.random.default_rng(0).normal(size=(7, 5)).astype("float32")
    moved = change(values, "float32", 0)
    assert moved.dtype == values.dtype
    assert (np.abs(moved / values.astype("float64") - 1.0) <= 2 * EPSILON["float32"]).all()
    assert (moved != values).any()
    labels = np.arange(5.0, dtype="float32")
    assert change(labels, "float32", 0) is labels


def test_only_one_of_them_moves_equal_values_alike() -> None:
    values = np.full(64, 0.7, "float32")
    assert np.unique(noise_floors._moved(values, "float32", 0)).size == 2
    assert np.unique(noise_floors._moved_alike(values, "float32", 0)).size == 1


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
    held.put(THIRD, place(3), array(), place(3))
    assert held.get(ONE)
    assert not held.get(OTHER)


def test_an_answer_that_does_not_fit_keeps_what_was_asked_for():
    held = HeldArrays(2 * KILOBYTE)
    for order in range(10):
        held.put(ONE, place(order), array(order), place(7))
    kept = held.get(ONE)
    assert kept[place(7)][0] == 7.0
    assert sum(each.nbytes for each in kept.values()) <= held.limit


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
