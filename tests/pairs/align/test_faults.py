"""Every planted mistake is found, its layer is named, and nothing else is blamed.

The clean twin of each fault is the same pair in the same mode with the same seed, which
``test_clean`` finds to be correct; here it is aligned once more where that file does not.
"""

from __future__ import annotations

import pytest
from examples.pairs import PAIRS
from examples.pairs.faults import PLANTED, Fault, changed, replaced, wrong_epsilon
from paddle import nn

from parfocal.weights.transfer import transfer
from parfocal.workflow.align import align
from tests.pairs.align.test_clean import LARGER, QUICK
from tests.pairs.align.tools import blamed, run

EPSILONS = [
    "vit", "convnext", "unet", "transformer_encoder", "transformer_encoder_prenorm", "transformer_decoder",
    "fused_qkv", "gpt", "gan_generator", "gan_discriminator", "detector", "nhwc_cnn", "fused_cnn",
]  # fmt: skip
SEEDS = (0, 1)


@pytest.mark.parametrize("fault", PLANTED, ids=lambda fault: f"{fault.pair}: {fault.name}")
def test_a_planted_fault_is_found_and_nothing_else(fault: Fault) -> None:
    report = run(fault.pair, fault.mode, 0, fault.plant)
    assert not report.ok
    assert report.first is not None
    assert report.first.port is not None
    assert report.first.port.path == fault.guilty, str(report)
    assert blamed(report) == [fault.guilty, *fault.also], str(report)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", EPSILONS)
def test_an_epsilon_of_one_layer_is_found(name: str, seed: int) -> None:
    """1e-6 for 1e-5: worth some millionths of the output, which no fixed threshold sees."""
    fault = wrong_epsilon(PAIRS[name])
    assert fault is not None
    report = run(name, "eval", seed, fault.plant)
    assert blamed(report) == [fault.guilty], str(report)
    assert report.first is not None
    assert report.first.phase == "forward"
    assert report.first.what == "output 0"


def test_two_faults_are_both_found_in_order_of_execution() -> None:
    def change(port: nn.Layer) -> None:
        changed("layers.2.attention", scale=1.0)(port)
        replaced("layers.0.act", lambda: nn.GELU(approximate=True))(port)

    assert blamed(run("vit", "eval", 0, change)) == ["layers.0.act", "layers.2.attention"]


@pytest.mark.parametrize("changes", [0, 1])
def test_one_weight_changed_after_the_transfer_is_found(changes: int) -> None:
    pair = PAIRS["vit"]
    reference, port = pair.reference(0), pair.port(0)
    transfer(reference, port)
    weight = port.layers[1].fc1.weight
    array = weight.numpy()
    array[3, 5] += 1e-4 * changes
    weight.set_value(array)
    report = align(reference, port, pair.inputs(0), transfer=False, explain=False)
    assert report.ok == (changes == 0), str(report)
    assert all("layers.1.fc1" in str(path) for path in blamed(report))


@pytest.mark.parametrize("name", ["resnet18", "mobilenet_v2"])
def test_an_epsilon_in_a_deep_network_is_found(name: str) -> None:
    fault = wrong_epsilon(PAIRS[name])
    assert fault is not None
    assert blamed(run(name, "eval", 1, fault.plant)) == [fault.guilty]


@pytest.mark.parametrize("name", sorted({fault.pair for fault in PLANTED} - set(QUICK)))
def test_the_twin_without_a_fault_aligns(name: str) -> None:
    """The other twins are in test_clean."""
    assert name in LARGER
    report = run(name, "eval", 0)
    assert report.ok, str(report)


@pytest.mark.parametrize("name", ["alexnet_shipped", "squeezenet1_1_shipped"])
def test_what_a_library_ships_differently_is_named(name: str) -> None:
    pair = PAIRS[name]
    report = run(name, "eval")
    assert blamed(report) == list(pair.guilty), str(report)


def test_the_mended_twin_of_a_shipped_model_aligns() -> None:
    report = run("alexnet", "eval")
    assert report.ok, str(report)
