"""A framework that parfocal has never heard of is compared with one that it knows, by its backend alone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import parfocal as pf
from tests.conformance import toy
from tests.conformance.models import CAPABILITIES, KITS, kit_for

ROWS = np.random.default_rng(0).normal(size=(5, 8)).astype("float32")
IMAGES = np.random.default_rng(1).normal(size=(2, 3, 9, 9)).astype("float32")
WORDS = np.random.default_rng(2).integers(0, 11, size=(2, 6))


@pytest.fixture(autouse=True)
def toybox() -> Iterator[Any]:
    with toy.installed():
        yield kit_for("toybox").toybox


def residual(inner: Any) -> Any:
    return kit_for("torch").module(lambda self, x: x + self.inner(x), "Residual", inner=inner)


def block(of: Any, **norm: Any) -> Any:
    """The same little network in torch's and in toybox's words."""
    if hasattr(of, "Chain"):
        inner = of.Chain(of.LayerNorm(16, **norm), of.Dense(16, 16), of.GELU())
        return of.Chain(of.Dense(8, 16), of.Residual(inner), of.LayerNorm(16), of.ReLU(), of.Dense(16, 4))
    inner = of.Sequential(of.LayerNorm(16, **norm), of.Linear(16, 16), of.GELU())
    return of.Sequential(of.Linear(8, 16), residual(inner), of.LayerNorm(16), of.ReLU(), of.Linear(16, 4))


def torch_layers() -> Any:
    torch = kit_for("torch").torch
    torch.manual_seed(0)
    return torch.nn


def test_a_correct_pair_is_the_same(toybox):
    report = pf.align(block(torch_layers()), block(toybox.layers), ROWS)
    assert report.ok, str(report)
    assert report.divergences == ()
    assert len(report.pairs) == 10  # every call, the containers among them
    assert "(toybox 0.1)" in str(report)


def test_either_side_may_be_the_reference(toybox):
    report = pf.align(block(toybox.layers), block(torch_layers()), ROWS)
    assert report.ok, str(report)


def test_a_wrong_epsilon_is_named_and_mended_in_the_frameworks_own_words(toybox):
    port = block(toybox.layers, tiny=1e-3)
    report = pf.align(block(torch_layers()), port, ROWS)
    assert not report.ok
    first = report.first
    assert (first.reference.path, first.port.path) == ("1.inner.0", "1.inner.0")
    assert (first.port.kind, first.inherited) == ("LayerNorm", False)
    assert first.cause.code == "config.epsilon"
    assert first.cause.message.startswith("epsilon is 1e-05 in the reference, 0.001 in the port")
    assert first.cause.fix == "port[1].inner[0] = toybox.layers.LayerNorm(16, tiny=1e-05)"
    assert [each.cause.code for each in report.divergences if not each.inherited] == ["config.epsilon"]
    exec(
        first.cause.fix.replace("port[1].inner[0]", "port[1].inner._layers['0']"),
        {"toybox": toybox, "port": port},
    )
    assert pf.align(block(torch_layers()), port, ROWS).ok


def test_another_activation_is_named(toybox):
    layers = toybox.layers
    reference = torch_layers()
    given = reference.Sequential(reference.Linear(8, 8), reference.GELU(), reference.Linear(8, 4))
    port = layers.Chain(layers.Dense(8, 8), layers.ReLU(), layers.Dense(8, 4))
    report = pf.align(given, port, ROWS)
    assert report.first.port.path == "1"
    assert report.first.cause.code == "op.activation"
    assert "toybox.layers.GELU()" in report.first.cause.fix


@pytest.mark.parametrize("mode", ["eval", "train"])
def test_convolutions_and_batch_norms(toybox, mode):
    nn, layers = torch_layers(), toybox.layers
    reference = nn.Sequential(
        nn.Conv2d(3, 4, 3, stride=2, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(100, 3)
    )
    port = layers.Chain(
        layers.Convolution(3, 4, 3, step=2, border=1),
        layers.BatchNorm(4),
        layers.ReLU(),
        layers.Flatten(),
        layers.Dense(100, 3),
    )
    report = pf.align(reference, port, IMAGES, mode=mode)
    assert report.ok, str(report)


def test_a_table_of_words(toybox):
    nn, layers = torch_layers(), toybox.layers
    report = pf.align(
        nn.Sequential(nn.Embedding(11, 8), nn.LayerNorm(8)),
        layers.Chain(layers.Embedding(11, 8), layers.LayerNorm(8)),
        WORDS,
    )
    assert report.ok, str(report)


def test_recorded_runs_of_both_are_compared(toybox, tmp_path):
    reference, port = block(torch_layers()), block(toybox.layers)
    pf.transfer(reference, port, ROWS)
    for name, kit, model in (("a", kit_for("torch"), reference), ("b", kit_for("toybox"), port)):
        with pf.record(model, tmp_path / name):
            model(kit.tensor(ROWS)).sum().backward()
    report = pf.compare(pf.load_run(tmp_path / "a"), pf.load_run(tmp_path / "b"))
    assert report.ok, str(report)


@pytest.mark.parametrize("name", sorted(KITS))
def test_what_a_framework_declares_to_lack_it_does_not_have(name):
    kit = kit_for(name)
    assert set(kit.lacks) <= CAPABILITIES
    spaces = [getattr(kit.nn, "_space", kit.nn), getattr(kit.functional, "_space", kit.functional)]
    assert [each for each in kit.lacks if any(hasattr(space, each) for space in spaces)] == []
    if name != "toybox":
        assert kit.lacks == {}


def test_an_undeclared_lack_is_no_reason_to_skip():
    kit = kit_for("toybox")
    with pytest.raises(AttributeError, match="Undeclared"):
        kit.nn.Undeclared()
    with pytest.raises(AssertionError, match="'undeclared' is no capability"):
        kit.need("undeclared")
    with pytest.raises(pytest.skip.Exception, match="toybox declares: it has no optimizers"):
        kit.need("optimizers")


def test_no_part_of_parfocal_knows_it():
    source = Path(pf.__file__).parent
    assert [path for path in source.rglob("*.py") if "toybox" in path.read_text(encoding="utf-8")] == []
