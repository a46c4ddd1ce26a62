"""Why two versions of a sample differ: steps that turn the reference's array into the port's.

Axes in another order, channels reversed, mirrored, a shifted crop: these move values. A scale and an offset
change them; another way to resize blurs them. The fewest steps that fit every pair of samples are the cause;
``sample_labels`` has those about whole numbers. Only NumPy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import reduce
from itertools import combinations, permutations

import numpy as np

from parfocal.backends.protocol import Array
from parfocal.brief import some
from parfocal.explain.causes import number, rounded
from parfocal.explain.sample_labels import is_label, label_cause
from parfocal.explain.sample_scales import (
    CONSTANT,
    FITTED,
    AffineFit,
    fit_scale,
    known_constants,
    nearest_scale,
    undone_by_itself,
)
from parfocal.explain.sample_values import (
    CHANNELS,
    ROUNDING,
    Moved,
    Pairs,
    apart,
    bit_patterns,
    channel_axis,
    colours,
    farthest,
    plane_of,
)
from parfocal.judge import limits
from parfocal.judge.verdict import Cause, Claim, Grounds, ProvenBy, fix_text
from parfocal.phrases import joined, phrase

FARTHEST = limits.searches.CROP_SHIFTS.value
MOST_MOVES = limits.searches.SAMPLE_MOVES.value
PATCH = limits.causes.CROP_PATCH.value
ALIKE = limits.causes.ALIKE_PICTURES.value
GAIN = limits.causes.FURTHER_STEP.value
RESAMPLED_CONSTANT = limits.causes.RESAMPLED_CONSTANT.value


def cause_of(pairs: Pairs, limit: float, equal: Pairs = ()) -> Cause | None:
    """The fewest steps that fit all pairs of one field; ``equal``: those that do not differ.

    What numbers stand for must hold of all samples; a transform may be applied to some of them only.
    """
    numbered = label_cause([*pairs, *equal])
    if numbered is not None or all(is_label(ours) and is_label(theirs) for ours, theirs in pairs):
        return numbered
    ways = [list(_ways(pairs, count)) for count in range(MOST_MOVES + 1)]
    bits = next(bit_patterns(pairs), None)
    exact = bits or _exact(ways, limit)
    if exact is not None:
        return _told(exact.steps).proven(ProvenBy.RELATED, farthest(pairs), farthest(exact.pairs))
    alike = _alike(ways, limit)
    return _told(alike).likely(Grounds.VALUES) if alike else None


def _told(steps: Sequence[Claim]) -> Claim:
    message = reduce(
        lambda a, b: phrase("{first}, and {second}", first=a, second=b), [step.message for step in steps]
    )
    return Claim(steps[0].code, message, joined("\n", [fix_text(step.fix) for step in steps]))


def _ways(pairs: Pairs, count: int) -> Iterator[Moved]:
    """The pairs moved by so many steps, each of another kind."""
    for kinds in combinations(MOVES, count):
        moved = [Moved((), pairs)]
        for kind in kinds:
            moved = [Moved((*each.steps, step), after) for each in moved for step, after in kind(each.pairs)]
        yield from moved


def _exact(ways: Sequence[Sequence[Moved]], limit: float) -> Moved | None:
    """Moves that leave nothing over, alone or with a scale; of as many steps, moves alone come first."""
    for count in range(1, len(ways) + 1):
        for moved in ways[count] if count < len(ways) else ():
            if all(apart(ours, theirs) <= limit for ours, theirs in moved.pairs):
                return moved
        for moved in ways[count - 1]:
            for axis in (None, channel_axis(moved.pairs[0][0])):
                fit = fit_scale(moved.pairs, axis)
                if fit is not None:
                    return _scaled(moved, fit, CONSTANT)
    return None


def _alike(ways: Sequence[Sequence[Moved]], limit: float) -> tuple[Claim, ...]:
    """The same pictures, almost: other colours or pixels, and what else brings them much nearer."""
    best, least = None, np.inf
    for moved in (each for of_a_length in ways for each in of_a_length):
        if any(a.shape != b.shape or plane_of(a) is None for a, b in moved.pairs):
            continue
        fit = nearest_scale(moved.pairs, channel_axis(moved.pairs[0][0]))
        scaled = () if fit is None else (_scaled(moved, fit, RESAMPLED_CONSTANT),)
        for each in (moved, *scaled):
            left = _left_over(each.pairs)
            if best is None or left < GAIN * least:
                best, least = each, left
    if best is None:
        return ()
    last = next(colours(best.pairs, limit), None) or _resampled(best.pairs)
    return () if last is None else (*best.steps, last)


def _resampled(pairs: Pairs) -> Claim | None:
    alike = [np.corrcoef(_flat(a), _flat(b))[0, 1] for a, b in pairs]
    if not min(alike) >= ALIKE:
        return None
    message = phrase(
        "the same pictures, resampled otherwise: {share} alike, up to {worst} apart (another "
        "interpolation, antialiasing, or library: arrays are resized otherwise than images)",
        share=f"{min(alike):.1%}",
        worst=f"{max(float(np.abs(_flat(a) - _flat(b)).max()) for a, b in pairs):.4g}",
    )
    fix = phrase(
        "resize the port's pictures as the reference's are: the same library, interpolation and antialiasing"
    )
    return Claim("data.resize", message, fix)


def _flat(array: Array) -> Array:
    return np.asarray(array, dtype=np.float64).reshape(-1)


def _left_over(pairs: Pairs) -> float:
    """The share of the port's variation that is not the reference's."""
    ours, theirs = (np.concatenate([_flat(pair[side]) for pair in pairs]) for side in (0, 1))
    return float(np.linalg.norm(theirs - ours)) / max(float(np.linalg.norm(theirs - theirs.mean())), 1e-30)


def _scaled(moved: Moved, fit: AffineFit, tolerance: float) -> Moved:
    """Moved values that are scaled, too; a scale that is not exact must be that of known constants.

    Of other pixels, any other may be what resampling does to contrast. Channels that change places before
    they are normalised are one step.
    """
    turned = any(step.code == CHANNELS_BEFORE.code for step in moved.steps)
    steps = moved.steps
    if turned and undone_by_itself(fit, tolerance):
        steps = tuple(CHANNELS_BEFORE if step.code == CHANNELS_BEFORE.code else step for step in steps)
    else:
        known = known_constants(fit, tolerance, turned)
        if known is None and fit.left > FITTED:
            return moved
        steps = (*steps, _scale(fit, moved.pairs, known))
    axis = None if len(fit.scales) == 1 else channel_axis(moved.pairs[0][0])
    return Moved(steps, [(fit.applied(ours, axis), theirs) for ours, theirs in moved.pairs])


CHANNELS_BEFORE = Claim(
    "data.channel_order",
    phrase("the channels are reversed in the port before they are normalised (RGB against BGR)"),
    phrase("reverse the channels of the port's samples before they are normalised"),
)


def _scale(fit: AffineFit, pairs: Pairs, known: tuple[str, str] | None) -> Claim:
    least = max(ROUNDING, fit.left) * max(float(np.abs(theirs).max(initial=0.0)) for _, theirs in pairs)
    offsets = [0.0 if abs(each) <= least else each for each in fit.offsets]
    digits = 6 if fit.left <= FITTED else 2  # of what is fitted to other pixels no more is known
    told = [some([number(rounded(float(f"{x:.{digits}g}"))) for x in each]) for each in (fit.scales, offsets)]
    message = phrase(
        "the port's values are the reference's times {factors}{plus}{each}",
        factors=told[0],
        plus=phrase(" plus {offsets}", offsets=told[1]) if any(offsets) else "",
        each="" if len(fit.scales) == 1 else phrase(" for each channel"),
    )
    fix = phrase("normalise the port's samples as the reference's are")
    if known is not None:
        message += phrase(
            ": the reference is {reference}, the port {port}", reference=known[0], port=known[1]
        )
        fix = phrase("{fix}: {known}", fix=fix, known=known[0])
    return Claim("data.normalisation", message, fix)


Moves = Iterator[tuple[Claim, Pairs]]


def _axes(pairs: Pairs) -> Moves:
    """Axes in another order: HWC for CHW."""
    ours, theirs = pairs[0]
    if ours.ndim != theirs.ndim or not 2 <= ours.ndim <= 4:
        return
    for order in permutations(range(ours.ndim)):
        if list(order) == sorted(order) or tuple(ours.shape[axis] for axis in order) != theirs.shape:
            continue
        if any(ours.ndim != len(order) for ours, _ in pairs):
            continue
        message = phrase("the port's axes are the reference's in the order {order}", order=list(order))
        fix = phrase("transpose the port's samples by {back}", back=np.argsort(order).tolist())
        yield Claim("layout.permuted", message, fix), [(a.transpose(order), b) for a, b in pairs]


def _channels(pairs: Pairs) -> Moves:
    axis = channel_axis(pairs[0][0])
    if axis is None or any(a.ndim != pairs[0][0].ndim or a.shape != b.shape for a, b in pairs):
        return
    message = phrase(
        "the {count} channels are reversed in the port (RGB against BGR)", count=pairs[0][0].shape[axis]
    )
    step = Claim("data.channel_order", message, phrase("reverse the channels of the port's samples"))
    yield step, [(np.flip(a, axis), b) for a, b in pairs]


def _mirrors(pairs: Pairs) -> Moves:
    first = pairs[0][0]
    if first.ndim < 2 or any(a.ndim != first.ndim for a, _ in pairs):
        return
    for axis in range(first.ndim):
        if first.shape[axis] > CHANNELS:
            message = phrase("the port's samples are mirrored along axis {axis}", axis=axis)
            fix = phrase("do not flip the port's samples along axis {axis}", axis=axis)
            yield Claim("data.crop", message, fix), [(np.flip(a, axis), b) for a, b in pairs]


def _crops(pairs: Pairs) -> Moves:
    """The same picture, cut out at another place."""
    axes = plane_of(pairs[0][0])
    if (
        axes is None
        or any(a.shape != b.shape or a.ndim != pairs[0][0].ndim for a, b in pairs)
        or min(a.shape[x] for a, _ in pairs for x in axes) < 8
    ):
        return
    shift = _shift(*pairs[0], axes)
    if shift == (0, 0) or max(map(abs, shift)) > FARTHEST:
        return
    parts = [_overlap(ours, theirs, axes, shift) for ours, theirs in pairs]
    if any(not mine.size for mine, _ in parts):
        return
    message = phrase("the port's crop lies {moved} of the reference's", moved=_moved(*shift))
    fix = phrase("cut the port's samples {moved} of where they are cut", moved=_moved(-shift[0], -shift[1]))
    yield Claim("data.crop", message, fix), parts


def _moved(rows: int, columns: int) -> str:
    down = phrase("{rows} rows down", rows=rows) if rows >= 0 else phrase("{rows} rows up", rows=-rows)
    right = (
        phrase("{columns} columns right", columns=columns)
        if columns >= 0
        else phrase("{columns} columns left", columns=-columns)
    )
    return phrase("{down} and {right}", down=down, right=right)


def _shift(ours: Array, theirs: Array, axes: tuple[int, int]) -> tuple[int, int]:
    """By how much an image is shifted: where a part of the port's is found in the reference's."""
    mine, other = (np.moveaxis(array, axes, (0, 1)) for array in (ours, theirs))
    mine, other = (plane.reshape(*plane.shape[:2], -1)[..., 0].astype(np.float64) for plane in (mine, other))
    windows, others = (
        np.lib.stride_tricks.sliding_window_view(plane, (PATCH, PATCH)) for plane in (mine, other)
    )
    rows, columns = (slice(length // 4, length // 4 + (length + 1) // 2) for length in others.shape[:2])
    inner = others[rows, columns]  # far from the border, where a moved picture has its values, too
    start = np.unravel_index(int(np.argmax(inner.std(axis=(2, 3)))), inner.shape[:2])
    corner = int(start[0]) + rows.start, int(start[1]) + columns.start
    patch = others[corner]
    patch = patch - patch.mean()
    spreads = windows.std(axis=(2, 3))
    alike = np.einsum("ijkl,kl->ij", windows, patch) / np.where(spreads > 0, spreads, np.inf)
    row, column = np.unravel_index(int(np.argmax(alike)), alike.shape)
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


# Each kind gives the ways in which it may move values, from the reference's samples to the port's.
MOVES: tuple[Callable[[Pairs], Moves], ...] = (_axes, _channels, _mirrors, _crops)
