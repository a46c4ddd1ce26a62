"""Which calls are recorded."""

from __future__ import annotations

import pytest

from parfocal.capture.filters import make_filter
from parfocal.errors import InputError


@pytest.mark.parametrize(
    ("include", "exclude", "wanted", "unwanted"),
    [
        ((), (), ["", "a", "a.b"], []),
        (("layer1",), (), ["layer1", "layer1.0", "layer1.0.conv"], ["", "layer10", "layer2.layer1"]),
        (("*.conv?",), (), ["a.conv1", "a.b.conv2", "a.conv1.inner"], ["conv1", "a.conv"]),
        ((), ("head", "*.drop"), ["", "body", "headless"], ["head", "head.fc", "a.drop"]),
        (("layer1",), ("layer1.1",), ["layer1.0"], ["layer1.1", "layer1.1.conv"]),
    ],
)
def test_paths(include, exclude, wanted, unwanted):
    chosen = make_filter(include, exclude)
    assert [path for path in wanted if not chosen.wants_path(path)] == []
    assert [path for path in unwanted if chosen.wants_path(path)] == []


def test_a_lone_string_is_one_pattern_not_its_letters():
    chosen = make_filter("fc", kinds="Linear")
    assert chosen.wants_call("fc", "Linear")
    assert not chosen.wants_call("f", "Linear")
    assert not chosen.wants_call("fc", "ReLU")


def test_every_nth_step():
    chosen = make_filter(every=3)
    assert [step for step in range(7) if chosen.wants_step(step)] == [0, 3, 6]


def test_every_must_be_positive():
    with pytest.raises(InputError, match="every is 0, must be 1 or more"):
        make_filter(every=0)
