"""Views are steps that share memory, survive JSON, and refuse what does not fit."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from parfocal.errors import InputError
from parfocal.weights import views
from parfocal.weights.views import ViewStep, index, part, reshape, transpose

ARRAY = np.arange(24.0).reshape(6, 4)


@pytest.mark.parametrize(
    ("view", "expected"),
    [
        ((), ARRAY),
        ((transpose(1, 0),), ARRAY.T),
        ((part(0, 2, 4),), ARRAY[2:4]),
        ((part(1, 1, 3),), ARRAY[:, 1:3]),
        ((index(1, 3),), ARRAY[:, 3]),
        ((reshape(3, 2, 4), index(1, 1)), ARRAY[1::2]),
        ((transpose(1, 0), reshape(4, 3, 2), part(1, 1, 2)), ARRAY.T.reshape(4, 3, 2)[:, 1:2]),
    ],
)
def test_a_view_shows_the_right_part_and_shares_memory(view: views.View, expected: np.ndarray) -> None:
    seen = views.apply(view, ARRAY)
    assert np.array_equal(seen, expected)
    assert seen.shape == views.shape_of(view, ARRAY.shape)
    assert np.shares_memory(seen, ARRAY)
    assert views.from_json(json.loads(json.dumps(views.to_json(view)))) == view


@pytest.mark.parametrize(
    "view",
    [
        (transpose(1, 1),),
        (transpose(0, 1, 2),),
        (reshape(5, 5),),
        (reshape(-6, -4),),
        (part(0, 4, 2),),
        (part(0, 0, 7),),
        (part(2, 0, 1),),
        (index(0, 6),),
        (index(0, -1),),
        (ViewStep("slice", (0,)),),
    ],
)
def test_what_does_not_fit_is_refused(view: views.View) -> None:
    with pytest.raises(InputError, match=r"does not fit a tensor of shape \[6, 4\]"):
        views.apply(view, ARRAY)


def test_unknown_steps_are_refused() -> None:
    with pytest.raises(InputError, match="there is no view step 'flip'"):
        views.shape_of((ViewStep("flip", (0,)),), (2,))
    for wrong in ("transpose", [["flip", 0]], [[]], [["index", "a", 0]], [["index", True, 0]], [3]):
        with pytest.raises(InputError, match=r"is not a view step|a view is a list of steps"):
            views.from_json(wrong)


def test_a_reshape_that_would_copy_is_refused() -> None:
    with pytest.raises(InputError, match="in this memory order cannot be viewed as"):
        views.apply((transpose(1, 0), reshape(24)), ARRAY)


def test_description() -> None:
    view = (transpose(1, 0), part(0, 0, 2), index(1, 3), reshape(2))
    assert views.describe(view) == "transpose(1, 0), slice(axis 0, 0:2), index(axis 1, 3), reshape(2)"


@given(st.lists(st.integers(1, 4), min_size=1, max_size=4).map(tuple), st.data())
def test_any_permutation(shape: tuple[int, ...], data: st.DataObject) -> None:
    order = data.draw(st.permutations(range(len(shape))))
    array = np.arange(np.prod(shape)).reshape(shape)
    assert np.array_equal(views.apply((transpose(*order),), array), array.transpose(order))


def test_a_bare_number_is_seen_as_an_array() -> None:
    number = np.float64(3.0) * np.ones(())  # NumPy makes a number of it
    np.testing.assert_array_equal(views.apply((reshape(1),), number), [3.0])
