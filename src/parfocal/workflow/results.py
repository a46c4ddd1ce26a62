"""``compare_result``: the results of trainings against a published number."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from parfocal.brief import brief, some
from parfocal.errors import EmptyComparisonError, InputError
from parfocal.judge.floors import Size
from parfocal.judge.metrics import compare_arrays
from parfocal.judge.verdict import Divergence, Finding, Site
from parfocal.phrases import phrase
from parfocal.report.coverage import Compared, Coverage, LeftOut, Reason
from parfocal.report.report import Curve, Report
from parfocal.workflow.metrics import plain_values
from parfocal.workflow.trained_results import TrainedMetric, interval, judge_trained, report_of, unit_of


def compare_result(runs: Any, published: Any, within: float) -> Report:
    """Compare the result of one or several trainings with a published number, or with the reference's runs.

    ``runs``: a number, a sequence of numbers (one a run), a sequence of curves (the last value of each
    counts), or a dict of these by metric. ``published``: a number or a dict, of which the mean may be
    ``within`` off; or runs of the reference, given likewise: what is farther off is held against chance.
    """
    if not isinstance(within, (int, float)) or not within > 0:
        raise InputError(
            phrase("within={within} is not a distance", within=brief(within)),
            hint=phrase("e.g. within=0.15, in the metric's unit"),
        )
    results = dict(runs) if isinstance(runs, Mapping) else {"value": runs}
    wanted = dict(published) if isinstance(published, Mapping) else {next(iter(results), "value"): published}
    common = [name for name in wanted if name in results]
    if not common:
        raise EmptyComparisonError(
            phrase(
                "no metric is in both: {results} of the runs, {wanted} published",
                results=some(list(results)),
                wanted=some(list(wanted)),
            )
        )
    read = {name: _curves(results[name]) for name in common}
    if any(np.ndim(plain_values(wanted[name])) for name in common):
        return _against_runs(read, {name: _curves(wanted[name]) for name in common}, float(within))
    outcomes = [_result(name, read[name], float(wanted[name]), float(within)) for name in common]
    counts = [len(read[name]) for name in common]
    return Report(
        reference_name="published",
        port_name=phrase("1 run") if max(counts) == 1 else phrase("{count} runs", count=max(counts)),
        divergences=tuple(found for found, _ in outcomes if found is not None),
        findings=tuple(finding for _, finding in outcomes),
        coverage=Coverage(
            (Compared("metrics", len(common), len({*wanted, *results})), Compared("results", sum(counts))),
            tuple(
                LeftOut(name, Reason.ONLY_REFERENCE if name in wanted else Reason.ONLY_PORT)
                for name in dict.fromkeys((*wanted, *results))
                if name not in common
            ),
        ),
        limit=1.0,
        curves=tuple(
            Curve(f"{name}, run {index}", (float(wanted[name]),) * len(curve), tuple(curve))
            for name in common
            for index, curve in enumerate(read[name])
        ),
    )


def _against_runs(
    runs: Mapping[str, list[list[float]]], reference: Mapping[str, list[list[float]]], within: float
) -> Report:
    metrics = [
        TrainedMetric(
            name,
            tuple(curve[-1] for curve in reference[name]),
            tuple(curve[-1] for curve in runs[name]),
            within,
        )
        for name in runs
    ]
    curves = [
        Curve(f"{name}, run {index}", tuple(ours), tuple(theirs))
        for name in runs
        for index, (ours, theirs) in enumerate(zip(reference[name], runs[name], strict=False))
    ]
    return report_of(judge_trained(metrics), curves)


def _curves(value: Any) -> list[list[float]]:
    """The runs of one metric, each a curve of at least one value."""
    try:
        rows = [value] if np.ndim(plain_values(value)) == 0 else list(value)
        curves = [
            [float(x) for x in (np.atleast_1d(np.asarray(plain_values(row), dtype=np.float64)))]
            for row in rows
        ]
    except (TypeError, ValueError) as error:
        raise InputError(
            phrase("{value} is neither a number, a row of numbers nor a row of curves", value=brief(value))
        ) from error
    if not curves or not all(curves):
        raise EmptyComparisonError(phrase("there is no result of a run to compare"))
    bad = [curve[-1] for curve in curves if not math.isfinite(curve[-1])]
    if bad:
        raise InputError(
            phrase("a result is {bad}", bad=bad[0]), hint=phrase("leave out runs that failed, and say so")
        )
    return curves


def _result(
    name: str, curves: list[list[float]], wanted: float, within: float
) -> tuple[Divergence | None, Finding]:
    ends = np.asarray([curve[-1] for curve in curves])
    mean = float(ends.mean())
    spread = interval(ends)
    label = phrase("the result") if name == "value" else name
    said = phrase(
        "{label} is {mean}{spread} against {wanted} published (allowed: {within})",
        label=label,
        mean=f"{mean:.6g}",
        spread=spread,
        wanted=f"{wanted:.6g}",
        within=f"{within:g}",
    )
    if abs(mean - wanted) <= within:
        return None, Finding("result", said)
    divergence = Divergence(
        "metric",
        Site("", "published"),
        Site("", "runs"),
        said,
        compare_arrays(ends, np.full_like(ends, wanted)),
        Size(within, within),
        abs(mean - wanted) / within,
        cause=unit_of(mean, wanted, within),
    )
    return divergence, Finding("result", said, diverged=True)
