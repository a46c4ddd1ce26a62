"""timm's models, in-place activations and all, align with their ports; a block without a port is told."""

from __future__ import annotations

import pytest
import torch
from benchmarks.timm_ports import building
from benchmarks.timm_ports.pairs import PAIRS

from parfocal.workflow.align import align
from tests.pairs.align.tools import blamed

# The sweep has all of them; these are the quick ones of every family.
QUICK = (
    "timm_seresnext26d_32x4d", "timm_mobilenetv3_small_100", "timm_densenet121", "timm_convnext_atto",
    "timm_deit_tiny_distilled_patch16_224", "timm_swin_tiny_patch4_window7_224",
)  # fmt: skip


@pytest.mark.parametrize("mode", ["eval", "train"])
@pytest.mark.parametrize("name", QUICK)
def test_a_correct_port_aligns(name: str, mode: str) -> None:
    pair = PAIRS[name]
    report = align(pair.reference(1), pair.port(1), pair.inputs(1), mode=mode, explain=False)
    assert report.ok, str(report)


def test_there_are_enough_models() -> None:
    assert len(PAIRS) >= 15


def test_a_wrong_gate_is_found() -> None:
    pair = PAIRS["timm_seresnext26d_32x4d"]
    port = pair.port(0)
    port.layer2[0].se.gate = building.layer_for(torch.nn.Hardsigmoid())
    report = align(pair.reference(0), port, pair.inputs(0), explain=False)
    assert blamed(report) == ["layer2.0.se.gate"]


def test_a_block_without_a_port_is_told() -> None:
    class Unknown(torch.nn.Module):
        pass

    with pytest.raises(KeyError, match=r"no port of test_timm\.Unknown: write its forward"):
        building.port_of(Unknown())
