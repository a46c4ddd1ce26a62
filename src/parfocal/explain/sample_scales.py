"""How values of samples were scaled: a factor and an offset, and the constants behind them. Only NumPy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from parfocal.backends.protocol import Array
from parfocal.explain.sample_values import Pairs
from parfocal.judge import limits
from parfocal.phrases import phrase

FITTED = limits.causes.FITTED.value
CONSTANT = limits.causes.KNOWN_CONSTANT.value

# Constants that people normalise by: (mean, std) for values from 0 to 1.
NORMALISED: dict[str, tuple[tuple[float, ...], tuple[float, ...]]] = {
    phrase("mean 0.5, std 0.5"): ((0.5,), (0.5,)),
    phrase("ImageNet's mean and std"): ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)),
    phrase("CIFAR's mean and std"): ((0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)),
    phrase("CLIP's mean and std"): (
        (0.48145466, 0.4578275, 0.40821073),
        (0.26862954, 0.26130258, 0.27577711),
    ),
}
KNOWN = {
    phrase("not normalised"): ((0.0,), (1.0,)),
    phrase("values from 0 to 255"): ((0.0,), (1 / 255,)),
    **NORMALISED,
    **{
        phrase("{constants}, applied to values from 0 to 255", constants=name): (
            tuple(each / 255 for each in mean),
            tuple(each / 255 for each in std),
        )
        for name, (mean, std) in NORMALISED.items()
    },
}


@dataclass(frozen=True, slots=True)
class AffineFit:
    """The port's values are the reference's times a scale plus an offset, one of each a channel."""

    scales: tuple[float, ...]
    offsets: tuple[float, ...]
    left: float = 0.0  # the share of the port's variation that the fit leaves over

    def applied(self, array: Array, axis: int | None) -> Array:
        """An array of the reference as the port would have it."""
        shape = [1] * array.ndim
        if axis is not None:
            shape[axis] = len(self.scales)
        scales, offsets = np.reshape(self.scales, shape), np.reshape(self.offsets, shape)
        return np.asarray(np.asarray(array, np.float64) * scales + offsets)


def nearest_scale(pairs: Pairs, axis: int | None) -> AffineFit | None:
    """The scale and offset that leave least over all pairs; by channel where ``axis`` says what these are."""
    if any(a.shape != b.shape or a.dtype.kind not in "fiu" or b.dtype.kind not in "fiu" for a, b in pairs):
        return None
    count = 1 if axis is None else pairs[0][0].shape[axis]
    if any((1 if axis is None else a.shape[axis]) != count for a, _ in pairs):
        return None
    scales, offsets, left = [], [], 0.0
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
        over = float(np.linalg.norm(theirs - scale * ours - offset))
        if not scale:
            return None
        left = max(left, over / max(float(np.linalg.norm(theirs - theirs.mean())), 1e-30))
        scales.append(scale)
        offsets.append(offset)
    return AffineFit(tuple(scales), tuple(offsets), left)


def fit_scale(pairs: Pairs, axis: int | None) -> AffineFit | None:
    """The same scale and offset for all pairs, if they leave nothing over but rounding."""
    fit = nearest_scale(pairs, axis)
    return fit if fit is not None and fit.left <= FITTED else None


def _channel(array: Array, axis: int | None, channel: int) -> Array:
    picked = array if axis is None else np.take(array, channel, axis)
    return np.asarray(picked, dtype=np.float64).reshape(-1)


def undone_by_itself(fit: AffineFit, tolerance: float = CONSTANT) -> bool:
    """Whether a fit between reversed channels is that of one normalisation applied to both orders.

    The constants belong to places, so the pair of a channel and its opposite is scaled there and back.
    """
    scales, offsets = np.asarray(fit.scales), np.asarray(fit.offsets)
    back = bool((scales > 0).all()) and np.allclose(scales * scales[::-1], 1.0, rtol=tolerance)
    return bool(back and np.allclose(offsets + scales * offsets[::-1], 0.0, atol=tolerance))


def known_constants(
    fit: AffineFit, tolerance: float = CONSTANT, turned: bool = False
) -> tuple[str, str] | None:
    """Which known constants the two sides were normalised by, if that explains the fit.

    ``turned``: the reference's channels were reversed for the fit, and its constants with them.
    """
    for ours, (mean, std) in KNOWN.items():
        for theirs, (other_mean, other_std) in KNOWN.items():
            if ours == theirs:
                continue
            count = max(len(mean), len(other_mean), len(fit.scales))
            m, s, om, os = (_spread(each, count) for each in (mean, std, other_mean, other_std))
            if turned:
                m, s = m[::-1], s[::-1]
            scales = s / os  # (x * s + m - om) / os
            offsets = (m - om) / os
            if np.allclose(_spread(fit.scales, count), scales, rtol=tolerance) and np.allclose(
                _spread(fit.offsets, count), offsets, rtol=tolerance, atol=tolerance
            ):
                return ours, theirs
    return None


def _spread(values: Sequence[float], count: int) -> Array:
    return np.asarray(values if len(values) == count else [values[0]] * count, dtype=np.float64)
