"""What a model is led along: of its layouts, those of masks that are said otherwise are found once."""

from __future__ import annotations

from parfocal.judge.layouts import Layout, MaskEncoding
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
