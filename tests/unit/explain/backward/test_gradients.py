"""What one gradient is of another: cut off, scaled, zero, or nothing that is known."""

from __future__ import annotations

import numpy as np
import pytest

from parfocal.explain.backward.gradients import changed_by_hook, clip_bounds

WHOLE = np.random.default_rng(0).standard_normal((6, 8)).astype("float32")


@pytest.mark.parametrize(
    ("low", "high", "words"),
    [
        (-0.5, 0.5, "[-0.5, 0.5]"),
        (-0.1, 0.2, "[-0.1, 0.2]"),
        (-0.25, 9.0, "at least -0.25"),
        (-9.0, 0.25, "at most 0.25"),
    ],
)
def test_the_bounds_of_a_clip(low, high, words):
    clipped = np.clip(WHOLE, low, high)
    assert clip_bounds(clipped, WHOLE) == words
    assert changed_by_hook(WHOLE, clipped) == ("grad.clip", f"clips the gradient to {words}")


@pytest.mark.parametrize(
    "other", [WHOLE, 2 * WHOLE, 0.5 * WHOLE, 0 * WHOLE, np.tanh(WHOLE), np.clip(WHOLE, -9.0, 9.0)]
)
def test_what_is_no_clip(other):
    assert clip_bounds(other, WHOLE) is None


def test_what_hooks_do():
    assert changed_by_hook(WHOLE, 0 * WHOLE) == ("grad.detached", "makes the gradient zero")
    assert changed_by_hook(WHOLE, 3 * WHOLE) == ("grad.scale", "multiplies the gradient by 3")
    norm = np.float32(0.1 / np.linalg.norm(WHOLE))
    assert changed_by_hook(WHOLE, WHOLE * norm) == ("grad.clip", "scales the gradient down to the norm 0.1")
    assert changed_by_hook(WHOLE, np.tanh(WHOLE))[1] == "changes the gradient in no known way"
