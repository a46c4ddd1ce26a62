"""What a model is led along: which calls are given all they take, and masks that are said otherwise."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from parfocal.judge.layouts import Layout, MaskEncoding
from parfocal.replay.follow import Binding
from parfocal.replay.repeat import ReplayScript


class CountedLayouts(dict):
    """Counts how often all of it is gone through."""

    walks = 0

    def items(self):
        self.walks += 1
        return super().items()


def test_masks_that_are_said_otherwise_are_found_once():
    said = MaskEncoding(0.0, -1e9, "float32")
    layouts = CountedLayouts({(order, "input", "0"): Layout(None, (2,)) for order in range(50)})
    layouts[7, "input", "0"] = Layout(None, (2,), words=said)
    script = ReplayScript({}, layouts)
    for _ in range(100):
        assert script.words == {(7, "input", "0"): said}
    assert layouts.walks == 1


def test_without_layouts_no_mask_is_said_otherwise():
    assert ReplayScript({}).words == {}


@pytest.mark.parametrize(
    ("order", "takes", "fed"),
    [(0, "", True), (0, "x", True), (0, "xy", True), (0, "xz", False), (1, "", False), (1, "x", False)],
)
def test_a_call_is_fed_where_every_input_is_known(order, takes, fed):
    script = ReplayScript({0: Binding(dict.fromkeys("xy"), {})})
    assert script.feeds(SimpleNamespace(order=order, inputs=dict.fromkeys(takes))) is fed
