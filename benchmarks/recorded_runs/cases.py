"""All cases of the benchmark, and what comes out of them."""

from __future__ import annotations

import multiprocessing
import tempfile
import warnings
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import torch

from benchmarks.recorded_runs.correct import DIRECTIONS, TENSORS, correct_cases
from benchmarks.recorded_runs.mistakes import MISTAKES, Mistake
from benchmarks.recorded_runs.running import Answer, Case, Recordings, answer
from benchmarks.recorded_runs.scoring import Result, judge


def mistake_cases() -> Iterator[tuple[Case, Mistake]]:
    """Every mistake in all frameworks, in full and as sketches."""
    for kits in DIRECTIONS:
        for tensors in TENSORS:
            for mistake in MISTAKES:
                yield Case(mistake.name, mistake.side, mistake.plant(mistake.side), kits, tensors), mistake


def all_cases(only: str = "") -> list[tuple[Case, Mistake | None]]:
    cases: list[tuple[Case, Mistake | None]] = [*mistake_cases(), *((case, None) for case in correct_cases())]
    return [(case, mistake) for case, mistake in cases if only in case.title]


def answers(only: str, part: int, parts: int) -> list[Answer]:
    """To every ``parts``-th case."""
    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        recordings = Recordings(Path(folder))
        return [answer(case, recordings) for case, _ in _share(all_cases(only), part, parts)]


def _share(
    cases: list[tuple[Case, Mistake | None]], part: int, parts: int
) -> list[tuple[Case, Mistake | None]]:
    """Neighbours have the same reference, which is recorded once."""
    size = -(-len(cases) // parts)
    return cases[part * size : (part + 1) * size]


def run(only: str = "", processes: int = 1) -> Result:
    if processes == 1:
        found = answers(only, 0, 1)
    else:
        tasks = [(only, part, 4 * processes) for part in range(4 * processes)]
        context = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(processes, mp_context=context) as pool:
            found = [each for part in pool.map(answers, *zip(*tasks, strict=True)) for each in part]
    result = Result()
    for (case, mistake), each in zip(all_cases(only), found, strict=True):
        if mistake is not None:
            result.scores.append(judge(case, mistake, each))
            continue
        result.correct += 1
        if not each.same:
            result.alarms.append((case, each))
    return result
