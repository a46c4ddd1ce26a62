"""Frames of the user's code while it runs: their lines, and the plain values they have names for."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from types import FrameType
from typing import Any

from parfocal.explain.fixes.sources import Span
from parfocal.judge import limits

SCALARS = (int, float, str)
LONGEST = limits.searches.FRAME_ITEMS.value
FLAG = "training"  # every module has it
HOUSE = f"{__name__.partition('.')[0]}."


@dataclass(frozen=True, slots=True)
class UserFrame:
    """A frame of the user's code: its line, and its numbers and strings by the expressions that give them."""

    file: str
    span: Span | None
    names: dict[str, Any]


def users_frames(is_users: Callable[[str], bool]) -> Iterator[FrameType]:
    """The frames of the user's code, the innermost first, as far as the call that is repeated."""
    frame: FrameType | None = sys._getframe(1)
    inside = False
    while frame is not None:
        if is_users(frame.f_code.co_filename):
            inside = True
            yield frame
        elif inside and frame.f_globals.get("__name__", "").startswith(HOUSE):
            return
        frame = frame.f_back


Common = dict[type, dict[str, Any]]  # plain values that classes say of all their objects


def standing(frame: FrameType, common: Common) -> UserFrame:
    """``common``: of classes that were looked at before; there are many names, and few classes."""
    names = {name: value for name, value in frame.f_locals.items() if is_plain(value)}
    for name, value in _attributes(frame.f_locals.get("self"), common):
        if is_plain(value):
            names[f"self.{name}"] = value
        elif not hasattr(value, "forward"):  # a namespace of settings
            inner = (each for each in _attributes(value, common) if is_plain(each[1]))
            names |= {f"self.{name}.{word}": item for word, item in inner}
    return UserFrame(frame.f_code.co_filename, span_of(frame), names)


def _attributes(owner: Any, common: Common) -> Iterator[tuple[str, Any]]:
    """An object's own attributes, and those of its classes."""
    kind = type(owner)
    if kind not in common:
        kinds = reversed(kind.__mro__) if hasattr(owner, "__dict__") else ()
        common[kind] = {
            name: value for each in kinds for name, value in vars(each).items() if is_plain(value)
        }
    for name, value in {**common[kind], **getattr(owner, "__dict__", {})}.items():
        if not name.startswith("_") and name != FLAG:
            yield name, value


def is_plain(value: Any) -> bool:
    """A number, a string, or a collection of them; booleans are too common to identify anything."""
    if isinstance(value, (list, tuple, dict)):
        items = value.values() if isinstance(value, dict) else value
        return 0 < len(value) <= LONGEST and all(_is_scalar(item) for item in items)
    return _is_scalar(value)


def _is_scalar(value: Any) -> bool:
    return isinstance(value, SCALARS) and not isinstance(value, bool)


def span_of(frame: FrameType) -> Span | None:
    """Where the expression stands that a frame is computing; None before Python 3.11."""
    positions = getattr(frame.f_code, "co_positions", None)
    if positions is None:
        return None
    first, last, start, end = next(islice(positions(), frame.f_lasti // 2, None))
    if first is None or last is None or start is None or end is None:
        return None
    return first, last, start, end
