"""A patch is in the running code while it is tried, and gone afterwards."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

from parfocal.explain.fixes.calls import leaving_out, passing
from parfocal.explain.fixes.finding import find_layer
from parfocal.explain.fixes.splicing import Patch
from parfocal.explain.fixes.trying import patched

SOURCE = """def doubled(x):
    return 2 * x


class Base:
    def forward(self, x):
        y = doubled(x)
        z = (
            y + 1
        )
        return z

    @property
    def size(self):
        return 3


class Model(Base):
    def later(self, x):
        return self.layer(x, None, scale=2)
"""


@pytest.fixture
def model(tmp_path: Path) -> Any:
    file = tmp_path / "model.py"
    file.write_text(SOURCE)
    specification = importlib.util.spec_from_file_location("tried_model", file)
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    found = module.Model()
    found.file = str(file)
    return found


def test_a_method_of_a_base_class_runs_as_patched(model: Any) -> None:
    patch = Patch(model.file, 8, "z = (\n            y + 1\n        )", "z = y + 10")
    with patched([model], patch) as functions:
        assert [function.__name__ for function in functions] == ["forward"]
        assert model.forward(1) == 12
        assert model.size == 3
    assert model.forward(1) == 3


def test_several_lines_change_together(model: Any) -> None:
    gone = Patch(model.file, 7, "y = doubled(x)", "pass")
    patch = Patch(model.file, 8, "z = (\n            y + 1\n        )", "z = x + 1", (gone,))
    with patched([model], patch):
        assert model.forward(5) == 6


def test_a_function_beside_the_class_runs_as_patched(model: Any) -> None:
    with patched([model], Patch(model.file, 2, "return 2 * x", "return 3 * x")):
        assert model.forward(1) == 4
    assert model.forward(1) == 3


def test_a_property_runs_as_patched(model: Any) -> None:
    with patched([model], Patch(model.file, 15, "return 3", "return 4")):
        assert model.size == 4
    assert model.size == 3


def test_it_is_gone_after_an_exception(model: Any) -> None:
    with (
        pytest.raises(ZeroDivisionError),
        patched([model], Patch(model.file, 2, "return 2 * x", "return x / 0")),
    ):
        model.forward(1)
    assert model.forward(1) == 3


@pytest.mark.parametrize(
    "patch",
    [
        (2, "return 4 * x", "return 3 * x"),
        (2, "return 2 * x", "return ("),
        (400, "return 2 * x", "return 3 * x"),
    ],
    ids=["another statement", "no Python", "no such line"],
)
def test_what_cannot_be_patched_runs_as_it_is(model: Any, patch: tuple[int, str, str]) -> None:
    with patched([model], Patch(model.file, *patch)) as functions:
        assert functions == []
        assert model.forward(1) == 3


def test_arguments_are_left_out_and_passed(model: Any) -> None:
    spot = find_layer(model.file, 20, "layer")
    assert spot is not None

    def line(patch: Patch | None) -> str | None:
        return None if patch is None else patch.new

    assert line(leaving_out(spot, {"1"})) == "return self.layer(x, scale=2)"
    assert line(leaving_out(spot, {"0", "scale"})) == "return self.layer(None, None)"
    assert line(passing(spot, {"1": "mask"})) == "return self.layer(x, mask, scale=2)"
    assert (
        line(passing(spot, {"2": "mask", "bias": "b"})) == "return self.layer(x, None, mask, scale=2, bias=b)"
    )
    assert line(passing(spot, {"4": "mask"})) is None


FUTURE = """from __future__ import annotations

broken = 1


class Model:
    @staticmethod
    def plain(x):
        return x

    def forward(self, x):
        def inner(y: Unknown):
            return y + 1
        return inner(x)
"""


def test_a_file_is_compiled_as_it_says(tmp_path: Path) -> None:
    file = tmp_path / "future.py"
    file.write_text(FUTURE)
    names: dict[str, Any] = {}
    exec(compile(FUTURE, str(file), "exec", dont_inherit=True), names)
    model = names["Model"]()
    with patched([model], Patch(str(file), 14, "return inner(x)", "return inner(2 * x)")):
        assert model.forward(3) == 7  # what is not known is not looked for
    with patched([model], Patch(str(file), 9, "return x", "return 5 * x")) as functions:
        assert [function.__name__ for function in functions] == ["plain"]
        assert model.plain(2) == 10
    assert (model.forward(3), model.plain(2)) == (4, 2)
