"""Reports made by hand that fill every part of the page."""

from __future__ import annotations

from typing import Any

import numpy as np

from parfocal.judge.metrics import compare_arrays
from parfocal.judge.verdict import PairResult, RelativeError, Site
from parfocal.report.coverage import Compared, Coverage, LeftOut, Reason
from parfocal.report.report import Curve, DepthPoint, Report
from parfocal.weights.plan import Entry, Leftover, Plan
from tests.unit.report.reports import CAUSE, NOTE, divergence, report


def site(path: str, order: int, kind: str = "Linear", **settings: Any) -> Site:
    return Site(path, kind, None, "models/net.py", order, settings, order)


def images_apart() -> Any:
    """One channel of images differs, at the border."""
    expected = np.random.default_rng(0).normal(size=(2, 6, 8, 8)).astype("float32")
    observed = expected.copy()
    observed[:, 3, :, 0] += 0.5
    return compare_arrays(observed, expected, picture=True)


def pair(
    path: str, order: int, score: float | None = 1.0, kind: str = "Linear", **settings: Any
) -> PairResult:
    error = None if score is None else RelativeError(score * 1e-7, 1e-7)
    ours, theirs = site(path, order, kind, **settings), site(path, order, kind, **settings)
    return PairResult(ours, theirs, "weights", score, score, error, error)


def whole(**changes: Any) -> Report:
    """Two blocks; an epsilon in the second, what follows from it, and a call that only the port has."""
    norm = PairResult(
        site("blocks.1.norm", 6, "LayerNorm", epsilon=1e-5, affine=True),
        site("blocks.1.norm", 6, "LayerNorm", epsilon=1e-6, affine=True),
        "weights", 123.456, 2.0, RelativeError(1e-5, 1e-7), RelativeError(2e-7, 1e-7),
    )  # fmt: skip
    pairs = (
        pair("", 0, kind="Net"),
        pair("blocks.0.fc", 2, in_features=8),
        pair("blocks.0.act", 3, 0.0, "ReLU"),
        norm,
        pair("blocks.1.fc", 7, 1.5),
        pair("head", 9, None),
    )
    first = divergence(reference=norm.reference, port=norm.port, cause=CAUSE, error=images_apart())
    following = divergence(
        "head", reference=site("head", 9), port=site("head", 9), phase="backward", inherited=True, score=50.0
    )
    around = (site("blocks.0", 1, "Block"), site("blocks.1", 5, "Block"))
    given: dict[str, Any] = {
        "pairs": pairs,
        "unpaired_reference": around,
        "unpaired_port": (*around, site("blocks.0.dropout", 4, "Dropout")),
        "along": tuple(DepthPoint(each.port.path, each.forward or 0.0, 1e-7) for each in pairs[1:]),
        "findings": (NOTE,),
        "coverage": Coverage(
            (Compared("calls", 6, 7), Compared("steps", 4)),
            (LeftOut("buffers", Reason.NOT_ASKED),),
            ("forward", "backward"),
            "eval",
        ),
        "curves": (Curve("loss", (2.0, 1.0, 0.5, 0.4), (2.0, 1.0, 0.6, 0.5), horizon=2),),
        "transfer": Plan(
            (Entry("head.weight", "head.weight", (), (), "transposed", (3, 8), (8, 3), ("same name",)),),
            (Leftover("extra.weight", (2,), "nothing is left for it"),),
            verified=True,
        ),
    }
    return report(first, following, **{**given, **changes})


def long(count: int) -> Report:
    """Many rows, one of them wrong."""
    pairs = [pair("", 0, kind="Net")]
    blocks = []
    for block in range(count // 10):
        order = 1 + 10 * block
        blocks.append(site(f"blocks.{block}", order, "Block"))
        pairs += [pair(f"blocks.{block}.layer{n}", order + n, kind=f"Kind{n}", size=n) for n in range(1, 10)]
    bad = pairs[len(pairs) // 2].port
    return report(
        divergence(bad.path, reference=bad, port=bad, cause=CAUSE),
        pairs=tuple(pairs),
        unpaired_reference=tuple(blocks),
        unpaired_port=tuple(blocks),
        along=(),
    )
