"""Sketches: statistics, the fingerprint, and distances against true norms."""

from __future__ import annotations

import hashlib
import json
import math

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from parfocal.errors import FileFormatError, InputError
from parfocal.judge import parallel
from parfocal.judge.projection import SMALL, random_bits
from parfocal.judge.scaled import Scaled
from parfocal.judge.sketch import Sketch, distance, relative_distance, sketch, stats

DTYPES = ["float16", "bfloat16", "float32", "float64", "int8", "uint64", "bool"]
SIZES = [1, 5, 255, 256, 257, 5000, SMALL, SMALL + 1, 262144, 300001]


def as_dtype(name: str) -> np.dtype:
    return np.dtype(getattr(ml_dtypes, name, None) or name)


def normal(size: int, seed: int = 0, dtype="float32") -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(size).astype(as_dtype(dtype))


# ---- statistics and fingerprint


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_sums_against_float64(size, dtype) -> None:
    x = (3 * normal(size, dtype="float64")).astype(as_dtype("int8" if dtype == "uint64" else dtype))
    x = np.abs(x).astype(np.uint64) if dtype == "uint64" else x
    wide, found = x.astype(np.float64), sketch(x)
    mark = found.fingerprint
    assert mark.size == size
    assert (mark.minimum, mark.maximum) == (wide.min(), wide.max())
    assert mark.sum == pytest.approx(math.fsum(wide), abs=2e-7 * math.fsum(np.abs(wide)) + 1e-30)
    assert mark.l1 == pytest.approx(math.fsum(np.abs(wide)), rel=2e-7)
    assert mark.l2 == pytest.approx(math.sqrt(math.fsum(wide**2)), rel=2e-7)
    assert mark.third == pytest.approx(math.fsum(wide**3), abs=3e-7 * math.fsum(np.abs(wide) ** 3) + 1e-30)
    assert found.mean == pytest.approx(wide.mean(), abs=2e-7 * np.abs(wide).mean() + 1e-30)
    assert found.std == pytest.approx(wide.std(), rel=2e-3 if size == 1 else 1e-5, abs=1e-12)


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
@pytest.mark.parametrize("scale", [1e-37, 1e-20, 1e-8, 1e8, 1e20, 1e36])
def test_sums_of_every_scale(dtype, scale) -> None:
    x = (normal(5000, dtype="float64") * scale).astype(as_dtype(dtype))
    unit, mark = x.astype(np.float64) / scale, sketch(x).fingerprint
    assert mark.l2 == pytest.approx(scale * np.linalg.norm(unit), rel=2e-7)
    assert mark.third == pytest.approx(scale**3 * (unit**3).sum(), rel=1e-5)


@pytest.mark.parametrize("value", [0.1, 1 / 3, 1e-3, 12345.678])
@pytest.mark.parametrize("size", [SMALL, 1_000_000])
def test_sums_of_equal_terms_do_not_drift(value, size) -> None:
    """A square is rounded once, a cube twice, sums not at all."""
    x = np.full(size, value, np.float32)
    close, term = 2 * 2.0**-24, float(x[0])
    mark = sketch(x).fingerprint
    assert (mark.sum, mark.l1) == pytest.approx((size * term, size * term), rel=close)
    assert mark.l2 == pytest.approx(math.sqrt(size) * term, rel=close)
    assert mark.third == pytest.approx(size * term**3, rel=close)


def test_squares_beyond_float64() -> None:
    x = normal(5000, dtype="float64")
    for scale in (1e200, 1e-200):
        mark = sketch(x * scale).fingerprint
        assert mark.l2 == pytest.approx(scale * np.linalg.norm(x), rel=1e-12)
    assert sketch(x * 1e200).fingerprint.third == math.copysign(math.inf, (x**3).sum())


def test_deviation_far_from_zero() -> None:
    x = 1000 + normal(200_000)
    assert sketch(x).std == pytest.approx(x.astype(np.float64).std(), rel=1e-9)
    assert sketch(np.full(1000, 0.1, np.float32)).std == 0
    assert sketch(10**15 + np.arange(9)).std == pytest.approx(np.arange(9).std())


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_fingerprint_does_not_depend_on_the_layout(dtype) -> None:
    x = normal(2 * 33 * 41 * 70, dtype=dtype).reshape(2, 33, 41, 70)
    one, two = (sketch(v).fingerprint for v in (x, np.ascontiguousarray(x.transpose(0, 2, 3, 1))))
    assert (one.size, one.minimum, one.maximum) == (two.size, two.minimum, two.maximum)
    assert one.sum == pytest.approx(two.sum, abs=1e-7 * one.l1)
    assert one.l1 == pytest.approx(two.l1, rel=1e-7)
    assert one.l2 == pytest.approx(two.l2, rel=1e-7)
    assert one.third == pytest.approx(two.third, abs=1e-7 * one.l2**3)
    changed = x.copy()
    changed[0, 0, 0, 0] += x.dtype.type(40)
    assert abs(sketch(changed).fingerprint.sum - one.sum) > 1e-5 * one.l1


@settings(max_examples=80, deadline=None)
@given(arrays.arrays(np.float32, st.integers(0, 70), elements=st.floats(width=32)))
def test_census(x) -> None:
    found, quick = sketch(x), stats(x)
    finite = x[np.isfinite(x)].astype(np.float64)
    assert found.nan == quick["nan"] == np.isnan(x).sum()
    assert found.positive_infinity == quick["positive_infinity"] == np.isposinf(x).sum()
    assert found.negative_infinity == quick["negative_infinity"] == np.isneginf(x).sum()
    assert found.fingerprint.size == quick["count"] == x.size
    assert found.mean == quick["mean"]
    if finite.size:
        scale = np.abs(finite).max()
        assert quick["minimum"] == finite.min()
        assert quick["maximum"] == finite.max()
        assert found.mean == pytest.approx(finite.mean(), abs=1e-6 * scale)
        assert found.std == pytest.approx(finite.std(), abs=1e-6 * scale, rel=1e-3)
    else:
        assert (quick["minimum"], quick["maximum"], found.mean, found.std) == (None, None, 0, 0)


@pytest.mark.parametrize("low", [0.5, -8.0, 0.0])
@pytest.mark.parametrize("high", [8.0, -0.5, 0.0])
def test_range_of_bfloat16_from_its_bits(low, high) -> None:
    low, high = min(low, high), max(low, high)
    x = np.linspace(low, high, 80_000).astype(ml_dtypes.bfloat16)
    mark = sketch(np.random.default_rng(0).permutation(x)).fingerprint
    assert (mark.minimum, mark.maximum) == (low, high)


def test_stats_is_plain_json() -> None:
    text = stats(np.array([1, 2, 4], np.int16))
    assert json.loads(json.dumps(text, allow_nan=False)) == text
    assert (text["count"], text["mean"], text["minimum"], text["maximum"]) == (3, 7 / 3, 1, 4)


def test_complex_counts_as_pairs_of_reals() -> None:
    x = np.array([1 + 2j, -3 + 0j])
    found = sketch(x)
    assert found.fingerprint == sketch(np.array([1.0, 2, -3, 0])).fingerprint
    assert distance(sketch(x), sketch(x * 1j)) == pytest.approx(np.linalg.norm(x - x * 1j))


def test_empty_and_scalar() -> None:
    empty = sketch(np.zeros((0, 3), np.float32))
    assert (empty.fingerprint.size, empty.fingerprint.l2, empty.fingerprint.minimum) == (0, 0, None)
    assert distance(empty, empty) == 0
    assert sketch(3).fingerprint.sum == 3
    assert distance(sketch(3), sketch(5)) == 2


# ---- distances


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_equal_arrays_are_zero_apart(size, dtype) -> None:
    x = (3 * normal(size, dtype="float64")).astype(as_dtype("int8")).astype(as_dtype(dtype))
    assert distance(sketch(x), sketch(x.copy())) == 0
    assert relative_distance(sketch(x), sketch(x.copy())) == 0


@pytest.mark.parametrize("size", [5000, SMALL + 1, 1_000_000])
def test_distance_is_unbiased_with_the_stated_error(size) -> None:
    ratios = []
    for seed in range(40):
        x, d = normal(size, 2 * seed), 0.01 * normal(size, 2 * seed + 1)
        true = np.linalg.norm((x + d).astype(np.float64) - x)
        ratios.append(distance(sketch(x + d, seed=seed), sketch(x, seed=seed)) / true)
    assert np.mean(ratios) == pytest.approx(1, abs=4 * 0.044 / math.sqrt(40))
    assert 0.025 < np.std(ratios) < 0.065


@pytest.mark.parametrize(("width", "error"), [(64, 0.088), (1024, 0.022)])
def test_wider_projections_are_more_exact(width, error) -> None:
    zero = sketch(np.zeros(200_000, np.float32), size=width)
    ratios = []
    for seed in range(40):
        d = normal(200_000, seed)
        ratios.append(distance(sketch(d, size=width), zero) / np.linalg.norm(d))
    assert np.std(ratios) == pytest.approx(error, rel=0.5)


def structured(size: int) -> dict[str, np.ndarray]:
    """Differences that a careless choice of signs would cancel or pile up."""
    index = np.arange(size)
    return {
        "constant": np.ones(size),
        "alternating": 1.0 - 2 * (index % 2),
        "stride 256": (index % 256 == 3) * 1.0,
        "stride 512": (index % 512 < 2) * 1.0,
        "stride 2048": (index % 2048 == 100) * 1.0,
        "rows of 256": (index // 256 % 2) * 1.0,
        "period 1000": np.sin(index * 2 * np.pi / 1000),
        "first half": (index < size // 2) * 1.0,
        "run": ((index > 1000) & (index < 1785)) * 1.0,
        "block period": (index % 262144 < 5000) * 1.0,
    }


@pytest.mark.parametrize("size", [10_000, 80_000, 1_000_000])
@pytest.mark.parametrize("name", structured(1))
def test_structured_differences_do_not_cancel(size, name) -> None:
    d = structured(size)[name].astype(np.float32)
    zero = [sketch(np.zeros(size, np.float32), seed=seed) for seed in range(10)]
    ratios = [distance(sketch(d, seed=s.seed), s) / np.linalg.norm(d) for s in zero]
    assert min(ratios) > 0.35
    assert max(ratios) < 1.8
    assert np.mean(ratios) == pytest.approx(1, abs=0.2)


@pytest.mark.parametrize("size", [300, 100_000])
def test_a_single_element_is_exact(size) -> None:
    x = normal(size)
    y = x.copy()
    y[size // 3] += 1000
    assert distance(sketch(y), sketch(x)) == pytest.approx(1000, rel=1e-4)


@pytest.mark.parametrize("size", [5000, 300_000])
def test_dtypes_share_their_signs(size) -> None:
    x = normal(size, dtype="bfloat16")
    base = sketch(x)
    for other in (x.astype(np.float32), x.astype(np.float64)):
        assert distance(base, sketch(other)) <= 5e-7 * base.fingerprint.l2


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float64", ">f4"])
def test_signs_follow_the_index_not_the_memory(dtype) -> None:
    x = normal(300_000, dtype="float32").reshape(300, 1000)
    x = x.astype(as_dtype(dtype)) if dtype == "bfloat16" else x.astype(dtype)
    base = sketch(x)
    assert distance(base, sketch(np.asfortranarray(x))) <= 5e-7 * base.fingerprint.l2
    assert distance(base, sketch(np.repeat(x, 2, axis=1)[:, ::2])) <= 5e-7 * base.fingerprint.l2
    odd = np.empty(x.size + 1, x.dtype)[1:]  # bfloat16 that does not begin at a 32-bit word
    odd[:] = x.reshape(-1)
    assert distance(base, sketch(odd)) <= 5e-7 * base.fingerprint.l2


def test_rounding_inside_a_sketch_is_small() -> None:
    x = normal(2_000_000)
    floor = distance(sketch(x), sketch(x.astype(np.float64)))
    assert floor < 3e-7 * np.linalg.norm(x)


def test_threads_and_their_number_do_not_change_a_sketch(monkeypatch) -> None:
    x = normal(3_000_001)
    found = set()
    for cores in (1, 2, 4):
        monkeypatch.setattr(parallel, "_cores", lambda cores=cores: cores)
        found.add(json.dumps(sketch(x).to_json()))
    assert len(found) == 1


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("size", [50, 300_000])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_nonfinite_values_count_by_place(value, size, dtype) -> None:
    x = normal(size, dtype=dtype)
    y, z = x.copy(), x.copy()
    y[7], z[8] = value, value
    assert distance(sketch(y), sketch(y.copy())) == 0
    assert distance(sketch(x), sketch(y)) == math.inf
    assert distance(sketch(y), sketch(z)) == math.inf
    if value == math.inf:
        w = y.copy()
        w[7] = -value
        assert distance(sketch(y), sketch(w)) == math.inf


def test_relative_distance() -> None:
    b = np.array([3.0, 4.0])
    assert relative_distance(sketch(2 * b), sketch(b)) == pytest.approx(1)
    assert relative_distance(sketch(b), sketch(0 * b)) == math.inf


@pytest.mark.parametrize(
    ("other", "what"),
    [
        (sketch(np.ones(4), seed=1), "seed: 0 against 1"),
        (sketch(np.ones(4), size=64), "size: 256 against 64"),
        (sketch(np.ones(5)), "number of elements: 4 against 5"),
    ],
)
def test_sketches_that_cannot_be_compared(other, what) -> None:
    with pytest.raises(InputError, match=f"sketches differ in their {what}"):
        distance(sketch(np.ones(4)), other)


# ---- the generator and the file


PINNED = ["24592bb6c3b069d1", "04a91d3ac0572b3e"]


def test_signs_never_change() -> None:
    """Stored sketches must stay comparable: these values are part of the format."""
    assert random_bits(7, "element", 5, 1)[0] == random_bits(7, "element", 0, 6)[5]
    small = sketch(np.arange(1, 301)).projection
    large = sketch(np.arange(300_000) % 1024).projection
    digest = [hashlib.sha256(np.array(p, "<f8").tobytes()).hexdigest()[:16] for p in (small, large)]
    assert digest == PINNED


def test_json_round_trip() -> None:
    found = sketch(np.array([1.5, math.nan, -2.0, math.inf]), seed=3, size=32)
    text = json.loads(json.dumps(found.to_json(), allow_nan=False))
    assert Sketch.from_json(text) == found
    infinite = sketch(np.array([1e300] * 9))
    assert infinite.fingerprint.third == math.inf
    assert Sketch.from_json(json.loads(json.dumps(infinite.to_json(), allow_nan=False))) == infinite


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.pop("mean"),
        lambda text: text.update(extra=1),
        lambda text: text.update(mean="fast"),
        lambda text: text.update(mean=True),
        lambda text: text.update(nan=1.5),
        lambda text: text.update(projection=[1.0]),
        lambda text: text.update(projection=[None] * 16),
        lambda text: text.update(projection="x" * 16),
        lambda text: text.update(fingerprint=None),
        lambda text: text["fingerprint"].pop("l2"),
        lambda text: text["fingerprint"].update(sum=None),
        lambda text: text["fingerprint"].update(size="4"),
    ],
)
def test_damaged_json_is_said(change) -> None:
    text = sketch(np.ones(4), size=16).to_json()
    change(text)
    with pytest.raises(FileFormatError):
        Sketch.from_json(text)
    with pytest.raises(FileFormatError, match="expected the fields"):
        Sketch.from_json([1, 2])


@pytest.mark.parametrize("size", [0, 8, 100, 2048, 256.5, "256"])
def test_bad_size(size) -> None:
    with pytest.raises(InputError, match="multiple of 16 from 16 to 1024"):
        sketch(np.ones(3), size=size)


def test_no_numbers() -> None:
    with pytest.raises(InputError, match="holds no numbers"):
        sketch(np.array(["a"]))
    with pytest.raises(InputError, match="holds no numbers"):
        stats(None)


@pytest.mark.parametrize("size", [1e-320, 1e-301, 1e-30, 1.0, 1e30, 1e300, 2**70 + 1])
def test_a_root_is_the_same_number_with_and_without_an_exponent(size):
    shift = -40 if size > 1 else 40
    for count in (1, 3, 768, 2359296):
        same = Scaled(math.ldexp(size, shift), -shift)
        assert Scaled(size).root_over(Scaled(count)) == same.root_over(Scaled(float(count)))
