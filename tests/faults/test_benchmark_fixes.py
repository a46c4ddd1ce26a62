"""The benchmark's own faults are mended by their fixes, made in the running code.

Every fault is tried with ``PARFOCAL_EVERY_FIX=1``, which takes some minutes.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

import paddle
import pytest
import torch
from benchmarks.faults.cases import Models, build, fault_cases
from benchmarks.faults.catalogue import FAULTS
from benchmarks.faults.scoring import Case

import parfocal as pf
from parfocal.explain.fixes.joining import parts_of
from parfocal.explain.fixes.scopes import function_at
from parfocal.explain.fixes.splicing import Patch
from parfocal.explain.fixes.trying import patched
from parfocal.judge.verdict import Cause
from tests.faults.mending import PLACED, unplaced

# One or two of every family whose fix is more than a word; ``EVERY`` asks for all.
NAMES = (
    *("cnn gate not applied", "resnet relu before addition", "resnet relu before norm", "vit post-norm"),
    *("vit no position", "vit no last norm", "detector no top-down path", "lstm no mean"),
    *("gpt mask inverted", "points mask inverted", "points no mask", "generator shuffled otherwise"),
    *("lstm started with ones", "points gradient at zero", "points gradient of ties"),
    *("resnet stride in the second convolution", "detector one stride", "gpt head not tied"),
)
EVERY = "PARFOCAL_EVERY_FIX"
CHOSEN = [case for case in fault_cases() if case.fault in NAMES or os.environ.get(EVERY)]
TURNS = 4  # a mistake may hide another


def placed(cause: Cause) -> Iterator[Patch]:
    """The patches of a fix, their lines as they are told; none for a fix of the port itself."""
    found = [PLACED.match(line) for line in cause.fix.splitlines()]
    lines = {int(each["line"]): each["statement"] for each in found if each is not None}
    for part in parts_of(cause.edit or cause.fix):
        if isinstance(part, Patch):
            first, *others = (replace(each, new=lines[each.line]) for each in (part, *part.also))
            yield replace(first, also=tuple(others))


def aligned(models: Models) -> Any:
    return pf.align(
        models.reference, models.port, models.inputs, mode=models.mode, transfer=not models.loaded
    )


def together(patches: Sequence[Patch]) -> Iterator[Patch]:
    """One patch for each function that has some."""
    by_function: dict[Any, dict[int, Patch]] = {}
    for patch in (each for whole in patches for each in (whole, *whole.also)):
        by_function.setdefault(function_at(patch.file, patch.line), {})[patch.line] = replace(patch, also=())
    for lines in by_function.values():
        first, *others = lines.values()
        yield replace(first, also=tuple(others))


def mended(case: Case) -> Any:
    """The report once every fix that is told has been made: all of a report, then those of the next."""
    models = build(case, load=False)
    names = {"port": models.port, "reference": models.reference, "paddle": paddle, "torch": torch}
    report, patches = aligned(models), []
    assert report.ok == FAULTS[case.fault].finding
    for _ in range(TURNS):
        own = [each for each in report.divergences if not each.inherited]
        if not own:
            break
        assert all(each.cause is not None for each in own), str(report)
        for cause in {each.cause.fix: each.cause for each in own if each.cause is not None}.values():
            patches += placed(cause)
            exec(unplaced(cause.fix), {**names, "parfocal": pf})
        with ExitStack() as made:
            for patch in together(patches):
                modules = models.port.sublayers(include_self=True)
                assert made.enter_context(patched(modules, patch)), "the code was not found"
            report = aligned(models)
    return report


@pytest.mark.filterwarnings("ignore:When training, we now always track global mean:UserWarning")
@pytest.mark.parametrize("case", CHOSEN, ids=lambda case: case.fault)
def test_the_fix_mends_the_fault(case: Case) -> None:
    report = mended(case)
    assert report.ok, str(report)
