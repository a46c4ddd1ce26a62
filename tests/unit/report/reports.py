"""Reports made by hand."""

from __future__ import annotations

from typing import Any

import numpy as np

from parfocal.judge.floors import Size
from parfocal.judge.metrics import compare_arrays
from parfocal.judge.verdict import Cause, Divergence, Finding, PairResult, Proof, ProvenBy, Site
from parfocal.report.coverage import Compared, Coverage
from parfocal.report.report import DepthPoint, Report

NAMES = ("Net (torch 2.13.0)", "Net (paddle 3.3.1)")
COVERAGE = Coverage(
    (Compared("calls", 4, 4), Compared("tensors", 20), Compared("parameter gradients", 6)),
    directions=("forward", "backward"),
)


def site(path: str, kind: str = "LayerNorm", line: int | None = 12, **settings: Any) -> Site:
    return Site(path, kind, None, None if line is None else "models/net.py", line, settings)


def divergence(path: str = "blocks.1.norm", *, score: float = 123.456, **changes: Any) -> Divergence:
    expected = np.linspace(-1, 1, 8, dtype="float32").reshape(2, 4)
    observed = expected.copy()
    observed[1, 2] += 0.25
    given: dict[str, Any] = {
        "phase": "forward",
        "reference": site(path, epsilon=1e-5),
        "port": site(path, line=34, epsilon=1e-6),
        "what": "output 0",
        "error": compare_arrays(observed, expected, picture=True),
        "noise": Size(1e-7, 1e-6),
        "score": score,
    }
    return Divergence(**{**given, **changes})


def report(*divergences: Divergence, **changes: Any) -> Report:
    names = ("a", "b", "blocks.1.norm", "d")
    bad = {each.port.path for each in divergences if each.port is not None}
    given: dict[str, Any] = {
        "reference_name": NAMES[0],
        "port_name": NAMES[1],
        "divergences": divergences,
        "pairs": tuple(
            PairResult(site(name), site(name), "weights", 100.0 if name in bad else 1.25, 0.5)
            for name in names
        ),
        "coverage": COVERAGE,
        "along": tuple(DepthPoint(name, 100.0 if name in bad else 1.0, 1e-7) for name in names),
        "limit": 4.0,
    }
    return Report(**{**given, **changes})


CAUSE = Cause(
    "config.epsilon",
    "epsilon is 1e-05 in the reference, 1e-06 in the port",
    "port.blocks[1].norm = paddle.nn.LayerNorm(8, epsilon=1e-05)",
    Proof(ProvenBy.REPLAYED, 100.0, 1.2),
)
NOTE = Finding("transfer", "2 counters of the reference left out")
