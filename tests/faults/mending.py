"""Pairs kept as files, so that a fix can be made where it says: in the port or in its source."""

from __future__ import annotations

import ast
import importlib.util
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import paddle
import torch

import parfocal as pf

PLACED = re.compile(r"^(?P<statement>.+)  # (?P<file>[\w.]+\.py):(?P<line>\d+)$")


@dataclass(frozen=True)
class Pair:
    """Sources of two files that each have ``build()``, right as they are, and the inputs."""

    reference: str
    port: str
    shapes: tuple[tuple[int, ...], ...]

    def inputs(self) -> Any:
        random = np.random.default_rng(3)
        arrays = tuple(random.standard_normal(shape).astype(np.float32) for shape in self.shapes)
        return arrays if len(arrays) > 1 else arrays[0]


def build(folder: Path, name: str, text: str) -> Any:
    """What ``build()`` of a new file gives."""
    file = folder / f"{name}.py"
    file.write_text(text)
    return _imported(file).build()


def _imported(file: Path) -> ModuleType:
    specification = importlib.util.spec_from_file_location(f"{file.parent.name}_{file.stem}", file)
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    with _registered(module):
        specification.loader.exec_module(module)
    return module


@contextmanager
def _registered(module: ModuleType) -> Iterator[None]:
    sys.modules[module.__name__] = module
    try:
        yield
    finally:
        del sys.modules[module.__name__]


def reference_of(folder: Path, pair: Pair) -> torch.nn.Module:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(7)
        model = build(folder, "reference", pair.reference)
        with torch.no_grad():
            for parameter in model.parameters():
                if parameter.ndim == 1:
                    parameter.normal_(0.5, 0.3)
            for name, buffer in model.named_buffers():
                if "running" in name:
                    buffer.uniform_(0.5, 1.5)
    model.eval()
    return model  # type: ignore[no-any-return]


def apply_fix(folder: Path, source: str, port: Any, reference: Any, fix: str) -> Any:
    """The port with the fix made: mechanically, with no understanding of it."""
    text = patched(source, fix)
    port = port if text is None else build(folder, "port", text)
    names = {"port": port, "reference": reference, "paddle": paddle, "torch": torch, "parfocal": pf}
    exec(unplaced(fix), names)
    return port


def unplaced(fix: str) -> str:
    """What of a fix is to be done to the port itself."""
    return "\n".join(line for line in fix.splitlines() if not PLACED.match(line))


def patched(source: str, fix: str) -> str | None:
    """The source with every line of a fix where it says; None for a fix that is not about the source."""
    placed = [PLACED.match(line) for line in fix.splitlines()]
    lines = [(int(each["line"]), each["statement"]) for each in placed if each is not None]
    if not lines:
        return None
    for line, statement in sorted(lines, reverse=True):  # from below, so that the lines above stay
        source = replaced(source, line, statement)
    return source


def replaced(source: str, line: int, statement: str) -> str:
    """The source with the innermost statement at a line exchanged."""
    covering = [
        node
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.stmt) and node.lineno <= line <= (node.end_lineno or 0)
    ]
    found = max(covering, key=lambda node: (node.lineno, -(node.end_lineno or 0)))
    lines = source.splitlines()
    indent = lines[found.lineno - 1][: found.col_offset]
    return "\n".join((*lines[: found.lineno - 1], indent + statement, *lines[found.end_lineno :], ""))
