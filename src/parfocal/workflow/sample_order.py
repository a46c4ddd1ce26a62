"""Which sample of one side is which of the other, by signatures that preprocessing does not change.

A signature is a row of quantiles of the sample's values, each channel brought to one scale: the same for
another normalisation, layout, order of channels or a mirrored picture.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass

import numpy as np
import scipy  # loads its parts when they are first used

from parfocal.backends.protocol import Array
from parfocal.explain.sample_values import channel_axis
from parfocal.judge import limits
from parfocal.phrases import phrase
from parfocal.workflow.sample_streams import Sample

QUANTILES = limits.causes.ORDER_QUANTILES.value
CLOSE = limits.causes.ORDER_CLOSE.value
SHARE = limits.causes.ORDER_SHARE.value


def signature(sample: Sample) -> Array:
    """A few numbers that tell samples apart: of all arrays with more than one value, or of all values."""
    rows = [_row(array) for array in sample.values() if array.size > 1]
    if not rows:
        rows = [np.asarray([_number(array)]) for array in sample.values()]
    return np.concatenate(rows) if rows else np.zeros(1)


def _number(array: Array) -> float:
    if array.dtype.kind in "fiub":
        return float(array.reshape(-1)[0]) if array.size else 0.0
    return float(zlib.crc32(array.tobytes()))


def _row(array: Array) -> Array:
    if array.dtype.kind not in "fiub":
        return np.asarray([float(zlib.crc32(array.tobytes()))])
    axis = channel_axis(array)
    wide = array.astype(np.float64)
    parts = [wide] if axis is None else list(np.moveaxis(wide, axis, 0))
    levels = []
    for part in parts:
        spread = part.std()
        scaled = (part - part.mean()) / spread if spread > 0 else part - part.mean()
        levels.append(np.quantile(scaled, np.linspace(0, 1, QUANTILES)))
    return np.asarray(np.sort(np.stack(levels), axis=0).reshape(-1) if len(levels) > 1 else levels[0])


@dataclass(frozen=True, slots=True)
class SampleOrder:
    """``order[i]``: which sample of the reference the port's sample ``i`` is; -1: none."""

    order: tuple[int, ...]

    @property
    def is_same(self) -> bool:
        return all(at in (index, -1) for index, at in enumerate(self.order))


def find_order(ours: list[Array], theirs: list[Array]) -> SampleOrder | None:
    """The permutation that lays the port's samples upon the reference's, if nearly all are found once."""
    order = find_common(ours, theirs)
    if order is None:
        return None
    used = [at for at in order.order if at >= 0]
    if len(used) < SHARE * min(len(ours), len(theirs)) or len(set(used)) < SHARE * len(used):
        return None
    return order


def find_common(ours: list[Array], theirs: list[Array]) -> SampleOrder | None:
    """For each sample of the port the reference's that is the same; None where they cannot be told apart."""
    if not ours or not theirs or len({each.shape for each in (*ours, *theirs)}) != 1:
        return None
    reference, port = np.stack(ours), np.stack(theirs)
    near, index = scipy.spatial.cKDTree(reference).query(port, k=1)
    found = np.where(near <= CLOSE * np.sqrt(reference.shape[1]), index, -1)
    return SampleOrder(tuple(int(at) for at in found))


def in_words(order: SampleOrder, batch: int | None) -> str:
    """What kind of another order it is."""
    found = np.asarray(order.order)
    steps = found - np.arange(len(found))
    if len(set(steps.tolist())) == 1:
        if steps[0] > 0:
            return phrase("{count} samples ahead", count=int(steps[0]))
        return phrase("{count} samples behind", count=-int(steps[0]))
    if np.array_equal(found, np.arange(len(found))[::-1]):
        return phrase("in reverse")
    if batch and all(
        (found[at : at + batch] // batch == at // batch).all() for at in range(0, len(found), batch)
    ):
        return phrase("in another order inside of each batch of {batch}", batch=batch)
    shown = ", ".join(map(str, found[:8].tolist()))
    return phrase("in another order ({shown}{more})", shown=shown, more=", ..." if len(found) > 8 else "")
