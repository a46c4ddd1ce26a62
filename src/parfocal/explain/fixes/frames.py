"""Where the user's code stands while it runs."""

from __future__ import annotations

import sys
from collections.abc import Callable
from itertools import islice
from types import FrameType

from parfocal.explain.fixes.sources import Span


def users_frame(is_users: Callable[[str], bool]) -> FrameType | None:
    """The innermost frame of the user's code."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and not is_users(frame.f_code.co_filename):
        frame = frame.f_back
    return frame


def span_of(frame: FrameType) -> Span | None:
    """Where the expression stands that a frame is computing; None before Python 3.11."""
    positions = getattr(frame.f_code, "co_positions", None)
    if positions is None:
        return None
    first, last, start, end = next(islice(positions(), frame.f_lasti // 2, None))
    if first is None or last is None or start is None or end is None:
        return None
    return first, last, start, end
