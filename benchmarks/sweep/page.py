"""What sweeps measured, as a page of tables."""

from __future__ import annotations

import platform
from collections.abc import Iterable, Sequence

import numpy as np

from benchmarks.sweep.results import Caught, Hidden, Noise, Outcome, Scored, Sweep, quantiles
from parfocal.attribution.measures import END_LIMIT, LIMIT

SMALLEST = 20  # planted mistakes in the table of the smallest

INTRODUCTION = """# The noise of correct ports, and how far above it mistakes are

Written by `python -m benchmarks.sweep`: {seeds}, eval and train mode, float32,
{versions}, {machine}, CPU, one thread.

A score is an error in units of what rounding makes unavoidable for this very call on this very input.
A call may score {limit:g}, a whole model {end_limit:g}. Here all floors of *every* call are computed: the
scale of its values, how far its result moves when everything moves by one unit in the last place, and how
far either side is from its own result in float64. An alignment asks for the dearer floors only where the
cheapest would accuse, so scores in a report may be larger than these, up to {limit:g}.

The error of a correct call is at most the sum of both sides' distances from float64, and its floor at
least the larger of the two. So it scores at most 2, but for a library that does not compute in float64
when it is asked to. The limit is twice that."""

PROCESSORS = """## As on other processors

The same kernels sum in other orders where the vectors are shorter (`benchmarks/processors.py`). On older
ones every pair runs in training mode only."""

KINDS = """## Correct calls by kind

Every tensor that a paired call gives, sends back or leaves as a parameter's gradient."""

PAIRS = """## Correct pairs

The largest scores of each pair; those of the whole model as an alignment sees them, up to {end_limit:g}."""

SMALLEST_ONES = """## The smallest planted mistakes

The lowest score of each on any of the processors."""

FAINT = """## Mistakes near the noise

A tenth of the epsilon, or 1e-5 for 1e-6, in a norm in the middle of each model of timm. How much that is
hangs on the variance beside it: where it is large, the mistake is smaller than the limit, and *nothing* is
named. These count neither as found nor as missed, and not as the smallest mistake above."""

PLANTED = """## All planted mistakes

One mistake each in an otherwise correct port. *Right*: the first layer named is the guilty one, and no
other layer is blamed."""

REAL = """## Real differences in shipped models

Ports as `paddle.vision` ships them that differ from torchvision's models. All their differences are
listed; the guilty layer is the first of them."""

HIDDEN = """## Other names, another order, another nesting

Calls of the port that are paired with the same call of the reference as before the disguise."""

LOW = """## Half precision

Both models cast to the dtype; the pair is left out where the port has no kernels on the CPU."""


def line(outcome: Outcome) -> str:
    """What is said of one pair on the way."""
    found = [*_noise_lines(outcome.noise), *map(_fault_line, (*outcome.faults, *outcome.real))]
    found += [f"{_fault_line(fault)} (faint)" for fault in outcome.faint]
    found += [
        f"    {each.disguise}: {each.kept} of {each.calls} pairs{'' if each.ok else ', DIVERGED'}"
        for each in outcome.hidden
    ]
    found += [f"    {each.dtype}: {each.reason or f'{each.alarms} alarms'}" for each in outcome.low]
    return "\n".join(found)


def _noise_lines(noise: Noise | None) -> list[str]:
    if noise is None:
        return []
    largest = " ".join(f"{what} {noise.largest(what):.2f}" for what in ("forward", "backward", "parameter"))
    head = f"{noise.pair}: {largest} whole {noise.whole:.2f}, {noise.runs} runs of {noise.seconds:.1f} s"
    return [head, *(f"    FALSE ALARM {alarm}" for alarm in noise.alarms)]


def _fault_line(caught: Caught) -> str:
    verdict = "found" if caught.right else f"WRONG: {caught.named!r} {caught.others}"
    return f"    {caught.mistake} at {caught.guilty[0] or '(root)'}: {caught.score:.3g} {verdict}"


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    lines = [head, ["---" for _ in head], *rows]
    return "\n".join(f"| {' | '.join(str(cell) for cell in row)} |" for row in lines)


def page_of(sweeps: Sequence[Sweep], versions: str) -> str:
    """The whole page."""
    native, *_ = sweeps
    seeds = ", ".join(f"{_counted(sweep.seeds, 'seed')} ({sweep.processor})" for sweep in sweeps)
    introduction = INTRODUCTION.format(
        seeds=seeds,
        versions=f"{versions}, NumPy {np.__version__}",
        machine=platform.machine(),
        limit=LIMIT,
        end_limit=END_LIMIT,
    )
    parts = [introduction, _margins(sweeps), PROCESSORS, _processor_table(sweeps), *_alarms(sweeps)]
    sections: list[tuple[str, str, object]] = [
        (KINDS, _kind_table(sweeps), True),
        (SMALLEST_ONES, _fault_table(_smallest(sweeps)), native.faults),
        (FAINT, _fault_table(sorted(native.faint, key=lambda fault: fault.score)), native.faint),
        (PAIRS.format(end_limit=END_LIMIT), _pair_table(native), True),
        (PLANTED, _fault_table(native.faults), native.faults),
        (REAL, _fault_table(native.real), native.real),
        (HIDDEN, _hidden_table(native), native.hidden),
        (LOW, _low_table(native), native.low),
    ]
    parts += [part for words, cells, wanted in sections if wanted for part in (words, cells)]
    return "\n\n".join(parts) + "\n"


def _counted(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


def _margins(sweeps: Sequence[Sweep]) -> str:
    """Both distances from the limit, in one sentence."""
    scores = [score for sweep in sweeps for score in sweep.scores]
    if not scores:
        return "No correct pair was swept."
    _, most, largest = quantiles(scores)
    text = (
        f"Of {len(scores):,} tensors of correct calls the largest score is **{largest:.2f}**, "
        f"the 99.9th percentile {most:.2f}."
    )
    faults = _smallest(sweeps)
    if faults:
        planted = {(fault.pair, fault.mistake) for sweep in sweeps for fault in sweep.faults}
        text += (
            f"\nThe smallest of {len(planted)} planted mistakes scores **{faults[0].score:.3g}** "
            f"({faults[0].mistake}, {faults[0].pair})."
        )
    return text


def _processor_table(sweeps: Sequence[Sweep]) -> str:
    rows = []
    for sweep in sweeps:
        median, most, largest = quantiles(sweep.scores)
        found = sum(fault.right for fault in sweep.faults)
        smallest = min((fault.score for fault in sweep.faults), default=0.0)
        runs = sum(noise.runs for noise in sweep.noise)
        rows.append(
            (
                sweep.processor, runs, _calls_of(sweep), f"{len(sweep.scores):,}", f"{median:.2f}",
                f"{most:.2f}", f"{largest:.2f}", f"{len(sweep.alarms)} of {runs}",
                f"{found} of {len(sweep.faults)}", f"{smallest:.3g}",
            )
        )  # fmt: skip
    head = ("processor", "runs", "calls", "tensors", "median", "99.9%", "largest", "false alarms",
            "mistakes found", "smallest mistake")  # fmt: skip
    return table(head, rows)


def _calls_of(sweep: Sweep) -> str:
    return f"{sum(noise.paired for noise in sweep.noise):,}"


def _alarms(sweeps: Sequence[Sweep]) -> list[str]:
    told = [f"- {sweep.processor}: {alarm}" for sweep in sweeps for alarm in sweep.alarms]
    return ["False alarms, each with its first divergence:", "\n".join(told)] if told else []


def _kind_table(sweeps: Sequence[Sweep]) -> str:
    """The kinds with the largest scores first; what is always exactly equal comes in one row."""
    found: dict[str, list[tuple[str, Scored]]] = {}
    for sweep in sweeps:
        for noise in sweep.noise:
            for score in noise.scores:
                found.setdefault(score.kind, []).append((f"{noise.pair}, {sweep.processor}", score))
    rows, equal = [], []
    for kind, scores in sorted(found.items(), key=_by_largest):
        median, most, largest = quantiles(score for _, score in scores)
        if not largest:
            equal.append((kind, len(scores)))
            continue
        where, worst = max(scores, key=lambda each: each[1].score)
        place = f"{worst.what} of `{worst.path or '(root)'}`, {where}"
        rows.append((kind, f"{len(scores):,}", f"{median:.2f}", f"{most:.2f}", f"{largest:.2f}", place))
    if equal:
        names = ", ".join(kind for kind, _ in equal)
        rows.append((names, f"{sum(count for _, count in equal):,}", "0", "0", "0", "exactly equal"))
    return table(("kind", "tensors", "median", "99.9%", "largest", "where the largest is"), rows)


def _by_largest(item: tuple[str, list[tuple[str, Scored]]]) -> float:
    return -max(score.score for _, score in item[1])


def _pair_table(sweep: Sweep) -> str:
    head = ("pair", "tensors", "99.9%", "forward", "backward", "parameter gradients", "whole model",
            "paired calls", "false alarms")  # fmt: skip
    rows = [
        (
            noise.pair, f"{len(noise.scores):,}", f"{quantiles(noise.scores)[1]:.2f}",
            *(f"{noise.largest(what):.2f}" for what in ("forward", "backward", "parameter")),
            f"{noise.whole:.2f}", f"{noise.paired / noise.calls:.0%}", f"{len(noise.alarms)} of {noise.runs}",
        )
        for noise in sweep.noise
    ]  # fmt: skip
    return table(head, rows)


def _smallest(sweeps: Sequence[Sweep]) -> list[Caught]:
    """Each mistake at its lowest, the lowest first."""
    lowest: dict[tuple[str, str], Caught] = {}
    for fault in (fault for sweep in sweeps for fault in sweep.faults):
        key = fault.pair, fault.mistake
        if key not in lowest or fault.score < lowest[key].score:
            lowest[key] = fault
    return sorted(lowest.values(), key=lambda fault: fault.score)[:SMALLEST]


def _fault_table(caught: Iterable[Caught]) -> str:
    rows = [
        (
            each.pair,
            each.mistake,
            f"`{each.guilty[0] or '(root)'}`",
            f"{each.score:.3g}",
            "right" if each.right else f"**{each.named or 'nothing'}** {' '.join(each.others)}".strip(),
        )
        for each in caught
    ]
    return table(("pair", "mistake", "guilty layer", "score", "named"), rows)


def _hidden_table(sweep: Sweep) -> str:
    disguises = list(dict.fromkeys(each.disguise for each in sweep.hidden))
    cells = {(each.pair, each.disguise): each for each in sweep.hidden}
    rows = [
        (pair, *(_hidden_cell(cells[pair, disguise]) for disguise in disguises))
        for pair in dict.fromkeys(each.pair for each in sweep.hidden)
    ]
    return table(("pair", *disguises), rows)


def _hidden_cell(hidden: Hidden) -> str:
    return f"{hidden.kept} of {hidden.calls}{'' if hidden.ok else ', diverged'}"


def _low_table(sweep: Sweep) -> str:
    rows = [
        (
            each.pair,
            each.dtype,
            f"the port cannot run: {each.reason}"
            if each.reason
            else f"{' / '.join(f'{score:.2f}' for score in each.scores)}, {each.alarms} alarms",
        )
        for each in sweep.low
    ]
    return table(("pair", "dtype", "forward / backward / gradients / whole, or the reason why not"), rows)
