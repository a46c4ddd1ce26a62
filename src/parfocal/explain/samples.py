"""Why two versions of a sample differ: each hypothesis turns the reference's array into the port's.

Axes in another order, channels reversed, a scale and an offset, a shifted or mirrored crop, another way to
resize; ``sample_labels`` has those about whole numbers. It is the cause only if it fits every pair of
samples. Only NumPy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import permutations

import numpy as np

from parfocal.backends.protocol import Array
from parfocal.brief import some
from parfocal.explain.causes import number, rounded
from parfocal.explain.sample_labels import is_label, label_cause
from parfocal.judge import limits
from parfocal.judge.floors import EPSILON
from parfocal.judge.verdict import Cause
from parfocal.phrases import phrase

CHANNELS = limits.causes.COLOUR_CHANNELS.value
FARTHEST = limits.searches.CROP_SHIFTS.value
PATCH = limits.causes.CROP_PATCH.value
ALIKE = limits.causes.ALIKE_PICTURES.value
FITTED = limits.causes.FITTED.value
ROUNDING = limits.causes.FEW_ROUNDINGS.value * EPSILON["float32"]
Pairs = Sequence[tuple[Array, Array]]  # of the reference and of the port

# Constants that people normalise by: (mean, std) for values from 0 to 1.
KNOWN: dict[str, tuple[tuple[float, ...], tuple[float, ...]]] = {
    phrase("not normalised"): ((0.0,), (1.0,)),
    phrase("mean 0.5, std 0.5"): ((0.5,), (0.5,)),
    phrase("ImageNet's mean and std"): ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)),
    phrase("CIFAR's mean and std"): ((0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)),
    phrase("CLIP's mean and std"): (
        (0.48145466, 0.4578275, 0.40821073),
        (0.26862954, 0.26130258, 0.27577711),
    ),
    phrase("values from 0 to 255"): ((0.0,), (1 / 255,)),
}


def apart(ours: Array, theirs: Array) -> float:
    """The largest difference in units of rounding; infinite for other shapes."""
    if ours.shape != theirs.shape:
        return np.inf
    if not ours.size:
        return 0.0
    if ours.dtype.kind in "iub" and theirs.dtype.kind in "iub":
        return 0.0 if np.array_equal(ours, theirs) else np.inf
    if ours.dtype.kind not in "fiub" or theirs.dtype.kind not in "fiub":
        return 0.0 if np.array_equal(ours, theirs) else np.inf
    wide = ours.astype(np.float64), theirs.astype(np.float64)
    scale = max(float(np.abs(wide[0]).max()), float(np.abs(wide[1]).max())) or 1.0
    difference = np.abs(wide[0] - wide[1])
    if np.isnan(wide[0]).any() or np.isnan(wide[1]).any():
        same = np.isnan(wide[0]) == np.isnan(wide[1])
        return float(np.nanmax(difference, initial=0.0)) / (ROUNDING * scale) if same.all() else np.inf
    return float(difference.max()) / (ROUNDING * scale)


def cause_of(pairs: Pairs, limit: float, equal: Pairs = ()) -> Cause | None:
    """The first hypothesis that fits all pairs of one field; ``equal``: those that do not differ.

    What numbers stand for must hold of all samples; a transform may be applied to some of them only.
    """
    numbered = label_cause([*pairs, *equal])
    if numbered is not None or all(is_label(ours) and is_label(theirs) for ours, theirs in pairs):
        return numbered
    return next((cause for make in HYPOTHESES for cause in make(pairs, limit)), None)


def _fits(pairs: Pairs, change: Callable[[Array], Array], limit: float) -> bool:
    return all(apart(change(ours), theirs) <= limit for ours, theirs in pairs)


def _turned(pairs: Pairs, limit: float) -> Iterator[Cause]:
    """Axes in another order: HWC for CHW."""
    ours, theirs = pairs[0]
    if ours.ndim != theirs.ndim or not 2 <= ours.ndim <= 4:
        return
    for order in permutations(range(ours.ndim)):
        if list(order) == sorted(order) or tuple(ours.shape[axis] for axis in order) != theirs.shape:
            continue
        if _fits(pairs, lambda array, order=order: array.transpose(order), limit):  # type: ignore[misc]
            message = phrase("the port's axes are the reference's in the order {order}", order=list(order))
            back = np.argsort(order).tolist()
            yield Cause(
                "layout.permuted", message, phrase("transpose the port's samples by {back}", back=back), 0.0
            )
            return


def channel_axis(array: Array) -> int | None:
    """Where the colours are: first, or last."""
    if array.ndim < 3:
        return None
    return next((axis for axis in (-3, -1) if 1 < array.shape[axis] <= CHANNELS), None)


def _channels(pairs: Pairs, limit: float) -> Iterator[Cause]:
    axis = channel_axis(pairs[0][0])
    if axis is None or pairs[0][0].shape != pairs[0][1].shape:
        return
    if _fits(pairs, lambda array: np.flip(array, axis), limit):
        message = phrase(
            "the {count} channels are reversed in the port (RGB against BGR)", count=pairs[0][0].shape[axis]
        )
        yield Cause("data.channel_order", message, phrase("reverse the channels of the port's samples"), 0.0)
        return
    flipped = [(np.flip(ours, axis), theirs) for ours, theirs in pairs]
    if fit_scale(flipped, axis) is not None and fit_scale(pairs, axis) is None:
        fitted = next(_scaled(flipped, limit))
        message = phrase("the channels are reversed in the port, and {message}", message=fitted.message)
        fix = phrase("reverse the channels of the port's samples; {fix}", fix=fitted.fix)
        yield Cause("data.channel_order", message, fix, 0.0)


@dataclass(frozen=True, slots=True)
class AffineFit:
    """The port's values are the reference's times a scale plus an offset, one of each a channel."""

    scales: tuple[float, ...]
    offsets: tuple[float, ...]


def fit_scale(pairs: Pairs, axis: int | None) -> AffineFit | None:
    """The same scale and offset for all pairs; by channel where ``axis`` says what the channels are."""
    if any(a.shape != b.shape or a.dtype.kind not in "fiu" or b.dtype.kind not in "fiu" for a, b in pairs):
        return None
    count = 1 if axis is None else pairs[0][0].shape[axis]
    if any((1 if axis is None else a.shape[axis]) != count for a, _ in pairs):
        return None
    scales, offsets = [], []
    for channel in range(count):
        ours, theirs = (
            np.concatenate([_channel(pair[side], axis, channel) for pair in pairs]) for side in (0, 1)
        )
        spread = ours - ours.mean()
        power = float(spread @ spread)
        if not power:
            return None
        scale = float(spread @ (theirs - theirs.mean())) / power
        offset = float(theirs.mean() - scale * ours.mean())
        left = float(np.linalg.norm(theirs - scale * ours - offset))
        if not scale or left > FITTED * max(float(np.linalg.norm(theirs - theirs.mean())), 1e-30):
            return None
        scales.append(scale)
        offsets.append(offset)
    return AffineFit(tuple(scales), tuple(offsets))


def _channel(array: Array, axis: int | None, channel: int) -> Array:
    picked = array if axis is None else np.take(array, channel, axis)
    return np.asarray(picked, dtype=np.float64).reshape(-1)


def _scaled(pairs: Pairs, limit: float) -> Iterator[Cause]:
    for axis in (None, channel_axis(pairs[0][0])):
        fit = fit_scale(pairs, axis)
        if fit is None:
            continue
        least = ROUNDING * max(float(np.abs(theirs).max(initial=0.0)) for _, theirs in pairs)
        offsets = [0.0 if abs(each) <= least else each for each in fit.offsets]
        told = [some([number(rounded(float(f"{x:.6g}"))) for x in each]) for each in (fit.scales, offsets)]
        each = "" if len(fit.scales) == 1 else phrase(" for each channel")
        message = phrase(
            "the port's values are the reference's times {factors} plus {offsets}{each}",
            factors=told[0],
            offsets=told[1],
            each=each,
        )
        known = _known(fit)
        if known is not None:
            message += (
                phrase(": the reference is {reference}, the port {port}", reference=known[0], port=known[1])
                if known[0] != known[1]
                else ""
            )
        fix = phrase("normalise the port's samples as the reference's are")
        if known is not None:
            fix = phrase("{fix}: {known}", fix=fix, known=known[0])
        yield Cause("data.normalisation", message, fix, 0.0)
        return


def _known(fit: AffineFit) -> tuple[str, str] | None:
    """Which known constants the two sides were normalised by, if that explains the fit."""
    for ours, (mean, std) in KNOWN.items():
        for theirs, (other_mean, other_std) in KNOWN.items():
            if ours == theirs:
                continue
            count = max(len(mean), len(other_mean), len(fit.scales))
            m, s, om, os = (_spread(each, count) for each in (mean, std, other_mean, other_std))
            scales = s / os  # (x * s + m - om) / os
            offsets = (m - om) / os
            if np.allclose(_spread(fit.scales, count), scales, rtol=1e-3) and np.allclose(
                _spread(fit.offsets, count), offsets, rtol=1e-3, atol=1e-3
            ):
                return ours, theirs
    return None


def _spread(values: Sequence[float], count: int) -> Array:
    return np.asarray(values if len(values) == count else [values[0]] * count, dtype=np.float64)


def _mirrored(pairs: Pairs, limit: float) -> Iterator[Cause]:
    if pairs[0][0].ndim < 2:
        return
    for axis in range(pairs[0][0].ndim):
        if pairs[0][0].shape[axis] > CHANNELS and _fits(pairs, lambda a, axis=axis: np.flip(a, axis), limit):  # type: ignore[misc]
            message = phrase("the port's samples are mirrored along axis {axis}", axis=axis)
            yield Cause(
                "data.crop",
                message,
                phrase("do not flip the port's samples along axis {axis}", axis=axis),
                0.0,
            )
            return


def _plane(array: Array) -> tuple[int, int] | None:
    """The two axes of a picture."""
    if array.ndim == 2:
        return 0, 1
    if array.ndim != 3:
        return None
    return (0, 1) if array.shape[-1] <= CHANNELS < array.shape[0] else (1, 2)


def _cropped(pairs: Pairs, limit: float) -> Iterator[Cause]:
    """The same picture, cut out at another place."""
    axes = _plane(pairs[0][0])
    if (
        axes is None
        or any(a.shape != b.shape for a, b in pairs)
        or min(pairs[0][0].shape[x] for x in axes) < 8
    ):
        return
    shift = _shift(*pairs[0], axes)
    if shift == (0, 0) or max(map(abs, shift)) > FARTHEST:
        return
    for ours, theirs in pairs:
        mine, other = _overlap(ours, theirs, axes, shift)
        if not mine.size or apart(mine, other) > limit:
            return
    message = phrase(
        "the port's crop lies {rows} rows down and {columns} columns right of the reference's",
        rows=shift[0],
        columns=shift[1],
    )
    fix = phrase(
        "cut the port's samples {rows} rows higher and {columns} columns further left",
        rows=shift[0],
        columns=shift[1],
    )
    yield Cause("data.crop", message, fix, 0.0)


def _shift(ours: Array, theirs: Array, axes: tuple[int, int]) -> tuple[int, int]:
    """By how much an image is shifted: where the centre of the port's is found in the reference's."""
    mine, other = (np.moveaxis(array, axes, (0, 1)) for array in (ours, theirs))
    mine, other = (plane.reshape(*plane.shape[:2], -1)[..., 0].astype(np.float64) for plane in (mine, other))
    corner = (other.shape[0] - PATCH) // 2, (other.shape[1] - PATCH) // 2
    patch = other[corner[0] : corner[0] + PATCH, corner[1] : corner[1] + PATCH]
    windows = np.lib.stride_tricks.sliding_window_view(mine, (PATCH, PATCH))
    apart_by_place = np.abs(windows - patch).max(axis=(2, 3))
    row, column = np.unravel_index(int(np.argmin(apart_by_place)), apart_by_place.shape)
    return int(row) - corner[0], int(column) - corner[1]


def _overlap(
    ours: Array, theirs: Array, axes: tuple[int, int], shift: tuple[int, int]
) -> tuple[Array, Array]:
    mine, other = [slice(None)] * ours.ndim, [slice(None)] * ours.ndim
    for axis, by in zip(axes, shift, strict=True):
        length = ours.shape[axis]
        mine[axis] = slice(max(by, 0), length + min(by, 0))
        other[axis] = slice(max(-by, 0), length + min(-by, 0))
    return ours[tuple(mine)], theirs[tuple(other)]


def _resized(pairs: Pairs, limit: float) -> Iterator[Cause]:
    """The same pictures, almost: another interpolation."""
    if any(a.shape != b.shape or _plane(a) is None for a, b in pairs):
        return
    alike = [
        np.corrcoef(a.reshape(-1).astype(np.float64), b.reshape(-1).astype(np.float64))[0, 1]
        for a, b in pairs
    ]
    if min(alike) < ALIKE:
        return
    worst = max(float(np.abs(a.astype(np.float64) - b.astype(np.float64)).max()) for a, b in pairs)
    message = phrase(
        "the same pictures, resampled otherwise: {share} alike, up to {worst} apart (another "
        "interpolation, antialiasing, or library: arrays are resized otherwise than images)",
        share=f"{min(alike):.1%}",
        worst=f"{worst:.4g}",
    )
    fix = phrase(
        "resize the port's pictures as the reference's are: the same library, interpolation and antialiasing"
    )
    yield Cause("data.resize", message, fix, 0.0)


Hypothesis = Callable[[Pairs, float], Iterator[Cause]]
HYPOTHESES: tuple[Hypothesis, ...] = (
    _turned,
    _channels,
    _scaled,
    _mirrored,
    _cropped,
    _resized,
)
