"""The picture of a difference against one made element by element."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from parfocal.judge.metrics import compare_arrays
from parfocal.judge.picture import BINS, CELLS, DECADES, LEVELS, SAMPLE, HeatMap, picture_of


def values_of(heat: HeatMap) -> np.ndarray:
    """As a page reads it."""
    levels = np.asarray([list(bytes.fromhex(row)) for row in heat.levels], dtype=float)
    return np.where(levels > 0, heat.peak * 10.0 ** ((levels / LEVELS - 1) * DECADES), 0.0)


def test_channels_against_places_and_the_places_themselves():
    b = np.random.default_rng(0).normal(size=(2, 5, 4, 3))
    a = b.copy()
    a[:, 3, 0, :] += 0.5  # one channel, the first row
    picture = picture_of(a, b)
    channels, places = picture.maps
    assert (channels.row_axes, channels.column_axes, channels.lengths) == ((1,), (2, 3), (5, 12))
    expected = np.zeros((5, 12))
    expected[3, :3] = 0.5
    np.testing.assert_allclose(values_of(channels), expected, rtol=0.03)
    assert (places.row_axes, places.column_axes, places.lengths) == ((2,), (3,), (4, 3))
    spread = np.zeros((4, 3))
    spread[0] = 0.5 / math.sqrt(5)
    np.testing.assert_allclose(values_of(places), spread, rtol=0.03)


def test_the_histogram_counts_every_element():
    b = np.zeros(100)
    a = np.where(np.arange(100) < 30, 1.0, 0.0)
    histogram = picture_of(a, b).histogram
    assert (histogram.low, histogram.high, sum(histogram.counts)) == (-1.0, 1.0, 100)
    assert (histogram.counts[BINS // 2], histogram.counts[-1]) == (70, 30)


@given(st.lists(st.integers(1, 70), min_size=0, max_size=5), st.integers(0, 9))
def test_any_shape_fits_into_a_few_kilobytes(shape, seed):
    shape = [length if index < 3 else min(length, 4) for index, length in enumerate(shape)]
    random = np.random.default_rng(seed)
    a, b = random.normal(size=(2, *shape)).astype("float32")
    picture = picture_of(a, b)
    if a.size == 1:  # the number says it
        assert picture is None
        return
    assert picture.sampled <= SAMPLE
    for heat in picture.maps:
        assert len(heat.levels) <= CELLS[0]
        assert {len(row) for row in heat.levels} <= set(range(2, 2 * CELLS[1] + 1, 2))


def test_a_large_tensor_is_sampled_and_one_bad_channel_still_shows():
    b = np.zeros((8, 64, 40, 40), dtype="float32")
    a = b.copy()
    a[:, 17] = 1.0
    picture = picture_of(a, b)
    assert picture.sampled <= SAMPLE
    rows = values_of(picture.maps[0]).max(axis=1)
    assert np.flatnonzero(rows > 0.1).tolist() == [17 * CELLS[0] // 64]


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_what_is_not_finite_on_one_side_is_as_dark_as_can_be(bad):
    b = np.ones((3, 4))
    a = b.copy()
    a[1, 2] = bad
    heat = picture_of(a, b).maps[0]
    assert heat.levels[1][4:6] == "ff"
    assert picture_of(a, a).maps[0].levels == ("00" * 4,) * 3
    assert picture_of(np.full(3, bad), np.ones(3)).histogram is None


def test_huge_and_tiny_values_neither_overflow_nor_vanish():
    for size in (1e300, 1e-300):
        heat = picture_of(np.full((2, 2), size), np.zeros((2, 2))).maps[0]
        assert heat.peak == pytest.approx(size)
        assert heat.levels == ("ffff", "ffff")


def test_no_picture_of_other_shapes_or_of_nothing():
    assert picture_of(np.ones(3), np.ones(4)) is None
    assert picture_of(np.ones((0, 3)), np.ones((0, 3))) is None
    assert compare_arrays(np.ones(3), np.zeros(3)).picture is None
    assert compare_arrays(np.ones(3), np.zeros(3), picture=True).picture is not None
    picture_of(np.array([True, False]), np.array([False, False]))
    picture_of(np.ones(3, dtype=np.complex64), np.ones(3, dtype=np.complex64) * 1j)
