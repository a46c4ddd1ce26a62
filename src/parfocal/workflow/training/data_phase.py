"""What the two models are given: the same values, up to how they lie."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from parfocal.backends.protocol import Array
from parfocal.explain.sample_values import apart
from parfocal.explain.samples import cause_of
from parfocal.judge import limits
from parfocal.judge.floors import NOTHING
from parfocal.judge.layouts import fit
from parfocal.judge.metrics import compare_arrays
from parfocal.judge.verdict import Cause, Claim, Divergence, ProvenBy, Site, tensor_words
from parfocal.phrases import phrase
from parfocal.workflow.training.batches import Batch, arrays_of

LIMIT = limits.verdicts.COMPUTED_ONCE.value
SAMPLES = limits.searches.BATCH_SAMPLES.value


def compare_inputs(
    ours: Batch, theirs: Batch, sites: tuple[Site, Site], step: int
) -> Iterator[tuple[tuple[str, str], Divergence]]:
    """Only what was given apart: one array for both is the same."""
    for name, mine, yours in (("input", ours.inputs, theirs.inputs), ("label", ours.label, theirs.label)):
        if _is_shared(mine, yours):
            continue
        for number, (expected, observed) in enumerate(zip(arrays_of(mine), arrays_of(yours), strict=False)):
            what = tensor_words("input", str(number)) if name == "input" else phrase("label")
            found = _difference(what, observed, expected, sites, step)
            if found is not None:
                yield ("data", what), found


def _is_shared(mine: object, yours: object) -> bool:
    if isinstance(mine, tuple) and isinstance(yours, tuple):
        return len(mine) == len(yours) and all(a is b for a, b in zip(mine, yours, strict=True))
    if isinstance(mine, dict) and isinstance(yours, dict):
        return mine.keys() == yours.keys() and all(mine[name] is yours[name] for name in mine)
    return mine is yours


def _difference(
    what: str, observed: Array, expected: Array, sites: tuple[Site, Site], step: int
) -> Divergence | None:
    numeric = observed.dtype.kind in "fiub" and expected.dtype.kind in "fiub"
    if not numeric or _agree(observed, expected):
        return None
    return Divergence(
        "data",
        *sites,
        what,
        compare_arrays(observed, expected, picture=True) if observed.shape == expected.shape else None,
        NOTHING,
        math.inf,
        cause=_cause(observed, expected),
        step=step,
    )


def _agree(observed: Array, expected: Array) -> bool:
    if observed.shape == expected.shape and apart(expected, observed) <= LIMIT:
        return True
    if observed.size != expected.size:
        return False
    if observed.shape == expected.shape and observed.ndim < 2:
        return False
    layout = fit(expected, observed, may_move=True)
    if layout is None or (layout.permutation is not None and layout.permutation[0] != 0):
        return False
    return apart(layout.apply(expected), observed) <= LIMIT


def _cause(observed: Array, expected: Array) -> Cause | None:
    if observed.shape != expected.shape or not observed.ndim:
        return None
    order = _permutation(observed, expected)
    if order is not None:
        message = phrase(
            "the port's batch has the reference's samples in another order ({order} ...)", order=order[:6]
        )
        claim = Claim("data.order", message, phrase("give both sides one order of samples"))
        return claim.proven(ProvenBy.RELATED, apart(expected, observed), apart(expected[order], observed))
    pairs: list[tuple[Array, Array]] = []
    equal: list[tuple[Array, Array]] = []
    for pair in zip(expected, observed, strict=True):
        (pairs if apart(*pair) > LIMIT else equal).append(pair)
    return cause_of(pairs[:SAMPLES], LIMIT, equal[:SAMPLES]) if pairs else None


def _permutation(observed: Array, expected: Array) -> list[int] | None:
    """Which of the reference's samples every sample of the port is, where they are the same ones."""
    if observed.ndim < 2 or len(observed) < 2:
        return None
    places = {row.tobytes(): number for number, row in enumerate(np.ascontiguousarray(expected))}
    found = [places.get(row.tobytes()) for row in np.ascontiguousarray(observed.astype(expected.dtype))]
    known = [place for place in found if place is not None]
    return known if sorted(known) == list(range(len(expected))) else None
