"""Sweeps the pairs in processes of their own, which take the machine for another where that is wanted."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager

from benchmarks.processors import PROCESSORS, VARIABLES, environment, machine_lacks
from benchmarks.sweep.page import line
from benchmarks.sweep.results import NATIVE, Outcome, Sweep

OLDER = ("avx2", "sse4")


def processors_at_hand() -> list[str]:
    """As which the frameworks can be made to run here."""
    return [NATIVE, *(name for name in OLDER if not machine_lacks(PROCESSORS[name]))]


def run(processor: str, names: Sequence[str], seeds: int, processes: int) -> Sweep:
    """All pairs, in several processes, with a line for each on the way."""
    sweep = Sweep(processor, seeds)
    thorough = processor == NATIVE
    with _held_to(processor), _pool(processes) as pool:
        for outcome in pool.map(_swept, names, [seeds] * len(names), [thorough] * len(names)):
            print(line(outcome), flush=True)
            sweep.outcomes.append(outcome)
    return sweep


def _swept(name: str, seeds: int, thorough: bool) -> Outcome:
    from benchmarks.sweep.measuring import sweep_pair  # frameworks only where they are needed

    return sweep_pair(name, seeds, thorough)


def _pool(processes: int) -> ProcessPoolExecutor:
    return ProcessPoolExecutor(processes, mp_context=multiprocessing.get_context("spawn"))


@contextmanager
def _held_to(processor: str) -> Iterator[None]:
    """The variables by which a new process takes the machine for another one."""
    usual = dict(os.environ)
    if processor != NATIVE:
        for name in VARIABLES:
            os.environ.pop(name, None)
        os.environ.update(environment(processor, 1))
    os.environ["OMP_NUM_THREADS"] = "1"
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(usual)
