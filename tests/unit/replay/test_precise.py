"""The signs by which values are moved."""

from __future__ import annotations

import numpy as np
import pytest

from parfocal.replay import precise


@pytest.mark.parametrize("trial", [0, 1, 2])
@pytest.mark.parametrize("count", [0, 1, 5, 65537, 65537 * 4])
def test_signs_go_round_from_another_place_for_every_trial(count: int, trial: int) -> None:
    signs = precise._signs(count, trial)
    around = (np.arange(count) + 65537 * trial) % precise._SIGNS.size
    np.testing.assert_array_equal(signs, precise._SIGNS[around])
