"""Why labels, ids and masks of two datasets differ: whole numbers that stand for something.

Another numbering, one value for another, one-hot vectors, labels of other samples, or padding at the other
end. A hypothesis must hold for all samples, also for those that agree. Only NumPy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import numpy as np

from parfocal.backends.protocol import Array
from parfocal.brief import some
from parfocal.explain.sample_values import ROUNDING, Moved, Pairs, farthest
from parfocal.judge import limits
from parfocal.judge.verdict import SIDES, Cause, Claim, Grounds, ProvenBy, side_name
from parfocal.phrases import phrase

FEWEST = limits.causes.LABELS_FEWEST.value


def label_cause(pairs: Pairs) -> Cause | None:
    """The first hypothesis that fits all pairs of one field."""
    pairs = [_as_whole(*pair) for pair in pairs]
    found = next((moved for make in HYPOTHESES for moved in make(pairs)), None)
    if found is None:
        return None
    (claim,) = found.steps
    return claim.judged(ProvenBy.RELATED, farthest(pairs), farthest(found.pairs), 0.0, Grounds.VALUES)


def _as_whole(ours: Array, theirs: Array) -> tuple[Array, Array]:
    """A single whole number that one side keeps as a float counts as what it is."""
    if is_label(ours) and is_label_in_floats(theirs):
        return ours, theirs.astype(np.int64)
    if is_label(theirs) and is_label_in_floats(ours):
        return ours.astype(np.int64), theirs
    return ours, theirs


def is_label_in_floats(array: Array) -> bool:
    return array.dtype.kind == "f" and array.size == 1 and bool((array == np.trunc(array)).all())


def _moved(claim: Claim, pairs: Iterable[tuple[Array, Array]]) -> Moved:
    return Moved((claim,), list(pairs))


def is_label(array: Array) -> bool:
    """A single whole number: no picture, of which a transform could be told."""
    return _whole(array) and array.size == 1


def _whole(array: Array) -> bool:
    return array.dtype.kind in "iub"


def _flat(pairs: Pairs) -> tuple[Array, Array] | None:
    """All numbers of both sides, where they are whole and lie alike."""
    if any(not _whole(a) or not _whole(b) or a.shape != b.shape for a, b in pairs):
        return None
    ours, theirs = (
        np.concatenate([pair[side].reshape(-1) for pair in pairs]).astype(np.int64) for side in (0, 1)
    )
    return ours, theirs


def _numbered(pairs: Pairs) -> Iterator[Moved]:
    """By another numbering."""
    flat = _flat(pairs)
    if flat is None or (pairs[0][0].ndim > 1 and len(np.unique(flat[0])) > 1000):
        return
    ours, theirs = flat
    table: dict[int, int] = {}
    for a, b in zip(ours.tolist(), theirs.tolist(), strict=True):
        if table.setdefault(a, b) != b:
            return
    if len(set(table.values())) != len(table) or len(table) < 2:
        return
    steps = {b - a for a, b in table.items()}
    if len(steps) == 1:
        by = steps.pop()
        if by > 0:
            message = phrase("the port's labels are the reference's plus {number}", number=by)
            fix = phrase("subtract {number} from the port's labels", number=by)
        else:
            message = phrase("the port's labels are the reference's minus {number}", number=-by)
            fix = phrase("add {number} to the port's labels", number=-by)
    else:
        shown = some([phrase("{a} is {b}", a=a, b=b) for a, b in sorted(table.items()) if a != b], 6)
        message = phrase("the port numbers the labels otherwise: {labels} in the port", labels=shown)
        fix = phrase("number the port's labels as the reference's are (classes sorted by name?)")
    known, new = (np.asarray(list(side)) for side in (table, table.values()))
    order = np.argsort(known)
    yield _moved(
        Claim("data.label", message, fix),
        ((new[order][np.searchsorted(known[order], a.astype(np.int64))], b) for a, b in pairs),
    )


def _one_value(pairs: Pairs) -> Iterator[Moved]:
    """One value stands where the reference has another, everywhere; all others agree."""
    flat = _flat(pairs)
    if flat is None:
        return
    ours, theirs = flat
    at = ours != theirs
    if int(at.sum()) < FEWEST:
        return
    values = np.unique(ours[at]), np.unique(theirs[at])
    if len(values[0]) != 1 or len(values[1]) != 1 or not np.array_equal(ours == values[0][0], at):
        return
    right, wrong = int(values[0][0]), int(values[1][0])
    message = phrase(
        "wherever the reference has {reference} the port has {port}; all other numbers agree",
        reference=right,
        port=wrong,
    )
    fix = phrase("write {right} for {wrong} there (what fills up, or is ignored?)", right=right, wrong=wrong)
    changed = ((np.where(a == right, wrong, a), b) for a, b in pairs)
    yield _moved(Claim("data.label", message, fix), changed)


def _as_vector(pairs: Pairs) -> Iterator[Moved]:
    """A number on one side, a vector of zeros and a one on the other."""
    for wide, narrow in ((1, 0), (0, 1)):
        if all(_is_vector_of(pair[wide], pair[narrow]) for pair in pairs):
            side, other = (side_name(SIDES[at]) for at in (wide, narrow))
            message = phrase(
                "the {side} gives labels as vectors of zeros and a one, the {other} their numbers",
                side=side,
                other=other,
            )
            fix = (
                phrase("give the port's labels as numbers: argmax of what it gives")
                if wide == 1
                else phrase("give the port's labels as vectors of zeros and a one")
            )
            numbers = (
                [np.argmax(each, -1) if at == wide else each for at, each in enumerate(p)] for p in pairs
            )
            yield _moved(Claim("data.label", message, fix), ((a, b) for a, b in numbers))


def _is_vector_of(wide: Array, narrow: Array) -> bool:
    return _is_one_hot(wide) and _holds_shares_of(wide, narrow)


def _holds_shares_of(wide: Array, narrow: Array) -> bool:
    """Whether numbers are where the shares of the vectors are largest."""
    if not _whole(narrow) or wide.ndim != narrow.ndim + 1 or wide.shape[:-1] != narrow.shape:
        return False
    return _are_shares(wide) and bool(np.array_equal(wide.argmax(axis=-1), narrow))


def _are_shares(array: Array) -> bool:
    """Whether every row is a distribution over classes."""
    if array.dtype.kind not in "fiu" or array.ndim == 0 or array.shape[-1] < 2 or not array.size:
        return False
    return bool((array >= 0).all()) and np.allclose(array.sum(axis=-1), 1.0, atol=ROUNDING * array.shape[-1])


def _is_one_hot(array: Array) -> bool:
    return _are_shares(array) and bool(np.isin(array, (0, 1)).all())


def _softened(pairs: Pairs) -> Iterator[Moved]:
    """Shares of classes on one side; on the other the largest alone, as its number or as a one."""
    for soft, hard in ((1, 0), (0, 1)):
        sides = [(pair[soft], pair[hard]) for pair in pairs]
        if not all(_holds_shares_of(*each) or _hardened(*each) for each in sides):
            continue
        smoothing = _smoothing([wide for wide, _ in sides])
        side, other = (side_name(SIDES[at]) for at in (soft, hard))
        how = "" if smoothing is None else phrase(" (smoothed by {share})", share=f"{smoothing:.4g}")
        message = phrase(
            "the {side} gives soft labels, shares of the classes{how}; the {other} only the largest class",
            side=side,
            how=how,
            other=other,
        )
        fix = (
            phrase("give the port's labels as the reference's: the class alone")
            if soft == 1
            else phrase("give the port's labels as the reference's: the share of every class{how}", how=how)
        )
        hardened = (
            [_hard(each, pair[hard]) if at == soft else each for at, each in enumerate(pair)]
            for pair in pairs
        )
        yield _moved(Claim("data.label", message, fix), ((a, b) for a, b in hardened))
        return


def _hardened(wide: Array, narrow: Array) -> bool:
    """Whether one has a one where the shares of the other are largest."""
    if wide.shape != narrow.shape or not (_are_shares(wide) and _is_one_hot(narrow)):
        return False
    return bool(np.array_equal(wide.argmax(axis=-1), narrow.argmax(axis=-1)))


def _hard(wide: Array, like: Array) -> Array:
    """The largest share alone, in the form of the other side."""
    largest = wide.argmax(axis=-1)
    return np.eye(wide.shape[-1])[largest] if wide.ndim == like.ndim else np.asarray(largest)


def _smoothing(shares: list[Array]) -> float | None:
    """The share that is spread over all classes, if it is the same everywhere."""
    rows = np.concatenate([each.reshape(-1, each.shape[-1]) for each in shares])
    rest = np.sort(rows, axis=-1)[:, :-1]
    if not np.allclose(rest, rest[0, 0], atol=ROUNDING):
        return None
    return float(rest[0, 0] * rows.shape[-1])


def _with_an_axis(pairs: Pairs) -> Iterator[Moved]:
    """The same numbers, with an axis of length 1 more on one side."""
    if any(not _whole(a) or not _whole(b) or a.shape == b.shape or a.size != b.size for a, b in pairs):
        return
    if not all(np.array_equal(a.reshape(b.shape), b) for a, b in pairs):
        return
    if any([n for n in a.shape if n != 1] != [n for n in b.shape if n != 1] for a, b in pairs):
        return
    ours, theirs = pairs[0]
    message = phrase(
        "the same numbers in another shape: {reference} in the reference, {port} in the port",
        reference=list(ours.shape),
        port=list(theirs.shape),
    )
    fix = phrase("give the port's samples the shape {shape} here", shape=list(ours.shape))
    yield _moved(Claim("data.label", message, fix), ((a.reshape(b.shape), b) for a, b in pairs))


def _paired_otherwise(pairs: Pairs) -> Iterator[Moved]:
    """The same labels, given to other samples."""
    flat = _flat(pairs)
    if flat is None or pairs[0][0].size != 1 or len(pairs) < FEWEST:
        return
    ours, theirs = flat
    if np.array_equal(ours, theirs) or not np.array_equal(np.sort(ours), np.sort(theirs)):
        return
    wrong = int((ours != theirs).sum())
    message = phrase(
        "the port gives the same labels to other samples: {wrong} of {count} samples have another's",
        wrong=wrong,
        count=len(ours),
    )
    fix = phrase("read the port's labels in the order of its samples")
    yield _moved(Claim("data.label", message, fix), pairs)  # whose label each has is not known


def _filled(pairs: Pairs) -> Iterator[Moved]:
    """Sequences of one length, filled up at the other end."""
    if any(not _whole(a) or not _whole(b) or a.ndim != 1 or a.shape != b.shape for a, b in pairs):
        return
    for turn in (1, -1):  # the reference fills up behind, or in front
        ends = {int(pair[0][::turn][-1]) for pair in pairs if pair[0].size and not _equal(pair)}
        if len(ends) != 1:
            continue
        fill = ends.pop()
        if all(_equal(pair) or _held_apart(pair[0][::turn], pair[1][::turn], fill) for pair in pairs):
            places = phrase("at the end"), phrase("at the beginning")
            ours, theirs = places[::turn]
            message = phrase(
                "the reference fills up with {fill} {ours}, the port {theirs}",
                fill=fill,
                ours=ours,
                theirs=theirs,
            )
            claim = Claim("data.crop", message, phrase("fill the port's up {ours}", ours=ours))
            yield _moved(
                claim, ((a if _equal((a, b)) else _filled_up(a[::turn], fill)[::turn], b) for a, b in pairs)
            )
            return


def _cut(pairs: Pairs) -> Iterator[Moved]:
    """Sequences of one length, cut from longer ones at another place: each goes on where the other began."""
    if any(not _whole(a) or not _whole(b) or a.ndim != 1 or a.shape != b.shape for a, b in pairs):
        return
    shifts = [_shift(*pair) for pair in pairs if not _equal(pair)]
    if not shifts or None in shifts or len({shift > 0 for shift in shifts if shift is not None}) != 1:
        return
    by = sorted({abs(shift) for shift in shifts if shift is not None})
    count = "-".join(map(str, dict.fromkeys((by[0], by[-1]))))
    places = phrase("1 place") if by == [1] else phrase("{count} places", count=count)
    if (shifts[0] or 0) > 0:
        message = phrase("the port's sequences begin {places} later than the reference's", places=places)
    else:
        message = phrase("the port's sequences begin {places} earlier than the reference's", places=places)
    fix = phrase("cut the port's sequences where the reference's are cut: at the beginning or at the end")
    moved = (_overlap(a, b, shift) for a, b in pairs if (shift := _shift(a, b)) is not None)
    yield _moved(Claim("data.crop", message, fix), moved)


def _shift(ours: Array, theirs: Array) -> int | None:
    """How many places later the port's begins; None where no half of both is the same."""
    for by in range(1, len(ours) // 2 + 1):
        for shift in (by, -by):
            left, right = _overlap(ours, theirs, shift)
            if len(np.unique(left)) >= FEWEST and np.array_equal(left, right):
                return shift
    return None


def _overlap(ours: Array, theirs: Array, shift: int) -> tuple[Array, Array]:
    return (ours[shift:], theirs[: len(theirs) - shift]) if shift > 0 else (ours[:shift], theirs[-shift:])


def _equal(pair: tuple[Array, Array]) -> bool:
    return bool(np.array_equal(*pair))


def _held_apart(ours: Array, theirs: Array, fill: int) -> bool:
    """Whether what comes before the fill in the one comes after it in the other."""
    held = _held(ours, fill)
    return 0 < held < len(ours) and bool(np.array_equal(_filled_up(ours, fill), theirs))


def _held(values: Array, fill: int) -> int:
    """How many come before what fills up."""
    return int(np.flatnonzero(values != fill)[-1]) + 1 if (values != fill).any() else 0


def _filled_up(values: Array, fill: int) -> Array:
    """The same, filled up in front."""
    return np.roll(values, len(values) - _held(values, fill))


def _interpolated(pairs: Pairs) -> Iterator[Moved]:
    """Masks: numbers between those of the other side, which it never has. Most places agree."""
    flat = _flat(pairs)
    if flat is None or any(ours.ndim < 2 for ours, _ in pairs):
        return
    for blended, plain in ((1, 0), (0, 1)):
        known, all_of_them = np.unique(flat[plain]), np.unique(flat[blended])
        new = np.setdiff1d(all_of_them, known)
        if len(new) <= len(known) or not known[0] < new[0] <= new[-1] < known[-1]:
            continue
        if (flat[0] == flat[1]).mean() <= 0.5:
            return
        message = phrase(
            "the {side} has numbers that the {other} never has ({values}), all between its labels: the mask "
            "was interpolated",
            side=side_name(SIDES[blended]),
            other=side_name(SIDES[plain]),
            values=some(list(map(str, new))),
        )
        fix = (
            phrase("resize the port's masks by the nearest place: numbers of classes have no mean")
            if blended == 1
            else phrase("resize the port's masks as the reference's are, by interpolation")
        )
        yield _moved(Claim("data.resize", message, fix), pairs)
        return


HYPOTHESES: tuple[Callable[[Pairs], Iterator[Moved]], ...] = (
    _numbered,
    _one_value,
    _as_vector,
    _softened,
    _with_an_axis,
    _filled,
    _cut,
    _interpolated,
    _paired_otherwise,
)
