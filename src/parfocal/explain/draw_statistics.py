"""Numbers that say what a random change did to a sample: how bright it is, where its weight lies, how sharp.

Each moves with one kind of change (a flip, a crop, another colour, a rotation) and with none of its causes is
it exact: two sides are compared by the distribution of each over many draws. Only NumPy.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from parfocal.backends.protocol import Array
from parfocal.explain.sample_scales import AffineFit, known_constants
from parfocal.explain.sample_values import CHANNELS, channel_axis, plane_of
from parfocal.judge import limits
from parfocal.judge.verdict import Claim
from parfocal.phrases import phrase

CELLS = int(limits.searches.RANDOM_PARTS.value)
QUANTILES = limits.searches.RANDOM_LEVELS.value
CHANNEL_PARTS = ("channel", "channel_spread")
CONSTANT = limits.causes.RESAMPLED_CONSTANT.value

WORDS: Mapping[str, str] = {
    "size": phrase("the size"),
    "mean": phrase("the brightness (mean)"),
    "spread": phrase("the contrast (standard deviation)"),
    "across": phrase("left against right (flips, place of crops)"),
    "down": phrase("top against bottom (flips, place of crops)"),
    "fine": phrase("the sharpness (size of crops, interpolation)"),
    "finer": phrase("the finest detail (interpolation, noise)"),
    "turned": phrase("the share of slopes across and down (rotation, aspect ratio)"),
    "cell": phrase("where the weight lies (place of crops)"),
    "channel": phrase("the mean of a channel (colours)"),
    "channel_spread": phrase("the spread of a channel (colours)"),
    "quantile": phrase("the levels of values (colours, filled or erased parts)"),
    "together": phrase("how alike the channels are (saturation)"),
}


def statistics_of(array: Array) -> dict[str, float]:
    """By name; what a number is of stands behind a dot."""
    found = {"size": float(array.size)}
    if array.dtype.kind not in "fiub" or not array.size:
        return found
    wide = np.nan_to_num(array.astype(np.float64))
    found["mean"], found["spread"] = float(wide.mean()), float(wide.std())
    for level, value in zip(QUANTILES, np.quantile(wide, QUANTILES), strict=True):
        found[f"quantile.{level:g}"] = float(value)
    axis = channel_axis(array)
    if axis is not None:
        channels = np.moveaxis(wide, axis, 0).reshape(array.shape[axis], -1)
        for at, channel in enumerate(channels):
            found[f"channel.{at}"] = float(channel.mean())
            found[f"channel_spread.{at}"] = float(channel.std())
        found["together"] = float(channels.std(axis=0).mean())
    found.update(_of_plane(plane_without_colours(wide)))
    return found


def plane_without_colours(array: Array) -> Array:
    """A picture without its colours; a sequence as one row."""
    axis, wide = channel_axis(array), array.astype(np.float64)
    if axis is not None:
        wide = wide.mean(axis=axis)
    elif (plane := plane_of(wide)) is not None and wide.ndim == 3:
        wide = wide.mean(axis=next(at for at in range(3) if at not in plane))
    return wide.reshape(-1, wide.shape[-1]) if wide.ndim else wide.reshape(1, 1)


def _of_plane(plane: Array) -> dict[str, float]:
    spread = float(plane.std()) or 1.0
    weight = (plane - plane.mean()) / spread
    rows, columns = (np.linspace(-1, 1, length) for length in plane.shape)
    found = {
        "across": float((weight * columns).mean()),
        "down": float((weight * rows[:, None]).mean()),
    }
    for row, band in enumerate(np.array_split(weight, min(CELLS, len(weight)), axis=0)):
        for column, part in enumerate(np.array_split(band, min(CELLS, band.shape[1]), axis=1)):
            found[f"cell.{row}{column}"] = float(part.mean())
    steps = [np.diff(weight, axis=axis) for axis in (0, 1)]
    powers = [float((each**2).mean()) if each.size else 0.0 for each in steps]
    bends = [np.diff(weight, 2, axis=axis) for axis in (0, 1)]
    bent = sum(float((each**2).mean()) if each.size else 0.0 for each in bends)
    found["fine"] = float(np.sqrt(sum(powers)))
    found["finer"] = float(np.sqrt(bent / (sum(powers) or 1.0)))
    found["turned"] = powers[0] / (sum(powers) or 1.0)
    return found


def as_table(draws: Sequence[Sequence[Mapping[str, float]]]) -> tuple[list[str], Array]:
    """The names that all draws have, and ``[source, draw, statistic]``."""
    names = [name for name in draws[0][0] if all(name in each for of in draws for each in of)]
    return names, np.asarray([[[each[name] for name in names] for each in of] for of in draws])


def words_of_statistic(name: str) -> str:
    return WORDS[name.partition(".")[0]]


@dataclass(frozen=True, slots=True)
class MovedTable:
    """A claim about channels, with their statistics of both sides once the reference is changed so."""

    claim: Claim
    ours: Array
    theirs: Array


def channel_claims(names: Sequence[str], ours: Array, theirs: Array) -> Iterator[MovedTable]:
    """Channels that are scaled by known constants or exchanged, told from their means and spreads alone."""
    parts = [[at for at, name in enumerate(names) if name.startswith(f"{part}.")] for part in CHANNEL_PARTS]
    if not 1 < len(parts[0]) <= CHANNELS:
        return
    (mean, spread), (other_mean, other_spread) = (
        [side[..., part] for part in parts] for side in (ours, theirs)
    )
    both = np.concatenate((other_mean, other_spread), axis=-1)
    scales = other_spread.mean(axis=(0, 1)) / np.where(
        spread.mean(axis=(0, 1)) > 0, spread.mean(axis=(0, 1)), 1.0
    )
    offsets = other_mean.mean(axis=(0, 1)) - scales * mean.mean(axis=(0, 1))
    known = known_constants(AffineFit(tuple(scales), tuple(offsets)), CONSTANT)
    if known is not None:
        message = phrase(
            "means and spreads of the channels are those of other constants: the reference is {reference}, "
            "the port {port}",
            reference=known[0],
            port=known[1],
        )
        fix = phrase("normalise the port's samples as the reference's are: {known}", known=known[0])
        moved = np.concatenate((mean * scales + offsets, spread * scales), axis=-1)
        yield MovedTable(Claim("data.normalisation", message, fix), moved, both)
    message = phrase("the channels of the port go with the reference's in reverse (RGB against BGR)")
    turned = np.concatenate((mean[..., ::-1], spread[..., ::-1]), axis=-1)
    fix = phrase("reverse the channels of the port's samples")
    yield MovedTable(Claim("data.channel_order", message, fix), turned, both)
