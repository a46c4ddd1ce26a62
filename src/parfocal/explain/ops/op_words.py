"""Several ops in words: their names, their lines, their order."""

from __future__ import annotations

from collections.abc import Sequence

from parfocal.explain.causes import line
from parfocal.explain.ops.log import Op
from parfocal.phrases import joined, phrase


def chain(ops: Sequence[Op]) -> str:
    """The ops in a row, each once."""
    return joined(", ", dict.fromkeys(op.spelled for op in ops))


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
