"""Ops and lines of source as they are named in messages: ``blocks.0.norm (layer_norm)``, ``model.py:12``."""

from __future__ import annotations

from collections.abc import Sequence

from parfocal.explain.causes import OpLine
from parfocal.explain.ops.log import Op
from parfocal.phrases import joined, phrase


def chain(ops: Sequence[Op]) -> str:
    """The ops in a row, each once."""
    return joined(", ", dict.fromkeys(op.spelled for op in ops))


class LineName(str):
    """``model.py:12``, and which line of which file that is."""

    __slots__ = ("where",)
    where: tuple[str | None, int | None]


def line(op: Op | OpLine) -> LineName:
    name = LineName(f"{(op.file or '?').rpartition('/')[2]}:{op.line}")
    name.where = op.file, op.line
    return name


def lines(ops: Sequence[Op]) -> str:
    """From the first line to the last, of the file that the last is in."""
    numbers = [op.line for op in ops if op.file == ops[-1].file and op.line is not None]
    first = min(numbers, default=None)
    return (
        line(ops[-1])
        if first in (None, ops[-1].line)
        else phrase("{line}, from {first} on", line=line(ops[-1]), first=first)
    )


def listed(order: tuple[int, ...]) -> str:
    return ", ".join(str(index) for index in order)
