"""Settings that differ in two recorded runs: proven where the call can be computed again, else likely."""

from __future__ import annotations

import numpy as np
import paddle
import pytest
import torch

import parfocal as pf
from parfocal.judge.verdict import Grounds, ProvenBy
from tests.pairs.workflow.recordings import Side, record_side

X = 2.0 * np.random.default_rng(0).normal(size=(6, 8)).astype("float32")


def compared(folder, layers, **options):
    torch.manual_seed(0)
    reference = torch.nn.Sequential(torch.nn.Linear(8, 8), layers[0], torch.nn.Linear(8, 3))
    port = paddle.nn.Sequential(paddle.nn.Linear(8, 8), layers[1], paddle.nn.Linear(8, 3))
    pf.transfer(reference, port)
    reference.eval()
    port.eval()
    paths = [
        record_side(
            Side(model, lambda output, target: ((output - target) ** 2).mean()),
            folder / name,
            [(X, np.zeros((6, 3), "float32"))],
            **options,
        )
        for model, name in ((reference, "reference"), (port, "port"))
    ]
    return pf.compare(*paths)


MISTAKES = {
    "epsilon of a norm": (torch.nn.LayerNorm(8, eps=0.1), paddle.nn.LayerNorm(8), "config.epsilon"),
    "epsilon of groups": (torch.nn.GroupNorm(2, 8, eps=0.1), paddle.nn.GroupNorm(2, 8), "config.epsilon"),
    "epsilon of a batch norm": (
        torch.nn.BatchNorm1d(8, eps=0.1),
        paddle.nn.BatchNorm1D(8),
        "config.epsilon",
    ),
    "another GELU": (torch.nn.GELU(), paddle.nn.GELU(approximate=True), "op.approximation"),
    "another slope": (torch.nn.LeakyReLU(0.2), paddle.nn.LeakyReLU(0.1), "config.slope"),
    "another axis": (torch.nn.Softmax(dim=0), paddle.nn.Softmax(axis=1), "op.axis"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_call_that_can_be_computed_again_proves_its_setting(name, tmp_path):
    *layers, code = MISTAKES[name]
    cause = compared(tmp_path, layers).first.cause
    assert cause.code == code
    assert cause.proof is not None, cause
    assert cause.proof.way is ProvenBy.RECOMPUTED
    assert cause.proof.after <= 1.0 < cause.proof.before


def test_what_a_sketch_is_all_there_is_of_is_only_likely(tmp_path):
    *layers, _ = MISTAKES["epsilon of a norm"]
    cause = compared(tmp_path, layers, tensors="sketch").first.cause
    assert (cause.proof, cause.rests_on) == (None, Grounds.SETTINGS)


def test_a_layer_without_a_formula_is_only_likely(tmp_path):
    layers = torch.nn.Hardtanh(-0.01, 0.01), paddle.nn.Hardtanh(-0.02, 0.02)
    cause = compared(tmp_path, layers).first.cause
    assert cause.proof is None
    assert cause.rests_on is Grounds.SETTINGS
    assert cause.score_after is None


def test_a_setting_that_does_not_make_the_difference_is_not_called_proven(tmp_path):
    """The epsilon differs, and the port's layer does something else besides."""

    class Shifted(paddle.nn.LayerNorm):
        def forward(self, given):
            return super().forward(given) + 0.5

    cause = compared(tmp_path, (torch.nn.LayerNorm(8, eps=0.1), Shifted(8))).first.cause
    assert cause is None or cause.proof is None
