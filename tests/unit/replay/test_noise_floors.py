"""The signs by which values are moved."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from parfocal.replay import noise_floors
from parfocal.replay.ledger import HeldArrays


@pytest.mark.parametrize("trial", [0, 1, 2])
@pytest.mark.parametrize("count", [0, 1, 5, 65537, 65537 * 4])
def test_signs_go_round_from_another_place_for_every_trial(count: int, trial: int) -> None:
    signs = noise_floors._signs(count, trial)
    around = (np.arange(count) + 65537 * trial) % noise_floors._SIGNS.size
    np.testing.assert_array_equal(signs, noise_floors._SIGNS[around])


class Made(noise_floors.NoiseFloors):
    """Has one array of the port in float64 at hand; what else is asked is run."""

    def __init__(self, exact: np.ndarray, dtype: str) -> None:
        value = SimpleNamespace(data=SimpleNamespace(dtype=dtype))
        node = SimpleNamespace(inputs={"0": value}, outputs={}, parent=None)
        self.port = SimpleNamespace(trace=SimpleNamespace(nodes=[node]))
        self._held = HeldArrays(2**20)
        self._held.put((noise_floors.PORT_EXACT, (0,)), PLACE, exact, PLACE)

    def port_result(self, calls: noise_floors.Calls, what: noise_floors.What) -> np.ndarray:
        return np.full(3, 7.0, "float32")


PLACE = (0, "input", "0", "forward")


@pytest.mark.parametrize(
    ("exact", "dtype", "given"),
    [
        ([1.0, 1.0 / 3.0, -np.inf], "float32", np.array([1.0, 1.0 / 3.0, -np.inf], "float32")),
        ([1.0, 2.0, -1.7e308], "float32", np.full(3, 7.0, "float32")),  # the least number of float64
        ([1.0, 2.0, 3.0], "bfloat16", np.full(3, 7.0, "float32")),
    ],
    ids=["rounded", "too large", "unknown"],
)
def test_what_the_port_made_is_not_computed_again_where_it_is_at_hand(
    exact: list[float], dtype: str, given: np.ndarray
) -> None:
    made = Made(np.array(exact), dtype).port_made(0, PLACE)
    assert made is not None
    assert made.dtype == np.float32
    np.testing.assert_array_equal(made, given)
