"""Names: the same place under other words, and other places under nearly the same words."""

from __future__ import annotations

import pytest

from parfocal.weights.names import likeness, normalised, number_likeness, tokens, word_likeness


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("layer1.0.conv1", "stage1.0.conv_1"),
        ("encoder.layers.3.self_attn.q_proj", "enc.blocks.3.selfAttention.queryLinear"),
        ("features.norm0", "features.bn0"),
        ("h.2.mlp.fc", "blocks.2.ffn.dense"),
        ("conv._batch_norm", "conv.norm"),
    ],
)
def test_the_same_place(first: str, second: str) -> None:
    assert normalised(first) == normalised(second)
    assert likeness(first, second) == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("layer1.0.conv1", "layer0.1.conv1"),
        ("q_proj", "k_proj"),
        ("layer1.2", "layer12"),
        ("a.weight", "a.bias"),
    ],
)
def test_other_places(first: str, second: str) -> None:
    assert normalised(first) != normalised(second)


def test_numbers_without_words_say_nothing() -> None:
    assert likeness("m17", "layer.17") == 0.0
    assert likeness("features.17", "features.17") > likeness("features.17", "features.18")


def test_order_of_numbers() -> None:
    assert number_likeness("a.1.0", "a.1.0") == 1.0
    assert number_likeness("a.1.0", "a.0.1") == 0.5
    assert number_likeness("a", "b") == 1.0


def test_pieces() -> None:
    assert tokens("layer1.0.convBlock_2") == tokens("layer1.0.conv_block2")
    assert tokens("self_attn.q_proj").words == ("self", "attn", "q", "linear")
    assert word_likeness("", "") == 1.0
    assert word_likeness("a", "") == 0.0
