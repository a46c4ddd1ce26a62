"""How large the noise of correct ports is, and how far above it planted mistakes are.

``python -m benchmarks.sweep`` aligns every bundled pair over several seeds, plants every bundled
fault, hides every port behind other names, and writes what it measured to ``docs/noise.md``.
``--seeds 2 --pairs vit,gpt`` makes it quick; then it only prints.
"""

from __future__ import annotations

import argparse
import re
import sys
import time
import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import torch
from examples.pairs import PAIRS, Pair
from examples.pairs.disguise import DISGUISES
from examples.pairs.faults import PLANTED, Fault, wrong_epsilon

from benchmarks.sweep_page import Caught, Hidden, Noise, Results, line, page_of
from parfocal.backends import registry
from parfocal.capture.tree import flatten
from parfocal.inputs import Sides, arguments, split
from parfocal.report.report import Report
from parfocal.workflow.align import align
from parfocal.workflow.alignment import Alignment, Observation

PAGE = Path(__file__).parent.parent / "docs" / "noise.md"
LOW_PRECISION = {"bfloat16": ml_dtypes.bfloat16, "float16": np.float16}


@contextmanager
def observations() -> Iterator[list[Observation]]:
    """Collects what alignments measure but do not report as long as all is well."""
    seen: list[Observation] = []
    usual = Alignment.observed

    @contextmanager
    def observed(alignment: Alignment) -> Iterator[Observation]:
        with usual(alignment) as observation:
            seen.append(observation)
            yield observation

    Alignment.observed = observed  # type: ignore[method-assign]
    try:
        yield seen
    finally:
        Alignment.observed = usual  # type: ignore[method-assign]


def measure_noise(pair: Pair, seeds: int) -> Noise:
    """All runs of a correct pair; an alarm is a false one."""
    noise = Noise(pair.name)
    began = time.perf_counter()
    for seed in range(seeds):
        for mode in pair.modes:
            with observations() as seen:
                report = align(
                    pair.reference(seed),
                    pair.port(seed),
                    pair.inputs(seed),
                    loss=pair.loss,
                    mode=mode,
                    explain=False,
                )
            noise.add(report, seen[-1], f"seed {seed}, {mode}")
    noise.seconds = (time.perf_counter() - began) / noise.runs
    return noise


def plant(fault: Fault, seed: int = 0) -> Caught:
    """Align a port with a mistake in it."""
    pair = PAIRS[fault.pair]
    port = pair.port(seed)
    fault.plant(port)
    return verdict_on(
        fault, align(pair.reference(seed), port, pair.inputs(seed), mode=fault.mode, explain=False)
    )


def verdict_on(fault: Fault, report: Report) -> Caught:
    """Which layers the report blames, beside the one it should."""
    own = [each for each in report.divergences if not each.inherited]
    named = [each.port.path if each.port else "?" for each in own]
    others = tuple(sorted(set(named) - {fault.guilty, *fault.also}))
    return Caught(fault, own[0].score if own else 0.0, named[0] if own else None, others)


def pairs_of(report: Report, moves: dict[str, str] | None = None) -> Counter[tuple[str, str]]:
    """Which module was paired with which, once for every call, by the port's original paths."""
    paths = ((pair.reference.path, pair.port.path) for pair in report.pairs)
    if moves is None:
        return Counter(paths)
    return Counter((ours, moves[theirs]) for ours, theirs in paths if theirs in moves)


def hide(pair: Pair, seed: int = 0) -> Iterator[Hidden]:
    """Align disguised copies of a port; the pairing of the undisguised one is the right one."""
    reference, inputs, mode = pair.reference(seed), pair.inputs(seed), pair.modes[0]
    plain = pairs_of(align(reference, pair.port(seed), inputs, mode=mode, explain=False))
    for name, disguise in DISGUISES.items():
        port = pair.port(seed)
        moves = disguise(port)
        report = align(reference, port, inputs, mode=mode, explain=False)
        kept = sum((plain & pairs_of(report, moves)).values())
        yield Hidden(pair.name, name, kept, sum(plain.values()), report.ok)


def lacking(pair: Pair, dtype: str) -> str:
    """Why the port cannot run in this precision, or nothing. The reference is not the obstacle."""
    backend = registry.get("paddle")
    port = pair.port(0)
    port.train()
    args, kwargs = arguments(_cast(split(pair.inputs(0))[1], dtype), backend)
    try:
        port.to(dtype=dtype)
        leaves = [leaf for leaf in flatten(port(*args, **kwargs)).leaves.values() if backend.is_tensor(leaf)]
        backend.backward(leaves, [None for _ in leaves])
    except RuntimeError as error:
        return _reason(str(error))
    return ""


def _reason(message: str) -> str:
    missing = re.search(r"kernel `(\w+)` is not registered", message)
    return f"paddle has no `{missing[1]}` kernel" if missing else message.strip().partition(".")[0]


def _cast(value: Any, dtype: str) -> Any:
    if isinstance(value, Sides):
        return Sides(_cast(value.reference, dtype), _cast(value.port, dtype))
    if isinstance(value, dict):
        return {name: _cast(item, dtype) for name, item in value.items()}
    return value.astype(LOW_PRECISION[dtype]) if value.dtype == np.float32 else value


def measure_low_precision(pair: Pair, dtype: str) -> Noise | str:
    """The noise in another dtype, or the reason why there is none."""
    reason = lacking(pair, dtype)
    if reason:
        return reason
    noise = Noise(pair.name)
    with observations() as seen:
        reference = pair.reference(0).to(getattr(torch, dtype))
        port = pair.port(0).to(dtype=dtype)
        report = align(reference, port, _cast(pair.inputs(0), dtype), mode=pair.modes[-1], explain=False)
    noise.add(report, seen[-1], dtype)
    return noise


def run(names: list[str], seeds: int) -> Results:
    """Everything, with a line for every pair on the way."""
    results = Results(seeds=seeds)
    for name in names:
        pair = PAIRS[name]
        if pair.expected:
            first, *also = pair.guilty
            fault = Fault(pair.expected, name, first, lambda port: None, pair.modes[0], tuple(also))
            results.real.append(_told(plant(fault)))
            continue
        results.noise.append(_told(measure_noise(pair, seeds)))
        epsilon = wrong_epsilon(name)
        for fault in [*([epsilon] if epsilon else []), *(each for each in PLANTED if each.pair == name)]:
            results.faults.append(_told(plant(fault)))
        results.hidden.extend(_told(each) for each in hide(pair))
        for dtype in LOW_PRECISION:
            results.low.append((name, dtype, _told(measure_low_precision(pair, dtype))))
    return results


def _told(result: Any) -> Any:
    print(line(result), flush=True)
    return result


def main(arguments_given: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.sweep", description=__doc__)
    parser.add_argument("--seeds", type=int, default=10, help="runs per pair and mode (10)")
    parser.add_argument("--pairs", default="", help="only these pairs, e.g. vit,gpt")
    parser.add_argument(
        "--output", type=Path, help=f"the page to write ({PAGE.name}, unless --pairs is given)"
    )
    options = parser.parse_args(arguments_given)
    names = options.pairs.split(",") if options.pairs else list(PAIRS)
    unknown = [name for name in names if name not in PAIRS]
    if unknown:
        parser.error(f"no such pair: {', '.join(unknown)}; there are {', '.join(PAIRS)}")
    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    results = run(names, options.seeds)
    output = options.output or (None if options.pairs else PAGE)
    page = page_of(results)
    if output is None:
        print(page)
    else:
        output.parent.mkdir(exist_ok=True)
        output.write_text(page, encoding="utf-8")
        print(f"written to {output}")
    return 0 if results.clean else 1


if __name__ == "__main__":
    sys.exit(main())
