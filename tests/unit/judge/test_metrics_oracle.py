"""Every figure against exact arithmetic, for all dtypes and their mixtures."""

from __future__ import annotations

import math
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parfocal.judge import Tolerance, compare_arrays, reading

from .oracle import oracle, python_values, to_float

INTEGERS = ["bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]
FLOATS = ["float16", "bfloat16", "float32", "float64", "float8_e4m3fn"]
SPECIAL = [math.nan, math.inf, -math.inf]
TOLERANCES = [
    Tolerance(),
    Tolerance(1e-3, 0.0),
    Tolerance(0.0, 0.5),
    Tolerance(1e-5, 1e-8),
    Tolerance(0.5, 3),
]


def as_dtype(name: str) -> np.dtype:
    return np.dtype(getattr(ml_dtypes, name, None) or name)


def numbers(name: str, special: bool) -> st.SearchStrategy:
    if name == "bool":
        return st.booleans()
    if name in INTEGERS:
        info = np.iinfo(name)
        edges = st.sampled_from([info.min, info.max, 0, 1])
        return st.one_of(edges, st.integers(int(info.min), int(info.max)), st.integers(0, 5))
    width = {"float32": 32, "float64": 64}.get(name, 16)
    wide = st.floats(width=width, allow_nan=False, allow_infinity=False)
    plain = st.one_of(wide, st.floats(-4, 4, width=width), st.sampled_from([0.0, -0.0, 1.0]))
    return st.one_of(plain, st.sampled_from(SPECIAL)) if special else plain


@st.composite
def pairs(draw: st.DrawFn, names_a: list[str], names_b: list[str], special: bool = True) -> tuple:
    name_a, name_b = draw(st.sampled_from(names_a)), draw(st.sampled_from(names_b))
    size = draw(st.integers(1, 12))
    a = draw(st.lists(numbers(name_a, special), min_size=size, max_size=size))
    b = draw(st.lists(numbers(name_b, special), min_size=size, max_size=size))
    with np.errstate(over="ignore", invalid="ignore"):
        first, second = np.array(a).astype(as_dtype(name_a)), np.array(b).astype(as_dtype(name_b))
    if name_a in INTEGERS:
        first = np.array(a, as_dtype(name_a))
    if name_b in INTEGERS:
        second = np.array(b, as_dtype(name_b))
    for place in draw(st.lists(st.integers(0, size - 1), max_size=3)):  # some equal values
        with np.errstate(all="ignore"):
            if name_a == name_b:
                second[place] = first[place]
    return first, second


def check(a: np.ndarray, b: np.ndarray, tolerance: Tolerance, close: float) -> None:
    truth, found = oracle(a, b), compare_arrays(a, b, tolerance=tolerance)
    assert found.size == truth.size
    assert found.counted == len(truth.differences)
    assert found.nonfinite_agreeing == truth.agreeing
    assert found.nonfinite_disagreeing == len(truth.disagreeing)
    for side, array in ((found.a, a), (found.b, b)):
        values = python_values(array)
        finite = [v for v in values if math.isfinite(v)]
        assert side.nan == sum(v != v for v in values)
        assert side.positive_infinity == values.count(math.inf)
        assert side.negative_infinity == values.count(-math.inf)
        assert (side.minimum, side.maximum) == ((min(finite), max(finite)) if finite else (None, None))
        assert side.constant == (len(finite) == len(values) and len(set(values)) == 1)
        assert side.all_zero == all(v == 0 for v in values)
    tiny = Fraction(1, 10**14)
    least = truth.mismatched(tolerance.rtol, tolerance.atol, 1 + tiny)
    most = truth.mismatched(tolerance.rtol, tolerance.atol, 1 - tiny)
    assert least <= found.mismatched <= most
    assert found.mismatched_share == found.mismatched / found.size
    if truth.disagreeing:
        assert found.max_index == (truth.disagreeing[0],)
        assert {found.max_abs, found.mean_abs, found.rmse, found.max_rel, found.rel_l2} == {math.inf}
        assert found.cosine == 0
    elif truth.differences:
        check_figures(truth, found, close)


def check_figures(truth, found, close: float) -> None:
    if to_float(truth.max_abs) == math.inf:  # no float can hold the difference
        assert found.max_abs == math.inf
        return
    assert found.max_index is not None
    at = truth.differences[truth.positions.index(found.max_index[0])]
    assert float(at) == pytest.approx(float(truth.max_abs), rel=close, abs=0)
    for name in ("max_abs", "mean_abs", "rmse", "max_rel", "rel_l2"):
        expected = to_float(getattr(truth, name))
        assert getattr(found, name) == pytest.approx(expected, rel=close, abs=1e-322), name
    assert found.min_abs == pytest.approx(float(min(truth.differences)), rel=close, abs=0)
    assert found.cosine == pytest.approx(truth.cosine, abs=max(close, 1e-15))


@settings(max_examples=150, deadline=None)
@given(pairs(FLOATS[:3] + FLOATS[4:], FLOATS[:3] + FLOATS[4:]), st.sampled_from(TOLERANCES))
def test_narrow_floats(pair: tuple, tolerance: Tolerance) -> None:
    check(*pair, tolerance, 3e-7)


@settings(max_examples=150, deadline=None)
@given(pairs(["float64"], FLOATS), st.sampled_from(TOLERANCES))
def test_float64_with_any_float(pair: tuple, tolerance: Tolerance) -> None:
    check(*pair, tolerance, 1e-12)


@settings(max_examples=100, deadline=None)
@given(pairs(INTEGERS[:7], FLOATS), st.sampled_from(TOLERANCES))
def test_integers_against_floats(pair: tuple, tolerance: Tolerance) -> None:
    check(*pair, tolerance, 1e-12)
    check(*reversed(pair), tolerance, 1e-12)
    assert compare_arrays(*pair).inputs_exact


@settings(max_examples=150, deadline=None)
@given(pairs(INTEGERS, INTEGERS), st.sampled_from(TOLERANCES))
def test_integers_are_exact(pair: tuple, tolerance: Tolerance) -> None:
    check(*pair, tolerance, 1e-12)
    truth, found = oracle(*pair), compare_arrays(*pair)
    assert found.arithmetic == "integer"
    assert found.max_abs == truth.max_abs
    assert found.min_abs == min(truth.differences)
    assert type(found.max_abs) is type(found.min_abs) is int
    assert found.max_index == (truth.differences.index(truth.max_abs),)
    assert found.mismatched == truth.mismatched(0, 0)
    assert found.mean_abs == float(truth.mean_abs)


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    scale=st.sampled_from([1e-38, 1e-20, 1e-8, 1.0, 1e8, 1e19, 1e37]),
    noise=st.sampled_from([0.0, 1e-7, 1e-3, 1.0]),
    tolerance=st.sampled_from(TOLERANCES),
)
def test_every_scale(seed, scale, noise, tolerance) -> None:
    generator = np.random.default_rng(seed)
    size = int(generator.integers(1, 150))
    b = (generator.standard_normal(size) * scale).astype(np.float32)
    a = (b * (1 + noise * generator.standard_normal(size))).astype(np.float32)
    check(a, b, tolerance, 3e-7)
    check(a.astype(np.float64), b.astype(np.float64), tolerance, 1e-12)


@pytest.mark.parametrize("size", [1023, 1024, 1025, 5000, 262144, 300001, 1_100_000])
@pytest.mark.parametrize("kind", ["float16", "bfloat16", "float32", "float64", "int16"])
def test_chunks_and_blocks_add_up(size: int, kind: str) -> None:
    generator = np.random.default_rng(size)
    b = (100 * generator.standard_normal(size)).astype(as_dtype(kind))
    a = (b.astype(np.float64) + generator.standard_normal(size)).astype(as_dtype(kind))
    x, y = a.astype(np.float64), b.astype(np.float64)
    d, found = np.abs(x - y), compare_arrays(a, b, tolerance=Tolerance(1e-2, 0.1))
    assert found.max_abs == pytest.approx(d.max(), rel=1e-6)
    assert d[found.max_index] == pytest.approx(d.max(), rel=1e-6)
    assert found.mean_abs == pytest.approx(math.fsum(d) / size, rel=1e-7)
    assert found.rmse == pytest.approx(math.sqrt(math.fsum(d * d) / size), rel=1e-7)
    assert found.rel_l2 == pytest.approx(np.linalg.norm(d) / np.linalg.norm(y), rel=1e-7)
    assert found.cosine == pytest.approx(x @ y / np.linalg.norm(x) / np.linalg.norm(y), abs=1e-7)
    assert found.mismatched == np.count_nonzero(d > 0.1 + 1e-2 * np.abs(y))


ONE_ROUNDING = 2.0**-24


@pytest.mark.parametrize("value", [0.1, 1 / 3, 1e-3, 0.7, 12345.678, 2e-7, 1.0000001])
def test_sums_of_equal_terms_do_not_drift(value: float) -> None:
    """One rounding of a difference, one of its square, and none of the sums."""
    a, b = np.full(10**6, value, np.float32), np.full(10**6, 2.5 * value, np.float32)
    exact, close = abs(float(a[0]) - float(b[0])), 2 * ONE_ROUNDING
    found = compare_arrays(a, b)
    assert found.mean_abs == pytest.approx(exact, rel=close)
    assert found.rmse == pytest.approx(exact, rel=close)
    assert found.rel_l2 == pytest.approx(exact / float(b[0]), rel=close)
    assert found.cosine == pytest.approx(1, abs=close)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("kind", ["uniform", "steps", "rising", "few large"])
def test_sums_are_right_to_a_few_roundings(kind: str, seed: int) -> None:
    """Whatever the numbers: a difference, its square, and four additions of a tree are rounded."""
    generator, size = np.random.default_rng(seed), 300_000
    b = generator.uniform(0.5, 1.5, size)
    off = {
        "uniform": generator.uniform(0, 1e-3, size),
        "steps": 1e-3 * (1 + np.arange(size) % 16 / 3),
        "rising": np.linspace(0, 1, size) ** 3,
        "few large": np.where(generator.random(size) < 1e-3, 0.3, 1e-7),
    }[kind]
    a, b = (b + off).astype(np.float32), b.astype(np.float32)
    rounded, x, y = (np.abs(a - b).astype(np.float64), a.astype(np.float64), b.astype(np.float64))
    found = compare_arrays(a, b)
    assert found.mean_abs == pytest.approx(math.fsum(rounded) / size, rel=5 * ONE_ROUNDING)
    assert found.rmse == pytest.approx(math.sqrt(math.fsum(rounded**2) / size), rel=4 * ONE_ROUNDING)
    norms = math.sqrt(math.fsum(x * x)), math.sqrt(math.fsum(y * y))
    assert found.rel_l2 == pytest.approx(math.sqrt(math.fsum(rounded**2)) / norms[1], rel=8 * ONE_ROUNDING)
    assert found.cosine == pytest.approx(math.fsum(x * y) / norms[0] / norms[1], abs=12 * ONE_ROUNDING)


@settings(max_examples=60, deadline=None)
@given(
    pair=pairs(FLOATS + INTEGERS[:7], FLOATS + INTEGERS[:7]),
    tolerance=st.sampled_from(TOLERANCES),
)
def test_blocks_of_three_elements_on_threads(pair: tuple, tolerance: Tolerance) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reading, "block_length", lambda dtype: 3)
        patch.setattr("parfocal.judge.metrics.block_length", lambda dtype: 3)
        patch.setattr("parfocal.judge.parallel._cores", lambda: 3)
        check(*pair, tolerance, 3e-7)
