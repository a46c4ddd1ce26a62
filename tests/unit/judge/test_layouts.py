"""How tensors lie: axes are moved only where values leave no doubt."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parfocal.judge.layouts import SAME, Layout, distance, fit, layouts, same_extents


def noise(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype("float32")


def test_equal_shapes_and_values_stay_as_they_are():
    x = noise(2, 3, 4)
    assert fit(x, x) == Layout(None, (2, 3, 4))


@pytest.mark.parametrize("order", [p for p in permutations(range(4)) if p != (0, 1, 2, 3)])
@pytest.mark.parametrize("shape", [(2, 3, 4, 5), (4, 4, 4, 4), (2, 3, 3, 2)])
def test_moved_axes_are_found_by_value(shape, order):
    x = noise(*shape)
    moved = x.transpose(order)
    layout = fit(x, moved)
    assert np.array_equal(layout.apply(x), moved)


def test_moved_axes_are_found_through_rounding_noise():
    x = noise(8, 8, 8)
    moved = x.transpose(2, 0, 1) * (1 + 1e-6 * noise(8, 8, 8, seed=1))
    assert fit(x, moved).permutation == (2, 0, 1)


def test_a_wrong_port_of_the_same_shape_is_not_called_permuted():
    for seed in range(20):
        assert fit(noise(6, 6, 6, seed=seed), noise(6, 6, 6, seed=seed + 100)).is_identity


def test_a_constant_factor_or_offset_is_not_called_permuted():
    x = noise(5, 5)
    assert fit(x, 2 * x).is_identity
    assert fit(x, x + 1).is_identity
    assert fit(x, -x).is_identity


def test_symmetric_data_lies_as_it_is():
    x = noise(6, 6)
    symmetric = x + x.T
    assert fit(symmetric, symmetric.T.copy()).is_identity
    assert fit(np.ones((3, 3)), np.ones((3, 3))).is_identity
    assert fit(np.zeros((3, 3)), np.zeros((3, 3))).is_identity


def test_when_only_one_order_of_axes_fits_the_shape_it_is_taken_whatever_the_values():
    layout = fit(noise(2, 3, 4, 5), noise(2, 4, 5, 3, seed=1))
    assert layout == Layout((0, 2, 3, 1), (2, 4, 5, 3))


def test_axes_of_extent_one_come_and_go():
    x = noise(2, 3, 1, 1)
    assert np.array_equal(fit(x, x.reshape(2, 3)).apply(x), x.reshape(2, 3))
    assert fit(noise(2, 3), noise(1, 2, 3)) == Layout(None, (1, 2, 3))
    assert fit(noise(1), np.float32(3)) == Layout(None, ())


def test_images_that_become_rows_of_pixels_and_back():
    images = noise(2, 5, 3, 4)
    rows = images.reshape(2, 5, 12).transpose(0, 2, 1)
    for reference, port in ((images, rows), (rows, images)):
        assert np.array_equal(fit(reference, port).apply(reference), port)


def test_windows_and_heads():
    x = noise(2, 6, 8)  # batch, tokens, heads * size
    heads = x.reshape(2, 6, 4, 2).transpose(0, 2, 1, 3)
    assert np.array_equal(fit(x, heads).apply(x), heads)
    assert np.array_equal(fit(heads, x).apply(heads), x)
    flat = x.reshape(12, 8)
    assert fit(x, flat).is_identity
    assert np.array_equal(fit(flat, x).apply(flat), x)


def test_a_wrong_port_of_another_rank_still_lies_as_it_should():
    images = noise(2, 5, 3, 4)
    rows = images.reshape(2, 5, 12).transpose(0, 2, 1)
    wrong = rows * 1.3 + 0.2 * noise(2, 12, 5, seed=1)
    assert np.array_equal(fit(images, wrong).apply(images), rows)


def test_shapes_that_do_not_fit():
    assert fit(noise(2, 3), noise(2, 4)) is None
    assert fit(noise(2, 3), noise(3, 4)) is None
    assert list(layouts((2, 3), (7,))) == []


def test_too_many_axes_are_not_tried():
    x = noise(2, 2, 2, 2, 2, 2)
    assert fit(x, x.transpose(5, 4, 3, 2, 1, 0)).is_identity


def test_empty_tensors_fit():
    assert fit(np.empty((0, 3)), np.empty((0, 3))) == Layout(None, (0, 3))
    assert fit(np.empty((0, 0)), np.empty((0, 0))).is_identity


def test_infinities_and_nans_neither_warn_nor_move_axes():
    mask = np.triu(np.full((5, 5), -np.inf, "float32"), 1)
    assert fit(mask, mask).is_identity
    assert fit(mask, noise(5, 5)).is_identity
    holes = noise(4, 4)
    holes[0, 1] = np.nan
    assert fit(holes, holes).is_identity


def test_a_transposed_mask_of_infinities_is_seen():
    mask = np.triu(np.full((5, 5), -np.inf, "float32"), 1)
    assert fit(mask, mask.T).permutation == (1, 0)


def test_booleans_integers_and_complex_numbers():
    ids = np.random.default_rng(0).integers(0, 99, (5, 5))
    assert fit(ids, ids.T).permutation == (1, 0)
    flags = ids > 50
    assert fit(flags, flags.T).permutation == (1, 0)
    waves = noise(4, 4) + 1j * noise(4, 4, seed=1)
    assert fit(waves, waves.T).permutation == (1, 0)
    real = noise(4, 4)
    assert fit(real + 0j, real + 1j * noise(4, 4, seed=2)).is_identity


@settings(max_examples=60, deadline=None)
@given(
    shape=st.lists(st.integers(1, 4), min_size=1, max_size=5).map(tuple),
    data=st.data(),
    seed=st.integers(0, 1000),
)
def test_whatever_order_the_axes_are_put_in_the_layout_undoes_it(shape, data, seed):
    order = data.draw(st.permutations(range(len(shape))))
    x = noise(*shape, seed=seed)
    moved = x.transpose(order)
    layout = fit(x, moved)
    assert layout is not None
    # of few numbers another order may show the same values: that is as good
    assert distance(layout.apply(x), moved) < SAME
    if x.size >= 8:
        assert np.array_equal(layout.apply(x), moved)


@settings(max_examples=60, deadline=None)
@given(shape=st.lists(st.integers(2, 4), min_size=2, max_size=4).map(tuple), seed=st.integers(0, 1000))
def test_independent_values_of_one_shape_are_never_permuted(shape, seed):
    if np.prod(shape) < 8:
        return  # so few numbers may agree by chance
    assert fit(noise(*shape, seed=seed), noise(*shape, seed=seed + 5000)).is_identity


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [((2, 3), (3, 2), True), ((2, 3), (2, 3, 1), True), ((6,), (2, 3), False), ((), (1,), True)],
)
def test_extents(one, other, same):
    assert same_extents(one, other) is same


def test_distance_is_relative_and_sees_infinities():
    one = np.array([3.0, 4.0, -np.inf])
    assert distance(one, one) == 0
    assert distance(one * 1.1, one) == pytest.approx(0.1)
    assert distance(np.array([3.0, 4.0, 5.0]), one) == np.inf
    assert distance(np.zeros(3), np.zeros(3)) == 0
    assert distance(np.empty(0), np.empty(0)) == 0


@given(shape=st.lists(st.integers(2, 4), min_size=1, max_size=4), data=st.data(), size=st.integers(1, 9))
def test_a_move_is_the_same_for_a_batch_of_another_size(shape, data, size):
    """Batches of any size lie as the first one: only the extent of the samples is another."""
    axes = range(len(shape))
    order = data.draw(st.permutations(axes))
    known = Layout(
        None if tuple(order) == tuple(axes) else tuple(order), tuple(shape[axis] for axis in order)
    )
    other = np.arange(size * int(np.prod(shape[1:]))).reshape([size, *shape[1:]])
    found = known.for_shapes(other.shape, other.transpose(order).shape)
    assert found is not None
    assert np.array_equal(found.apply(other), other.transpose(order))


def test_a_merge_and_a_split_are_the_same_for_a_batch_of_another_size():
    image = np.arange(2 * 3 * 4 * 5).reshape(2, 3, 4, 5)
    rows = image.transpose(0, 2, 3, 1).reshape(-1, 3)
    merged, split = fit(image, rows), fit(rows, image)
    shorter = image[:1]
    assert np.array_equal(merged.for_shapes((1, 3, 4, 5), (20, 3)).apply(shorter), rows[:20])
    assert np.array_equal(split.for_shapes((20, 3), (1, 3, 4, 5)).apply(rows[:20]), shorter)
    assert merged.for_shapes((1, 3, 4, 5), (40, 3)) is None
