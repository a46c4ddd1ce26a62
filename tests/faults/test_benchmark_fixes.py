"""The benchmark's own faults are mended by their fixes, made in the running code."""

from __future__ import annotations

import ast
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import paddle
import pytest
import torch
from benchmarks.faults.cases import Models, build, fault_cases
from benchmarks.faults.scoring import Case

import parfocal as pf
from parfocal.explain.fixes.sources import SIMPLE, read
from parfocal.explain.fixes.splicing import Patch
from parfocal.explain.fixes.trying import patched
from tests.faults.mending import PLACED

# One or two of every family whose fix is more than a word.
NAMES = (
    *("cnn gate not applied", "resnet relu before addition", "resnet relu before norm", "vit post-norm"),
    *("vit no position", "vit no last norm", "detector no top-down path", "lstm no mean"),
    *("gpt mask inverted", "points mask inverted", "points no mask", "generator shuffled otherwise"),
    *("lstm started with ones", "points gradient at zero", "points gradient of ties"),
)
TURNS = 3  # a model may have more than one mistake


def placed(fix: str, file: str | None) -> Patch | None:
    """The fix as a patch of the file that is blamed; None for a fix of the port itself."""
    found = [PLACED.match(line) for line in fix.splitlines()]
    lines = [(each["file"], int(each["line"]), each["statement"]) for each in found if each is not None]
    if len(lines) != len(found):
        return None
    assert file is not None
    assert {name for name, _, _ in lines} == {Path(file).name}
    *others, last = (_patch(file, line, statement) for _, line, statement in lines)
    return Patch(last.file, last.line, last.old, last.new, tuple(others))


def _patch(file: str, line: int, new: str) -> Patch:
    source = read(file)
    assert source is not None
    (old,) = (node for node in ast.walk(source.tree) if isinstance(node, SIMPLE) and node.lineno == line)
    return Patch(file, line, source.segment(old), new)


def aligned(models: Models) -> Any:
    return pf.align(
        models.reference, models.port, models.inputs, mode=models.mode, transfer=not models.loaded
    )


def mended(case: Case) -> Any:
    """The report once every fix that is told has been made, one after the other."""
    models = build(case, load=False)
    names = {"port": models.port, "reference": models.reference, "paddle": paddle, "torch": torch}
    report = aligned(models)
    assert not report.ok
    with ExitStack() as made:
        for _ in range(TURNS):
            if report.first is None:
                break
            cause, site = report.first.cause, report.first.port
            assert cause is not None, str(report)
            patch = placed(cause.fix, None if site is None else site.file)
            if patch is None:
                exec(cause.fix, {**names, "parfocal": pf})
            else:
                modules = models.port.sublayers(include_self=True)
                assert made.enter_context(patched(modules, patch)), "the code was not found"
            report = aligned(models)
    return report


@pytest.mark.filterwarnings("ignore:When training, we now always track global mean:UserWarning")
@pytest.mark.parametrize("name", NAMES)
def test_the_fix_mends_the_fault(name: str) -> None:
    case = next(case for case in fault_cases() if case.fault == name)
    report = mended(case)
    assert report.ok, str(report)
