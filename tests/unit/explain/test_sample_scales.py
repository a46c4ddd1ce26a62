"""Scales of samples: which are told as an order of channels, which as known constants, which as neither."""

from __future__ import annotations

import numpy as np
import pytest

from parfocal.explain.sample_scales import NORMALISED, AffineFit, known_constants, undone_by_itself


def between(ours: str, theirs: str, *, turned: bool = False) -> AffineFit:
    """How values normalised by one pair of constants become those of another."""
    (mean, std), (other_mean, other_std) = (
        [np.broadcast_to(each, 3).astype(float) for each in NORMALISED[name]] for name in (ours, theirs)
    )
    if turned:
        mean, std = mean[::-1], std[::-1]
    return AffineFit(tuple(std / other_std), tuple((mean - other_mean) / other_std))


@pytest.mark.parametrize("name", [name for name, (mean, _) in NORMALISED.items() if len(mean) == 3])
def test_one_normalisation_of_two_orders_is_undone_by_itself(name: str) -> None:
    assert undone_by_itself(between(name, name, turned=True))


def test_other_constants_or_another_sign_are_not() -> None:
    first, second = "ImageNet's mean and std", "CLIP's mean and std"
    assert not undone_by_itself(between(first, second, turned=True))
    assert not undone_by_itself(AffineFit((-1.0,), (0.5,)))  # the negative of a picture


@pytest.mark.parametrize("turned", [False, True])
def test_constants_are_known_in_both_orders(turned: bool) -> None:
    first, second = "ImageNet's mean and std", "CLIP's mean and std"
    assert known_constants(between(first, second, turned=turned), turned=turned) == (first, second)


def test_other_numbers_are_no_known_constants() -> None:
    assert known_constants(AffineFit((0.9, 1.1, 1.3), (0.2, -0.1, 0.05))) is None
