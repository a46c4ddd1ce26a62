"""Values and pixels that differ by themselves: bit patterns and colours, and what is neither."""

from __future__ import annotations

from itertools import pairwise

import ml_dtypes
import numpy as np
import pytest
from PIL import Image, ImageDraw, ImageEnhance, ImageFilter

from parfocal.explain.sample_values import apart, bit_patterns, colours, farthest

LIMIT = 4.0
GENERATOR = np.random.default_rng(2)
NUMBERS = [GENERATOR.standard_normal((6, 4)).astype("float32") for _ in range(3)]


def codes(found):
    return [claim.code for claim in found]


def bits(array):
    return array.astype(ml_dtypes.bfloat16).view(np.uint16)


def test_bits_of_bfloat16_are_told_on_either_side():
    pairs = [(each, bits(each)) for each in NUMBERS]
    (moved,) = bit_patterns(pairs)
    assert moved.steps[0].code == "dtype.bits"
    assert moved.steps[0].fix == "cast to float32 before .numpy() in the port"
    assert farthest(pairs) > 1e5
    assert farthest(moved.pairs) == 0.0
    (moved,) = bit_patterns([pair[::-1] for pair in pairs])
    assert moved.steps[0].fix == "cast to float32 before .numpy() in the reference"
    assert farthest(moved.pairs) == 0.0


@pytest.mark.parametrize(
    "change",
    [
        lambda each: each,
        lambda each: bits(each) + np.uint16(1),
        lambda each: bits(each).astype(np.int64),
        lambda each: np.abs(each * 1000).astype(np.uint16),
        lambda each: bits(each)[::-1],
    ],
)
def test_other_numbers_are_no_bits(change):
    assert list(bit_patterns([(each, change(each)) for each in NUMBERS])) == []


def smooth(cells, size, count=6):
    return [
        Image.fromarray(GENERATOR.integers(0, 256, (cells, cells, 3), dtype=np.uint8)).resize(
            (size, size), Image.BICUBIC
        )
        for _ in range(count)
    ]


def written():
    """Dark letters on white, of which most pixels stay as they are."""
    found = []
    for number in range(6):
        image = Image.new("RGB", (120, 120), "white")
        for line in range(8):
            ImageDraw.Draw(image).text(
                (5 + 3 * number, 14 * line), f"parfocal {line * 7919}", fill=(90, 20, 20)
            )
        found.append(image)
    return found


PICTURES = {"smooth": smooth(6, 48), "fine": smooth(40, 96), "written": written()}
RECOLOURED = {
    "brightness": lambda image: ImageEnhance.Brightness(image).enhance(0.8),
    "contrast": lambda image: ImageEnhance.Contrast(image).enhance(0.7),
    "saturation": lambda image: ImageEnhance.Color(image).enhance(0.4),
    "another mode": lambda image: image.convert("L").convert("RGB"),
}
RESAMPLED = {
    "blurred": lambda image: image.filter(ImageFilter.GaussianBlur(1)),
    "smaller and back": lambda image: image.resize((24, 24), Image.BILINEAR).resize(image.size),
    "sharpened": lambda image: image.filter(ImageFilter.SHARPEN),
    "turned": lambda image: image.rotate(2),
}


def changed(pictures, change):
    return [(np.asarray(each), np.asarray(change(each))) for each in PICTURES[pictures]]


@pytest.mark.parametrize("change", RECOLOURED)
@pytest.mark.parametrize("pictures", PICTURES)
def test_other_colours_are_told(pictures, change):
    pairs = changed(pictures, RECOLOURED[change])
    assert codes(colours(pairs, LIMIT)) == ["data.colour"]
    floats = [(ours / np.float32(255) - 0.5, theirs / np.float32(255) - 0.5) for ours, theirs in pairs]
    assert codes(colours(floats, LIMIT)) == ["data.colour"]
    turned = [(ours.transpose(2, 0, 1), theirs.transpose(2, 0, 1)) for ours, theirs in pairs]
    assert codes(colours(turned, LIMIT)) == ["data.colour"]


@pytest.mark.parametrize("change", RESAMPLED)
@pytest.mark.parametrize("pictures", PICTURES)
def test_pictures_that_were_resampled_have_no_other_colours(pictures, change):
    assert codes(colours(changed(pictures, RESAMPLED[change]), LIMIT)) == []


def test_the_same_pictures_and_other_ones_have_no_other_colours():
    same = [np.asarray(each) for each in PICTURES["smooth"]]
    assert codes(colours([(each, each) for each in same], LIMIT)) == []
    assert codes(colours(list(pairwise(same)), LIMIT)) == []
    assert codes(colours([(each, each[:40]) for each in same], LIMIT)) == []
    assert codes(colours([(np.zeros((8, 8, 3)), np.ones((8, 8, 3)))], LIMIT)) == []  # shows too little


def test_distance_in_units_of_rounding():
    ones = np.ones(4, "float32")
    assert apart(ones, ones) == 0
    assert 0 < apart(ones, np.nextafter(ones, np.float32(2))) < 1
    assert apart(ones, np.ones(5, "float32")) == np.inf
