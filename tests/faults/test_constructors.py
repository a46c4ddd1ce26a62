"""A layer's wrong setting is told as the line of the source that made the layer, if that is sure."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from torch import nn

from tests.faults.tools import align, numbers, own, seeded

HEAD = """
import paddle
from paddle import nn
from paddle.nn import LayerNorm as Norm

WIDTH, EPSILON = 8, 1e-3
"""
PAIR = """
def pair(epsilon=1e-3):
    return nn.Sequential(nn.Linear(8, 8), nn.LayerNorm(8, epsilon=epsilon))
"""
MODEL = """
class Model(nn.Layer):
    def __init__(self):
        super().__init__()
        {body}

    def forward(self, x):
        return self.last(self.norm(self.first(x)))
"""
BODY = "self.first = nn.Linear(8, 8)\n        {norm}\n        self.last = nn.Linear(8, 4)"


class Reference(nn.Module):
    def __init__(self, epsilon: float = 1e-5) -> None:
        super().__init__()
        self.first, self.norm, self.last = nn.Linear(8, 8), nn.LayerNorm(8, epsilon), nn.Linear(8, 4)

    def forward(self, x: Any) -> Any:
        return self.last(self.norm(self.first(x)))


def loaded(source: str, folder: Path) -> ModuleType:
    file = folder / f"port{len(list(folder.iterdir()))}.py"
    file.write_text(source)
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[file.stem] = module
    spec.loader.exec_module(module)
    return module


def source_of(norm: str) -> str:
    return HEAD + MODEL.format(body=BODY.format(norm=norm))


def fix_of(source: str, folder: Path, reference: Any = Reference) -> str:
    report = align(seeded(reference), loaded(source, folder).Model(), numbers(6, 8))
    (divergence,) = own(report)
    assert divergence.cause is not None
    assert divergence.cause.code == "config.epsilon"
    return divergence.cause.fix


@pytest.mark.parametrize(
    ("norm", "new"),
    [
        ("self.norm = nn.LayerNorm(8, epsilon=1e-3)", "self.norm = nn.LayerNorm(8, epsilon=1e-05)"),
        ("self.norm = paddle.nn.LayerNorm(WIDTH, 1e-3)", "self.norm = paddle.nn.LayerNorm(WIDTH, 1e-05)"),
        ("self.norm = Norm([8], epsilon=0.001)", "self.norm = Norm([8], epsilon=1e-05)"),
    ],
)
def test_the_line_of_the_source_mends_it(tmp_path, norm, new):
    source = source_of(norm)
    line, place = fix_of(source, tmp_path).split("  # ")
    assert line == new
    assert source.splitlines()[int(place.partition(":")[2]) - 1].strip() == norm
    mended = loaded(source.replace(norm, new), tmp_path)
    assert align(seeded(Reference), mended.Model(), numbers(6, 8)).ok


def test_a_line_that_gives_the_layer_its_name_goes_before_others(tmp_path):
    norm = "self.norm = nn.LayerNorm(8, epsilon=1e-3)"
    assert fix_of(source_of(norm) + PAIR, tmp_path).startswith(
        "self.norm = nn.LayerNorm(8, epsilon=1e-05)  # "
    )


def test_a_setting_left_to_its_default_is_written_beside_the_others(tmp_path):
    fix = fix_of(source_of("self.norm = Norm(8)"), tmp_path, lambda: Reference(1e-3))
    assert fix.startswith("self.norm = Norm(8, epsilon=0.001)  # ")


def test_a_value_from_elsewhere_is_left_alone(tmp_path):
    assert "port." in fix_of(source_of("self.norm = nn.LayerNorm(8, epsilon=EPSILON)"), tmp_path)
    assert "port." in fix_of(source_of("self.norm = pair()[1]") + PAIR, tmp_path)


def test_of_two_lines_that_may_have_made_it_none_is_told(tmp_path):
    twice = "self.norm = Norm(8, epsilon=1e-3) if WIDTH == 8 else nn.LayerNorm(WIDTH, epsilon=1e-3)"
    assert "port." in fix_of(source_of(twice), tmp_path)


def test_a_line_that_made_a_layer_that_is_right_is_not_told(tmp_path):
    class Two(Reference):
        def __init__(self) -> None:
            super().__init__()
            self.first = nn.Sequential(nn.Linear(8, 8), nn.LayerNorm(8, 1e-3))

    both = "a, b = (nn.LayerNorm(8, epsilon=1e-3) for _ in range(2))"
    norm = f"{both}\n        self.first, self.norm = nn.Sequential(self.first, a), b"
    assert "port." in fix_of(source_of(norm), tmp_path, Two)


def test_one_line_for_all_layers_that_need_it(tmp_path):
    class Two(Reference):
        def __init__(self) -> None:
            super().__init__()
            self.first = nn.Sequential(nn.Linear(8, 8), nn.LayerNorm(8))

    both = "a, b = (nn.LayerNorm(8, epsilon=1e-3) for _ in range(2))"
    norm = f"{both}\n        self.first, self.norm = nn.Sequential(self.first, a), b"
    report = align(seeded(Two), loaded(source_of(norm), tmp_path).Model(), numbers(6, 8))
    assert len(own(report)) == 2
    for each in own(report):
        assert each.cause is not None
        assert each.cause.fix.startswith("a, b = (nn.LayerNorm(8, epsilon=1e-05) for _ in range(2))  # ")


class Trained(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.norm, self.last = nn.Linear(8, 8), nn.BatchNorm1d(8), nn.Linear(8, 4)

    def forward(self, x: Any) -> Any:
        return self.last(self.norm(self.first(x)))


@pytest.mark.filterwarnings("ignore:When training, we now always track:UserWarning")
@pytest.mark.parametrize("momentum", ["0.1", "MOMENTUM"])
def test_the_momentum_of_running_statistics(tmp_path, momentum):
    source = f"MOMENTUM = 0.1\n{source_of(f'self.norm = nn.BatchNorm1D(8, momentum={momentum})')}"
    report = align(seeded(Trained), loaded(source, tmp_path).Model(), numbers(6, 8), mode="train")
    assert [each.phase for each in report.divergences] == ["buffer"], str(report)
    fix = report.divergences[0].cause.fix
    if momentum == "0.1":
        assert fix.startswith("self.norm = nn.BatchNorm1D(8, momentum=0.9)  # ")
    else:  # what the name stands for elsewhere is not known
        assert fix == "port.norm = paddle.nn.BatchNorm1D(8, momentum=0.9)"


def test_a_line_that_assigns_another_name_does_not_stand_in_the_way(tmp_path):
    """By its arguments either line may have made either layer."""

    class Two(Reference):
        def __init__(self) -> None:
            super().__init__()
            self.other = nn.LayerNorm(8, 1e-3)

        def forward(self, x: Any) -> Any:
            return self.last(self.norm(self.other(self.first(x))))

    norms = [f"self.{name} = nn.LayerNorm(WIDTH, epsilon=1e-3)" for name in ("norm", "other")]
    source = source_of("\n        ".join(norms)).replace(
        "self.norm(self.first", "self.norm(self.other(self.first"
    )
    source = source.replace("self.first(x)))", "self.first(x))))")
    line, place = fix_of(source, tmp_path, Two).split("  # ")
    assert line == "self.norm = nn.LayerNorm(WIDTH, epsilon=1e-05)"
    assert "self.norm =" in source.splitlines()[int(place.partition(":")[2]) - 1]
