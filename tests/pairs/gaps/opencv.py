"""The few functions of OpenCV that paddle calls for pictures that are arrays, in NumPy.

``installed`` puts them where paddle imports them from. They agree with OpenCV 5.0 within 1 of 255.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

import numpy as np

INTER_NEAREST, INTER_LINEAR, INTER_CUBIC, INTER_AREA, INTER_LANCZOS4 = range(5)
COLOR_BGR2HSV_FULL, COLOR_HSV2BGR_FULL = 66, 70


def resize(image: Any, dsize: tuple[int, int], interpolation: int) -> Any:
    """Bilinear between centres, without smoothing."""
    if interpolation != INTER_LINEAR:
        raise NotImplementedError(interpolation)
    found = image.astype(np.float64)
    for axis, length in ((0, dsize[1]), (1, dsize[0])):
        given = found.shape[axis]
        places = np.clip((np.arange(length) + 0.5) * given / length - 0.5, 0, given - 1)
        below = np.minimum(places.astype(int), given - 2)
        share = (places - below).reshape([-1 if each == axis else 1 for each in range(found.ndim)])
        found = np.take(found, below, axis) * (1 - share) + np.take(found, below + 1, axis) * share
    return np.rint(found).astype(image.dtype)


def LUT(image: Any, table: Any) -> Any:
    return table[image]


def split(image: Any) -> list[Any]:
    return [image[..., channel] for channel in range(image.shape[-1])]


def merge(channels: list[Any]) -> Any:
    return np.stack(channels, axis=-1)


def cvtColor(image: Any, code: int) -> Any:
    return {COLOR_BGR2HSV_FULL: _to_hue, COLOR_HSV2BGR_FULL: _from_hue}[code](image.astype(np.float64))


def _to_hue(image: Any) -> Any:
    blue, green, red = split(image)
    most, least = image.max(-1), image.min(-1)
    spread = np.where(most > least, most - least, 1.0)
    sixths = np.where(
        most == red,
        (green - blue) / spread,
        np.where(most == green, 2 + (blue - red) / spread, 4 + (red - green) / spread),
    )
    hue = np.where(most > least, sixths, 0.0) * 256 / 6
    saturation = np.where(most > 0, (most - least) / np.where(most > 0, most, 1.0), 0.0) * 255
    return merge([np.rint(hue) % 256, np.rint(saturation), most]).astype(np.uint8)


def _from_hue(image: Any) -> Any:
    hue, saturation, most = split(image)
    sixths = hue * 6 / 255  # OpenCV goes there by 256 and back by 255
    channels = []
    for turn in (1, 3, 5):  # blue, green, red
        place = (turn + sixths) % 6
        part = np.clip(np.minimum(place, 4 - place), 0, 1)
        channels.append(most * (1 - saturation / 255 * part))
    return np.rint(merge(channels)).astype(np.uint8)


@contextmanager
def installed() -> Iterator[None]:
    """Paddle finds these functions; afterwards everything is as it was."""
    module = ModuleType("cv2")
    module.__dict__.update({name: value for name, value in globals().items() if not name.startswith("_")})
    before = sys.modules.get("cv2")
    sys.modules["cv2"] = module
    try:
        yield
    finally:
        if before is None:
            del sys.modules["cv2"]
        else:
            sys.modules["cv2"] = before
