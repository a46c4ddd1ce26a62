"""No code outside the backends knows a framework by its name, so that another one needs no change there."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src" / "parfocal"
NAMED = re.compile(r"(?<![a-z])(torch|paddle)(?![a-z])")
# Where names belong, and why.
ROOMS = {
    "backends": "what speaks to a framework",
    "compat": "interfaces of tools for these two",
    "weights/checkpoints": "formats of files",
    "workflow/acceptance": "names of files",
    "locale": "translations of what a person reads",
}
FILES = {
    "cli/doctor.py": "what is installed",
    "cli/map.py": "the table of counterparts of these two, shown",
    "report/mapping.py": "the table of counterparts of these two, in words",
    "report/gaps_page.py": "the table of differences of these two, in words",
    "run/npy.py": "formats of files",
    "weights/rules.py": "an example in a message",
}


def names_in(text: str) -> Iterator[int]:
    """Lines on which code says a framework's name; what only a reader sees may."""
    tree = ast.parse(text)
    documentation = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef))
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        match node:
            case ast.Constant(value=str(said)) if id(node) not in documentation and NAMED.search(said):
                yield node.lineno
            case ast.Name(id=said) | ast.Attribute(attr=said) | ast.arg(arg=said) if NAMED.search(said):
                yield node.lineno


def sources() -> list[str]:
    found = [path.relative_to(SOURCE).as_posix() for path in sorted(SOURCE.rglob("*.py"))]
    return [
        path
        for path in found
        if path not in FILES and not path.startswith(tuple(f"{room}/" for room in ROOMS))
    ]


@pytest.mark.parametrize("path", sources())
def test_code_knows_no_framework_by_name(path: str) -> None:
    assert list(names_in((SOURCE / path).read_text(encoding="utf-8"))) == []


@pytest.mark.parametrize("path", FILES)
def test_what_is_left_out_still_has_a_reason(path: str) -> None:
    assert list(names_in((SOURCE / path).read_text(encoding="utf-8")))


@pytest.mark.parametrize(
    "code", ['x == "torch"', 'f"{a} in paddle"', "torch.add(x)", "backend.paddle", 'd = {"paddle.nn": 1}']
)
def test_names_are_found(code: str) -> None:
    assert list(names_in(code)) == [1]


@pytest.mark.parametrize("code", ['"""torch does so."""', "x = 1  # paddle", "torchlight = 'paddled'"])
def test_words_for_readers_are_left_alone(code: str) -> None:
    assert list(names_in(code)) == []
