"""Values in the names that code has for them, and what code takes from its module."""

from __future__ import annotations

import ast
import sys
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest

from parfocal.explain.fixes.attributes import MISSING, AttributeStep, set_to, value_at, way_to
from parfocal.explain.fixes.frames import standing, users_frames
from parfocal.explain.fixes.naming import MOST, by_names, named
from parfocal.explain.fixes.splicing import Patch

NAMES: dict[str, Any] = {
    "i": 1,
    "size": 16,
    "mode": "nearest",
    "self.gains": [0.5, 0.7],
    "self.config": {"slope": 0.3},
    "shape": (4, 4),
}


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (16, "size"),
        (16.0, "size"),
        ("nearest", "mode"),
        (0.7, "self.gains[i]"),
        (0.3, 'self.config["slope"]'),
        (2, "i + 1"),
        (0.25, "size ** -0.5"),
        (1 / 16, "1 / size"),
        ([4, 4], "shape"),
    ],
)
def test_a_value_is_written_by_a_name_that_has_it(value: Any, text: str) -> None:
    assert named(value, NAMES)[0] == text


def test_the_plainest_expression_comes_first_and_there_are_not_many() -> None:
    names = {f"n{number}": 2 for number in range(10)}
    found = named(2, {"m": 1, **names})
    assert len(found) == MOST
    assert found[0] == "n0"


@pytest.mark.parametrize("value", [0.77, "bilinear", (1, 2, 3), True, None])
def test_a_value_that_no_name_has_is_not_written(value: Any) -> None:
    assert named(value, NAMES) == []


def test_a_whole_number_is_not_written_by_a_division() -> None:
    assert "size / 2" not in named(8, NAMES)


def test_new_numbers_of_a_line_are_said_by_names() -> None:
    patch = Patch("model.py", 3, "y = f(x, 1)", "y = g(x, 16, 1, 16) * 2")
    found = [each.new for each in by_names(patch, {"size": 16, "i": 1})]
    assert found == [
        "y = g(x, size, 1, size) * 2",
        "y = g(x, 16, 1, 16) * (i + 1)",
        "y = g(x, 16, 1, 16) * (2 * i)",
    ]


def test_a_line_without_new_numbers_stays_as_it_is() -> None:
    patch = Patch("model.py", 3, "y = f(x, 16)", "y = g(x, 16)")
    assert list(by_names(patch, {"size": 16})) == []


def expression(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body


@pytest.mark.parametrize(
    ("text", "way"),
    [
        ("self.eps", (AttributeStep("eps"),)),
        ("self.config.eps", (AttributeStep("config"), AttributeStep("eps"))),
        ('self.config["eps"]', (AttributeStep("config"), AttributeStep("eps", item=True))),
        ("self.gains[i]", (AttributeStep("gains"), AttributeStep(1, item=True))),
        ("self.gains[j]", ()),
        ("self.scale()", ()),
        ("other.eps", ()),
        ("0.5", ()),
    ],
)
def test_the_way_from_a_module_to_a_value(text: str, way: tuple[AttributeStep, ...]) -> None:
    assert way_to(expression(text), {"i": 1}) == way


def test_a_way_is_written_and_followed() -> None:
    module = SimpleNamespace(config={"slope": 0.2}, gains=[1.0, 2.0])
    way = way_to(expression('self.config["slope"]'), {})
    assert "".join(step.text for step in way) == '.config["slope"]'
    assert value_at(module, way) == 0.2
    assert value_at(module, (AttributeStep("config"), AttributeStep("other", item=True))) is MISSING
    assert value_at(module, (AttributeStep("nothing"), AttributeStep("eps"))) is MISSING


def test_a_value_is_set_for_a_while() -> None:
    module = SimpleNamespace(gains=[1.0, 2.0])
    way = (AttributeStep("gains"), AttributeStep(1, item=True))
    with set_to(module, way, 3.0) as possible:
        assert possible
        assert module.gains == [1.0, 3.0]
    assert module.gains == [1.0, 2.0]


@dataclass(frozen=True)
class Frozen:
    slope: float


@pytest.mark.parametrize(
    ("module", "way"),
    [
        (SimpleNamespace(gains=(1.0, 2.0)), (AttributeStep("gains"), AttributeStep(1, item=True))),
        (SimpleNamespace(config=Frozen(0.2)), (AttributeStep("config"), AttributeStep("slope"))),
        (SimpleNamespace(), (AttributeStep("nothing"),)),
    ],
)
def test_what_cannot_be_set_is_left(module: Any, way: tuple[AttributeStep, ...]) -> None:
    before = value_at(module, way)
    with set_to(module, way, 3.0) as possible:
        assert not possible
    assert value_at(module, way) == before


class Module:
    stride, hidden = 4, object()

    def __init__(self) -> None:
        self.scale, self.training, self.config, self.flag = 0.5, True, SimpleNamespace(slope=0.2), True

    def run(self, stride: int) -> Any:
        tensor = object()
        assert tensor is not None
        return standing(sys._getframe(), {})


def test_a_frame_stands_where_it_does_with_the_numbers_it_has_names_for() -> None:
    found = Module().run(2)
    assert found.names == {"stride": 2, "self.scale": 0.5, "self.config.slope": 0.2, "self.stride": 4}
    assert found.file == __file__


def test_frames_end_where_the_house_calls() -> None:
    def inner() -> list[str]:
        frames = list(users_frames(lambda name: name == __file__))
        return [frame.f_code.co_name for frame in frames]

    def outer() -> list[str]:
        return inner()

    house: dict[str, Any] = {"__name__": "parfocal.replay", "outer": outer}
    exec("def repeated():\n    return outer()", house)
    assert outer()[:3] == ["inner", "outer", "test_frames_end_where_the_house_calls"]
    assert house["repeated"]() == ["inner", "outer"]
