"""Losses of several terms, as users write them: the op that differs is told, with its line."""

from __future__ import annotations

import numpy as np
import paddle
import pytest
import torch

import parfocal as pf

GENERATOR = np.random.default_rng(3)
SCORES = GENERATOR.standard_normal((2, 4, 6, 5)).astype("float32")
LABELS = GENERATOR.integers(0, 4, (2, 6, 5))


def reference(scores, label):
    entropy = torch.nn.functional.cross_entropy(scores, label, ignore_index=255)
    shares = scores.softmax(1)
    wanted = torch.nn.functional.one_hot(label, 4).permute(0, 3, 1, 2)
    both, each = (shares * wanted).sum((0, 2, 3)), (shares + wanted).sum((0, 2, 3))
    return entropy + 0.5 * (1 - ((2 * both + 1.0) / (each + 1.0)).mean())


def port(ignored: int = 255, share: float = 0.5, added: float = 1.0):
    def loss(scores, label):
        entropy = paddle.nn.functional.cross_entropy(scores, label, ignore_index=ignored, axis=1)
        shares = paddle.nn.functional.softmax(scores, axis=1)
        wanted = paddle.nn.functional.one_hot(label, 4).transpose([0, 3, 1, 2])
        both, each = (shares * wanted).sum(axis=[0, 2, 3]), (shares + wanted).sum(axis=[0, 2, 3])
        return entropy + share * (1 - ((2 * both + added) / (each + 1.0)).mean())

    return loss


@pytest.mark.parametrize(
    ("wrong", "code", "told"),
    [
        ({"ignored": 2}, "loss.ignore_index", "ignore_index of cross_entropy is 255 in the reference, 2 in"),
        ({"share": 0.4}, "op.scale", "mul with 0.5 in the reference, with 0.4 in the port"),
        ({"added": 1e-5}, "config.other", "add with 1 in the reference, with 1e-05 in the port"),
    ],
)
def test_the_op_of_a_loss_that_differs_is_told(wrong, code, told) -> None:
    cause = pf.compare_loss(reference, port(**wrong), SCORES, LABELS).first.cause
    assert cause.code == code
    assert told in cause.message
    assert cause.proof is not None
    assert "test_loss_code.py" in cause.fix


def test_the_same_terms_are_the_same() -> None:
    assert pf.compare_loss(reference, port(), SCORES, LABELS).ok


def test_two_mistakes_are_told_together() -> None:
    """Neither op alone explains the loss."""
    cause = pf.compare_loss(reference, port(ignored=2, share=0.4), SCORES, LABELS).first.cause
    assert cause.proof is not None
    assert cause.proof.after < 4 < cause.proof.before
    assert "ignore_index of cross_entropy is 255 in the reference, 2 in" in cause.message
    assert "mul with 0.5 in the reference, with 0.4 in the port" in cause.message
    assert [line.rpartition("  # ")[2].partition(":")[0] for line in cause.fix.splitlines()] == [
        "test_loss_code.py"
    ] * 2


@pytest.mark.parametrize("left_out", ["port", "reference"])
def test_a_label_of_masks_that_one_side_leaves_out(left_out: str) -> None:
    def ours(scores, label):
        index = 1 if left_out == "reference" else -100
        return torch.nn.functional.cross_entropy(scores, label, ignore_index=index)

    def theirs(scores, label):
        index = 1 if left_out == "port" else -100
        return paddle.nn.functional.cross_entropy(scores, label, ignore_index=index, axis=1)

    cause = pf.compare_loss(ours, theirs, SCORES, LABELS).first.cause
    assert cause.code == "loss.ignore_index"
    assert f"the {left_out} leaves out the label 1" in cause.message
    expected = "count the label 1 in the port's loss" if left_out == "port" else "write ignore_index=1"
    assert expected in cause.fix
