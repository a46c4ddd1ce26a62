"""Correct ports are found to be correct, whatever the architecture, the mode and the seed."""

from __future__ import annotations

import pytest
from examples.pairs import PAIRS

from parfocal.backends import registry
from parfocal.backends.protocol import Array
from parfocal.capture.nested_values import flatten
from parfocal.inputs import arguments, split
from tests.pairs.align.tools import run

QUICK = (
    "vit", "convnext", "unet", "transformer_encoder", "transformer_encoder_prenorm", "transformer_decoder",
    "fused_qkv", "lstm_tagger", "gru_tagger", "gpt", "gan_generator", "gan_discriminator", "detector",
    "nhwc_cnn", "fused_cnn", "squeezenet1_1",
)  # fmt: skip
LARGER = ("resnet18", "mobilenet_v2", "mobilenet_v3_small", "shufflenet_v2_x1_0")


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("mode", ["eval", "train"])
@pytest.mark.parametrize("name", QUICK)
def test_a_correct_port_aligns(name: str, mode: str, seed: int) -> None:
    report = run(name, mode, seed)
    assert report.ok, str(report)
    assert report.coverage.directions == ("forward", "backward")
    assert report.coverage.count("parameter gradients") > 0


@pytest.mark.parametrize("name", LARGER)
def test_a_correct_port_from_a_library_aligns(name: str) -> None:
    report = run(name, "train", 1)
    assert report.ok, str(report)


@pytest.mark.parametrize("name", [*QUICK, *LARGER])
def test_a_bundled_reference_keeps_its_signals_alive(name: str) -> None:
    """A pair whose outputs are tiny or huge would align whatever its weights are."""
    outputs = outputs_of(name)
    assert outputs
    for array in outputs:
        assert 0.02 < array.std() < 200


def outputs_of(name: str) -> list[Array]:
    pair, backend = PAIRS[name], registry.get("torch")
    args, kwargs = arguments(split(pair.inputs(0))[0], backend)
    leaves = flatten(pair.reference(0)(*args, **kwargs)).leaves
    return [backend.to_array(leaf) for leaf in leaves.values() if backend.is_tensor(leaf)]
