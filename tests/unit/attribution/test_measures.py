"""Sightings become measures: absent gradients, other shapes, tolerances."""

from __future__ import annotations

import math

import numpy as np
import pytest

from parfocal.attribution.measures import LIMIT, Collector
from parfocal.judge.floors import NOTHING, judge_arrays
from parfocal.judge.layouts import Layout
from parfocal.judge.tolerance import Tolerance
from parfocal.replay.follow import Sighting

ONES = np.ones(8, "float32")
EPS = 2.0**-23


def seen(observed, expected, *, layout=True, direction="forward", tolerance=None):
    collector = Collector({(3, "output", "0"): (5, "x")}, tolerance)
    place = Layout(None, ONES.shape) if layout else None
    collector(Sighting(3, "output", "0", direction, observed, expected, place, None))
    (measure,) = collector.measures
    assert (measure.port, measure.reference, measure.reference_slot) == (3, 5, "x")
    return measure


def test_equal_tensors_score_zero():
    assert seen(ONES, ONES).score == 0.0


def test_the_scale_floor_is_one_unit_in_the_last_place():
    assert seen(ONES + np.float32(EPS), ONES).score == pytest.approx(1.0)
    assert seen(ONES * np.float32(1.001), ONES).score > 1000


def test_a_gradient_that_is_absent_on_one_side():
    measure = seen(None, ONES, direction="backward")
    assert (measure.score, measure.message) == (math.inf, "no gradient arrives in the port")
    measure = seen(ONES, None, direction="backward")
    assert (measure.score, measure.message) == (math.inf, "no gradient arrives in the reference")


def test_absent_and_all_zero_mean_the_same():
    zeros = np.zeros(8, "float32")
    assert seen(None, zeros, direction="backward").score == 0.0
    assert seen(zeros, None, direction="backward").score == 0.0


def test_shapes_that_do_not_fit():
    measure = seen(np.ones((2, 3)), np.ones((3, 5)), layout=False)
    assert (measure.score, measure.message) == (math.inf, "shape [2, 3] in the port, [3, 5] in the reference")


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("tolerance", [None, Tolerance(atol=1e30)])
def test_what_is_not_finite_never_passes(bad, tolerance):
    spoilt = ONES.copy()
    spoilt[1] = bad
    limit = 1.0 if tolerance else LIMIT
    assert seen(spoilt, ONES, tolerance=tolerance).score > limit
    assert seen(ONES, spoilt, tolerance=tolerance).score > limit


def test_a_fixed_tolerance_is_kept_or_broken():
    tolerance = Tolerance(atol=0.1)
    assert seen(ONES + np.float32(0.09), ONES, tolerance=tolerance).score <= 1.0
    one_off = ONES.copy()
    one_off[0] += 0.2
    assert seen(one_off, ONES, tolerance=tolerance).score > 1.0


def test_the_coarser_dtype_of_the_two_sides_sets_the_floor():
    half = ONES.astype("float16")
    assert judge_arrays(half + np.float16(0.001), ONES, None).floor.rms == 2.0**-10


def test_integers_have_no_floor():
    assert judge_arrays(np.array([1, 2]), np.array([1, 3]), None).floor == NOTHING
