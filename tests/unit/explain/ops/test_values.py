"""Values that ops give, compared."""

from __future__ import annotations

import numpy as np

from parfocal.explain.ops.values import ComparableValue, match

UNWRITTEN = np.array([0x7FA00000, 0x3F800000], np.uint32).view(np.float32)  # a NaN that signals when read


def test_memory_that_no_op_wrote_to_is_compared_without_a_warning() -> None:
    """Warnings are errors here; a batch norm in evaluation gives statistics that it does not fill."""
    assert ComparableValue(UNWRITTEN).norm == 1.0


def test_values_of_one_size_are_paired_and_others_are_not() -> None:
    one = np.array([1.0, 2.0], np.float32)
    pairs = match({"a": one, "b": UNWRITTEN}, {"c": one.copy(), "d": 3 * one})  # type: ignore[dict-item]
    assert pairs.pairs == {("a", "c")}
