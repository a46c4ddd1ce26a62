"""What a fault is: how it gets into a correct port, and what is right to say about it.

``Guilt`` is the expectation: the port's layer, for a mistake in the user's own code the source line
as well, and the cause codes that name the mistake correctly. Expectations follow from the mistake
alone; no tool is asked for them.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

MARK = "# guilty: "
OWN = "the fault's own name"
HOME = Path(__file__).parent

Change = Callable[[Any], None]


@dataclass(frozen=True)
class Guilt:
    """One mistake: where it is, and what it may be called. ``mark`` names comments in the source."""

    path: str
    codes: tuple[str, ...]
    mark: str = ""  # empty: the layer alone is the place
    other: str = ""  # a mistake between two layers is as well blamed on this one


@dataclass(frozen=True)
class Fault:
    """``plant`` changes a port that was just built; ``spoil`` one that has the right weights already.

    The first word of the name is that of the pair.
    """

    name: str
    said_guilty: tuple[Guilt, ...]
    plant: Change | None = None
    spoil: Change | None = None
    mode: str = "eval"
    finding: bool = False  # a difference of convention: worth a note, not an alarm

    @property
    def pair(self) -> str:
        return self.name.partition(" ")[0]

    @property
    def guilts(self) -> tuple[Guilt, ...]:
        own = {OWN: self.name}
        return tuple(replace(guilt, mark=own.get(guilt.mark, guilt.mark)) for guilt in self.said_guilty)

    @property
    def code(self) -> str:
        """The code it is counted under: the best name of its first mistake."""
        return self.guilts[0].codes[0]


def layer(path: str, *codes: str) -> tuple[Guilt, ...]:
    """A layer is guilty: its settings, its weights or its kind."""
    return (Guilt(path, codes),)


def line(path: str, *codes: str) -> tuple[Guilt, ...]:
    """A statement in a layer's code is guilty: it follows the comment ``# guilty: <the fault's name>``."""
    return (Guilt(path, codes, OWN),)


def rewritten(path: str, **methods: Callable[..., Any]) -> Change:
    """Plants other code: the layer becomes one of a subclass with these methods."""

    def plant(model: Any) -> None:
        target = dict(model.named_sublayers(include_self=True))[path]
        kind = type(target)
        for name, method in methods.items():
            usual = inspect.signature(getattr(kind, name)).parameters
            assert list(inspect.signature(method).parameters) == list(usual), f"{kind.__name__}.{name}"
        target.__class__ = type(kind.__name__, (kind,), dict(methods))

    return plant


def together(*changes: Change) -> Change:
    """Plants several mistakes."""

    def plant(model: Any) -> None:
        for change in changes:
            change(model)

    return plant


def spoilt(parameter: str, change: Callable[[Any], Any]) -> Change:
    """Spoils one tensor of a port: ``change`` gets its values and gives others of the same shape."""

    def spoil(model: Any) -> None:
        tensor = model.state_dict()[parameter]
        values = tensor.numpy()
        other = change(values.copy())
        assert other.shape == values.shape, parameter
        assert (other != values).any(), f"{parameter} is the same as before"
        tensor.set_value(other.astype(values.dtype))

    return spoil


@cache
def marked_lines(mark: str, folder: Path = HOME) -> tuple[tuple[str, int], ...]:
    """File and lines of every statement below a comment ``# guilty: <mark>``; there must be one."""
    found: list[tuple[str, int]] = []
    for file in sorted(folder.rglob("*.py")):
        text = file.read_text(encoding="utf-8")
        below = {number + 1 for number, row in enumerate(text.splitlines(), 1) if row.strip() == MARK + mark}
        statements = ast.walk(ast.parse(text)) if below else ()
        for node in statements:
            if isinstance(node, ast.stmt) and node.lineno in below:
                found += [
                    (str(file), number) for number in range(node.lineno, (node.end_lineno or node.lineno) + 1)
                ]
    if not found:
        raise LookupError(f"no statement below {folder} is marked by {MARK + mark!r}")
    return tuple(found)
