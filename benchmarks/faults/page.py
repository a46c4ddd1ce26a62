"""The results as a page: one table of tools, one of codes, and every miss by name."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from benchmarks.faults.scoring import Result

TITLES = {
    "parfocal": "parfocal",
    "padiff": "PaDiff 0.2.0, defaults",
    "padiff-tuned": "PaDiff 0.2.0, tuned",
    "reprod_log": "reprod_log 1.0.1",
}
INTRODUCTION = """# Seeded faults

`python -m benchmarks.faults` wrote this page. {faults} mistakes that people make in ports were planted
into {pairs} correct pairs of small models (torch against paddle), one or several at a time; besides, the
correct pairs were aligned over {twins} seeds, and {rewritings} correct ports that compute the same by other
operations. Every fault, with what is right to say about it, is data in `benchmarks/faults/catalogue`.

- **detected**: the tool says that the two differ.
- **told apart**: it says so, and of the same pair without the fault it says that it is right.
- **located**: it names the guilty layer first, and for a mistake in the port's own code also the guilty
  line; of several mistakes, every one.
- **named**: it gives a right cause for the guilty layer; of several mistakes, for every one.
- **others blamed**: faults where the tool blames a layer that is right as well.
- **false alarms**: correct pairs that the tool says differ. A tool that always says "different" detects
  everything, so the columns only mean something together.
- **cost**: the processor's time of the wrong pair, in times of the same pair without the fault.
- **crashed**: no answer at all; counted as neither detected nor a false alarm.

PaDiff runs once with its defaults (`auto_diff(port, reference, inputs)`; for faults in weights with
`auto_weights=False`) and once *tuned*: with correct weights given to it (by default it leaves the statistics
of BatchNorm out), without pairing single functions (`PADIFF_API_CHECK=OFF`; it gives up where their number
differs), without moving models between devices (`PADIFF_CUDA_MEMORY=OFF`; an LSTM does not survive it), and
with the tolerances of the example in its documentation (`atol=1e-4`, `rtol=0`, `strict`).
reprod_log is used as the reproduction guide says: outputs, loss and the losses of five rounds of training
are logged on both sides and compared by mean difference with 1e-6; the weights are given to it. It names
what was logged, never a layer.
"""


def page(results: Sequence[Result], facts: dict[str, int]) -> str:
    parts = [INTRODUCTION.format(**facts), _tools(results)]
    for result in results:
        if not result.missing and result.tool == "parfocal":
            parts += [_codes(result), _misses(result), _costs(result)]
    parts += [_alarms(result) for result in results if result.tool == "parfocal"]
    parts += [_others(result) for result in results if result.tool != "parfocal" and not result.missing]
    return "\n".join(part for part in parts if part)


def _row(*cells: object) -> str:
    return "| " + " | ".join(str(cell) for cell in cells) + " |"


def _tools(results: Sequence[Result]) -> str:
    lines = [
        "| tool | detected | told apart | located | named | others blamed | crashed "
        "| false alarms | crashed on correct | s / case |",
        "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for result in results:
        title = TITLES[result.tool]
        if result.missing:
            lines.append(_row(title, f"not run: {result.missing}", *[""] * 8))
            continue
        sums = result.total()
        cells = [_share(n, sums.faults) for n in (sums.detected, result.told_apart, sums.located, sums.named)]
        each = result.seconds / max(1, sums.faults + result.correct)
        alarms, crashes = len(result.alarms), len(result.crashes)
        lines.append(
            _row(
                title,
                *cells,
                sums.stray,
                sums.crashed,
                _share(alarms, result.correct),
                crashes,
                f"{each:.2f}",
            )
        )
    return "\n".join(lines) + "\n"


def _share(count: int, whole: int) -> str:
    return f"{count} of {whole}"


def _codes(result: Result) -> str:
    lines = [
        "## parfocal by cause",
        "",
        "| cause | faults | detected | located | named | cost, median | largest |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    for code, tally in result.by_code().items():
        costs = (
            [f"{cost:.1f}x" for cost in (median(tally.costs), max(tally.costs))] if tally.costs else ["", ""]
        )
        lines.append(_row(f"`{code}`", tally.faults, tally.detected, tally.located, tally.named, *costs))
    return "\n".join(lines) + "\n"


def _costs(result: Result) -> str:
    """What every fault cost, the dearest first."""
    scores = sorted((score for score in result.scores if score.cost), key=lambda score: -score.cost)
    if not scores:
        return ""
    lines = [
        "## What a wrong pair costs",
        "",
        "The processor's time of `pf.align` on a pair with a mistake, the explanation included, over that on",
        f"the same pair without it: {median(score.cost for score in scores):.2f}x in the median, "
        f"{scores[0].cost:.2f}x at most.",
        "",
        "| fault | cause | cost |",
        "|---|---|---:|",
        *(_row(score.fault, f"`{score.code}`", f"{score.cost:.2f}x") for score in scores),
    ]
    return "\n".join(lines) + "\n"


def _misses(result: Result) -> str:
    lines = ["## What parfocal misses", ""]
    for score in result.scores:
        missed = score.missed
        if missed:
            lines.append(f"- **{score.fault}** (`{score.code}`): {', '.join(missed)}. It says: {score.said}")
    if len(lines) == 2:
        lines.append("Nothing.")
    return "\n".join(lines) + "\n"


def _alarms(result: Result) -> str:
    wrong = [*result.alarms, *result.crashes]
    if result.missing or not wrong:
        return ""
    return (
        "\n".join(["## False alarms of parfocal", "", *(f"- **{name}**: {said}" for name, said in wrong)])
        + "\n"
    )


def _others(result: Result) -> str:
    """What the other tools do not see, in short."""
    unseen = [score.fault for score in result.scores if not score.detected and not score.crashed]
    crashed = [score.fault for score in result.scores if score.crashed]
    lines = [f"## {TITLES[result.tool]}", ""]
    for words, names in (("Not detected", unseen), ("Crashed", crashed)):
        lines.append(f"- {words} ({len(names)}): {', '.join(names) or 'none'}.")
    return "\n".join(lines) + "\n"
