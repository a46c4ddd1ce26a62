"""Aligns one pair in every way the sweep wants to know about."""

from __future__ import annotations

import re
import time
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import ml_dtypes
import numpy as np
import torch
from examples.pairs.disguise import DISGUISES
from examples.pairs.faults import Fault
from examples.pairs.pair import Pair

from benchmarks.sweep.catalogue import ALL, faint_faults_of, faults_of, names_of
from benchmarks.sweep.floors import scores_of
from benchmarks.sweep.results import Caught, Hidden, Low, Noise, Outcome, Scored
from parfocal.attribution.observation import Observation
from parfocal.backends import registry
from parfocal.capture.nested_values import flatten
from parfocal.inputs import Sides, arguments, split
from parfocal.report.report import Report
from parfocal.workflow.align import align
from parfocal.workflow.alignment import Alignment

LOW_PRECISION = {"bfloat16": ml_dtypes.bfloat16, "float16": np.float16}


def sweep_pair(name: str, seeds: int, thorough: bool) -> Outcome:
    """Everything about one pair; without ``thorough`` its noise in one mode and its planted mistakes."""
    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    pair, outcome = ALL[name], Outcome(name)
    if pair.expected:
        first, *also = pair.guilty
        fault = Fault(pair.expected, name, first, lambda port: None, pair.modes[0], tuple(also))
        outcome.real.append(plant(fault))
        return outcome
    outcome.noise = measure_noise(pair, seeds, pair.modes if thorough else pair.modes[-1:])
    outcome.faults += [plant(fault) for fault in faults_of(name)]
    outcome.faint += [plant(fault) for fault in faint_faults_of(name)]
    if thorough and not pair.tags & {"timm", "kind"}:
        outcome.hidden += hide(pair)
        outcome.low += [measure_low_precision(pair, dtype) for dtype in LOW_PRECISION]
    return outcome


@contextmanager
def observations(*, scored: bool = False) -> Iterator[list[tuple[Observation, list[Scored]]]]:
    """Collects what alignments measure but do not report as long as all is well."""
    seen: list[tuple[Observation, list[Scored]]] = []
    usual = Alignment.observed

    @contextmanager
    def observed(alignment: Alignment) -> Iterator[Observation]:
        with usual(alignment) as observation:
            yield observation
            seen.append((observation, list(scores_of(observation)) if scored else []))

    Alignment.observed = observed  # type: ignore[method-assign]
    try:
        yield seen
    finally:
        Alignment.observed = usual  # type: ignore[method-assign]


def measure_noise(pair: Pair, seeds: int, modes: Sequence[str]) -> Noise:
    """All runs of a correct pair; an alarm is a false one."""
    noise = Noise(pair.name)
    began = time.perf_counter()
    for seed in range(seeds):
        for mode in modes:
            with observations(scored=True) as seen:
                report = align(
                    pair.reference(seed),
                    pair.port(seed),
                    pair.inputs(seed),
                    loss=pair.loss,
                    mode=mode,
                    explain=False,
                )
            observation, scores = seen[-1]
            noise.scores += scores
            noise.whole = max(noise.whole, _largest_end(observation))
            noise.paired += report.coverage.count("calls")
            noise.calls += report.coverage.of("calls")
            noise.runs += 1
            if report.first is not None:
                noise.alarms.append(f"seed {seed}, {mode}: {_alarm(report)}")
    noise.seconds = (time.perf_counter() - began) / noise.runs
    return noise


def _largest_end(observation: Observation) -> float:
    return max((end.measure.score for end in observation.ends), default=0.0)


def _alarm(report: Report) -> str:
    first = report.first
    assert first is not None
    where = (first.port.path if first.port else "?") or "(root)"
    return f"{first.phase} of {where}, {first.what}, {first.score:.3g}"


def plant(fault: Fault, seed: int = 0) -> Caught:
    """Align a port with a mistake in it: which layers does the report blame?"""
    pair = ALL[fault.pair]
    port = pair.port(seed)
    fault.plant(port)
    report = align(pair.reference(seed), port, pair.inputs(seed), mode=fault.mode, explain=False)
    own = [each for each in report.divergences if not each.inherited]
    named = [each.port.path if each.port else "?" for each in own]
    names = names_of(fault, port)
    others = tuple(sorted(set(named) - {*names, *fault.also}))
    mistake = fault.name.partition(" of " + fault.pair)[0]
    score = own[0].score if own else 0.0
    return Caught(fault.pair, mistake, names, score, named[0] if own else None, others)


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


def measure_low_precision(pair: Pair, dtype: str) -> Low:
    """The noise in another dtype, or the reason why there is none."""
    reason = lacking(pair, dtype)
    if reason:
        return Low(pair.name, dtype, reason=reason)
    with observations() as seen:
        reference = pair.reference(0).to(getattr(torch, dtype))
        port = pair.port(0).to(dtype=dtype)
        report = align(reference, port, _cast(pair.inputs(0), dtype), mode=pair.modes[-1], explain=False)
    observation, _ = seen[-1]
    scores = (
        max((each.forward or 0.0 for each in report.pairs), default=0.0),
        max((each.backward or 0.0 for each in report.pairs), default=0.0),
        max((end.measure.score for end in observation.parameters), default=0.0),
        _largest_end(observation),
    )
    return Low(pair.name, dtype, scores, len(report.divergences))
