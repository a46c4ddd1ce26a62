"""The shapes of an error: where each must be found, and where none may be."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from parfocal.judge import Tolerance, compare_arrays
from parfocal.judge.shape import AxisIndices, AxisOrder, Borders, ErrorShape

NOTHING = ErrorShape(0)


def shape_of(a, b, tolerance: Tolerance | None = None) -> ErrorShape:
    found = compare_arrays(a, b, tolerance=tolerance, shape=True).error_shape
    assert found is not None
    return found


def normal(*shape: int, seed: int = 0, dtype="float32") -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def silent(found: ErrorShape) -> bool:
    """Whether nothing but the number of differences was found."""
    return found == ErrorShape(found.differing)


# ---- nothing to find


@pytest.mark.parametrize("shape", [(), (1,), (3,), (4, 4), (2, 3, 8, 8)])
def test_equal_arrays_have_no_shape(shape) -> None:
    assert shape_of(normal(*shape), normal(*shape)) == NOTHING
    assert shape_of(np.zeros(shape), np.zeros(shape)) == NOTHING


def test_rounding_has_no_shape() -> None:
    b = normal(2, 3, 8, 8)
    a = b * (1 + 1e-7 * normal(2, 3, 8, 8, seed=1))
    assert shape_of(a, b) == NOTHING


@pytest.mark.parametrize("scale", [1e-4, 1e-2, 1.0, 100.0])
@pytest.mark.parametrize("shape", [(1000,), (30, 40), (2, 3, 8, 8), (4, 4), (5,), (2, 2)])
def test_noise_has_no_shape(shape, scale) -> None:
    for seed in range(5):
        b = normal(*shape, seed=seed)
        assert silent(shape_of(b + scale * normal(*shape, seed=seed + 99), b))


@pytest.mark.parametrize("shape", [(1,), (2,), (3,), (7,), (2, 3), (1, 1, 2, 3)])
def test_tiny_arrays_have_no_shape(shape) -> None:
    b = normal(*shape)
    for a in (2 * b, b + 1, np.zeros_like(b), b[..., ::-1].copy()):
        assert silent(shape_of(a, b))


def test_relative_noise_has_no_shape() -> None:
    b = normal(64, 64)
    assert silent(shape_of(b * (1 + 0.01 * normal(64, 64, seed=1)), b))


@pytest.mark.parametrize("dtype", ["bool", "int64"])
def test_labels_have_no_permutation(dtype) -> None:
    generator = np.random.default_rng(0)
    b = generator.integers(0, 2, 200).astype(dtype)
    a = generator.permutation(b)
    assert shape_of(a, b).order is None


def test_scattered_differences_are_neither_border_nor_channel() -> None:
    b = normal(2, 16, 16, 16)
    a = b.copy()
    a.reshape(-1)[::97] += 1
    assert silent(shape_of(a, b))


def test_a_single_difference_in_a_corner_has_no_shape() -> None:
    b = normal(2, 3, 16, 16)
    a = b.copy()
    a[0, 0, 0, 0] += 1
    assert shape_of(a, b) == ErrorShape(1)


# ---- factor and offset


@pytest.mark.parametrize("factor", [2.0, 0.5, -1.0, 1.001, 100.0])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_factor(factor, dtype) -> None:
    b = normal(4, 100, dtype=dtype)
    found = shape_of((b * factor).astype(dtype), b)
    assert found.factor == pytest.approx(factor, rel=1e-6)
    assert found.offset is None


def test_factor_of_a_few_parts_in_a_million() -> None:
    b = normal(400)
    found = shape_of((b * (1 + 5e-6)).astype(np.float32), b)
    assert found.factor == pytest.approx(1 + 5e-6, abs=2e-7)


def test_factor_with_zeros_and_bfloat16() -> None:
    b = np.maximum(normal(500), 0).astype(ml_dtypes.bfloat16)
    assert shape_of(b * b.dtype.type(2), b).factor == 2


def test_one_dominating_element_is_not_a_factor() -> None:
    b = normal(200)
    b[3] = 1e6
    a = b.copy()
    a[3] *= 2
    assert shape_of(a, b).factor is None


@pytest.mark.parametrize("offset", [1.0, -0.25, 1e-3])
def test_offset(offset) -> None:
    b = normal(4, 100)
    found = shape_of(b + np.float32(offset), b)
    assert found.offset == pytest.approx(offset, rel=1e-3)
    assert found.factor is None


def test_offset_of_integers() -> None:
    b = np.arange(50)
    found = shape_of(b + 3, b)
    assert (found.offset, found.factor) == (3, None)


def test_constant_reference_fits_both() -> None:
    found = shape_of(np.full(20, 3.0), np.full(20, 1.5))
    assert (found.factor, found.offset) == (2, 1.5)


def test_offset_of_one_channel_is_a_channel_not_an_offset() -> None:
    b = normal(4, 16, 6, 6)
    a = b.copy()
    a[:, 5] += 0.5
    found = shape_of(a, b)
    assert (found.offset, found.factor, found.borders) == (None, None, None)
    assert found.indices == (AxisIndices(1, (5,)),)
    assert found.differing == 4 * 36


# ---- zeros


def test_zeros_on_one_side() -> None:
    b = normal(1000)
    a = np.where(np.arange(1000) % 3 == 0, 0, b)
    assert shape_of(a, b).zero_side == "a"
    assert shape_of(b, a).zero_side == "b"
    a[1] += 1
    assert shape_of(a, b).zero_side is None


# ---- places


@pytest.mark.parametrize(
    ("shape", "axes"),
    [((2, 8, 12, 12), (2, 3)), ((2, 12, 12, 8), (1, 2)), ((12, 12), (0, 1)), ((1, 2, 8, 8, 8), (2, 3, 4))],
)
@pytest.mark.parametrize("width", [1, 2])
def test_borders(shape, axes, width) -> None:
    b = normal(*shape)
    interior = tuple(slice(width, -width) if axis in axes else slice(None) for axis in range(len(shape)))
    a = b * 1.5
    a[interior] = b[interior]
    assert shape_of(a, b).borders == Borders(axes, width)
    a[tuple(n // 2 for n in shape)] += 1
    assert shape_of(a, b).borders is None


def test_border_on_the_far_sides_only() -> None:
    b = normal(2, 4, 16, 16)
    a = b.copy()
    a[:, :, -1, :] += 1
    a[:, :, :, -1] += 1
    assert shape_of(a, b).borders == Borders((2, 3), 1)


@pytest.mark.parametrize("tolerance", [None, Tolerance(1e-4, 1e-4)])
def test_indices_along_several_axes(tolerance) -> None:
    b = normal(8, 32, 10)
    a = b + (1e-6 * normal(8, 32, 10, seed=3) if tolerance else 0)
    a[3, [4, 7]] += 1
    found = shape_of(a, b, tolerance)
    assert found.indices == (AxisIndices(0, (3,)), AxisIndices(1, (4, 7)))
    assert found.differing == 20


def test_nan_in_one_channel_is_a_place() -> None:
    b = normal(4, 16, 6)
    a = b.copy()
    a[:, 2] = np.nan
    found = shape_of(a, b)
    assert (found.differing, found.indices) == (24, (AxisIndices(1, (2,)),))


# ---- order


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_permutation_along_an_axis(axis) -> None:
    b = normal(5, 6, 7)
    order = np.random.default_rng(4).permutation(b.shape[axis])
    noise = 1 + 1e-7 * normal(5, 6, 7, seed=5)
    found = shape_of(b.take(order, axis=axis) * noise, b)
    assert found.order == AxisOrder(axis, tuple(order.tolist()))
    assert found.transposed is None


def test_two_swapped_channels_among_dead_ones() -> None:
    b = normal(2, 8, 5, 5)
    b[:, 4:] = 0
    a = b.copy()
    a[:, [0, 2]] = b[:, [2, 0]]
    assert shape_of(a, b).order == AxisOrder(1, (2, 1, 0, 3, 4, 5, 6, 7))


def test_channel_order_of_images() -> None:
    b = np.random.default_rng(0).integers(0, 256, (2, 3, 8, 8)).astype(np.uint8)
    assert shape_of(b[:, ::-1], b).order == AxisOrder(1, (2, 1, 0))


def test_transposition() -> None:
    b = normal(12, 12)
    found = shape_of(b.T, b)
    assert (found.transposed, found.reshaped) == ((1, 0), False)
    assert shape_of(b.T + 0.1, b).transposed is None


def test_axes_exchanged_inside_the_same_shape() -> None:
    b = normal(2, 4, 6, 6)
    assert shape_of(b.transpose(0, 1, 3, 2), b).transposed == (0, 1, 3, 2)


def test_memory_read_with_the_wrong_layout() -> None:
    b = normal(2, 3, 4, 5)
    found = shape_of(b.transpose(0, 2, 3, 1).reshape(b.shape), b)
    assert (found.transposed, found.reshaped) == ((0, 2, 3, 1), True)


def test_symmetric_matrices_are_not_transposed() -> None:
    b = normal(12, 12)
    b = b + b.T
    assert shape_of(b + 0.5 * normal(12, 12, seed=2), b).transposed is None


def test_differing_shapes_in_another_layout() -> None:
    b = normal(6, 7)
    assert shape_of(b.T, b) == ErrorShape(shape_of(b.T, b).differing, transposed=(1, 0))
    assert shape_of(b.reshape(-1), b) == ErrorShape(0, reshaped=True)
    assert silent(shape_of(normal(7, 6, seed=1), b))
    assert compare_arrays(normal(3), normal(4), shape=True).error_shape is None


def test_not_asked_for() -> None:
    assert compare_arrays(normal(20), normal(20) + 1).error_shape is None


def test_complex_arrays_have_places_but_no_factor() -> None:
    b = (normal(4, 16, 6) + 1j * normal(4, 16, 6, seed=1)).astype(np.complex64)
    a = b.copy()
    a[:, 2] *= 2
    found = shape_of(a, b)
    assert (found.factor, found.indices) == (None, (AxisIndices(1, (2,)),))
