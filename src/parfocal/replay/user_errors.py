"""What a user's model or loss raises, told as one error: which side, in which module, in its own words."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any

from parfocal.backends import registry
from parfocal.brief import one_line
from parfocal.errors import InputError, ParfocalError
from parfocal.judge.verdict import side_name
from parfocal.phrases import phrase

RAISED = 240  # characters of what a model raised: that is all one has to go by
_PLACE = re.compile(r"\s*\(at /\S+:\d+\)$")
INPUTS_HINT = phrase(
    "a tuple is passed by position, a dict by keyword; pf.sides(a, b) gives each side its own"
)


@contextmanager
def telling(
    side: str, what: str, modules: Callable[[], dict[str, Any]], hint: str | Callable[[], str] = ""
) -> Iterator[None]:
    """``what``: what was being done; ``modules``: path -> module, to find the innermost that was running.

    What takes long to find out is asked for only when it is needed. A mistake of our own, in a
    callback, is not the user's and stays what it is.
    """
    try:
        yield
    except ParfocalError:
        raise
    except (Exception, SystemExit) as error:  # a model that exits gives no verdict either
        path, kind, ours = _innermost(error.__traceback__, modules())
        if ours:
            raise
        where = phrase(" in {path} ({kind})", path=path or phrase("its own code"), kind=kind) if kind else ""
        where += _line(error.__traceback__)
        raise InputError(
            phrase(
                "{what} of the {side} raised {name}{where}: {words}",
                what=what,
                side=side_name(side),
                name=type(error).__name__,
                where=where,
                words=_words(error),
            ),
            hint=hint() if callable(hint) else hint,
        ) from error


def _line(trace: TracebackType | None) -> str:
    """The innermost line that is neither ours nor a framework's."""
    line = ""
    others = {"parfocal", *(package for name in registry.names() for package in registry.packages(name))}
    while trace is not None:
        code, module = trace.tb_frame.f_code, trace.tb_frame.f_globals.get("__name__", "")
        if module.partition(".")[0] not in others and code.co_filename[:1] != "<":
            line = f", {os.path.basename(code.co_filename)}:{trace.tb_lineno}"
        trace = trace.tb_next
    return line


def _words(error: BaseException) -> str:
    """The first line: frameworks add places in their own sources below."""
    first = one_line(str(error), RAISED) or phrase("(no message)")
    return _PLACE.sub("", first)


def _innermost(trace: TracebackType | None, modules: dict[str, Any]) -> tuple[str, str, bool]:
    """Path and class of the innermost module in whose code it happened, and whether our code came after."""
    paths = {id(module): path for path, module in modules.items()}
    path, kind, ours = "", "", False
    while trace is not None:
        frame = trace.tb_frame
        ours = (ours and bool(kind)) or frame.f_globals.get("__name__", "").startswith("parfocal.")
        first = frame.f_code.co_varnames[:1] if frame.f_code.co_argcount else ()
        owner = frame.f_locals.get(first[0]) if first else None
        if id(owner) in paths:
            path, kind, ours = paths[id(owner)], type(owner).__name__, False
        trace = trace.tb_next
    return path, kind, ours
