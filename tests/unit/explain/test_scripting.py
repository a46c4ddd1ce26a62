"""Fixes as comments of a script: what can be run on the port, and what is to be made in its source."""

from __future__ import annotations

from parfocal.explain.causes import PortChange, PortCode, PortLine
from parfocal.explain.fixes.joining import SeveralFixes
from parfocal.explain.fixes.splicing import Patch
from parfocal.explain.scripting import commented
from parfocal.phrases import phrase

LAYER = PortLine.layer("norm", "paddle.nn.LayerNorm(8)")
PATCH = Patch("/a/model.py", 12, "x = f(x)", "x = g(x)")


def test_layers_come_first_and_modes_after_the_modes():
    assert commented([PortLine.mode("blocks.0", "eval"), LAYER]) == (
        ["# port.norm = paddle.nn.LayerNorm(8)  # the fix"],
        ["# port.blocks[0].eval()  # the fix"],
    )


def test_words_and_patches_are_made_in_the_source():
    assert commented([phrase("invert the mask"), PATCH]) == (
        [],
        ["# To be made in the port's source:", "#     invert the mask", "#     x = g(x)  # model.py:12"],
    )


def test_words_that_could_be_read_as_code_stay_words():
    first, last = commented(["port"])
    assert not first
    assert last[1:] == ["#     port"]


def test_every_part_of_a_fix_is_put_where_it_belongs():
    removed = PortCode("del port.head", PortChange.REMOVAL)
    fix = SeveralFixes((PATCH, removed, LAYER))
    assert fix.text == "x = g(x)  # model.py:12\ndel port.head\nport.norm = paddle.nn.LayerNorm(8)"
    first, last = commented([fix])
    assert first == ["# del port.head  # the fix", "# port.norm = paddle.nn.LayerNorm(8)  # the fix"]
    assert last[1:] == ["#     x = g(x)  # model.py:12"]
