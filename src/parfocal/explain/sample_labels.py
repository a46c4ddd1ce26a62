"""Why labels, ids and masks of two datasets differ: whole numbers that stand for something.

Another numbering, one value for another, one-hot vectors, labels of other samples, or padding at the other
end. A hypothesis must hold for all samples, also for those that agree. Only NumPy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import numpy as np

from parfocal.backends.protocol import Array
from parfocal.brief import some
from parfocal.explain.sample_values import Moved, Pairs, farthest
from parfocal.judge import limits
from parfocal.judge.verdict import Cause, Claim, Grounds, ProvenBy, side_name
from parfocal.phrases import phrase

FEWEST = limits.causes.LABELS_FEWEST.value
SIDES = "reference", "port"


def label_cause(pairs: Pairs) -> Cause | None:
    """The first hypothesis that fits all pairs of one field."""
    found = next((moved for make in HYPOTHESES for moved in make(pairs)), None)
    if found is None:
        return None
    (claim,) = found.steps
    return claim.judged(ProvenBy.RELATED, farthest(pairs), farthest(found.pairs), 0.0, Grounds.VALUES)


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
    if not _whole(narrow) or wide.ndim != narrow.ndim + 1 or wide.shape[:-1] != narrow.shape:
        return False
    if not np.isin(wide, (0, 1)).all() or not (wide.sum(axis=-1) == 1).all():
        return False
    return bool(np.array_equal(wide.argmax(axis=-1), narrow))


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


HYPOTHESES: tuple[Callable[[Pairs], Iterator[Moved]], ...] = (
    _numbered,
    _one_value,
    _as_vector,
    _filled,
    _paired_otherwise,
)
