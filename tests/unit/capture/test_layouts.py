"""Laying one array out like another."""

from __future__ import annotations

import numpy as np
import pytest

from parfocal.capture.layouts import arrangement, distance, same_extents


@pytest.fixture
def values():
    return np.random.default_rng(0).normal(size=(2, 3, 4, 5)).astype("float32")


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [((2, 3), (3, 2), True), ((2, 3), (2, 3, 1), True), ((6,), (2, 3), False), ((), (1,), True)],
)
def test_extents(one, other, same):
    assert same_extents(one, other) is same


def test_the_same_layout_stays(values):
    assert arrangement(values, values).order == (0, 1, 2, 3)


def test_moved_axes_are_found_by_their_extents(values):
    moved = values.transpose(0, 2, 3, 1)
    assert np.array_equal(arrangement(values, moved).apply(values), moved)


def test_moved_axes_of_one_extent_are_found_by_value():
    cube = np.random.default_rng(0).normal(size=(4, 4, 4))
    moved = cube.transpose(2, 0, 1) * (1 + 1e-6)
    assert arrangement(cube, moved).order == (2, 0, 1)


def test_values_that_fit_no_layout_are_left_as_they_lie():
    random = np.random.default_rng(0)
    cube, other = random.normal(size=(2, 4, 4, 4))
    assert arrangement(cube, other).order == (0, 1, 2)


def test_axes_of_extent_one_come_and_go(values):
    flat = values[:, :1].reshape(2, 4, 5)
    assert np.array_equal(arrangement(values[:, :1], flat).apply(values[:, :1]), flat)


def test_distance_is_relative_and_sees_infinities():
    one = np.array([3.0, 4.0, -np.inf])
    assert distance(one, one) == 0
    assert distance(one * 1.1, one) == pytest.approx(1 - 1 / 1.1)
    assert distance(np.array([3.0, 4.0, 5.0]), one) == np.inf
    assert distance(np.zeros(3), np.zeros(3)) == 0
    assert distance(np.empty(0), np.empty(0)) == 0
